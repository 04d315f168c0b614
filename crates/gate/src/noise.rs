//! The smallest change that a baseline's noise can resolve. Where it cannot resolve the tolerance, a verdict would be a
//! coin toss, and there is none.

use crate::compare::SHARING_TIMES;
use crate::tolerance::{self, RUNS_MIN};
use holdpoint_model::{BaselineMetric, Verdict};
use holdpoint_stats as stats;

/// The noise of a baseline whose file does not say what can be seen, in units of its spread.
pub const SPREAD_FACTOR: f64 = 3.0;

/// How far the noise of a baseline may carry a run of unchanged code, as ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bands {
    /// Slower by no more than this, at the alarm rate.
    pub alarm: f64,
    /// Faster by no more than this, at the miss rate.
    pub miss: f64,
    /// Whether the baseline's runs say so.
    pub is_known: bool,
}

impl Bands {
    /// Runs of which nobody knows how far they differ are assumed to differ by as much as others on the machine can do.
    pub fn of(was: &BaselineMetric) -> Self {
        let by_spread = || {
            stats::spread(&was.runs_ms)
                .filter(|_| was.runs_ms.len() >= RUNS_MIN)
                .map(|spread| SPREAD_FACTOR * spread)
        };
        let alarm = was.smallest_visible_slowdown.or_else(by_spread);
        match alarm.zip(tolerance::miss_band(was)) {
            Some((alarm, miss)) => Self { alarm: 1.0 + alarm, miss: 1.0 + miss, is_known: true },
            None => Self { alarm: SHARING_TIMES, miss: SHARING_TIMES, is_known: false },
        }
    }
}

/// A policy's verdict in view of the noise: the verdict itself, a milder one, or [`Verdict::Inconclusive`]
/// with the reason.
///
/// Changes below the smallest visible slowdown are noise; in files that do not name it, those within `SPREAD_FACTOR` spreads
/// of the runs. As long as that band is within the tolerance, the policy
/// decides. If it is wider, only what is clear anyway is decided: a change beyond the band and the tolerance is a
/// regression; one that would be within the tolerance even if the noise had flattered it passes, and is an
/// improvement if it lies beyond the band. Baselines with fewer runs than tell a spread, as all of the originals', are the
/// policy's alone.
pub(crate) fn weigh(
    was: &BaselineMetric,
    allowed_max_ms: f64,
    current_ms: f64,
    ruled: Verdict,
) -> (Verdict, Option<String>) {
    let by_spread = || stats::spread(&was.runs_ms).map(|spread| SPREAD_FACTOR * spread);
    let visible = was.smallest_visible_slowdown.or_else(by_spread);
    let Some(visible) = visible.filter(|_| was.runs_ms.len() >= RUNS_MIN) else {
        return (ruled, None);
    };
    // In milliseconds, as the tolerance is kept: a tolerance made from these very runs is then exactly the band.
    let noisy_max_ms = was.value_ms * (1.0 + visible);
    if noisy_max_ms <= allowed_max_ms || allowed_max_ms.is_nan() {
        return (ruled, None);
    }
    let band_ms = noisy_max_ms - was.value_ms;
    let is_clear = match ruled {
        // The second: a tolerance may ask for an improvement, and then no change at all is a clear miss.
        Verdict::Regressed => current_ms > noisy_max_ms || current_ms - band_ms > allowed_max_ms,
        _ => current_ms + band_ms < allowed_max_ms,
    };
    match ruled {
        _ if !is_clear => (Verdict::Inconclusive, Some(unclear(was, visible, allowed_max_ms, current_ms))),
        Verdict::Improved if current_ms + band_ms >= was.value_ms => {
            (Verdict::Pass, Some("within the tolerance; faster, but not by more than noise".to_owned()))
        }
        _ => (ruled, None),
    }
}

fn unclear(was: &BaselineMetric, visible: f64, allowed_max_ms: f64, current_ms: f64) -> String {
    let change = |ms: f64| (ms / was.value_ms - 1.0) * 100.0;
    format!(
        "{:+.1} %, but runs of the baseline differ by {:.1} %: a change below {:.0} % is within the noise, the \
         tolerance is {:.1} %; record on a quieter machine, or compare side by side with \"holdpoint gate --against REV\"",
        change(current_ms),
        stats::spread(&was.runs_ms).unwrap_or(0.0) * 100.0,
        visible * 100.0,
        change(allowed_max_ms),
    )
}
