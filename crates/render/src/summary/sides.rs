//! Sentences and cells about two sides, for the terminal and Markdown alike. Not yet neutralised.

use super::NAMES_SHOWN;
use crate::judged::Judged;
use crate::paint::Ink;
use crate::table::{Cell, Column, Grid, names, numbers, words};
use crate::text::{self, clip_middle, revision};
use crate::units;
use holdpoint_model::ab::AbEvidence;
use holdpoint_model::{Check, ComparedSides, PairRound, Side, SideName};
use std::collections::BTreeMap;

/// Characters of a side's label; it may be a whole command.
const LABEL_CHARS: usize = 40;
/// Characters of the shortest label that is taken for the beginning of its commit, as Git abbreviates.
const COMMIT_CHARS_MIN: usize = 7;
/// A tenth of the rounds: with fewer marked, what was measured is still mostly the workload.
const MARKED_MANY: f64 = 0.1;

/// How to read what stands under a title.
const REMARKS: [(&str, &str); 6] = [
    (
        "| interval |",
        "interval: the changes that the evidence has not ruled out, from which the verdict is read; how often an end may be wrong is the rate \
         that the verdict promises",
    ),
    ("sees", "sees: the smallest slowdown that would have been called by now"),
    ("A/A", "A/A: how often unchanged code was called slower on this machine"),
    (
        "E slower",
        "E is evidence: were its claim false, it would reach 1 000 with a probability of at most 1/1 000",
    ),
    ("Cliff's δ", "Cliff's δ and Hedges' g are over the units' medians, positive where head is slower"),
    (MANN_WHITNEY, P_REMARK),
];
const MANN_WHITNEY: &str = "Mann-Whitney p";
const P_REMARK: &str = "Mann-Whitney p holds for a single look; here the evidence was looked at after every unit, \
                        so it is not valid and decides nothing";

/// A side by its label, and its revision, short.
fn describe_side(side: &Side, label: &str) -> String {
    match &side.revision {
        None => clip_middle(label, LABEL_CHARS),
        Some(at) if label.is_empty() || is_commit(label, &at.commit) => revision(at),
        Some(at) => format!("{} {}", clip_middle(label, LABEL_CHARS), revision(at)),
    }
}

/// The sides as the user named them. Of long command lines that share words, the program and the words that differ.
fn labels(base: &Side, head: &Side) -> [String; 2] {
    let [base, head] = [base, head].map(|side| side.name.as_deref().unwrap_or(&side.label).trim());
    let is_long = |label: &str| label.chars().count() > LABEL_CHARS;
    if base == head || !is_long(base) && !is_long(head) {
        return [base.to_owned(), head.to_owned()];
    }
    let words = [base, head].map(|label| label.split_whitespace().collect::<Vec<_>>());
    let least = words[0].len().min(words[1].len());
    let same = |at: &usize| words[0][*at] == words[1][*at];
    let before = (0..least).take_while(same).count();
    let same_from_end = |at: &usize| words[0][words[0].len() - at] == words[1][words[1].len() - at];
    let after = (1..=least - before).take_while(same_from_end).count();
    words.map(|words| {
        let mut shown: Vec<&str> = match before {
            0 => Vec::new(),
            1 => vec![words[0]],
            _ => vec![words[0], "…"],
        };
        shown.extend(&words[before..words.len() - after]);
        shown.extend((after > 0).then_some("…"));
        shown.join(" ")
    })
}

fn is_commit(label: &str, commit: &str) -> bool {
    label.len() >= COMMIT_CHARS_MIN && commit.starts_with(label)
}

/// `main 0a1b2c3d4e5f → HEAD 4f2c9e1d07ab`.
pub(crate) fn describe_sides(judged: Judged<'_>) -> String {
    let sides = judged.judgement.sides.as_ref();
    let describe = |ComparedSides { base, head, .. }: &ComparedSides| {
        let labels = labels(base, head);
        format!("{} → {}", describe_side(base, &labels[0]), describe_side(head, &labels[1]))
    };
    sides.map(describe).unwrap_or_default()
}

