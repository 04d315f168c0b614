//! Runs workloads and times them: workers, scheduling, the machine's fingerprint and state.
//!
//! Knows nothing of baselines, policies or verdicts.

pub mod ab;
mod ask;
pub mod builds;
pub mod clock;
pub mod doctor;
pub mod machine;
pub mod run;
mod schedule;
mod slot;
mod summary;
pub mod worker;

pub use run::run_suite;
pub use schedule::Event;
