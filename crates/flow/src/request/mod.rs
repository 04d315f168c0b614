//! Parts of requests that several commands share: plain values, with no trace of how they were given.

mod decision;
mod engine;
mod evidence;
mod own_process;
mod policy;
mod suite;

pub use decision::{Decision, Question, SidesRequest};
pub use engine::EngineChoice;
pub use evidence::{EvidenceFiles, HistoryChoice, ProfileOn};
pub use holdpoint_gate::Policy;
pub use holdpoint_history::Location;
pub use own_process::{MeasureRequest, OwnProcess, WorkerRequest};
pub(crate) use policy::policy_of_sides;
pub use policy::{PolicyChoice, check_policy_of_sides};
pub(crate) use suite::OWN_FILE;
pub use suite::{SuiteChoice, default_suite};
