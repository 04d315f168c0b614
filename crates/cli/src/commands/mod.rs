//! One module per command.

pub mod ab;
pub mod attest;
pub mod baseline;
pub mod bisect;
pub mod calibrate;
pub mod check;
pub mod checklist;
pub mod ci;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod fuzz;
pub mod gate;
pub mod profile;
mod promote;
pub mod release;
pub mod replay;
pub mod report;
pub mod roofline;
pub mod run;
pub mod sanitize;
pub mod trend;
pub mod tune;
pub mod worker;
