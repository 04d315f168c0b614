//! Checks of a judgement: how one is made of a row, and what all of them amount to. The same under every policy.

use crate::compare::{Busier, CurrentValue, MetricRow};
use holdpoint_model::{Check, CheckStatus, Verdict};

/// The worst verdict of all checks. Nothing judged is nothing known: missing is never good.
pub(crate) fn overall_verdict(checks: &[Check]) -> Verdict {
    checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Inconclusive)
}

/// Apex-X's word for the whole.
pub(crate) fn overall_status(checks: &[Check]) -> &'static str {
    let passed = !checks.is_empty() && checks.iter().all(|check| check.status == CheckStatus::Pass);
    if passed { "pass" } else { "fail" }
}

/// A time that may be compared is judged by the rule; what else a run may have is the same under all of them.
pub(crate) fn check(row: &MetricRow, allowed_max_ms: Option<f64>, rule: impl FnOnce(f64) -> Check) -> Check {
    let (status, verdict, reason) = match &row.found {
        CurrentValue::Value(current_ms) => return unless_busier(row, rule(*current_ms)),
        CurrentValue::Incomparable(_, problem) => {
            (CheckStatus::Inconclusive, Verdict::Inconclusive, problem.clone())
        }
        // The originals' rule under either policy: what the baseline has, the run must have.
        CurrentValue::Missing => {
            let reason =
                "the baseline has this metric, the run does not; was the workload removed or renamed?";
            (CheckStatus::Missing, Verdict::Regressed, reason.to_owned())
        }
        CurrentValue::Skipped(reason) => (CheckStatus::Skipped, Verdict::Skipped, reason.clone()),
        CurrentValue::Failed(cause) => (CheckStatus::Fail, Verdict::Broken, cause.clone()),
    };
    let current_ms = match row.found {
        CurrentValue::Incomparable(current_ms, _) => Some(current_ms),
        _ => None,
    };
    Check { current_ms, allowed_max_ms, ..check_with_status(row, status, verdict, reason) }
}

/// A slowdown on a machine that was busier than for the baseline is no evidence against the code, unless others cannot explain it. The
/// times of a run contain its waits for a CPU.
fn unless_busier(row: &MetricRow, check: Check) -> Check {
    let was_ms = row.baseline.value_ms;
    let may_be_theirs = |busier: &Busier| check.current_ms.is_some_and(|is| is < was_ms * busier.times_max);
    match &row.busier {
        Some(busier) if check.verdict == Verdict::Regressed && may_be_theirs(busier) => {
            let verdict = Verdict::Inconclusive;
            let reason = format!("{}; {}", check.reason, busier.why);
            Check { verdict, status: status_of(verdict), reason, ..check }
        }
        _ => check,
    }
}

/// The originals' word for a verdict over times.
pub(crate) fn status_of(verdict: Verdict) -> CheckStatus {
    match verdict {
        Verdict::Improved | Verdict::Pass | Verdict::Waived => CheckStatus::Pass,
        Verdict::Skipped => CheckStatus::Skipped,
        Verdict::Inconclusive => CheckStatus::Inconclusive,
        Verdict::Regressed | Verdict::Broken => CheckStatus::Fail,
    }
}

/// A check of a row by its verdict.
pub(crate) fn row_check(row: &MetricRow, verdict: Verdict, reason: String) -> Check {
    check_with_status(row, status_of(verdict), verdict, reason)
}

fn check_with_status(row: &MetricRow, status: CheckStatus, verdict: Verdict, reason: String) -> Check {
    Check {
        workload: row.workload.clone(),
        baseline_ms: Some(row.baseline.value_ms),
        allowed_max_ms: Some(row.baseline.allowed_max_ms()),
        baseline_spread: row.baseline.spread,
        ..blank(&row.metric, status, verdict, reason)
    }
}

pub(crate) fn blank(metric: &str, status: CheckStatus, verdict: Verdict, reason: String) -> Check {
    Check {
        metric: metric.to_owned(),
        workload: None,
        status,
        verdict,
        reason,
        baseline_ms: None,
        allowed_max_ms: None,
        current_ms: None,
        regression_ratio: None,
        baseline_spread: None,
        expected: None,
        current: None,
        threshold: None,
        waiver: None,
        paired: None,
        stored: None,
    }
}
