//! The table after `holdpoint trend show`.

use super::{last_line, paragraphs, plot};
use crate::paint::{Ink, Style};
use crate::summary::group;
use crate::summary::trend::{LevelStarts, describe_trend, series};
use crate::table::{Cell, Column, Grid, names, numbers, words};
use crate::text;
use crate::units;
use holdpoint_model::trend::UNJUDGED;
use holdpoint_model::{Changes, Trend, TrendMetric};
use std::collections::BTreeMap;

const COLUMNS: &[Column] = &[
    names("metric"),
    numbers("first").drop(1),
    numbers("last"),
    numbers("change"),
    words("status").drop(3),
    words("history").drop(2),
];

/// Metrics drawn below the table; the others have their small history in it.
const METRICS_DRAWN: usize = 6;
const RUNS_DRAWN_MIN: usize = 3;
/// Columns where the terminal does not tell, of the numbers beside a drawing, and that a drawing needs.
const COLUMNS_USUAL: u16 = 80;
const LABEL_COLUMNS: usize = 12;
const DRAWN_COLUMNS_MIN: usize = 16;
const POINTS_SHOWN: usize = 24;
/// The drawing's height stands for at least this share of the middle value: noise of a percent stays flat.
const SPAN_MIN: f64 = 0.10;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_BARS: [char; 8] = ['_', '_', '.', '.', '-', '-', '\'', '\''];
/// A point without a value.
const GAP: char = '·';

/// The history of each metric, one table per suite; then where its level changed, if that was looked for.
pub fn trend(points: &[Trend], changes: Option<&Changes>, style: Style) -> String {
    if points.is_empty() {
        return last_line(style, Ink::Strong, "trend", "no points yet");
    }
    let suites = group(points.iter().map(|point| (point.suite.as_str(), point)));
    let starts = LevelStarts::new(changes);
    let mut parts: Vec<String> =
        suites.iter().map(|(suite, points)| suite_trend(suite, points, &starts, style)).collect();
    parts.extend(changes.filter(|found| !found.events.is_empty()).map(|found| super::changes(found, style)));
    paragraphs(&parts)
}

fn suite_trend(suite: &str, points: &[&Trend], starts: &LevelStarts<'_>, style: Style) -> String {
    let span = match points {
        [first, .., last] => format!("{} to {}", first.timestamp_utc, last.timestamp_utc),
        _ => points.iter().map(|point| point.timestamp_utc.clone()).collect(),
    };
    paragraphs(&[
        text::heading(style, suite, &[Some("trend".to_owned()), Some(span)]),
        table(points, style),
        drawings(suite, points, starts, style),
        last_line(style, Ink::Strong, "trend", &describe_trend(points)),
    ])
}

fn table(points: &[&Trend], style: Style) -> String {
    let mut grid = Grid::new(COLUMNS);
    for (name, metrics) in series(points) {
        grid.push(row(name, &metrics, style.ascii));
    }
    grid.render(style)
}

/// A line over the runs for the metrics that deserve a look first: not passed last, then changed most.
fn drawings(suite: &str, points: &[&Trend], starts: &LevelStarts<'_>, style: Style) -> String {
    let columns = usize::from(style.width.unwrap_or(COLUMNS_USUAL)).saturating_sub(LABEL_COLUMNS);
    if points.len() < RUNS_DRAWN_MIN || columns < DRAWN_COLUMNS_MIN {
        return String::new();
    }
    let mut all: Vec<(&str, Vec<Option<&TrendMetric>>)> = series(points).into_iter().collect();
    let is_bad = |metric: &TrendMetric| !["pass", UNJUDGED].contains(&metric.status.as_str());
    let size = |(_, metrics): &(&str, Vec<Option<&TrendMetric>>)| {
        let is_bad = metrics.last().copied().flatten().is_some_and(is_bad);
        let values = || metrics.iter().flatten().filter_map(|metric| metric.current_ms);
        let change =
            values().next().zip(values().next_back()).map_or(0.0, |(first, last)| (last / first).ln().abs());
        (is_bad, if change.is_finite() { change } else { 0.0 })
    };
    all.retain(|(_, metrics)| {
        metrics.iter().flatten().any(|metric| metric.current_ms.is_some_and(f64::is_finite))
    });
    all.sort_by(|a, b| {
        let (a, b) = (size(a), size(b));
        b.0.cmp(&a.0).then(b.1.total_cmp(&a.1))
    });
    let more = all.len().saturating_sub(METRICS_DRAWN);
    let drawn = all
        .iter()
        .take(METRICS_DRAWN)
        .map(|(name, metrics)| drawing(name, metrics, &starts.among(suite, name, points), columns, style));
    let mut parts: Vec<String> = drawn.collect();
    if more > 0 {
        let line = format!("{} more in the table only", text::plural(more, "metric"));
        parts.push(style.paint(Ink::Dim, &line) + "\n");
    }
    paragraphs(&parts)
}

