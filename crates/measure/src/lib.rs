//! Runs workloads and times them: workers, scheduling, the machine's fingerprint and state. Knows nothing about
//! baselines, policies or verdicts.

pub mod ab;
pub mod advice;
mod audit;
pub mod builds;
pub mod clock;
pub mod doctor;
pub mod fuzz;
pub mod harness;
pub mod jobs;
pub mod machine;
mod meter;
mod pace;
mod physics;
pub mod program;
mod ready;
pub mod run;
mod schedstat;
mod schedule;
mod summary;
pub mod tools;
pub mod tune;
pub mod worker;

/// The numbers that decide what is measured; METHODOLOGY.md prints them.
pub mod constants {
    pub use crate::ab::{CLOCK_STEP_NS, FREQUENCY, STEAL, WAIT};
    pub use crate::meter::STEPS_PER_SAMPLE;
    pub use crate::schedule::{WARM_DIFFERENCE, WARM_WINDOWS};
}

pub use holdpoint_cuda::device_count;
pub use ready::ReadySuite;
pub use run::run_suite;
pub use schedule::Event;