/// The tolerance and the error rate that the policy promises.
pub(crate) fn describe_promise(judged: Judged<'_>) -> String {
    if judged.is_disjoint_ci() {
        return "disjoint intervals, p < 0.05, |δ| ≥ 0.147, to improve 0.3; no error rate is promised"
            .to_owned();
    }
    let Some(plan) = judged.plan() else { return String::new() };
    let own = own_tolerances(judged).map(|(name, own)| format!("{name} {}", units::setting(own)));
    let own: Vec<String> = own.collect();
    let tolerance = match own.is_empty() {
        true => units::setting(plan.tolerance),
        false => format!("{} ({})", units::setting(plan.tolerance), text::list(&own, NAMES_SHOWN)),
    };
    let one_in = 1.0 / plan.alarm_rate;
    if one_in.is_finite() && one_in >= 1.0 && (one_in - one_in.round()).abs() < 1e-6 * one_in {
        let suites = units::count(one_in.round() as u64);
        format!("tolerance {tolerance}, at most 1 false alarm in {suites} unchanged suites")
    } else {
        let rate = units::setting(plan.alarm_rate);
        format!("tolerance {tolerance}, false alarms in at most {rate} of unchanged suites")
    }
}

/// The workloads whose tolerance is not that of the comparison.
fn own_tolerances(judged: Judged<'_>) -> impl Iterator<Item = (&str, f64)> {
    let plan = judged.plan();
    let own = plan.into_iter().flat_map(|plan| plan.tolerances.iter().map(move |own| (plan, own)));
    own.filter(|(plan, (_, own))| **own != plan.tolerance).map(|(_, (name, own))| (name.as_str(), *own))
}

pub(super) fn has_own_tolerances(judged: Judged<'_>) -> bool {
    own_tolerances(judged).next().is_some()
}

/// Columns of a comparison's table, after the verdict and the workload.
pub(crate) fn columns(judged: Judged<'_>) -> [Column; 9] {
    let [base, head] = judged.value_titles();
    [
        numbers(base).drop(2),
        numbers(head).drop(3),
        numbers("change"),
        numbers("interval").drop(1),
        numbers("sees").drop(4),
        numbers("units").drop(6),
        numbers("seconds").drop(7),
        numbers("busy").drop(8),
        numbers("A/A").drop(5),
    ]
}

/// The last six of [`columns`].
pub(crate) fn cells(judged: Judged<'_>, check: &Check) -> [Cell; 6] {
    let row = judged.row(check);
    let evidence = check.evidence();
    // The number belongs to the other rule.
    let sees =
        evidence.and_then(|evidence| evidence.smallest_visible_slowdown).filter(|_| !judged.is_disjoint_ci());
    let units_count = evidence.map(|evidence| f64::from(evidence.units_count));
    [
        row.interval_cell(),
        Cell::number(sees, units::share).with(Ink::Dim),
        Cell::number(units_count, |n| units::count(n as u64)).with(Ink::Dim),
        Cell::number(row.seconds(), units::seconds).with(Ink::Dim),
        // Only a device's time is told; a column without any is left out.
        busy_cell(check.paired.as_ref().and_then(|paired| paired.busy_share)).with(Ink::Dim),
        Cell::new(&describe_calibrated(judged, check)).with(Ink::Dim),
    ]
}

/// The share of the time in which a device was busy; empty without one, so that the column is left out.
pub(crate) fn busy_cell(share: Option<f64>) -> Cell {
    Cell::new(&share.map(units::share).unwrap_or_default())
}

/// False alarms of trials, with the tolerance where that was another one.
fn describe_calibrated(judged: Judged<'_>, check: &Check) -> String {
    let calibrated = check.paired.as_ref().and_then(|paired| paired.calibrated.as_ref());
    let Some(seen) = calibrated.filter(|seen| seen.inject <= 0.0 && seen.is_evidence()) else {
        return units::MISSING.to_owned();
    };
    let alarms = out_of(seen.false_alarms, seen.decided());
    if judged.plan().is_some_and(|plan| seen.tolerance == plan.tolerance) {
        alarms
    } else {
        format!("{alarms} at {}", units::setting(seen.tolerance))
    }
}

/// `0/200`.
pub(crate) fn out_of(n: u32, total: u32) -> String {
    format!("{}/{}", units::count(n.into()), units::count(total.into()))
}

pub(crate) fn is_finished(judged: Judged<'_>) -> bool {
    judged.judgement.sides.as_ref().is_none_or(|sides| sides.finished)
}

