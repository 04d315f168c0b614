//! Workloads that a suite leaves to its workers to list.

use super::WorkerError;
use crate::slot::Slot;
use holdpoint_model::{FailureCause, Suite, WorkloadSpec};
use serde_json::json;

/// A suite with all workloads of the workers that have `all_workloads`; those that it names itself stay as they are.
pub fn expand(mut suite: Suite) -> Result<Suite, WorkerError> {
    let all = |suite: &Suite| {
        suite.workers.iter().find(|(_, worker)| worker.all_workloads).map(|(name, _)| name.clone())
    };
    while let Some(name) = all(&suite) {
        let of_worker = |error: WorkerError| WorkerError {
            detail: format!("worker {name:?}: {}", error.detail),
            ..error
        };
        let listed = list(&suite, &name).map_err(of_worker)?;
        let failed = |what: String| of_worker(WorkerError::new(FailureCause::Mismatch, what));
        suite = suite.with_listed(&name, listed).map_err(|error| failed(error.to_string()))?;
    }
    Ok(suite)
}

/// The workloads of a worker that the suite wants and does not name.
fn list(suite: &Suite, name: &str) -> Result<Vec<WorkloadSpec>, WorkerError> {
    let mut slot = Slot::new(suite, name, None);
    let listed = slot.worker()?.list()?;
    let is_wanted = |workload: &str| {
        suite.only.as_ref().is_none_or(|only| only == workload)
            && suite.workloads.iter().all(|known| known.name != workload)
    };
    let wanted = listed.into_iter().filter(|info| is_wanted(&info.name));
    let specs = wanted.map(|info| {
        let keys = json!({
            "name": info.name, "worker": name, "op": info.op, "shape": info.shape, "dtype": info.dtype,
        });
        serde_json::from_value(keys)
            .map_err(|error| WorkerError::new(FailureCause::Mismatch, error.to_string()))
    });
    specs.collect()
}
