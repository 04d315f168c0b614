//! Failures of programs that are measured, and of workers.

use holdpoint_model::limits::clean_text;
use holdpoint_model::{Failure, FailureCause};

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{detail}")]
pub struct WorkerError {
    pub cause: FailureCause,
    pub detail: String,
    pub stderr_tail: Vec<String>,
    /// Whether the worker is gone.
    pub fatal: bool,
    /// The workload at fault, if it is not the one of the request.
    pub blamed: Option<String>,
}

impl WorkerError {
    /// A failure that the worker survives. The detail may quote the worker, so it is truncated and cleaned.
    pub fn new(cause: FailureCause, detail: impl Into<String>) -> Self {
        Self {
            cause,
            detail: clean_text(&detail.into()),
            stderr_tail: Vec::new(),
            fatal: false,
            blamed: None,
        }
    }

    pub fn fatal(cause: FailureCause, detail: impl Into<String>) -> Self {
        Self { fatal: true, ..Self::new(cause, detail) }
    }

    /// The same failure, of what is run beside a workload.
    pub(crate) fn during(self, step: &str) -> Self {
        Self { detail: format!("{step}: {}", self.detail), ..self }
    }

    pub(crate) fn no_workload(name: &str) -> Self {
        Self::new(FailureCause::WorkerError, format!("workload {name:?} is not known here, or not prepared"))
    }
}

impl From<WorkerError> for Failure {
    fn from(error: WorkerError) -> Self {
        Self { cause: error.cause, detail: error.detail, stderr_tail: error.stderr_tail, samples: None }
    }
}
