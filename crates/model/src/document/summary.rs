//! Summaries in a report must be those of its samples: whoever reads a report may believe either.

use super::{FileError, value_error};
use crate::{Current, Measured, Outcome, Report};
use holdpoint_stats as stats;

/// Sums may be taken in another order, perhaps on another machine.
const ROUNDING: f64 = 1e-9;

/// Whether two numbers differ by rounding at most.
pub fn is_close(one: f64, other: f64) -> bool {
    is_within(one, other, ROUNDING)
}

fn is_within(one: f64, other: f64, rounding: f64) -> bool {
    one == other || (one - other).abs() <= rounding * one.abs().max(other.abs())
}

/// Another tool's samples were rounded to whole nanoseconds after their summaries were taken.
fn rounding(measured: &Measured) -> f64 {
    let elapsed_ns = measured.samples.rounds.iter().flat_map(|round| &round.elapsed_ns);
    1e-6 + elapsed_ns.min().map_or(0.0, |shortest_ns| 1.0 / *shortest_ns as f64)
}

pub(super) fn check_summaries(report: &Report) -> Result<(), FileError> {
    // The report of another tool's file keeps that tool's own middle value beside its samples.
    let is_imported = report.toolchain.holdpoint.is_empty();
    for (name, measurement) in &report.benchmarks {
        let Outcome::Measured(measured) = &measurement.outcome else { continue };
        let found = match is_imported {
            true => {
                beyond_samples(measured).or_else(|| contradiction(measured, &["p50_ms"], rounding(measured)))
            }
            false => contradiction(measured, &[], ROUNDING),
        };
        if let Some(what) = found {
            return value_error(format!("benchmarks.{name}"), &what);
        }
    }
    let judged = Current::from(report).metrics;
    for (metric, stated) in &report.metrics {
        if judged.get(metric).is_some_and(|is| is.value_ms != *stated) {
            let what = format!("is {stated}, which its workload does not say: it was edited");
            return value_error(format!("metrics.{metric}"), &what);
        }
    }
    Ok(())
}

fn beyond_samples(measured: &Measured) -> Option<String> {
    let times_ms = sorted_ms(measured);
    let [low, high] = [*times_ms.first()?, *times_ms.last()?];
    let rounding = rounding(measured);
    let is_inside = measured.p50_ms >= low * (1.0 - rounding) && measured.p50_ms <= high * (1.0 + rounding);
    let p50_ms = measured.p50_ms;
    (!is_inside)
        .then(|| format!("p50_ms is {p50_ms}, its samples lie between {low} and {high}: it was edited"))
}

fn sorted_ms(measured: &Measured) -> Vec<f64> {
    let mut times_ms: Vec<f64> = measured.samples.per_call_ns().map(|ns| ns / 1e6).collect();
    times_ms.sort_by(f64::total_cmp);
    times_ms
}

/// The first summary that its samples do not give, but for those that may be another's.
fn contradiction(measured: &Measured, foreign: &[&str], rounding: f64) -> Option<String> {
    let samples = &measured.samples;
    // In order, because the sums below were taken in it.
    let times_ms: Vec<f64> = samples.per_call_ns().map(|ns| ns / 1e6).collect();
    let sorted = sorted_ms(measured);
    let quantile = |q: f64| sorted[(q * (sorted.len() - 1) as f64).floor() as usize];
    let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    let calls = samples.calls_per_sample as f64;
    let cpu_ns = samples.rounds.iter().flat_map(|round| &round.cpu_ns);
    let cpu_ms: Vec<f64> = cpu_ns.map(|ns| *ns as f64 / calls / 1e6).collect();
    let [of_median, of_rank, of_mean] =
        ["the median of its samples", "that of its samples", "the mean of its samples"];
    let stated = [
        ("p50_ms", measured.p50_ms, median, of_median),
        ("p95_ms", measured.p95_ms, quantile(0.95), of_rank),
        ("p99_ms", measured.p99_ms, quantile(0.99), of_rank),
        ("mean_ms", measured.mean_ms, stats::mean(&times_ms)?, of_mean),
        ("min_ms", measured.min_ms, quantile(0.0), "the smallest of its samples"),
    ];
    let rounds_ms = samples.rounds.iter().map(|round| {
        let times_ns = round.per_call_ns(samples.calls_per_sample);
        times_ns.map(|ns| ns / 1e6).collect::<Vec<f64>>()
    });
    let stretches = measured.slow_stretches.map(|stated| {
        let is = stats::slow_stretches(&rounds_ms.collect::<Vec<_>>()).unwrap_or(0.0);
        ("slow_stretches", stated, is, of_rank)
    });
    // Of a clock too coarse for the call it is absent.
    let cpu = measured
        .cpu_p50_ms
        .map(|stated| ("cpu_p50_ms", stated, stats::median(&cpu_ms).unwrap_or(0.0), of_median));
    let mut own = stated.into_iter().chain(cpu).chain(stretches).filter(|(key, ..)| !foreign.contains(key));
    let first = own.find(|(_, stated, is, _)| !is_within(*stated, *is, rounding));
    first.map(|(key, stated, is, what)| format!("{key} is {stated}, {what} {is}: it was edited"))
}
