//! Suites that can be measured.

use crate::harness;
use crate::meter::Slot;
use crate::program::WorkerError;
use holdpoint_model::suite::{MeasurePlan, Task};
use holdpoint_model::{FailureCause, Suite, Workload};
use std::ops::Deref;

/// A suite with all of its workloads. Nothing else is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadySuite(Suite);

impl ReadySuite {
    /// Asks the suite's harness and workers, which have been built, for the workloads that it leaves to them.
    pub fn list(suite: Suite) -> Result<Self, WorkerError> {
        harness::expand(suite).and_then(with_listed).map(Self)
    }

    /// Whether a worker can serve its workloads, before anything is measured.
    pub fn try_start(&self, worker: &str) -> Result<(), WorkerError> {
        Slot::new(self, worker, None).worker().map(|_| ())
    }

    /// The same with other settings.
    #[must_use]
    pub fn with_measure(self, measure: MeasurePlan) -> Self {
        Self(Suite { measure, ..self.0 })
    }

    /// The same with the first of its workloads.
    #[must_use]
    pub fn first(mut self, count: usize) -> Self {
        self.0.workloads.truncate(count);
        self
    }
}

impl Deref for ReadySuite {
    type Target = Suite;

    fn deref(&self) -> &Suite {
        &self.0
    }
}

/// A suite with all workloads of the workers that have `all_workloads`; those that it names itself stay as they are.
fn with_listed(mut suite: Suite) -> Result<Suite, WorkerError> {
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
fn list(suite: &Suite, name: &str) -> Result<Vec<Workload>, WorkerError> {
    let mut slot = Slot::new(suite, name, None);
    let listed = slot.worker()?.list()?;
    let is_wanted = |workload: &str| {
        suite.only.as_ref().is_none_or(|only| only == workload)
            && suite.workloads.iter().all(|known| known.name != workload)
    };
    let wanted = listed.into_iter().filter(|info| is_wanted(&info.name));
    let specs = wanted.map(|info| {
        let mut workload = Workload::new(&info.name, Task::Served(name.to_owned()), &info.op);
        (workload.shape, workload.dtype) = (info.shape, info.dtype);
        workload
    });
    Ok(specs.collect())
}
