//! Decides, by a named policy, what the facts amount to.

use crate::checks::{blank, overall_status, overall_verdict};
use crate::compare::{Comparison, MetricRow, compare};
use crate::tolerance::{self, TOLERANCE};
use crate::{Judgement, Policy};
use holdpoint_model::judgement::STATUS_METRIC;
use holdpoint_model::suite::GateSettings;
use holdpoint_model::waiver::Limit;
use holdpoint_model::{
    Allow, Baseline, BaselineBasis, Basis, Check, CheckStatus, Current, SCHEMA_VERSION, Stated,
    ThresholdKeys, Verdict,
};

/// Judges a run against a baseline, and keeps with the judgement everything needed to judge it again.
pub fn judge_run(current: &Current, baseline: &Baseline, allow: Allow, policy: Policy) -> Judgement {
    let threshold_pct = match policy {
        Policy::Threshold { threshold_pct } => Some(threshold_pct),
        _ => None,
    };
    let basis = BaselineBasis { baseline: baseline.clone(), allow, threshold_pct };
    let mut judgement = judge(&compare(current, baseline, allow), policy);
    judgement.edit().basis = Some(Basis::Baseline(Box::new(basis)));
    judgement
}

/// A baseline with the tolerances that are asked for: by a flag, else the suite, else its own; under the policy `stored` the usual one
/// where nobody asks. None is ever widened to what the runs let be seen.
pub fn set_tolerances(
    mut baseline: Baseline,
    flag: Option<f64>,
    gate: &GateSettings,
    policy: Policy,
) -> Baseline {
    for metric in baseline.metrics.values_mut() {
        let asked = tolerance_asked(flag, gate, metric.workload.as_deref());
        let usual = (policy == Policy::Stored && metric.own_tolerance().is_none()).then_some(TOLERANCE);
        if let Some(tolerance) = asked.or(usual) {
            tolerance::set(metric, tolerance);
        }
    }
    baseline
}

/// The tolerance of a workload's metrics that is asked for: by a flag, else the suite.
pub fn tolerance_asked(flag: Option<f64>, gate: &GateSettings, workload: Option<&str>) -> Option<f64> {
    let own = workload.and_then(|name| gate.workloads.get(name));
    flag.or(own.map(|own| own.tolerance).or(gate.tolerance).map(Limit::share))
}

/// Judges every metric and the run as a whole. The worst verdict speaks for the whole.
pub fn judge(comparison: &Comparison, policy: Policy) -> Judgement {
    let mut judgement = judge_by(comparison, policy.name(), |row| policy.check(row));
    judgement.edit().notes.extend(policy.notes(comparison));
    judgement
}

/// The same by any rule.
pub(crate) fn judge_by(
    comparison: &Comparison,
    policy_name: &str,
    rule: impl Fn(&MetricRow) -> Check,
) -> Judgement {
    let status = status_check(comparison);
    let mut checks: Vec<Check> = status.into_iter().chain(comparison.rows.iter().map(rule)).collect();
    if comparison.current_status.as_deref() == Some("skipped") {
        // The originals' report of a run that was skipped has no benchmarks, so in their word every metric is missing.
        let skipped = checks.iter_mut().filter(|check| check.status == CheckStatus::Skipped);
        skipped.for_each(|check| check.status = CheckStatus::Missing);
    }
    Judgement::new(Stated {
        schema_version: SCHEMA_VERSION,
        suite: comparison.suite.clone(),
        status: overall_status(&checks).to_owned(),
        verdict: overall_verdict(&checks),
        policy: policy_name.to_owned(),
        timestamp_utc: comparison.timestamp_utc.clone(),
        required_status: comparison.required_status.clone(),
        current_status: comparison.current_status.clone(),
        machine: comparison.machine.clone(),
        revision: comparison.revision.clone(),
        notes: comparison.notes.clone(),
        ungated: comparison.ungated.clone(),
        threshold: worst_threshold(&checks),
        checks,
        basis: None,
        sides: None,
    })
}

fn worst_threshold(checks: &[Check]) -> Option<ThresholdKeys> {
    let keys = checks.iter().filter_map(|check| check.threshold.as_ref());
    keys.min_by(|a, b| a.improvement_pct.total_cmp(&b.improvement_pct)).cloned()
}

/// The originals' `__status__`: a run that is not as required fails, whatever its numbers.
fn status_check(comparison: &Comparison) -> Option<Check> {
    let current = comparison.current_status.as_ref()?;
    if *current == comparison.required_status {
        return None;
    }
    let verdict = match current.as_str() {
        "skipped" | "partial" => Verdict::Skipped,
        "failed" => Verdict::Broken,
        _ => Verdict::Regressed,
    };
    Some(Check {
        expected: Some(comparison.required_status.clone()),
        current: Some(current.clone()),
        ..blank(
            STATUS_METRIC,
            CheckStatus::Fail,
            verdict,
            format!("the run's status is {current:?}, required is {:?}", comparison.required_status),
        )
    })
}
