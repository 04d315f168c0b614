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

impl Series {
    /// The middle of its times; absent where there are none.
    fn median_ms(&self) -> Option<f64> {
        let mut sorted = self.times_ms.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => None,
            n if n % 2 == 1 => Some(sorted[middle]),
            _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
        }
    }
}

/// Adds a sample to the benchmark of this name, which may be new. Tools write the samples of one benchmark next to each other.
pub(crate) fn push(all: &mut Vec<Series>, name: &str, times_ms: impl IntoIterator<Item = f64>) {
    match all.last_mut() {
        Some(last) if last.name == name => last.times_ms.extend(times_ms),
        _ => all.push(Series { name: name.to_owned(), times_ms: times_ms.into_iter().collect() }),
    }
}

/// The medians of these benchmarks as metrics, with their samples beside them.
pub(crate) fn import(suite: &str, all: Vec<Series>) -> Result<Imported, FileError> {
    let current = Current { suite: suite.to_owned(), ..Current::default() };
    let mut imported = Imported { current, ..Imported::default() };
    for series in all {
        let Some(value_ms) = series.median_ms() else {
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
