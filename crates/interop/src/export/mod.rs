//! Measurements for other programs: values by workload, and every raw sample. One file per format; text or bytes from values.

mod bmf;
mod csv;
mod github_action_benchmark;
pub mod history;
mod openmetrics;
mod parquet;
#[cfg(test)]
mod tests;
mod thrift;

pub use bmf::bmf;
pub use csv::csv;
pub use github_action_benchmark::github_action_benchmark;
pub use openmetrics::openmetrics;
pub use parquet::parquet;

use holdpoint_model::report::{Measured, Outcome, Report};
use holdpoint_model::{AbReport, Stated};
use holdpoint_stats as stats;

/// The values and samples of a document, for any exporter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Export<'a> {
    pub suite: &'a str,
    pub values: Vec<Value<'a>>,
    /// In the order they were taken, by workload.
    pub samples: Vec<Sample<'a>>,
}

/// The times of one workload, summarised.
#[derive(Clone, Debug, PartialEq)]
pub struct Value<'a> {
    pub name: &'a str,
    pub p50_ms: f64,
    /// Other statistics in milliseconds, by name.
    pub others: Vec<(&'static str, f64)>,
    pub p50_interval_ms: Option<[f64; 2]>,
    /// Samples behind it; none where they are not known.
    pub samples_count: usize,
}

/// One raw sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    pub name: &'a str,
    /// `time` or `cpu_time`, per call.
    pub metric: &'static str,
    pub value_ns: f64,
    /// `base` or `head` where two sides were measured, else empty.
    pub side: &'static str,
    pub process: u32,
    pub round: u32,
    /// Of the sample in its round, from 0.
    pub position: u32,
}

const UNIT: &str = "ns";

impl<'a> From<&'a Report> for Export<'a> {
    fn from(report: &'a Report) -> Self {
        let mut export = Self { suite: &report.suite, ..Self::default() };
        for (name, measurement) in &report.benchmarks {
            // Times that are not to be compared are not handed on either.
            if let Outcome::Measured(measured) = &measurement.outcome
                && measured.distrust.is_none()
            {
                export.add_measured(name, measured);
            }
        }
        export
    }
}

impl<'a> Export<'a> {
    fn add_measured(&mut self, name: &'a str, measured: &'a Measured) {
        let (before, calls) = (self.samples.len(), measured.samples.calls_per_sample as f64);
        for round in &measured.samples.rounds {
            for (metric, all_ns) in [("time", &round.elapsed_ns), ("cpu_time", &round.cpu_ns)] {
                let place = (round.process, round.round);
                self.add_samples(name, metric, "", place, all_ns.iter().map(|ns| *ns as f64 / calls));
            }
        }
        let times = self.samples[before..].iter().filter(|sample| sample.metric == "time");
        self.values.push(Value {
            name,
            p50_ms: measured.p50_ms,
            others: vec![
                ("p95", measured.p95_ms),
                ("p99", measured.p99_ms),
                ("mean", measured.mean_ms),
                ("min", measured.min_ms),
            ],
            p50_interval_ms: measured.p50_interval_ms,
            samples_count: times.count(),
        });
    }

    fn add_samples(
        &mut self,
        name: &'a str,
        metric: &'static str,
        side: &'static str,
        (process, round): (u32, u32),
        all_ns: impl Iterator<Item = f64>,
    ) {
        let sample = |(position, value_ns)| Sample { name, metric, value_ns, side, process, round, position };
        self.samples.extend((0_u32..).zip(all_ns).map(sample));
    }
}

/// Both sides' samples; the values are head's.
impl<'a> From<&'a AbReport> for Export<'a> {
    fn from(report: &'a AbReport) -> Self {
        let mut export = Self { suite: &report.suite, ..Self::default() };
        for (name, workload) in &report.workloads {
            let (before, calls) = (export.samples.len(), workload.calls_per_sample.max(1) as f64);
            for (unit, round) in
                workload.units.iter().flat_map(|unit| unit.rounds.iter().map(move |round| (unit, round)))
            {
                for (side, all_ns) in [("base", &round.base_ns), ("head", &round.head_ns)] {
                    let place = (unit.process, round.round);
                    export.add_samples(name, "time", side, place, all_ns.iter().map(|ns| *ns as f64 / calls));
                }
            }
            let head = export.samples[before..].iter().filter(|sample| sample.side == "head");
            let head_ms: Vec<f64> = head.map(|sample| sample.value_ns / 1e6).collect();
            let samples_count = head_ms.len();
            if let Some(p50_ms) = stats::median(&head_ms) {
                export.values.push(Value {
                    name,
                    p50_ms,
                    others: Vec::new(),
                    p50_interval_ms: None,
                    samples_count,
                });
            }
        }
        export
    }
}

/// The values that were judged; a comparison has no samples.
impl<'a> From<&'a Stated> for Export<'a> {
    fn from(judgement: &'a Stated) -> Self {
        let values = judgement.checks.iter().filter_map(|check| {
            let name = check.metric.strip_suffix("_p50_ms").unwrap_or(&check.metric);
            let p50_ms = check.current_ms?;
            Some(Value { name, p50_ms, others: Vec::new(), p50_interval_ms: None, samples_count: 0 })
        });
        Self { suite: &judgement.suite, values: values.collect(), samples: Vec::new() }
    }
}
