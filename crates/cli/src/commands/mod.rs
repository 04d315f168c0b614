//! One module per command.

pub mod baseline;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod gate;
pub mod report;
pub mod run;
pub mod trend;
pub mod worker;
