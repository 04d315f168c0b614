//! One metric over the runs of a trend, against its baseline and what was allowed.

use super::{Chart, SIZE, describe_step, thin_out};
use crate::links::Links;
use crate::summary::trend::place_of;
use crate::svg::{Frame, Plot, Scale, nice_ticks};
use crate::{text, units};
use holdpoint_model::trend::UNJUDGED;
use holdpoint_model::{LevelChange, Timestamp, Trend, TrendMetric};

/// The drawing's height stands for at least this share of the middle value: noise of a percent stays flat.
const SPAN_MIN: f64 = 0.04;

/// A metric in each run, where the run has it.
pub(crate) type Series<'a> = Vec<(&'a Trend, Option<&'a TrendMetric>)>;

/// The changes of a metric's level, and the times of the runs by which they are found among these.
#[derive(Clone, Copy)]
pub(crate) struct Levels<'a> {
    pub(crate) changes: &'a [LevelChange],
    pub(crate) times: &'a [Option<Timestamp>],
}

impl Levels<'_> {
    /// Lines at the levels, and where one ends: the runs among which the change lies, and the first of the new level.
    fn draw(self, plot: &mut Plot, [low, high]: [f64; 2], runs_count: usize) {
        let mut from = 1.0;
        for (i, change) in self.changes.iter().enumerate() {
            let Some(start) = place_of(self.times, change.after.at) else { continue };
            let before = place_of(self.times, change.before.at).unwrap_or(start);
            let at = start as f64 + 1.0;
            plot.band("changing", [before as f64 + 1.0, at], [low, high]);
            plot.upright("change", at);
            let [was, is] = change.levels.map(|level| level.clamp(low, high));
            plot.line("steady", [Some([from, was]), Some([at, was])]);
            if i + 1 == self.changes.len() {
                plot.line("steady", [Some([at, is]), Some([runs_count as f64, is])]);
            }
            from = at;
        }
    }
}

pub(crate) fn history(series: Series<'_>, levels: Levels<'_>, links: &Links, max: usize) -> Option<Chart> {
    let count = series.len();
    let (series, step) = thin_out(series, max);
    let value = |metric: &TrendMetric| metric.current_ms.filter(|ms| ms.is_finite());
    let values: Vec<f64> = series.iter().filter_map(|(_, metric)| value((*metric)?)).collect();
    let middle = holdpoint_stats::median(&values)?;
    let (lowest, highest) =
        values.iter().fold((middle, middle), |(low, high), value| (low.min(*value), high.max(*value)));
    // A limit far above leaves no height for the values: the band then reaches to the top.
    let near = |ms: &f64| ms.is_finite() && *ms < highest + 3.0 * (highest - lowest).max(middle * SPAN_MIN);
    let limits = series.iter().filter_map(|(_, metric)| *metric);
    let limits: Vec<f64> =
        limits.flat_map(|m| [m.baseline_ms, m.allowed_max_ms]).flatten().filter(near).collect();
    let y = Scale::over(values.iter().copied().chain(limits), middle * SPAN_MIN);
    let mut plot = Plot::new(Frame { size: SIZE, x: Scale::new(0.0, count as f64 + 1.0), y, lane: 0.0 });
    let place = |i: usize| (i * step) as f64 + 1.0;
    // What was allowed may change from run to run: a piece of the band for each.
    let half = step as f64 / 2.0;
    for (i, (baseline, allowed)) in allowed_pieces(&series, y.ends()[1]) {
        let (from, to) = (place(*i.start()) - half, place(*i.end()) + half);
        plot.band("band", [from, to], [y.ends()[0], allowed]);
        plot.line("level", [Some([from, baseline]), Some([to, baseline])]);
    }
    let (per_ms, unit) = units::axis_unit(y.ends()[1]);
    let ticks = nice_ticks(y.ends().map(|end| end * per_ms), 4).into_iter();
    let ticks: Vec<(f64, String)> = ticks.map(|(at, text)| (at / per_ms, text)).collect();
    plot.axes(&day_ticks(&series, place), &ticks, [unit, "runs"]);
    levels.draw(&mut plot, y.ends(), count);
    plot.line("", series.iter().enumerate().map(|(i, (_, metric))| Some([place(i), value((*metric)?)?])));
    for (i, (point, metric)) in series.iter().enumerate() {
        let Some((metric, ms)) = metric.and_then(|metric| Some((metric, value(metric)?))) else { continue };
        let is_fine = ["pass", UNJUDGED].contains(&metric.status.as_str());
        let revision = point.revision.as_ref();
        let commit = revision.map(|at| format!(", {}", text::revision(at))).unwrap_or_default();
        let title = format!("{}: {}, {}{commit}", point.timestamp_utc, units::time(ms), metric.status);
        let url = revision.and_then(|at| links.commit(&at.commit));
        if !is_fine {
            plot.ring("ring", [place(i), ms], 7.0);
        }
        let class = if metric.status == UNJUDGED {
            "dot"
        } else if is_fine {
            "pass"
        } else {
            "fail"
        };
        plot.dot(class, [place(i), ms], &title, url.as_deref());
    }
    let bad = |(_, metric): &(&Trend, Option<&TrendMetric>)| {
        metric.is_some_and(|metric| !["pass", UNJUDGED].contains(&metric.status.as_str()))
    };
    if series.iter().any(bad) {
        plot.legend(&[("culprit", "◎ did not pass")]);
    }
    let caption = format!("{}{}", text::plural(count, "run"), describe_step(step, count));
    Some(Chart { plot, caption })
}

/// Runs in a row with the same baseline and limit, and these.
fn allowed_pieces(series: &Series<'_>, top: f64) -> Vec<(std::ops::RangeInclusive<usize>, (f64, f64))> {
    let mut pieces: Vec<(std::ops::RangeInclusive<usize>, (f64, f64))> = Vec::new();
    for (i, (_, metric)) in series.iter().enumerate() {
        let ends = metric.and_then(|m| m.baseline_ms.zip(m.allowed_max_ms));
        let Some((low, high)) = ends.filter(|(low, high)| low.is_finite() && high > low) else { continue };
        let ends = (low, high.min(top));
        match pieces.last_mut() {
            Some((runs, same)) if *same == ends && *runs.end() + 1 == i => *runs = *runs.start()..=i,
            _ => pieces.push((i..=i, ends)),
        }
    }
    pieces
}

/// The day of the first, the middle and the last run; the time where all are of one day.
fn day_ticks(series: &Series<'_>, place: impl Fn(usize) -> f64) -> Vec<(f64, String)> {
    let part = |i: usize, part: std::ops::Range<usize>| series[i].0.timestamp_utc.get(part);
    let last = series.len().saturating_sub(1);
    let is_one_day = last > 0 && part(0, 0..10) == part(last, 0..10);
    let shown = if is_one_day { 11..16 } else { 0..10 };
    let day = |i: usize| (place(i), part(i, shown.clone()).unwrap_or_default().to_owned());
    let mut ticks: Vec<(f64, String)> = match series.len() {
        0 => Vec::new(),
        1 => vec![day(0)],
        n @ 2..5 => vec![day(0), day(n - 1)],
        n => vec![day(0), day(n / 2), day(n - 1)],
    };
    ticks.dedup_by(|a, b| a.1 == b.1);
    ticks
}
