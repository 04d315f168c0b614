//! Flags of the commands: their help, their defaults and which go together; and the request that each command's flags make.

/// Makes a request of flags field by field; a group of flags becomes the value that the request has in its place.
macro_rules! requests {
    ($($args:ident => $request:ty { $($field:ident),* $(,)? })*) => { $(
        impl From<$args> for $request {
            fn from($args { $($field),* }: $args) -> Self {
                Self { $($field: $field.into()),* }
            }
        }
    )* };
}

mod ab;
mod attest;
mod baseline;
mod bisect;
mod cache;
mod changes;
mod check;
mod ci;
mod comment;
mod compare;
mod decide;
mod engine;
mod fuzz;
mod gate;
mod groups;
mod history;
mod init;
mod inspect;
mod policy;
mod replay;
mod report;
mod roofline;
mod run;
mod trend;
mod values;

pub use ab::AbArgs;
pub use attest::{AttestArgs, ChecklistArgs};
pub use baseline::BaselineArgs;
pub use bisect::{BisectArgs, BlameArgs, CalibrateArgs};
pub use cache::CacheArgs;
pub use changes::ChangesArgs;
pub use check::CheckArgs;
pub use ci::CiArgs;
pub use compare::CompareArgs;
pub use engine::SweepArgs;
pub use fuzz::FuzzArgs;
pub use gate::GateArgs;
pub use history::HistoryArgs;
pub use init::FirstSuiteArgs;
pub use inspect::{ProfileArgs, SanitizeArgs};
pub use replay::ReplayArgs;
pub use report::ReportArgs;
pub use roofline::RooflineArgs;
pub use run::{RunArgs, TuneArgs, WorkerArgs};
pub use trend::TrendArgs;
