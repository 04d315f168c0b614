//! Tolerances of a baseline's metrics: what the user asks for; and how far its runs differ, at a stated rate of error.
//! See METHODOLOGY, "Against a stored baseline".

use holdpoint_model::limits::TOLERANCE_MAX;
use holdpoint_model::{Baseline, BaselineMetric, RunNoise};
use holdpoint_stats as stats;
use holdpoint_stats::sequential::MISS_RATE;

/// Fewer runs say nothing about how far apart runs are.
pub const RUNS_MIN: usize = 3;
/// The tolerance where nobody asks for another one.
pub const TOLERANCE: f64 = 0.02;
/// Standard deviation of the difference between two sessions, minutes or days apart, in units of that between the
/// baseline's runs: an assumption, which runs in a row cannot check. See METHODOLOGY.
pub const SESSION_DRIFT: f64 = 1.0;
/// The same where the difference would hide a slowdown: a pass is judged by one run, an alarm is confirmed by two more.
pub const HIDING_DRIFT: f64 = 2.0;
/// A pass is asked for so many times less than the miss rate by Student's t: recorded runs lie far out more often than it says.
pub const MISS_MARGIN: f64 = 10.0;
/// The variance of the median of three normal values, in units of the variance of one: what a gate judges before it reports
/// a slowdown.
const MEDIAN_OF_THREE: f64 = 0.449;

/// Sets what can be seen in every metric whose noise is known, and the tolerance where runs enough say so.
pub(crate) fn fit(baseline: &mut Baseline, alarm_rate: f64) {
    let tail = tail(baseline, alarm_rate);
    for metric in baseline.metrics.values_mut() {
        metric.spread = stats::spread(&metric.runs_ms);
        metric.smallest_visible_slowdown = smallest_visible(metric, tail);
        if metric.runs_ms.len() >= RUNS_MIN {
            set(metric, TOLERANCE);
        }
    }
    baseline.alarm_rate = Some(alarm_rate);
}

/// Bonferroni: the rate is that of the suite, whatever the number of its metrics.
pub(crate) fn tail(baseline: &Baseline, alarm_rate: f64) -> f64 {
    alarm_rate / baseline.metrics.len().max(1) as f64
}

pub(crate) fn set(metric: &mut BaselineMetric, tolerance: f64) {
    (metric.max_regression_ratio, metric.max_regression_abs_ms) = (tolerance, 0.0);
}

/// How far runs differ: the baseline's own where they are enough, else those of the one before.
pub(crate) fn noise_of(metric: &BaselineMetric) -> Option<RunNoise> {
    let logs: Vec<f64> = metric.runs_ms.iter().map(|ms| ms.ln()).collect();
    if logs.len() < RUNS_MIN {
        return metric.noise;
    }
    Some(RunNoise { sd: stats::standard_deviation(&logs)?, runs_count: logs.len() })
}

/// The smallest slowdown that unchanged code shows in the median of three runs with a probability of no more than `tail`, but
/// no less than what it showed for a tenth of one of the runs: a neighbour or a lower clock may stay for minutes.
pub(crate) fn smallest_visible(metric: &BaselineMetric, tail: f64) -> Option<f64> {
    let excess = band(metric, MEDIAN_OF_THREE + SESSION_DRIFT.powi(2), tail)?;
    let stretches = metric.slow_stretches.iter().copied().fold(0.0, f64::max);
    Some(excess.max(stretches).min(TOLERANCE_MAX))
}

/// The slowdown that one run hides with a probability of no more than the miss rate.
pub(crate) fn miss_band(metric: &BaselineMetric) -> Option<f64> {
    Some(band(metric, 1.0 + HIDING_DRIFT.powi(2), MISS_RATE / MISS_MARGIN)?.min(TOLERANCE_MAX))
}

/// `variance` is that of what is compared with the baseline's value, sessions included, in units of that of a run.
fn band(metric: &BaselineMetric, variance: f64, tail: f64) -> Option<f64> {
    let noise = noise_of(metric)?;
    let variance = variance + stats::median_variance(metric.runs_ms.len());
    Some(stats::normal_excess(noise.sd, noise.runs_count, variance, tail)?.exp_m1())
}