fn drawing(
    name: &str,
    metrics: &[Option<&TrendMetric>],
    changed: &[bool],
    columns: usize,
    style: Style,
) -> String {
    // As many of the newest as there are dots for.
    let from = metrics.len().saturating_sub(columns * if style.ascii { 1 } else { 2 });
    let (metrics, changed) = (&metrics[from..], changed.get(from..).unwrap_or_default());
    let values: Vec<Option<f64>> = metrics
        .iter()
        .map(|metric| metric.and_then(|m| m.current_ms).filter(|value| value.is_finite()))
        .collect();
    let marked: Vec<bool> = metrics
        .iter()
        .map(|metric| metric.is_some_and(|metric| !["pass", UNJUDGED].contains(&metric.status.as_str())))
        .collect();
    let known = || values.iter().flatten().copied();
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let limit = metrics.iter().flatten().next_back().and_then(|metric| metric.allowed_max_ms);
    // A limit far above leaves no height for the values.
    let limit = limit
        .filter(|limit| limit.is_finite() && *limit < high + 2.0 * (high - low).max(high.abs() * SPAN_MIN));
    let (low, high) = (low, limit.map_or(high, |limit| limit.max(high)));
    let short = (low.midpoint(high).abs() * SPAN_MIN - (high - low)).max(0.0) / 2.0;
    let (low, high) =
        if high + short > low - short { (low - short, high + short) } else { (low - 1.0, high + 1.0) };
    let lines = plot::lines(
        &plot::Series { values: &values, marked: &marked, changed, limit },
        [low, high],
        columns,
        style.ascii,
        units::time,
    );
    let mut legend = Vec::new();
    if limit.is_some() {
        legend.push(if style.ascii { "- allowed" } else { "┄ allowed" });
    }
    if marked.contains(&true) {
        legend.push(if style.ascii { "! did not pass" } else { "▲ did not pass" });
    }
    if changed.contains(&true) {
        legend.push(if style.ascii { "^ level changed" } else { "◆ level changed" });
    }
    let legend = if legend.is_empty() {
        String::new()
    } else {
        format!("  {}", style.paint(Ink::Dim, &legend.join(", ")))
    };
    format!("{}{legend}\n{}\n", style.paint(Ink::Strong, &text::clean(name)), lines.join("\n"))
}

fn row(name: &str, metrics: &[Option<&TrendMetric>], is_ascii: bool) -> [Cell; 6] {
    let values: Vec<Option<f64>> =
        metrics.iter().map(|m| m.and_then(|m| m.current_ms).filter(|v| v.is_finite())).collect();
    let first = values.iter().flatten().next().copied();
    let last = values.iter().flatten().next_back().copied();
    let change = first.zip(last).map(|(first, last)| last / first - 1.0);
    let ink = match metrics.iter().flatten().next_back() {
        Some(metric) if metric.status != "pass" && metric.status != UNJUDGED => Ink::Bad,
        _ => Ink::Plain,
    };
    [
        Cell::new(name),
        Cell::number(first, units::time),
        Cell::number(last, units::time),
        Cell::number(change, units::percent),
        Cell::inked(ink, &statuses(metrics)),
        Cell::new(&sparkline(&values, is_ascii)),
    ]
}

/// `12 pass, 1 fail`, passes first.
fn statuses(metrics: &[Option<&TrendMetric>]) -> String {
    let mut counts: BTreeMap<(bool, &str), u64> = BTreeMap::new();
    for metric in metrics.iter().flatten() {
        *counts.entry((metric.status != "pass", metric.status.as_str())).or_default() += 1;
    }
    let texts = counts.iter().map(|((_, status), n)| format!("{} {status}", units::count(*n)));
    texts.collect::<Vec<_>>().join(", ")
}

fn sparkline(values: &[Option<f64>], is_ascii: bool) -> String {
    let values = &values[values.len().saturating_sub(POINTS_SHOWN)..];
    let known = || values.iter().flatten().copied();
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let middle = low.midpoint(high);
    let span = (high - low).max(middle.abs() * SPAN_MIN);
    let bar = |v: f64| {
        let height = if span > 0.0 { (v - middle) / span + 0.5 } else { 0.5 };
        let bars = if is_ascii { ASCII_BARS } else { BARS };
        bars[((height * bars.len() as f64) as usize).min(bars.len() - 1)]
    };
    let gap = if is_ascii { ' ' } else { GAP };
    values.iter().map(|v| v.map_or(gap, bar)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_spans_its_values_but_keeps_noise_flat() {
        let line = |values: &[f64]| sparkline(&values.iter().copied().map(Some).collect::<Vec<_>>(), false);
        assert_eq!(line(&[1.0, 2.0, 3.0]), "▁▅█");
        assert_eq!(line(&[1.0, 1.001, 0.999]), "▅▅▄");
        assert_eq!(line(&[0.0, 0.0]), "▅▅");
        assert_eq!(sparkline(&[None, Some(1.0), None], false), "·▅·");
        assert_eq!(sparkline(&[], false), "");
        assert_eq!(line(&[1.0; 100]).chars().count(), POINTS_SHOWN);
    }
}
