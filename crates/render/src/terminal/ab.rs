//! The table after a comparison of two sides.

use super::{last_line, paragraphs, reasons};
use crate::judged::Judged;
use crate::paint::{Ink, Style};
use crate::summary::ab::{self as said, EVIDENCE_TITLES, TIME_TITLES, TITLES};
use crate::summary::{more_passed, shown};
use crate::table::{Cell, Grid, names, numbers, words};
use crate::text::{self, entry, quote};
use holdpoint_model::{Check, SideName, Verdict};

/// In the order of `TITLES`: which number goes first where the terminal is narrow. The change stays.
const DROPS: [u8; 8] = [2, 3, 0, 1, 4, 6, 7, 5];
/// In the order of `EVIDENCE_TITLES`.
const EVIDENCE_DROPS: [u8; 9] = [0, 0, 2, 1, 5, 6, 7, 4, 3];
/// Where the change and its interval are in a row of numbers; what follows is about the measuring.
const CHANGE: usize = 2;
const INTERVAL: usize = 3;

/// Base against head: one line per workload, why, and the verdict.
pub(super) fn sides(judged: Judged<'_>, style: Style) -> String {
    let verdict = judged.judgement.verdict;
    paragraphs(&[
        head(judged, style),
        table(judged, style),
        reasons(&said::reasons(judged), style) + &failures(judged, style) + &notes(judged, style),
        last_line(style, verdict.into(), verdict.as_str(), &judged.sentence()),
    ])
}

fn head(judged: Judged<'_>, style: Style) -> String {
    let facts = [
        Some(format!("policy {}", judged.judgement.policy)),
        Some(said::sides(judged)),
        text::machine(judged.machine()),
        Some(said::promise(judged)),
    ];
    text::heading(style, &judged.judgement.suite, &facts)
}

fn table(judged: Judged<'_>, style: Style) -> String {
    let mut columns = vec![words("verdict"), names("workload")];
    columns.extend(TITLES.into_iter().zip(DROPS).map(|(title, drop)| numbers(title).drop(drop)));
    let mut grid = Grid::new(&columns);
    let (checks, left_out) = shown(&judged.judgement.checks, |check| check.verdict);
    for check in checks {
        let mut row =
            vec![Cell::inked(check.verdict.into(), check.verdict.as_str()), Cell::new(check.name())];
        row.extend(cells(judged, check));
        grid.push(row);
    }
    let more = more_passed(left_out).map(|line| format!("{}\n", style.paint(Ink::Dim, &line)));
    grid.render(style) + &more.unwrap_or_default()
}

fn cells(judged: Judged<'_>, check: &Check) -> impl Iterator<Item = Cell> + use<> {
    let verdict = check.verdict;
    let loud = verdict != Verdict::Pass;
    let ink = move |i| match i {
        CHANGE if loud => Ink::from(verdict),
        0..=INTERVAL => Ink::Plain,
        _ => Ink::Dim,
    };
    said::cells(judged, check).into_iter().enumerate().map(move |(i, text)| Cell::inked(ink(i), &text))
}

/// What failed, with the last lines it wrote.
fn failures(judged: Judged<'_>, style: Style) -> String {
    let mut out = String::new();
    for (name, failed, said) in said::failures(judged) {
        let (side, failure) = (failed.side.as_str(), &failed.failure);
        if !said {
            let body = format!("{name} on {side}: {}: {}", failure.cause.as_str(), failure.detail);
            out += &entry(style, Ink::Bad, "failed", &body);
        } else if !failure.stderr_tail.is_empty() {
            out += &entry(style, Ink::Bad, "stderr", &format!("{name} on {side}, its last lines:"));
        }
        out += &quote(style, &failure.stderr_tail);
    }
    out
}

fn notes(judged: Judged<'_>, style: Style) -> String {
    let ink = |label| match label {
        "note" => Ink::Strong,
        "rounds" => Ink::Dim,
        _ => Ink::Doubt,
    };
    said::notes(judged).iter().map(|(label, note)| entry(style, ink(label), label, note)).collect()
}

/// What is behind the verdicts, and what is usually asked for beside it: the times of both sides, the evidence.
#[must_use]
pub fn evidence_of_sides(judged: Judged<'_>, style: Style) -> String {
    if said::with_evidence(judged).next().is_none() {
        return String::new();
    }
    let (times, evidence) = (times(judged, style), evidence(judged, style));
    let remarks = said::remarks(judged, &[&evidence]).into_iter();
    let remarks = remarks.map(|remark| entry(style, Ink::Dim, "reading", remark)).collect();
    paragraphs(&[times, evidence, remarks])
}

fn times(judged: Judged<'_>, style: Style) -> String {
    let mut columns = vec![names("workload"), words("side")];
    let drops = [0, 1, 3, 4, 2];
    columns.extend(TIME_TITLES.into_iter().zip(drops).map(|(title, drop)| numbers(title).drop(drop)));
    let mut grid = Grid::new(&columns);
    for (name, e) in said::with_evidence(judged) {
        for (side, times) in [(SideName::Base, &e.base), (SideName::Head, &e.head)] {
            let name = if side == SideName::Base { name } else { "" };
            let mut row = vec![Cell::new(name), Cell::new(side.as_str())];
            row.extend(said::time_cells(times).iter().map(|text| Cell::new(text)));
            grid.push(row);
        }
    }
    grid.render(style)
}

fn evidence(judged: Judged<'_>, style: Style) -> String {
    let mut columns = vec![names("workload")];
    let titled = EVIDENCE_TITLES.into_iter().zip(EVIDENCE_DROPS);
    columns.extend(titled.map(|(title, drop)| numbers(title).drop(drop)));
    let mut grid = Grid::new(&columns);
    for (name, e) in said::with_evidence(judged) {
        let mut row = vec![Cell::new(name)];
        row.extend(said::evidence_cells(e).iter().map(|text| Cell::new(text)));
        grid.push(row);
    }
    grid.render(style)
}
