//! The table after `holdpoint trend show`.

use super::{last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::summary::group;
use crate::summary::trend::{describe_trend, series};
use crate::table::{Cell, Column, Grid, names, numbers, words};
use crate::text;
use crate::units;
use holdpoint_model::trend::UNJUDGED;
use holdpoint_model::{Trend, TrendMetric};
use std::collections::BTreeMap;

const COLUMNS: &[Column] = &[
    names("metric"),
    numbers("first").drop(1),
    numbers("last"),
    numbers("change"),
    words("status").drop(3),
    words("history").drop(2),
];

const POINTS_SHOWN: usize = 24;
/// The drawing's height stands for at least this share of the middle value: noise of a percent stays flat.
const SPAN_MIN: f64 = 0.10;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// A point without a value.
const GAP: char = '·';

/// The history of each metric, one table per suite.
pub fn trend(points: &[Trend], style: Style) -> String {
    if points.is_empty() {
        return last_line(style, Ink::Strong, "trend", "no points yet");
    }
    let suites = group(points.iter().map(|point| (point.suite.as_str(), point)));
    let parts: Vec<String> = suites.iter().map(|(suite, points)| suite_trend(suite, points, style)).collect();
    paragraphs(&parts)
}

fn suite_trend(suite: &str, points: &[&Trend], style: Style) -> String {
    let span = match points {
        [first, .., last] => format!("{} to {}", first.timestamp_utc, last.timestamp_utc),
        _ => points.iter().map(|point| point.timestamp_utc.clone()).collect(),
    };
    paragraphs(&[
        text::heading(style, suite, &[Some("trend".to_owned()), Some(span)]),
        table(points, style),
        last_line(style, Ink::Strong, "trend", &describe_trend(points)),
    ])
}

fn table(points: &[&Trend], style: Style) -> String {
    let mut grid = Grid::new(COLUMNS);
    for (name, metrics) in series(points) {
        grid.push(row(name, &metrics));
    }
    grid.render(style)
}

fn row(name: &str, metrics: &[Option<&TrendMetric>]) -> [Cell; 6] {
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
        Cell::new(&sparkline(&values)),
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

fn sparkline(values: &[Option<f64>]) -> String {
    let values = &values[values.len().saturating_sub(POINTS_SHOWN)..];
    let known = || values.iter().flatten().copied();
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let middle = low.midpoint(high);
    let span = (high - low).max(middle.abs() * SPAN_MIN);
    let bar = |v: f64| {
        let height = if span > 0.0 { (v - middle) / span + 0.5 } else { 0.5 };
        BARS[((height * BARS.len() as f64) as usize).min(BARS.len() - 1)]
    };
    values.iter().map(|v| v.map_or(GAP, bar)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_spans_its_values_but_keeps_noise_flat() {
        let line = |values: &[f64]| sparkline(&values.iter().copied().map(Some).collect::<Vec<_>>());
        assert_eq!(line(&[1.0, 2.0, 3.0]), "▁▅█");
        assert_eq!(line(&[1.0, 1.001, 0.999]), "▅▅▄");
        assert_eq!(line(&[0.0, 0.0]), "▅▅");
        assert_eq!(sparkline(&[None, Some(1.0), None]), "·▅·");
        assert_eq!(sparkline(&[]), "");
        assert_eq!(line(&[1.0; 100]).chars().count(), POINTS_SHOWN);
    }
}
