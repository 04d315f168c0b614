//! Reports that say otherwise than their samples do.

use holdpoint_model::report::{Measured, Outcome, RunStatus};
use holdpoint_model::{Current, Report};
use holdpoint_stats as stats;

/// Sums may be taken in another order, perhaps on another machine.
const ROUNDING: f64 = 1e-9;

/// Whether two numbers differ by rounding at most.
pub(crate) fn is_close(one: f64, other: f64) -> bool {
    one == other || (one - other).abs() <= ROUNDING * one.abs().max(other.abs())
}

/// Where a report contradicts itself: a number that is not that of its samples, a wrong answer beside times, a status that does not follow from
/// what is in it.
pub fn contradiction(report: &Report) -> Option<String> {
    for (name, measurement) in &report.benchmarks {
        if let Outcome::Measured(measured) = &measurement.outcome
            && let Some(what) = of_samples(measured)
        {
            return Some(format!("{name}: {what}"));
        }
    }
    if report.benchmarks.is_empty() {
        return Some("it has no workloads".to_owned());
    }
    let judged = Current::from(report).metrics;
    for (metric, stated) in &report.metrics {
        if judged.get(metric).is_some_and(|is| is.value_ms != *stated) {
            return Some(format!("metrics.{metric} is {stated}, which its workload does not say"));
        }
    }
    let (stated, is) = (report.status, RunStatus::from_measurements(report.benchmarks.values()));
    (stated != is)
        .then(|| format!("its status is {}, yet its workloads make it {}", stated.as_str(), is.as_str()))
}

fn of_samples(measured: &Measured) -> Option<String> {
    if measured.answer.as_ref().is_some_and(|answer| !answer.passed) {
        return Some("its answer is wrong, and there are times of it".to_owned());
    }
    let samples = &measured.samples;
    let times_ms: Vec<f64> = samples.per_call_ns().map(|ns| ns / 1e6).collect();
    let calls = samples.calls_per_sample as f64;
    let cpu_ns = samples.rounds.iter().flat_map(|round| &round.cpu_ns);
    let cpu_ms: Vec<f64> = cpu_ns.map(|ns| *ns as f64 / calls / 1e6).collect();
    let Some(median) = stats::median(&times_ms) else { return Some("it has no samples".to_owned()) };
    let stated = [
        // A clock too coarse for the call tells 0, which is no time.
        (
            "cpu_p50_ms",
            measured.cpu_p50_ms.unwrap_or(0.0),
            stats::median(&cpu_ms).unwrap_or(0.0),
            "the median of its samples",
        ),
        ("p50_ms", measured.p50_ms, median, "the median of its samples"),
        ("p95_ms", measured.p95_ms, stats::percentile_floor(&times_ms, 0.95)?, "that of its samples"),
        ("p99_ms", measured.p99_ms, stats::percentile_floor(&times_ms, 0.99)?, "that of its samples"),
        ("mean_ms", measured.mean_ms, stats::mean(&times_ms)?, "the mean of its samples"),
        ("min_ms", measured.min_ms, stats::percentile_floor(&times_ms, 0.0)?, "the smallest of its samples"),
    ];
    let first = stated.into_iter().find(|(_, stated, is, _)| !is_close(*stated, *is));
    first.map(|(key, stated, is, what)| format!("{key} is {stated}, {what} {is}"))
}
