//! Another tool's measurements, and what its file did not say.

use holdpoint_model::FileError;
use holdpoint_model::current::{Current, MetricValue, Unmeasured};
use holdpoint_model::document::{check_time, value_error};
use holdpoint_model::limits::clean_text;
use holdpoint_model::suite::metric_name;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Names in a note.
const NAMES_SHOWN: usize = 4;

/// Another tool's measurements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    pub current: Current,
    /// The raw times behind a metric, in the order they were taken, where the file has more than one.
    pub samples_ms: BTreeMap<String, Vec<f64>>,
    /// Whether it can only be a baseline: no single run had all these values.
    pub is_baseline: bool,
    /// Values of the file that are neither times nor rates, by name, each with its reason.
    pub left_out: Vec<String>,
    /// Metrics that are one number each.
    pub single_values: usize,
}

impl Imported {
    pub(crate) fn new(suite: &str) -> Self {
        Self { current: Current { suite: suite.to_owned(), ..Current::default() }, ..Self::default() }
    }

    /// Adds a metric of a benchmark, with the samples behind it; fewer than two are as good as none.
    pub(crate) fn add(
        &mut self,
        name: impl Into<String>,
        metric: &str,
        value_ms: f64,
        samples_ms: Vec<f64>,
    ) -> Result<(), FileError> {
        let name = name.into();
        check_time(&name, value_ms)?;
        samples_ms.iter().try_for_each(|ms| check_time(&name, *ms))?;
        let key = flat_name(&name, metric);
        if samples_ms.len() > 1 {
            self.samples_ms.insert(key.clone(), samples_ms);
        } else {
            self.single_values += 1;
        }
        let place = self.current.metrics.entry(key);
        if matches!(place, Entry::Occupied(_)) {
            return value_error(name, "is there twice");
        }
        let (workload, identity) = (Some(name), None);
        place.or_insert(MetricValue {
            value_ms,
            workload,
            identity,
            answer_checked: None,
            slow_stretches: None,
        });
        Ok(())
    }

    /// Adds a metric that has no value, and why.
    pub(crate) fn add_unmeasured(&mut self, name: &str, metric: &str, why: Unmeasured) {
        self.current.unmeasured.insert(flat_name(name, metric), why);
    }

    /// Records a value that is not compared.
    pub(crate) fn leave_out(&mut self, name: &str, why: &str) {
        self.left_out.push(clean_text(&format!("{name} ({why})")));
    }

    /// Takes what another file of the same folder has; `named` gives the names of its metrics here.
    pub(crate) fn extend(&mut self, other: Self, named: impl Fn(String) -> String) {
        self.current.metrics.extend(other.current.metrics.into_iter().map(|(k, v)| (named(k), v)));
        self.current.unmeasured.extend(other.current.unmeasured.into_iter().map(|(k, v)| (named(k), v)));
        self.samples_ms.extend(other.samples_ms.into_iter().map(|(k, v)| (named(k), v)));
        self.left_out.extend(other.left_out.into_iter().map(named));
        self.single_values += other.single_values;
        self.is_baseline |= other.is_baseline;
        self.current.suite = other.current.suite;
        self.current.notes.extend(other.current.notes);
        self.current.timestamp_utc = self.current.timestamp_utc.take().max(other.current.timestamp_utc);
        self.current.status = match (self.current.status.take(), other.current.status) {
            (Some(bad), _) if bad != "ok" => Some(bad),
            (first, next) => next.or(first),
        };
    }

    /// Checks every value, and turns what the file did not say into notes for the reader of a comparison.
    pub(crate) fn finish(mut self) -> Result<Self, FileError> {
        for (name, metric) in &self.current.metrics {
            check_time(name, metric.value_ms)?;
        }
        let left_out = shorten(&self.left_out);
        if self.current.metrics.is_empty() && !self.left_out.is_empty() {
            return value_error("file".to_owned(), &format!("nothing in it is a time or a rate: {left_out}"));
        }
        if !self.left_out.is_empty() {
            self.current.notes.push(format!("left out, as only times and rates are compared: {left_out}"));
        }
        if self.single_values > 0 {
            let (single, all) = (self.single_values, self.current.metrics.len());
            self.current.notes.push(format!(
                "{single} of {all} metrics are one number without samples: their noise is not known, and a change may be noise"
            ));
        }
        Ok(self)
    }
}

/// The name of a metric. Dots would make it a place in a GPU report.
pub(crate) fn flat_name(name: &str, metric: &str) -> String {
    if name.contains('.') { metric_name(&name.replace('.', "_"), metric) } else { metric_name(name, metric) }
}

fn shorten(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
