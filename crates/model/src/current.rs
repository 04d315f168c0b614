//! The side under test, reduced to what a comparison needs, whatever file it came from.

use crate::machine::{EnvironmentLock, Machine, Revision};
use crate::report::{Outcome, Report};
use crate::suite::{Identity, metric_name};
use std::collections::BTreeMap;

/// A run, ready to be compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Current {
    pub suite: String,
    /// When the run began, if its file says.
    pub timestamp_utc: Option<String>,
    /// The run's status, if its file has one.
    pub status: Option<String>,
    /// The machine, if its file says.
    pub machine: Option<Machine>,
    /// Other conditions that must match, if the file names them.
    pub environment_lock: Option<EnvironmentLock>,
    /// The revision, if its file says.
    pub revision: Option<Revision>,
    /// Share of the machine's CPU time that other processes used meanwhile, if its file says.
    pub others_cpu: Option<f64>,
    pub metrics: BTreeMap<String, MetricValue>,
    /// Metrics that were requested and not measured.
    pub unmeasured: BTreeMap<String, Unmeasured>,
    /// Remarks about the file for the reader of a comparison, in sentences.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MetricValue {
    pub value_ms: f64,
    /// The workload it belongs to, if the file says.
    pub workload: Option<String>,
    pub identity: Option<Identity>,
    /// Whether the workload's answer was checked, if the file says.
    pub answer_checked: Option<bool>,
    /// How much slower than the middle one the slowest tenth of the run's stretches was, if the file says.
    pub slow_stretches: Option<f64>,
}

/// Why a metric has no value.
#[derive(Clone, Debug, PartialEq)]
pub enum Unmeasured {
    /// The workload could not run here.
    Skipped(String),
    Failed(String),
}

impl From<&Report> for Current {
    fn from(report: &Report) -> Self {
        let mut current = Self {
            suite: report.suite.clone(),
            timestamp_utc: Some(report.timestamp_utc.clone()),
            status: Some(report.status.as_str().to_owned()),
            machine: report.machine.clone(),
            environment_lock: report.environment_lock.clone(),
            revision: report.revision.clone(),
            others_cpu: report.config.others_cpu,
            ..Self::default()
        };
        for (name, measurement) in &report.benchmarks {
            for metric in &measurement.gated {
                let key = metric_name(name, metric);
                let unmeasured = match &measurement.outcome {
                    Outcome::Measured(measured) if measured.distrust.is_some() => {
                        Unmeasured::Skipped(measured.distrust.clone().unwrap_or_default())
                    }
                    Outcome::Measured(measured) => match measured.metric(metric) {
                        Some(value_ms) => {
                            let (workload, identity) =
                                (Some(name.clone()), Some(measurement.identity.clone()));
                            let answer_checked = Some(measured.answer.is_some());
                            let slow_stretches = measured.slow_stretches;
                            let value =
                                MetricValue { value_ms, workload, identity, answer_checked, slow_stretches };
                            current.metrics.insert(key, value);
                            continue;
                        }
                        None => Unmeasured::Skipped(format!("its worker does not report {metric}")),
                    },
                    Outcome::Skipped { reason } => Unmeasured::Skipped(reason.clone()),
                    Outcome::Failed(failure) => {
                        Unmeasured::Failed(format!("{}: {}", failure.cause.as_str(), failure.detail))
                    }
                };
                current.unmeasured.insert(key, unmeasured);
            }
        }
        current
    }
}
