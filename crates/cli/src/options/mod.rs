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

mod attest;
mod cache;
mod changes;
mod ci;
mod comment;
mod history;
mod init;
mod report;
mod trend;
mod values;

pub use attest::{AttestArgs, ChecklistArgs};
pub use cache::CacheArgs;
pub use changes::ChangesArgs;
pub use ci::CiArgs;
pub use history::HistoryArgs;
pub use init::FirstSuiteArgs;
pub use report::ReportArgs;
pub use trend::TrendArgs;
