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
mod ceilings;
pub mod changes;
pub mod check;
pub mod checklist;
pub mod ci;
mod ci_job;
mod command_result;
pub mod compare;
mod error;
mod evidence;
pub mod fuzz;
pub mod gate;
mod histories;
pub mod history;
pub mod init;
mod interchange;
mod judgement_with_samples;
mod links;
mod person;
pub mod profile;
pub mod replay;
pub mod report;
pub mod request;
pub mod roofline;
mod rules;
pub mod run;
pub mod sanitize;
pub mod status;
mod suites;
pub mod sweep;
mod tensors;
pub mod trend;
pub mod tune;
mod waivers;
mod watch;
pub mod worker;

pub use command_result::{CommandResult, Message};
pub use error::FlowError;
pub use judgement_with_samples::JudgementWithSamples;
pub use watch::{Estimate, Progress, Unwatched, Watch};
