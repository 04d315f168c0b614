//! Apex-X's rule: `current > value·(1 + ratio) + abs` fails, with the baseline's own ratio and abs.

use crate::checks::row_check;
use crate::compare::{Comparison, MetricRow};
use crate::{noise, tolerance};
use holdpoint_model::baseline::{DEFAULT_RATIO, ONE_RUN_RATIO};
use holdpoint_model::{Check, Verdict};

/// From here on a reader is told what cannot be seen.
const COARSE: f64 = 0.1;

pub(super) fn check(row: &MetricRow, current_ms: f64) -> Check {
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
    Check {
        current_ms: Some(current_ms),
        regression_ratio: Some(change),
        ..row_check(row, verdict, unclear.unwrap_or(reason))
    }
}

pub(super) fn notes(comparison: &Comparison) -> Vec<String> {
    let default_pct = DEFAULT_RATIO * 100.0;
    let is_wide = |row: &&MetricRow| {
        row.baseline.smallest_visible_slowdown.is_none()
            && row.baseline.allowed_max_ms() > row.baseline.value_ms * (1.0 + DEFAULT_RATIO)
    };
    let all_have = |ratio: f64| {
        !comparison.rows.is_empty()
            && comparison.rows.iter().all(|row| {
                row.baseline.runs_ms.len() < tolerance::RUNS_MIN && row.baseline.has_default(ratio)
            })
    };
    let wide: Vec<&str> = comparison.rows.iter().filter(is_wide).map(|row| row.metric.as_str()).collect();
    let mut notes = Vec::new();
    if all_have(DEFAULT_RATIO) {
        notes.push(format!("the tolerance is the default of {default_pct:.0} %: the baseline names none"));
    } else if all_have(ONE_RUN_RATIO) {
        notes.push(format!(
            "the tolerance is the default of {:.0} % for a baseline of one run, whose noise is not known; --tolerance sets another",
            ONE_RUN_RATIO * 100.0
        ));
    }
    if !wide.is_empty() {
        notes.push(format!("the tolerance is over {default_pct:.0} % for {}", wide.join(", ")));
    }
    let coarse = comparison.rows.iter().filter_map(|row| {
        let visible = row.baseline.smallest_visible_slowdown.filter(|visible| *visible > COARSE)?;
        Some(format!("{} from {:.0} %", row.metric, visible * 100.0))
    });
    let coarse: Vec<String> = coarse.collect();
    if !coarse.is_empty() {
        notes.push(format!(
            "runs of the baseline differ so much that slowdowns are seen only in {}; compare side by side to see smaller \
             ones: \"holdpoint gate --against REV\"",
            coarse.join(", ")
        ));
    }
    notes
}
