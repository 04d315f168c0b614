//! Tolerances of a baseline's metrics: what the user asks for, but no less than the differences between runs let be seen
//! at a stated false-alarm rate. See METHODOLOGY, "Against a stored baseline".

use holdpoint_model::limits::TOLERANCE_MAX;
use holdpoint_model::{Baseline, BaselineMetric};
use holdpoint_stats as stats;

/// Fewer runs say nothing about how far apart runs are.
pub const RUNS_MIN: usize = 3;
/// The tolerance where nobody asks for another one.
pub const TOLERANCE: f64 = 0.02;
/// Standard deviation of the difference between two sessions, minutes or days apart, in units of that between the
/// baseline's runs: an assumption, which runs in a row cannot check. See METHODOLOGY.
pub const SESSION_DRIFT: f64 = 1.0;
/// The variance of the median of three normal values, in units of the variance of one: what a gate judges before it reports
/// a slowdown.
const MEDIAN_OF_THREE: f64 = 0.449;

/// Sets the tolerance of every metric that has enough runs; the others keep theirs.
pub(crate) fn fit(baseline: &mut Baseline, alarm_rate: f64) {
    // Bonferroni: the rate is that of the suite, whatever the number of its metrics.
    let tail = alarm_rate / baseline.metrics.len().max(1) as f64;
    for metric in baseline.metrics.values_mut() {
        metric.spread = stats::spread(&metric.runs_ms);
        if metric.runs_ms.len() >= RUNS_MIN {
            metric.smallest_visible_slowdown = smallest_visible(metric, tail);
            set(metric, TOLERANCE);
        }
    }
    baseline.alarm_rate = Some(alarm_rate);
}

/// The tolerance that was asked for, but no less than what can be seen.
pub(crate) fn set(metric: &mut BaselineMetric, tolerance: f64) {
    let visible = metric.smallest_visible_slowdown.unwrap_or(0.0);
    (metric.max_regression_ratio, metric.max_regression_abs_ms) = (tolerance.max(visible), 0.0);
}

/// The smallest slowdown that unchanged code shows in the median of three runs with a probability of no more than `tail`, but
/// no less than what it showed for a tenth of one of the runs: a neighbour or a lower clock may stay for minutes.
fn smallest_visible(metric: &BaselineMetric, tail: f64) -> Option<f64> {
    let logs: Vec<f64> = metric.runs_ms.iter().map(|ms| ms.ln()).collect();
    let excess = stats::median_excess(&logs, MEDIAN_OF_THREE + SESSION_DRIFT * SESSION_DRIFT, tail)?;
    let stretches = metric.slow_stretches.iter().copied().fold(0.0, f64::max);
    Some(excess.exp_m1().max(stretches).min(TOLERANCE_MAX))
}
