//! One run of a suite, from the first call to the report.

use crate::{clock, machine, schedule};
use holdpoint_model::report::RunConfig;
use holdpoint_model::{Outcome, Report, RunStatus, SCHEMA_VERSION, Suite, Toolchain};
use holdpoint_stats as stats;
use std::path::Path;
use std::time::Instant;

/// Measures the suite and reports; `repository` is where the code under test is checked out. Nothing that goes wrong with a workload is lost: it is its outcome.
pub fn run_suite(suite: &Suite, repository: &Path, on_event: &mut dyn FnMut(schedule::Event)) -> Report {
    let (timestamp_utc, start) = (clock::timestamp_utc(), Instant::now());
    let (measurements, cuda) = schedule::measure(suite, on_event);
    let benchmarks: indexmap::IndexMap<_, _> = measurements.into_iter().collect();
    let status = RunStatus::of(benchmarks.values());
    let mut report = Report {
        schema_version: SCHEMA_VERSION,
        suite: suite.name.clone(),
        timestamp_utc,
        status,
        reason: None,
        environment: machine::environment(suite),
        config: RunConfig {
            seed: suite.seed,
            percentile_rule: stats::PERCENTILE_RULE.to_owned(),
            clock_resolution_ns: clock::resolution_ns(),
            elapsed_s: start.elapsed().as_secs_f64(),
        },
        machine: Some(machine::machine_for(suite)),
        revision: machine::revision(repository),
        toolchain: Toolchain { cuda, ..machine::toolchain() },
        metrics: std::collections::BTreeMap::new(),
        benchmarks,
    };
    report.reason = reason(&report);
    report.metrics = metrics(&report);
    report
}

/// The first workload that keeps the run from being `ok`.
fn reason(report: &Report) -> Option<String> {
    let failed = report.benchmarks.iter().find_map(|(name, measurement)| match &measurement.outcome {
        Outcome::Failed(failure) => Some(format!("{name}: {}", failure.cause.as_str())),
        _ => None,
    });
    let skipped = || {
        report.benchmarks.values().find_map(|measurement| match &measurement.outcome {
            Outcome::Skipped { reason } => Some(reason.clone()),
            Outcome::Measured(measured) => measured.distrust.clone(),
            Outcome::Failed(_) => None,
        })
    };
    failed.or_else(skipped)
}

fn metrics(report: &Report) -> std::collections::BTreeMap<String, f64> {
    let current = holdpoint_model::Current::from(report);
    current.metrics.into_iter().map(|(name, metric)| (name, metric.value_ms)).collect()
}
