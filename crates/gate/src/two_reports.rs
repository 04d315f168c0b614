//! The policy `disjoint-ci` for two reports that hold their samples.

use crate::Judgement;
use crate::checks::{self, row_check};
use crate::compare::{MetricRow, compare};
use crate::judge::judge_by;
use crate::policy::{Policy, disjoint_ci};
use crate::too_fast;
use holdpoint_model::{
    Allow, Baseline, Check, Current, MetricValue, Outcome, Report, Samples, Unmeasured, Verdict,
};

/// Judges each workload of `baseline` by its samples and those of `current`, with rounds as blocks. Each has one check, named
/// after its median, with the seed's sentence as its reason. What may be compared is decided as for any other policy.
pub fn compare_reports_disjoint_ci(baseline: &Report, current: &Report, allow: Allow) -> Judgement {
    let facts = compare(&medians(current), &Baseline::from(medians(baseline)), allow);
    judge_by(&facts, Policy::DisjointCi.name(), |row| {
        // What is allowed depends on the intervals, so no one time is the limit.
        checks::check(row, None, |current_ms| check(row, baseline, current, current_ms))
    })
}

fn check(row: &MetricRow, baseline: &Report, current: &Report, current_ms: f64) -> Check {
    let blocks = |report: &Report| row.workload.as_ref().and_then(|name| blocks_ms(report, name));
    let judged =
        blocks(baseline).zip(blocks(current)).and_then(|(base, head)| disjoint_ci::compare(&base, &head));
    let too_few = || "too few rounds for an interval; run both again with their samples".to_owned();
    let (verdict, reason) =
        judged.map_or_else(|| (Verdict::Inconclusive, too_few()), |(keys, verdict)| (verdict, keys.verdict));
    let ratio = current_ms / row.baseline.value_ms;
    let (verdict, reason) = too_fast::checked(verdict, reason, ratio, None, "faster");
    Check {
        current_ms: Some(current_ms),
        allowed_max_ms: None,
        regression_ratio: Some(ratio - 1.0),
        ..row_check(row, verdict, reason)
    }
}

fn blocks_ms(report: &Report, name: &str) -> Option<Vec<Vec<f64>>> {
    match &report.benchmarks.get(name)?.outcome {
        Outcome::Measured(measured) => Some(rounds_ms(&measured.samples)),
        Outcome::Skipped { .. } | Outcome::Failed(_) => None,
    }
}

fn rounds_ms(samples: &Samples) -> Vec<Vec<f64>> {
    let calls = samples.calls_per_sample;
    samples.rounds.iter().map(|round| round.per_call_ns(calls).map(|ns| ns / 1e6).collect()).collect()
}

/// The run, with the median of every workload and nothing else.
fn medians(report: &Report) -> Current {
    let mut current = Current::from(report);
    current.metrics.clear();
    current.unmeasured.clear();
    for (name, measurement) in &report.benchmarks {
        let metric = metric_of(name);
        match &measurement.outcome {
            Outcome::Measured(measured) => {
                let (workload, identity) = (Some(name.clone()), Some(measurement.identity.clone()));
                let answer_checked = Some(measured.answer.is_some());
                let value = MetricValue {
                    value_ms: measured.p50_ms,
                    workload,
                    identity,
                    answer_checked,
                    slow_stretches: None,
                };
                current.metrics.insert(metric, value);
            }
            Outcome::Skipped { reason } => {
                current.unmeasured.insert(metric, Unmeasured::Skipped(reason.clone()));
            }
            Outcome::Failed(failure) => {
                let cause = format!("{}: {}", failure.cause.as_str(), failure.detail);
                current.unmeasured.insert(metric, Unmeasured::Failed(cause));
            }
        }
    }
    current
}

fn metric_of(workload: &str) -> String {
    format!("{workload}_p50_ms")
}
