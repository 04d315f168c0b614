//! The commands as functions: requests in, documents out. Nothing here prints or exits; notes and progress go to whoever watches.
//!
//! A request is plain data, defined beside its command; what is typed becomes one in `cli`.

pub mod ab;
pub mod attest;
pub mod baseline;
pub mod bisect;
pub mod blame;
pub mod cache;
pub mod calibrate;
pub mod changes;
pub mod check;
pub mod checklist;
pub mod ci;
mod ci_job;
mod command_result;
pub mod compare;
mod error;
pub mod fuzz;
pub mod gate;
pub mod history;
pub mod init;
mod judgement_with_samples;
pub mod profile;
pub mod replay;
pub mod report;
pub mod request;
pub mod roofline;
pub mod run;
pub mod sanitize;
pub mod status;
mod support;
pub mod sweep;
pub mod trend;
pub mod tune;
mod watch;
pub mod worker;

pub use command_result::{CommandResult, Message};
pub use error::FlowError;
pub use judgement_with_samples::JudgementWithSamples;
pub use watch::{Estimate, Progress, Unwatched, Watch};
