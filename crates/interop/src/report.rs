//! Another tool's measurements as a report, to be shown and exported. What the file did not say stays unsaid: no machine, no
//! settings, no version of ours.

use crate::Imported;
use holdpoint_model::SCHEMA_VERSION;
use holdpoint_model::current::Unmeasured;
use holdpoint_model::machine::{MachineState, Toolchain};
use holdpoint_model::report::{
    Environment, Failure, FailureCause, Measured, Measurement, Outcome, Report, Round, RunConfig, RunStatus,
    Samples, Stopped, Warmup,
};
use holdpoint_model::suite::Identity;
use holdpoint_stats as stats;
use indexmap::IndexMap;
use serde_json::Map;

/// A sample's whole nanoseconds that keep the digits of a time: a clock shows no more.
const SAMPLE_NS_MIN: f64 = 1e6;
/// Largest factor by which times are kept.
const SCALE_MAX: u64 = 1_000_000_000;

impl Imported {
    /// The report of this run, which began at `timestamp_utc` unless its file says otherwise.
    pub fn into_report(self, timestamp_utc: String) -> Report {
        let suite = self.current.suite.clone();
        let mut benchmarks = IndexMap::new();
        for (key, metric) in &self.current.metrics {
            let known = self.samples_ms.get(key).filter(|samples| samples.len() > 1);
            let outcome = measured(metric.value_ms, known.map(Vec::as_slice), benchmarks.len());
            let identity = metric.identity.clone().unwrap_or_else(|| identity(&suite));
            let name = if benchmarks.contains_key(workload_name(key)) { key } else { workload_name(key) };
            let outcome = Outcome::Measured(Box::new(outcome));
            benchmarks
                .insert(name.to_owned(), Measurement { identity, gated: vec!["p50_ms".to_owned()], outcome });
        }
        for (key, why) in &self.current.unmeasured {
            let outcome = unmeasured(why);
            benchmarks.insert(
                workload_name(key).to_owned(),
                Measurement { identity: identity(&suite), gated: vec!["p50_ms".to_owned()], outcome },
            );
        }
        let metrics = self.current.metrics.iter().map(|(key, metric)| (key.clone(), metric.value_ms));
        Report {
            schema_version: SCHEMA_VERSION,
            suite,
            timestamp_utc: self.current.timestamp_utc.unwrap_or(timestamp_utc),
            status: RunStatus::from_measurements(benchmarks.values()),
            reason: None,
            environment: Environment {
                platform: "machine not known".to_owned(),
                device: "unknown".to_owned(),
                cuda_available: false,
            },
            config: RunConfig {
                seed: 0,
                percentile_rule: String::new(),
                clock_resolution_ns: 0,
                elapsed_s: 0.0,
                others_cpu: None,
            },
            machine: self.current.machine,
            revision: self.current.revision,
            branch: None,
            // By its empty version such a report is known.
            toolchain: Toolchain {
                holdpoint: String::new(),
                rustc: String::new(),
                profile: String::new(),
                kernel: None,
                cuda: None,
            },
            environment_lock: None,
            metrics: metrics.collect(),
            benchmarks,
        }
    }
}

/// A metric's name without its statistic: that of the workload, unless other statistics of it are metrics too.
fn workload_name(key: &str) -> &str {
    key.strip_suffix("_p50_ms").or_else(|| key.strip_suffix("_ms")).unwrap_or(key)
}

fn identity(suite: &str) -> Identity {
    let (op, timer) = (suite.to_owned(), "unknown".to_owned());
    Identity { op, shape: Vec::new(), dtype: String::new(), timer, params: Map::new() }
}

/// Summaries of the samples; of a single number, that number.
fn measured(value_ms: f64, samples_ms: Option<&[f64]>, order: usize) -> Measured {
    let one = [value_ms];
    let times_ms = samples_ms.unwrap_or(&one);
    let quantile = |q| stats::percentile_floor(times_ms, q).unwrap_or(value_ms);
    Measured {
        p50_ms: value_ms,
        p95_ms: quantile(0.95),
        p99_ms: quantile(0.99),
        mean_ms: stats::mean(times_ms).unwrap_or(value_ms),
        min_ms: quantile(0.0),
        cv: stats::coefficient_of_variation(times_ms),
        p50_interval_ms: None,
        slow_stretches: None,
        throughput: Default::default(),
        peak_memory_mb: None,
        cpu_p50_ms: None,
        answer: None,
        warmup: Warmup { calls_count: 0, stable: true },
        stopped: Stopped::Iterations,
        peak_device_memory_mb: None,
        distrust: None,
        sm_cycles_p50: None,
        power_limited: None,
        near_peak: None,
        kernel: None,
        samples: samples(times_ms, order),
    }
}

/// Samples in whole nanoseconds. Short ones are kept as the time of many calls, so that no digit is lost.
fn samples(times_ms: &[f64], order: usize) -> Samples {
    let shortest_ns = times_ms.iter().copied().fold(f64::INFINITY, f64::min) * 1e6;
    let mut scale = 1;
    while shortest_ns * (scale as f64) < SAMPLE_NS_MIN && scale < SCALE_MAX {
        scale *= 10;
    }
    let elapsed_ns = times_ms.iter().map(|ms| ((ms * 1e6 * scale as f64).round() as u64).max(1)).collect();
    let round = Round {
        process: 0,
        round: 0,
        order: u32::try_from(order).unwrap_or(u32::MAX),
        elapsed_ns,
        cpu_ns: Vec::new(),
        peak_rss_bytes: None,
        sm_mhz: Vec::new(),
        peak_device_bytes: None,
        state: MachineState::default(),
    };
    Samples { calls_per_sample: scale, rounds: vec![round] }
}

fn unmeasured(why: &Unmeasured) -> Outcome {
    match why {
        Unmeasured::Skipped(reason) => Outcome::Skipped { reason: reason.clone() },
        Unmeasured::Failed(detail) => Outcome::Failed(Failure {
            cause: FailureCause::WorkerError,
            detail: detail.clone(),
            stderr_tail: Vec::new(),
            samples: None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, import};

    #[test]
    fn a_report_of_another_tool_has_its_samples_and_no_machine() {
        let text = "name,value,unit\na,3.25,ns\na,4.25,ns\na,5,ns\nb,2,s\n";
        let report = import(&Source::from(text)).unwrap().into_report("2026-11-16T00:00:00Z".to_owned());
        assert!(report.is_imported() && report.machine.is_none() && report.status == RunStatus::Ok);
        let Outcome::Measured(a) = &report.benchmarks["a"].outcome else { panic!("a was measured") };
        assert_eq!(a.samples.per_call_ns().collect::<Vec<_>>(), [3.25, 4.25, 5.0]);
        assert_eq!((a.p50_ms, a.min_ms), (4.25e-6, 3.25e-6));
        let Outcome::Measured(b) = &report.benchmarks["b"].outcome else { panic!("b was measured") };
        assert_eq!((b.samples.calls_per_sample, b.p95_ms, b.cv), (1, 2_000.0, None));
    }
}
