//! The table after `holdpoint gate` and `holdpoint compare`.

use super::{last_line, paragraphs, reasons};
use crate::judged::Judged;
use crate::paint::{Ink, Style};
use crate::table::{Cell, Column, Grid, names, numbers, words};
use crate::text::{self, entry, list, quote};
use crate::{summary, units};
use holdpoint_model::judgement::STATUS_METRIC;
use holdpoint_model::{Check, Judgement, Outcome, Report, Verdict};
use std::collections::HashSet;

/// Characters of a run's status in a column of numbers; a foreign file may say anything.
const STATUS_CHARS: usize = 12;
/// Metrics named in the line about those that have no baseline.
const UNGATED_SHOWN: usize = 5;

const COLUMNS: &[Column] = &[
    words("verdict"),
    names("metric"),
    numbers("baseline").drop(1),
    numbers("current"),
    numbers("change"),
    numbers("allowed").drop(2),
    numbers("headroom").drop(3),
    numbers("spread").drop(4),
];
const THRESHOLD_COLUMNS: &[Column] = &[
    words("verdict"),
    names("metric"),
    numbers("baseline").drop(1),
    numbers("current"),
    numbers("change"),
    numbers("speedup").drop(2),
    words("label").drop(3),
];

/// The judgement, with the failures from its samples where they are there.
#[must_use]
pub fn judgement(judged: Judged<'_>, style: Style) -> String {
    if judged.is_sides() {
        return super::ab::sides(judged, style);
    }
    let (j, report) = (judged.judgement, judged.run());
    paragraphs(&[
        head(j, style),
        table(j, style),
        reasons(&summary::reasons(&j.checks), style) + &failures(j, report, style) + &notes(j, style),
        last_line(style, j.verdict.into(), j.verdict.as_str(), &summary::of_judgement(j)),
    ])
}

fn head(j: &Judgement, style: Style) -> String {
    let least =
        j.threshold.as_ref().map(|keys| format!("at least {}", units::percent(keys.threshold / 100.0)));
    let policy = match least {
        Some(least) => format!("policy {} ({least})", j.policy),
        None => format!("policy {}", j.policy),
    };
    let revision = j.revision.as_ref().map(text::revision);
    text::heading(style, &j.suite, &[Some(policy), revision, text::machine(j.machine.as_ref())])
}

fn table(j: &Judgement, style: Style) -> String {
    let by_threshold = j.checks.iter().any(|check| check.threshold.is_some());
    let mut grid = Grid::new(if by_threshold { THRESHOLD_COLUMNS } else { COLUMNS });
    let (shown, left_out) = summary::shown(&j.checks, |check| check.verdict);
    for check in shown {
        let mut row = common_cells(check);
        if by_threshold {
            row.extend(threshold_cells(check));
        } else {
            row.extend(allowed_cells(check));
        }
        grid.push(row);
    }
    let more = summary::more_passed(left_out).map(|line| format!("{}\n", style.paint(Ink::Dim, &line)));
    grid.render(style) + &more.unwrap_or_default()
}

fn common_cells(check: &Check) -> Vec<Cell> {
    let ink = Ink::from(check.verdict);
    let (was, is) = if check.metric == STATUS_METRIC {
        (status(&check.expected), status(&check.current))
    } else {
        (Cell::number(check.baseline_ms, units::time), Cell::number(check.current_ms, units::time))
    };
    let change = Cell::number(check.regression_ratio, units::percent);
    let change_ink = if check.verdict == Verdict::Pass { Ink::Plain } else { ink };
    vec![Cell::inked(ink, check.verdict.as_str()), Cell::new(&check.metric), was, is, change.with(change_ink)]
}

fn status(status: &Option<String>) -> Cell {
    Cell::new(
        &status
            .as_deref()
            .map_or_else(|| units::MISSING.to_owned(), |status| text::clip(status, STATUS_CHARS)),
    )
}

fn allowed_cells(check: &Check) -> [Cell; 3] {
    [
        Cell::number(check.allowed_max_ms, units::time),
        Cell::number(summary::headroom(check), units::percent),
        Cell::number(check.baseline_spread, units::share).with(Ink::Dim),
    ]
}

fn threshold_cells(check: &Check) -> [Cell; 2] {
    let keys = check.threshold.as_ref();
    let label = keys.map_or(units::MISSING, |keys| keys.label.as_str());
    [Cell::number(keys.map(|keys| keys.speedup), units::factor), Cell::new(label)]
}

/// What failed workloads left behind. Those that have a check have their reason above.
fn failures(j: &Judgement, report: Option<&Report>, style: Style) -> String {
    let failed = report.into_iter().flat_map(|r| &r.benchmarks).filter_map(|(name, m)| match &m.outcome {
        Outcome::Failed(failure) => Some((name, failure)),
        _ => None,
    });
    let checked: HashSet<&str> = j.checks.iter().filter_map(|check| check.workload.as_deref()).collect();
    let mut out = String::new();
    for (name, failure) in failed {
        if !checked.contains(name.as_str()) {
            let body = format!("{name}: {}: {}", failure.cause.as_str(), failure.detail);
            out += &entry(style, Ink::Bad, "failed", &body);
        } else if !failure.stderr_tail.is_empty() {
            out += &entry(style, Ink::Bad, "stderr", &format!("{name}, its last lines:"));
        }
        out += &quote(style, &failure.stderr_tail);
    }
    out
}

fn notes(j: &Judgement, style: Style) -> String {
    let mut out: String = j.notes.iter().map(|note| entry(style, Ink::Strong, "note", note)).collect();
    if !j.ungated.is_empty() {
        let names = list(&j.ungated, UNGATED_SHOWN);
        let body = format!(
            "{names}: not in the baseline, not judged; \"holdpoint baseline record\" takes in what is new"
        );
        out += &entry(style, Ink::Strong, "ungated", &body);
    }
    out
}
