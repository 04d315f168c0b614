//! The rule for a stored baseline: three answers, each only where the noise of the baseline's runs leaves no doubt. See METHODOLOGY,
//! "Against a stored baseline".

use crate::checks::row_check;
use crate::compare::MetricRow;
use crate::noise::Bands;
use crate::tolerance::RUNS_MIN;
use crate::too_fast;
use holdpoint_model::judgement::StoredKeys;
use holdpoint_model::{Check, Verdict};

/// A change that is surely below so many times the tolerance passes too: a baseline whose noise is as large as the tolerance would
/// else leave unchanged code undecided half of the time. The verdict says which of the two it was.
pub const PASS_TIMES: f64 = 2.0;

pub(super) fn check(row: &MetricRow, current_ms: f64) -> Check {
    let was = &row.baseline;
    let tolerance = was.tolerance();
    let (bands, ratio) = (Bands::of(was), current_ms / was.value_ms);
    let change_max = ratio * bands.miss - 1.0;
    let limit = if change_max <= tolerance { tolerance } else { PASS_TIMES * tolerance };
    let keys = StoredKeys { tolerance, limit, change_max, sees: (1.0 + tolerance) * bands.alarm - 1.0 };
    let change = percent(ratio - 1.0);
    let asked = percent(tolerance);
    let (verdict, reason) = if ratio / bands.alarm - 1.0 > tolerance {
        let least = percent(ratio / bands.alarm - 1.0);
        (
            Verdict::Regressed,
            format!("+{change} %, surely more than the tolerance of {asked} %: at least {least} %"),
        )
    } else if ratio * bands.alarm.max(bands.miss) * (1.0 + tolerance) < 1.0 {
        // Judged by one run, as a pass is, and a slowdown that looks like it is missed.
        (Verdict::Improved, format!("{change} %, surely faster by more than the tolerance of {asked} %"))
    } else if current_ms > was.allowed_max_ms() || change_max > limit {
        (Verdict::Inconclusive, undecided(row, ratio, &keys))
    } else if limit == tolerance {
        (Verdict::Pass, format!("{} %, surely less than the tolerance of {asked} %", signed(ratio - 1.0)))
    } else {
        let limit = percent(limit);
        let change = signed(ratio - 1.0);
        (Verdict::Pass, format!("{change} %, surely less than {limit} % (twice the tolerance of {asked} %)"))
    };
    let (verdict, reason) = match too_fast::check_this(ratio, None, "faster") {
        Some(check) if verdict <= Verdict::Pass => {
            (Verdict::Inconclusive, format!("{check}; {SIDE_BY_SIDE}; {reason}"))
        }
        _ => (verdict, reason),
    };
    let check = Check {
        current_ms: Some(current_ms),
        regression_ratio: Some(ratio - 1.0),
        stored: Some(keys),
        ..row_check(row, verdict, reason)
    };
    unless_quieter(row, check)
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

fn signed(share: f64) -> String {
    format!("{:+.1}", share * 100.0)
}

const SIDE_BY_SIDE: &str = "compare side by side: \"holdpoint gate --against REV\"";

fn undecided(row: &MetricRow, ratio: f64, keys: &StoredKeys) -> String {
    let (was, change) = (&row.baseline, signed(ratio - 1.0));
    let asked = percent(keys.tolerance);
    if !Bands::of(was).is_known {
        let runs = match was.runs_ms.len() {
            0 | 1 => "one run".to_owned(),
            count => format!("{count} runs"),
        };
        return format!(
            "{change} %, undecided at a tolerance of {asked} %: the baseline is {runs}, and how far runs differ takes {RUNS_MIN} \
             (\"holdpoint baseline record\"); {SIDE_BY_SIDE}, or judge by the baseline's limit alone: --policy allowed-max"
        );
    }
    let differ = match was.spread {
        Some(spread) => format!("runs of the baseline differ by {} %", percent(spread)),
        None => "runs of the baseline differ".to_owned(),
    };
    format!(
        "{change} %, undecided at a tolerance of {asked} %: {differ}, so that a slowdown is seen from {} % on; {SIDE_BY_SIDE}",
        percent(keys.sees)
    )
}

/// A time that is fast enough on a machine less busy than for the baseline is not evidence for the code, however fast: the times of the
/// baseline contain waits for a CPU without limit.
fn unless_quieter(row: &MetricRow, check: Check) -> Check {
    match &row.quieter {
        Some(quieter) if check.verdict <= Verdict::Pass => {
            let reason = format!("{}; {quieter}", check.reason);
            let stored = check.stored;
            Check {
                stored,
                regression_ratio: check.regression_ratio,
                current_ms: check.current_ms,
                ..row_check(row, Verdict::Inconclusive, reason)
            }
        }
        _ => check,
    }
}
