//! Benchmarks by name, with their times per call.

use crate::Imported;
use holdpoint_model::FileError;
use holdpoint_model::current::{Current, MetricValue};
use holdpoint_model::document::{check_time, value_error};
use holdpoint_model::suite::metric_name;

/// The times of one benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// As the tool calls it.
    pub name: String,
    /// Milliseconds per call, a sample each, in the order they were taken.
    pub times_ms: Vec<f64>,
}

/// Adds a sample to the benchmark of this name, which may be new. Tools mostly write the samples of one next to each other.
pub(crate) fn push(all: &mut Vec<Series>, name: &str, time_ms: f64) {
    match all.iter_mut().rev().find(|series| series.name == name) {
        Some(series) => series.times_ms.push(time_ms),
        None => all.push(Series { name: name.to_owned(), times_ms: vec![time_ms] }),
    }
}

/// The medians of these benchmarks as metrics, with their samples beside them.
pub(crate) fn import(suite: &str, all: Vec<Series>) -> Result<Imported, FileError> {
    let current = Current { suite: suite.to_owned(), ..Current::default() };
    let mut imported = Imported { current, ..Imported::default() };
    for series in all {
        let Some(value_ms) = holdpoint_stats::median(&series.times_ms) else {
            return value_error(series.name, "has no times");
        };
        series.times_ms.iter().try_for_each(|ms| check_time(&series.name, *ms))?;
        let key = metric_name(&series.name.replace('.', "_"), "p50_ms");
        let metric = MetricValue {
            value_ms,
            workload: Some(series.name.clone()),
            identity: None,
            answer_checked: None,
            slow_stretches: None,
        };
        if imported.current.metrics.insert(key.clone(), metric).is_some() {
            return value_error(series.name, "is there twice");
        }
        imported.samples_ms.insert(key, series.times_ms);
    }
    Ok(imported)
}
