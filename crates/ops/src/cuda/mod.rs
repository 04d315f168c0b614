//! Ops on a CUDA device: everything but an op's own launches, which is the same for all ops: memory, drawing, poison, checks,
//! timing, tuning, and a user's kernel in place of an op's.

mod ahead;
mod checking;
mod evaluate;
mod fresh;
mod oracle;
mod prepared;
mod program;
mod tune;
mod user_kernel;

pub use crate::device::{ARCHS, Compilation, Gpu, PrepareError, checked_units};
pub use evaluate::Evaluation;
pub use prepared::Prepared;
pub use tune::{TuneResult, tune};