/// The rounds in which the machine was troubled: how many, and whether they were left out.
pub(super) fn describe_troubled_rounds(judged: Judged<'_>) -> Vec<(&'static str, String)> {
    let Some(report) = judged.sides() else { return Vec::new() };
    let all = || report.workloads.values().flat_map(|w| &w.units).flat_map(|unit| &unit.rounds);
    let total = all().count();
    let of = |n: usize| format!("{} of {}", units::count(n as u64), text::plural(total, "round"));
    let was = |n: usize| if n == 1 { "was" } else { "were" };
    let left_out: Vec<&PairRound> = all().filter(|round| round.left_out).collect();
    let kept: Vec<&PairRound> = all().filter(|round| !round.left_out && !round.trouble.is_empty()).collect();
    let (gone, marked) = (left_out.len(), kept.len());
    let mut lines = Vec::new();
    if gone > 0 {
        lines.push(("rounds", format!("{} {} left out{}", of(gone), was(gone), causes(&left_out))));
    }
    if marked as f64 > MARKED_MANY * total as f64 {
        let kept = causes(&kept);
        lines.push(("rounds", format!("{} {} troubled, and kept{kept}", of(marked), was(marked))));
    }
    lines
}

/// `: competing 30, drift 8`. A round with several troubles counts for the first, which is the most certain one.
pub(crate) fn causes(rounds: &[&PairRound]) -> String {
    let mut counts: BTreeMap<_, u64> = BTreeMap::new();
    for trouble in rounds.iter().filter_map(|round| round.trouble.iter().min()) {
        *counts.entry(trouble).or_default() += 1;
    }
    let texts: Vec<String> = counts
        .iter()
        .map(|(trouble, n)| format!("{} {}", trouble.as_str().replace('_', " "), units::count(*n)))
        .collect();
    if texts.is_empty() { String::new() } else { format!(": {}", texts.join(", ")) }
}

fn with_evidence(judged: Judged<'_>) -> impl Iterator<Item = (&str, &AbEvidence)> {
    judged.judgement.checks.iter().filter_map(|check| Some((check.name(), check.evidence()?)))
}

/// The times of each side.
pub(crate) fn times_table(judged: Judged<'_>) -> Grid {
    let mut grid = Grid::new(&[
        names("workload"),
        words("side"),
        numbers("p50"),
        numbers("95 % interval").drop(1),
        numbers("p95").drop(3),
        numbers("p99").drop(4),
        numbers("CV").drop(2),
    ]);
    let of_times = judged.judgement.checks.iter().filter(|check| check.metric_keys().is_none());
    for (name, e) in of_times.filter_map(|check| Some((check.name(), check.evidence()?))) {
        for (side, times) in [(SideName::Base, &e.base), (SideName::Head, &e.head)] {
            let interval = times.p50_interval_ms.map(|[low, high]| units::time_interval(low, high));
            grid.push([
                Cell::name(name),
                Cell::new(side.as_str()),
                Cell::new(&units::time(times.p50_ms)),
                Cell::new(interval.as_deref().unwrap_or(units::MISSING)),
                Cell::new(&units::time(times.p95_ms)),
                Cell::new(&units::time(times.p99_ms)),
                Cell::number(times.cv, units::share),
            ]);
        }
    }
    grid
}

/// The numbers that decided, and others that are usually asked for.
pub(crate) fn evidence_table(judged: Judged<'_>) -> Grid {
    let mut grid = Grid::new(&[
        names("workload"),
        numbers("E slower"),
        numbers("E not slower"),
        numbers("E faster").drop(2),
        numbers("unit sd").drop(1),
        numbers("Cliff's δ").drop(5),
        numbers("Hedges' g").drop(6),
        numbers(MANN_WHITNEY).drop(7),
        numbers("rounds").drop(4),
        numbers("left out").drop(3),
    ]);
    for (name, e) in with_evidence(judged) {
        grid.push([
            Cell::name(name),
            Cell::new(&units::evidence(e.e_slower)),
            Cell::new(&units::evidence(e.e_not_slower)),
            Cell::new(&units::evidence(e.e_faster)),
            Cell::number(e.unit_sd, units::small_share),
            Cell::number(e.cliffs_delta, units::effect),
            Cell::number(e.hedges_g, units::effect),
            Cell::number(e.mann_whitney_p, units::probability),
            Cell::count(e.rounds_count),
            Cell::count(e.rounds_left_out),
        ]);
    }
    grid
}

/// How to read these tables. cudadent42's rule decides by p, at the end.
pub(crate) fn remarks(judged: Judged<'_>, tables: &[&str]) -> Vec<&'static str> {
    let by_seed = judged.is_disjoint_ci();
    let stands = |title: &str| tables.iter().any(|table| table.contains(title));
    let fits = |(title, _): &&(&str, &str)| stands(title) && !(by_seed && *title == MANN_WHITNEY);
    REMARKS.iter().filter(fits).map(|(_, remark)| *remark).collect()
}
