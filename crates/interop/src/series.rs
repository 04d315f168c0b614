//! Benchmarks by name, with their times per call.

use crate::Imported;
use holdpoint_model::FileError;
use holdpoint_model::document::value_error;
use indexmap::IndexMap;

/// The times of one benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// As the tool calls it.
    pub name: String,
    /// Milliseconds per call, a sample each, in the order they were taken.
    pub times_ms: Vec<f64>,
}

/// Series in the order in which their names first came, found by name.
#[derive(Debug, Default)]
pub(crate) struct ByName {
    all: IndexMap<String, Vec<f64>>,
    /// Of the sample before: tools mostly write the samples of one next to each other.
    last: usize,
}

impl ByName {
    /// Adds a sample to the benchmark of this name, which may be new.
    pub fn push(&mut self, name: &str, time_ms: f64) {
        match self.all.get_index_mut(self.last) {
            Some((last, times_ms)) if last == name => times_ms.push(time_ms),
            _ => match self.all.get_full_mut(name) {
                Some((place, _, times_ms)) => {
                    times_ms.push(time_ms);
                    self.last = place;
                }
                None => {
                    self.last = self.all.len();
                    self.all.insert(name.to_owned(), vec![time_ms]);
                }
            },
        }
    }

    pub(crate) fn into_series(self) -> Vec<Series> {
        self.all.into_iter().map(|(name, times_ms)| Series { name, times_ms }).collect()
    }
}

/// The medians of these benchmarks as metrics, with their samples beside them.
pub(crate) fn import(suite: &str, all: Vec<Series>) -> Result<Imported, FileError> {
    let mut imported = Imported::new(suite);
    for series in all {
        imported.add_series(series)?;
    }
    Ok(imported)
}

impl Imported {
    /// The median of a benchmark as a metric, with its samples beside it.
    pub(crate) fn add_series(&mut self, series: Series) -> Result<(), FileError> {
        let Some(value_ms) = holdpoint_stats::median(&series.times_ms) else {
            return value_error(series.name, "has no times");
        };
        self.add(series.name, "p50_ms", value_ms, series.times_ms)
    }
}
