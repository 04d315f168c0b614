//! Decides, by a named policy, what the facts amount to.

use crate::compare::{Comparison, Found, Row};
use crate::{noise, record};
use holdpoint_model::baseline::DEFAULT_RATIO;
use holdpoint_model::judgement::STATUS_METRIC;
use holdpoint_model::{
    BaselineMetric, Check, CheckStatus, Judgement, SCHEMA_VERSION, ThresholdKeys, Verdict,
};

/// A rule by name. What it tolerates is in the baseline or here, never hidden in code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// The first seed's rule: `current > value·(1 + ratio) + abs` fails, with the baseline's own ratio and abs.
    AllowedMax,
    /// The second seed's rule: fails when `improvement_pct < threshold_pct`.
    Threshold {
        /// The least improvement that passes; negative allows a slowdown.
        threshold_pct: f64,
    },
}

/// The second seed's default: 3 % slower still passes.
pub const THRESHOLD_PCT: f64 = -3.0;
/// The second seed's bar for a significant improvement.
const IMPROVED_PCT: f64 = 10.0;

impl Policy {
    /// The policy's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AllowedMax => "allowed-max",
            Self::Threshold { .. } => "threshold",
        }
    }

    /// The policy of that name, with its number where it has one.
    #[must_use]
    pub fn from_name(name: &str, threshold_pct: Option<f64>) -> Option<Self> {
        let threshold = threshold_pct.map(|threshold_pct| Self::Threshold { threshold_pct });
        [Some(Self::AllowedMax), threshold].into_iter().flatten().find(|policy| policy.name() == name)
    }

    /// Anything above this fails.
    fn allowed_max_ms(self, was: &BaselineMetric) -> f64 {
        match self {
            Self::AllowedMax => was.allowed_max_ms(),
            Self::Threshold { threshold_pct } => was.value_ms * (1.0 - threshold_pct / 100.0),
        }
    }

    /// Tolerances that the reader may take for narrower than they are.
    fn notes(self, comparison: &Comparison) -> Vec<String> {
        if self != Self::AllowedMax {
            return Vec::new();
        }
        let is_wide =
            |row: &&Row| row.baseline.allowed_max_ms() > row.baseline.value_ms * (1.0 + DEFAULT_RATIO);
        let is_default =
            |row: &Row| row.baseline.runs_ms.len() < record::RUNS_MIN && row.baseline.is_default();
        let wide: Vec<&str> = comparison.rows.iter().filter(is_wide).map(|row| row.metric.as_str()).collect();
        let mut notes = Vec::new();
        if !comparison.rows.is_empty() && comparison.rows.iter().all(is_default) {
            notes.push(format!(
                "the tolerance is the default of {:.0} %: the baseline names none",
                DEFAULT_RATIO * 100.0
            ));
        }
        if !wide.is_empty() {
            notes.push(format!(
                "the tolerance is over {:.0} % for {}",
                DEFAULT_RATIO * 100.0,
                wide.join(", ")
            ));
        }
        notes
    }

    fn check(self, row: &Row) -> Check {
        check(row, Some(self.allowed_max_ms(&row.baseline)), |current_ms| match self {
            Self::AllowedMax => allowed_max(row, current_ms),
            Self::Threshold { threshold_pct } => threshold(row, current_ms, threshold_pct),
        })
    }
}

/// Judges every metric and the run as a whole. The worst verdict speaks for the whole.
#[must_use]
pub fn judge(comparison: &Comparison, policy: Policy) -> Judgement {
    let mut judgement = judge_by(comparison, policy.name(), |row| policy.check(row));
    judgement.notes.extend(policy.notes(comparison));
    judgement
}

/// The same by any rule.
pub(crate) fn judge_by(
    comparison: &Comparison,
    policy_name: &str,
    rule: impl Fn(&Row) -> Check,
) -> Judgement {
    let status = status_check(comparison);
    let mut checks: Vec<Check> = status.into_iter().chain(comparison.rows.iter().map(rule)).collect();
    if comparison.current_status.as_deref() == Some("skipped") {
        // The seeds' report of a run that was skipped has no benchmarks, so in their word every metric is missing.
        let skipped = checks.iter_mut().filter(|check| check.status == CheckStatus::Skipped);
        skipped.for_each(|check| check.status = CheckStatus::Missing);
    }
    // Nothing judged is nothing known: missing is never good.
    let verdict = checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Inconclusive);
    let passed = !checks.is_empty() && checks.iter().all(|check| check.status == CheckStatus::Pass);
    Judgement {
        schema_version: SCHEMA_VERSION,
        suite: comparison.suite.clone(),
        status: if passed { "pass" } else { "fail" }.to_owned(),
        verdict,
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
    }
}

fn worst_threshold(checks: &[Check]) -> Option<ThresholdKeys> {
    let keys = checks.iter().filter_map(|check| check.threshold.as_ref());
    keys.min_by(|a, b| a.improvement_pct.total_cmp(&b.improvement_pct)).cloned()
}

/// The seeds' `__status__`: a run that is not as required fails, whatever its numbers.
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

