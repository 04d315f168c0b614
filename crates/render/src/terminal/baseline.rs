//! The table after `holdpoint baseline show`.

use super::{last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::table::{Cell, Column, Grid, names, numbers};
use crate::text::{self, entry, plural};
use crate::units;
use holdpoint_model::{Baseline, BaselineMetric, Machine};

const COLUMNS: &[Column] = &[
    names("metric"),
    numbers("value"),
    numbers("tolerance").drop(1),
    numbers("allowed"),
    numbers("spread").drop(2),
    numbers("runs").drop(3),
];

pub fn baseline(b: &Baseline, style: Style) -> String {
    paragraphs(&[head(b, style), table(b, style), facts(b, style), end(b, style)])
}

fn head(b: &Baseline, style: Style) -> String {
    text::heading(style, &b.suite, &[Some("baseline".to_owned()), b.machine.as_ref().map(Machine::describe)])
}

fn table(b: &Baseline, style: Style) -> String {
    let mut grid = Grid::new(COLUMNS);
    for (name, metric) in &b.metrics {
        let runs = match metric.runs_ms.len() {
            0 => units::MISSING.to_owned(),
            n => units::count(n as u64),
        };
        grid.push([
            Cell::new(name),
            Cell::number(Some(metric.value_ms), units::time).with(Ink::Strong),
            Cell::new(&tolerance(metric)),
            Cell::number(Some(metric.allowed_max_ms()), units::time),
            Cell::number(metric.spread, units::share).with(Ink::Dim),
            Cell::new(&runs),
        ]);
    }
    grid.render(style)
}

/// `+50.0 %`, `+50.0 % + 20.00 µs`.
fn tolerance(metric: &BaselineMetric) -> String {
    let ratio = units::percent(metric.max_regression_ratio);
    if metric.max_regression_abs_ms == 0.0 {
        return ratio;
    }
    format!("{ratio} + {}", units::time(metric.max_regression_abs_ms))
}

fn facts(b: &Baseline, style: Style) -> String {
    let mut out = String::new();
    for run in &b.runs {
        let revision = run.revision.as_ref().map_or_else(|| "no revision".to_owned(), text::revision);
        out += &entry(style, Ink::Strong, "run", &format!("{}  {revision}", run.timestamp_utc));
    }
    if let Some(promoted) = &b.promoted {
        let commit = text::short_commit(&promoted.commit);
        let body = format!("{}  {commit} by {}", promoted.timestamp_utc, promoted.by);
        out += &entry(style, Ink::Strong, "promoted", &body);
    }
    out += &entry(style, Ink::Strong, "requires", &format!("a run of status {:?}", b.required_status()));
    if !b.baseline_notes.trim().is_empty() {
        out += &entry(style, Ink::Strong, "note", &b.baseline_notes);
    }
    out
}

fn end(b: &Baseline, style: Style) -> String {
    let runs = match b.runs.len() {
        0 => "origin unknown".to_owned(),
        n => format!("from {}", plural(n, "run")),
    };
    let machine = match &b.machine {
        Some(machine) => format!("on machine {:.12}", machine.fingerprint),
        None => "on an unnamed machine".to_owned(),
    };
    let sentence = format!("{}, {runs}, {machine}", plural(b.metrics.len(), "metric"));
    last_line(style, Ink::Strong, "baseline", &sentence)
}
