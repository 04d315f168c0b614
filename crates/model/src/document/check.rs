//! Values that have the right form and make no sense. Nothing behind a reader sees a time that is zero, negative or not a number.

use super::summary::{check_summaries, is_close};
use super::{Document, FileError, Kind};
use crate::limits::{TIME_MS_MAX, TIME_MS_MIN, TOLERANCE_MAX, clean_text};
use crate::{Baseline, Measured, Outcome, Report, Samples};

impl Document for Report {
    const KIND: Kind = Kind::Report;

    fn check(&self) -> Result<(), FileError> {
        for (name, measurement) in &self.benchmarks {
            if let Outcome::Measured(measured) = &measurement.outcome {
                check_measured(&format!("benchmarks.{name}"), measured)?;
            }
        }
        check_summaries(self)
    }
}

impl Document for Baseline {
    const KIND: Kind = Kind::Baseline;

    fn check(&self) -> Result<(), FileError> {
        for (name, metric) in &self.metrics {
            check_time(&format!("metrics.{name}.value_ms"), metric.value_ms)?;
            for value_ms in &metric.runs_ms {
                check_time(&format!("metrics.{name}.runs_ms"), *value_ms)?;
            }
            let of_runs = holdpoint_stats::median(&metric.runs_ms);
            if let Some(is) = of_runs.filter(|is| !is_close(metric.value_ms, *is)) {
                let what = format!(
                    "is {}, the median of its runs_ms {is}: it was edited; put it back, or record it again",
                    metric.value_ms
                );
                return value_error(format!("metrics.{name}.value_ms"), &what);
            }
            let noise = metric.noise.as_ref().map(|noise| &noise.sd);
            let visible = metric.smallest_visible_slowdown.iter().chain(&metric.slow_stretches).chain(noise);
            for tolerance in visible.chain([&metric.max_regression_ratio, &metric.max_regression_abs_ms]) {
                if !(0.0..=TOLERANCE_MAX).contains(tolerance) {
                    let what = format!("a tolerance must not be negative, nor above {TOLERANCE_MAX:e}");
                    return value_error(format!("metrics.{name}"), &what);
                }
            }
        }
        Ok(())
    }
}

fn check_measured(place: &str, measured: &Measured) -> Result<(), FileError> {
    for (key, value) in [
        ("p50_ms", measured.p50_ms),
        ("p95_ms", measured.p95_ms),
        ("p99_ms", measured.p99_ms),
        ("mean_ms", measured.mean_ms),
        ("min_ms", measured.min_ms),
    ] {
        check_time(&format!("{place}.{key}"), value)?;
    }
    check_samples(place, &measured.samples)
}

fn check_samples(place: &str, samples: &Samples) -> Result<(), FileError> {
    if samples.calls_per_sample == 0 {
        return value_error(format!("{place}.samples.calls_per_sample"), "must be above 0");
    }
    if samples.rounds.iter().all(|round| round.elapsed_ns.is_empty()) {
        return value_error(format!("{place}.samples"), "measured, yet it has no samples");
    }
    for round in &samples.rounds {
        if round.elapsed_ns.contains(&0) {
            return value_error(format!("{place}.samples, round {}", round.round), "a time of 0 ns");
        }
    }
    Ok(())
}

/// Whether a value can be a time.
pub fn check_time(place: &str, value_ms: f64) -> Result<(), FileError> {
    if value_ms > 0.0 && (TIME_MS_MIN..=TIME_MS_MAX).contains(&value_ms) {
        return Ok(());
    }
    let problem = if value_ms > 0.0 { "beyond reason" } else { "not a time" };
    let range = format!("times lie between {TIME_MS_MIN:e} and {TIME_MS_MAX:e} ms");
    value_error(place.to_owned(), &format!("{value_ms:?} is {problem}; {range}"))
}

/// The error of a value at a place in a file.
pub fn value_error<T>(place: String, what: &str) -> Result<T, FileError> {
    Err(FileError::Value { place: clean_text(&place), what: what.to_owned() })
}
