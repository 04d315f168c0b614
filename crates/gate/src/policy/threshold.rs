//! cudadent42's rule for a baseline: fails when the improvement in percent is below a threshold.

use crate::checks::row_check;
use crate::compare::MetricRow;
use crate::noise;
use holdpoint_model::{BaselineMetric, Check, ThresholdKeys, Verdict};

/// cudadent42's default: 3 % slower still passes.
pub const THRESHOLD_PCT: f64 = -3.0;
/// cudadent42's bar for a significant improvement.
const IMPROVED_PCT: f64 = 10.0;

pub(super) fn allowed_max_ms(was: &BaselineMetric, threshold_pct: f64) -> f64 {
    was.value_ms * (1.0 - threshold_pct / 100.0)
}

pub(super) fn check(row: &MetricRow, current_ms: f64, threshold_pct: f64) -> Check {
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
    let allowed_max_ms = allowed_max_ms(&row.baseline, threshold_pct);
    let (verdict, unclear) = noise::weigh(&row.baseline, allowed_max_ms, current_ms, ruled);
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
        ..row_check(row, verdict, unclear.unwrap_or(reason))
    }
}