/// A time that may be compared is judged by the rule; what else a run may have is the same under all of them.
pub(crate) fn check(row: &Row, allowed_max_ms: Option<f64>, rule: impl FnOnce(f64) -> Check) -> Check {
    let (status, verdict, reason) = match &row.found {
        Found::Value(current_ms) => return rule(*current_ms),
        Found::Incomparable(_, problem) => {
            (CheckStatus::Inconclusive, Verdict::Inconclusive, problem.clone())
        }
        // The seeds' rule under either policy: what the baseline has, the run must have.
        Found::Missing => {
            let reason =
                "the baseline has this metric, the run does not; was the workload removed or renamed?";
            (CheckStatus::Missing, Verdict::Regressed, reason.to_owned())
        }
        Found::Skipped(reason) => (CheckStatus::Skipped, Verdict::Skipped, reason.clone()),
        Found::Failed(cause) => (CheckStatus::Fail, Verdict::Broken, cause.clone()),
    };
    let current_ms = match row.found {
        Found::Incomparable(current_ms, _) => Some(current_ms),
        _ => None,
    };
    Check { current_ms, allowed_max_ms, ..of_row(row, status, verdict, reason) }
}

fn allowed_max(row: &Row, current_ms: f64) -> Check {
    let was = &row.baseline;
    let allowed_max_ms = was.allowed_max_ms();
    let change = current_ms / was.value_ms - 1.0;
    let (ruled, reason) = if current_ms > allowed_max_ms {
        let allowed = allowed_max_ms / was.value_ms - 1.0;
        (Verdict::Regressed, format!("{:+.1} %, allowed is {:+.1} %", change * 100.0, allowed * 100.0))
    } else if current_ms * (1.0 + was.max_regression_ratio) + was.max_regression_abs_ms < was.value_ms {
        (Verdict::Improved, "faster by more than the tolerance".to_owned())
    } else {
        (Verdict::Pass, "within the tolerance".to_owned())
    };
    let (verdict, unclear) = noise::weigh(was, allowed_max_ms, current_ms, ruled);
    let reason = unclear.unwrap_or(reason);
    Check {
        current_ms: Some(current_ms),
        regression_ratio: Some(change),
        ..of_row(row, status_of(verdict), verdict, reason)
    }
}

fn threshold(row: &Row, current_ms: f64, threshold_pct: f64) -> Check {
    let baseline_ms = row.baseline.value_ms;
    let improvement_pct = (baseline_ms - current_ms) / baseline_ms * 100.0;
    // A threshold that is not a number must not pass everything.
    let is_regression = improvement_pct < threshold_pct || threshold_pct.is_nan();
    let (ruled, label) = if is_regression {
        (Verdict::Regressed, "REGRESSION DETECTED")
    } else if improvement_pct > IMPROVED_PCT {
        (Verdict::Improved, "SIGNIFICANT IMPROVEMENT")
    } else if improvement_pct > 0.0 {
        (Verdict::Pass, "SLIGHT IMPROVEMENT")
    } else {
        (Verdict::Pass, "PERFORMANCE SIMILAR")
    };
    let relation = if is_regression { "is below" } else { "is not below" };
    let reason = format!(
        "an improvement of {improvement_pct:+.2} % {relation} the threshold of {threshold_pct:+.2} %"
    );
    let allowed_max_ms = Policy::Threshold { threshold_pct }.allowed_max_ms(&row.baseline);
    let (verdict, unclear) = noise::weigh(&row.baseline, allowed_max_ms, current_ms, ruled);
    let reason = unclear.unwrap_or(reason);
    Check {
        current_ms: Some(current_ms),
        allowed_max_ms: Some(allowed_max_ms),
        regression_ratio: Some(current_ms / baseline_ms - 1.0),
        threshold: Some(ThresholdKeys {
            speedup: baseline_ms / current_ms,
            improvement_pct,
            is_regression,
            baseline_time_ms: baseline_ms,
            current_time_ms: current_ms,
            threshold: threshold_pct,
            label: label.to_owned(),
        }),
        ..of_row(row, status_of(verdict), verdict, reason)
    }
}

/// The seeds' word for a verdict over times.
pub(crate) fn status_of(verdict: Verdict) -> CheckStatus {
    match verdict {
        Verdict::Improved | Verdict::Pass | Verdict::Waived => CheckStatus::Pass,
        Verdict::Skipped => CheckStatus::Skipped,
        Verdict::Inconclusive => CheckStatus::Inconclusive,
        Verdict::Regressed | Verdict::Broken => CheckStatus::Fail,
    }
}

pub(crate) fn of_row(row: &Row, status: CheckStatus, verdict: Verdict, reason: String) -> Check {
    Check {
        workload: row.workload.clone(),
        baseline_ms: Some(row.baseline.value_ms),
        allowed_max_ms: Some(row.baseline.allowed_max_ms()),
        baseline_spread: row.baseline.spread,
        ..blank(&row.metric, status, verdict, reason)
    }
}

fn blank(metric: &str, status: CheckStatus, verdict: Verdict, reason: String) -> Check {
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
    }
}
