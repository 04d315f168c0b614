//! One module per command.

pub mod ab;
pub mod baseline;
pub mod bisect;
pub mod calibrate;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod gate;
pub mod report;
pub mod roofline;
pub mod run;
pub mod trend;
pub mod tune;
pub mod worker;
