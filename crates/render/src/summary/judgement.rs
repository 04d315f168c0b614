//! A judgement in words and cells, for the terminal and Markdown alike. Not yet neutralised.

use super::{Group, Items, changes, group, more_passed, names, shown, sides};
use crate::judged::Judged;
use crate::table::{self, Cell, Column, Grid, numbers, words};
use crate::text::{self, clip, plural};
use crate::units::{self, MISSING, number};
use holdpoint_model::ab::Ended;
use holdpoint_model::judgement::STATUS_METRIC;
use holdpoint_model::{Basis, Check, CheckStatus, Failure, Outcome, SideName, Verdict};
use std::collections::HashSet;

/// Characters of a run's status in a column of numbers; a foreign file may say anything.
const STATUS_CHARS: usize = 12;

impl Judged<'_> {
    /// How it came out, after its verdict word.
    pub(crate) fn sentence(self) -> String {
        describe_judgement(self)
    }

    /// The things compared, and the rule.
    pub(crate) fn facts(self) -> Vec<String> {
        let policy = format!("policy {}", self.judgement.policy);
        if self.is_sides() {
            return vec![sides::describe_sides(self), policy, sides::describe_promise(self)];
        }
        let commit = self.revision().map(text::revision);
        commit.map(|commit| format!("{commit} against its baseline")).into_iter().chain([policy]).collect()
    }
}

fn describe_judgement(judged: Judged<'_>) -> String {
    let verdict = judged.judgement.verdict;
    let checks = judged.judgement.checks.iter().filter(|check| !check.is_overall());
    let worse = if judged.has_metrics() { "worse" } else { "slower" };
    let items = Items { noun: judged.noun(), worse, all: checks.collect() };
    let hit = items.with(verdict);
    let all = |one, many| items.count(hit.len(), one, many);
    let is_sides = judged.is_sides();
    let [slower, faster, limit] = describe_limits(judged);
    let sentence = match verdict {
        _ if hit.is_empty() => describe_without_items(judged),
        Verdict::Improved if is_sides => format!("{} {faster} ({})", all("is", "are"), changes(&hit)),
        Verdict::Improved => format!("{} {faster}", all("is", "are")),
        Verdict::Pass => items.passed(&limit),
        Verdict::Waived => format!("{} {slower}, waived ({})", all("is", "are"), changes(&hit)),
        Verdict::Skipped => {
            let what = if is_sides { "compared" } else { "measured" };
            format!("{} not {what}{}", all("was", "were"), items.which(&hit))
        }
        Verdict::Inconclusive => {
            let [one, many] =
                if is_sides { ["could not be decided"; 2] } else { ["is undecided", "are undecided"] };
            format!("{}{}", all(one, many), items.which(&hit))
        }
        Verdict::Regressed => describe_regressed(&items, &slower),
        Verdict::Broken if is_sides => {
            let failed = format!("failed{}", failed_on(judged));
            format!("{}{}", all(&failed, &failed), items.which(&hit))
        }
        Verdict::Broken => format!("{} no value to trust{}", all("has", "have"), items.which(&hit)),
    };
    let sentence = items.also(sentence, verdict);
    match judged.sides().map(|report| report.elapsed_s).filter(|elapsed_s| *elapsed_s > 0.0) {
        Some(elapsed_s) if verdict <= Verdict::Pass => {
            format!("{sentence}, in {} s", units::seconds(elapsed_s))
        }
        _ => sentence,
    }
}

/// Slower and faster than what, and what nothing is slower than.
fn describe_limits(judged: Judged<'_>) -> [String; 3] {
    if !judged.is_sides() {
        return ["slower than allowed", "faster by more than the tolerance", "allowed"].map(str::to_owned);
    }
    if judged.is_disjoint_ci() {
        return ["significantly slower", "significantly faster", "base by that rule"].map(str::to_owned);
    }
    if judged.has_metrics() {
        return ["worse than allowed", "better by more than the tolerance", "allowed"].map(str::to_owned);
    }
    if sides::has_own_tolerances(judged) {
        return ["slower than allowed", "faster by more than the tolerance", "allowed"].map(str::to_owned);
    }
    let tolerance = number(judged.plan().map(|plan| plan.tolerance), units::setting);
    [format!("slower than {tolerance}"), format!("faster by more than {tolerance}"), tolerance]
}

fn describe_without_items(judged: Judged<'_>) -> String {
    let checks = &judged.judgement.checks;
    let counted = plural(checks.len(), judged.noun());
    match checks.iter().find(|check| check.verdict == judged.judgement.verdict) {
        _ if judged.is_sides() => match checks.is_empty() {
            true => "no workload was compared".to_owned(),
            false if !sides::is_finished(judged) => {
                "interrupted before every workload was decided".to_owned()
            }
            false => format!("{counted} compared"),
        },
        Some(check) => check.reason.clone(),
        None if checks.is_empty() => "no metric was judged".to_owned(),
        None => format!("{counted} judged"),
    }
}

fn describe_regressed(items: &Items<'_>, slower_than: &str) -> String {
    let hit = items.with(Verdict::Regressed).into_iter();
    let (missing, slower): (Vec<&Check>, Vec<&Check>) =
        hit.partition(|check| check.status == CheckStatus::Missing);
    let (n, absent) = (missing.len(), names(&missing));
    let how_slow =
        || format!("{} {slower_than} ({})", items.count(slower.len(), "is", "are"), changes(&slower));
    match (slower.is_empty(), n) {
        (true, _) => format!("{} missing from the run ({absent})", items.count(n, "is", "are")),
        (false, 0) => how_slow(),
        (false, _) => format!("{}, {} missing ({absent})", how_slow(), units::count(n as u64)),
    }
}

/// ` on head`, where all failed on the same side.
fn failed_on(judged: Judged<'_>) -> String {
    let failures = judged.judgement.checks.iter().filter_map(|check| judged.failure(check));
    let mut sides = failures.map(|failed| failed.side);
    match sides.next() {
        Some(first) if sides.all(|side| side == first) => format!(" on {}", first.as_str()),
        _ => String::new(),
    }
}

/// A row for each check that is shown; what the columns are depends on what was judged.
pub(crate) fn checks_table(judged: Judged<'_>) -> Grid {
    let checks = &judged.judgement.checks;
    let by_threshold = checks.iter().any(|check| check.threshold.is_some());
    let by_stored = checks.iter().any(|check| check.stored.is_some());
    let mut columns = vec![words("verdict"), table::names(judged.noun())];
    match () {
        () if judged.is_sides() => columns.extend(sides::columns(judged)),
        () if by_threshold => columns.extend_from_slice(THRESHOLD_COLUMNS),
        () if by_stored => columns.extend_from_slice(STORED_COLUMNS),
        () => columns.extend_from_slice(BASELINE_COLUMNS),
    }
    let mut grid = Grid::new(&columns);
    let (shown, left_out) = shown(checks);
    for check in shown {
        let mut row = vec![Cell::verdict(check.verdict), Cell::name(check.name())];
        row.extend(values_and_change(judged, check));
        match () {
            () if judged.is_sides() => row.extend(sides::cells(judged, check)),
            () if by_threshold => row.extend(threshold_cells(check)),
            () if by_stored => row.extend(stored_cells(check)),
            () => row.extend(allowed_cells(check)),
        }
        grid.push(row);
    }
    grid.with_footer(more_passed(left_out))
}

const BASELINE_COLUMNS: &[Column] = &[
    numbers("baseline").drop(1),
    numbers("current"),
    numbers("change"),
    numbers("allowed").drop(2),
    numbers("headroom").drop(3),
    numbers("sees").drop(4),
];
const STORED_COLUMNS: &[Column] = &[
    numbers("baseline").drop(1),
    numbers("current"),
    numbers("change"),
    numbers("surely below"),
    numbers("tolerance").drop(2),
    numbers("sees").drop(3),
];
const THRESHOLD_COLUMNS: &[Column] = &[
    numbers("baseline").drop(1),
    numbers("current"),
    numbers("change"),
    numbers("speedup").drop(2),
    words("label").drop(3),
];

fn values_and_change(judged: Judged<'_>, check: &Check) -> [Cell; 3] {
    let row = judged.row(check);
    let status =
        |status: &Option<String>| Cell::new(&clip(status.as_deref().unwrap_or(MISSING), STATUS_CHARS));
    let [was, is] = if check.metric == STATUS_METRIC {
        [status(&check.expected), status(&check.current)]
    } else {
        row.value_cells()
    };
    let change = Cell::number(row.change, units::percent);
    [was, is, if check.verdict == Verdict::Pass { change } else { change.with(check.verdict.into()) }]
}

fn allowed_cells(check: &Check) -> [Cell; 3] {
    [
        Cell::number(check.allowed_max_ms, units::time),
        Cell::number(headroom(check), units::percent),
        Cell::number(sees(check), units::share).with(crate::paint::Ink::Dim),
    ]
}

fn stored_cells(check: &Check) -> [Cell; 3] {
    let stored = check.stored.as_ref();
    [
        Cell::number(stored.map(|stored| stored.change_max), units::percent),
        Cell::number(stored.map(|stored| stored.tolerance), units::share),
        Cell::number(stored.map(|stored| stored.sees), units::share).with(crate::paint::Ink::Dim),
    ]
}

fn threshold_cells(check: &Check) -> [Cell; 2] {
    let keys = check.threshold.as_ref();
    let label = keys.map_or(MISSING, |keys| keys.label.as_str());
    [Cell::number(keys.map(|keys| keys.speedup), units::factor), Cell::new(label)]
}

/// The smallest slowdown that fails.
fn sees(check: &Check) -> Option<f64> {
    let (allowed, baseline) = check.allowed_max_ms.zip(check.baseline_ms)?;
    (baseline > 0.0).then(|| allowed / baseline - 1.0)
}

/// How much slower the metric may still become, as a share of what it is; negative when it is over.
fn headroom(check: &Check) -> Option<f64> {
    let (allowed, current) = check.allowed_max_ms.zip(check.current_ms)?;
    check.regression_ratio.map(|_| allowed / current - 1.0)
}

/// How a reason begins where an improvement is to be checked.
const CHECK_THIS: &str = "check this";

/// Why, the worst first: for what is neither a pass nor an improvement, for passes that a reader would take for more than they are, and
/// for all where cudadent42's rule decided.
pub(crate) fn reasons(judged: Judged<'_>) -> Vec<Group<'_>> {
    let by_seed = judged.is_disjoint_ci();
    let is_same_code =
        |check: &Check| check.paired.as_ref().is_some_and(|paired| paired.ended == Ended::SameCode);
    let is_explained = |check: &&Check| {
        by_seed || check.verdict > Verdict::Pass || is_same_code(check) || is_qualified(judged, check)
    };
    let checks = judged.judgement.checks.iter().filter(is_explained);
    let by_reason = group(checks.map(|check| ((check.verdict, check.reason.as_str()), check)));
    let mut groups: Vec<Group<'_>> = by_reason
        .into_iter()
        .map(|((verdict, reason), checks)| {
            let named = checks.iter().filter(|check| check.metric != STATUS_METRIC);
            Group { verdict, reason, names: named.map(|check| check.name()).collect() }
        })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.verdict));
    groups
}

/// Whether a reader would take a pass or an improvement for more than it is.
pub(crate) fn is_qualified(judged: Judged<'_>, check: &Check) -> bool {
    check.verdict <= Verdict::Pass && check.reason.starts_with(CHECK_THIS)
        || check.verdict == Verdict::Pass && (is_wide(judged, check) || looks_faster(judged, check))
}

/// Whether a pass was held against more than a reader expects: than the comparison's tolerance, or than any, as by a history's noise.
fn is_wide(judged: Judged<'_>, check: &Check) -> bool {
    let of_sides =
        judged.plan().zip(tolerance_of(judged, check)).is_some_and(|(plan, own)| own > plan.tolerance);
    let of_stored = check.stored.is_some_and(|stored| stored.limit > stored.tolerance);
    of_sides || of_stored || matches!(judged.judgement.basis, Some(Basis::History { .. }))
}

/// Whether the estimate of a pass of two sides lies beyond the tolerance on the better side.
fn looks_faster(judged: Judged<'_>, check: &Check) -> bool {
    let change = check.regression_ratio.zip(tolerance_of(judged, check));
    change.is_some_and(|(worse, tolerance)| (1.0 + worse) * (1.0 + tolerance) < 1.0)
}

/// How much worse a row of two sides may be.
fn tolerance_of(judged: Judged<'_>, check: &Check) -> Option<f64> {
    let workload = check.workload.as_deref().unwrap_or_default();
    Some(judged.plan()?.tolerance_of_metric(workload, &check.metric))
}

/// Notes for the reader, each with a label.
pub(crate) fn notes(judged: Judged<'_>) -> Vec<(&'static str, String)> {
    let mut notes = sides::describe_troubled_rounds(judged);
    notes.extend(judged.judgement.notes.iter().map(|note| ("note", note.clone())));
    if judged.sides().is_some_and(|report| report.toolchain.profile == "debug") {
        notes.push(("warning", super::DEBUG_BUILD.to_owned()));
    }
    if !sides::is_finished(judged) {
        notes.push(("unfinished", "interrupted; go on with --resume".to_owned()));
    }
    notes
}

/// A workload that failed while it was measured.
pub(crate) struct Failed<'a> {
    pub(crate) name: &'a str,
    pub(crate) side: Option<SideName>,
    pub(crate) failure: &'a Failure,
    /// Whether the reason of its check says what happened.
    pub(crate) is_explained: bool,
}

pub(crate) fn failures(judged: Judged<'_>) -> Vec<Failed<'_>> {
    let checks = &judged.judgement.checks;
    let of_sides = checks.iter().filter_map(|check| {
        let failed = judged.failure(check)?;
        let is_explained =
            check.reason.contains(&failed.failure.detail) && check.reason.contains(failed.side.as_str());
        let (side, failure) = (Some(failed.side), &failed.failure);
        Some(Failed { name: check.name(), side, failure, is_explained })
    });
    let checked: HashSet<&str> = checks.iter().filter_map(|check| check.workload.as_deref()).collect();
    let benchmarks = judged.run().into_iter().flat_map(|run| &run.benchmarks);
    let of_run = benchmarks.filter_map(|(name, measurement)| match &measurement.outcome {
        Outcome::Failed(failure) => {
            Some(Failed { name, side: None, failure, is_explained: checked.contains(name.as_str()) })
        }
        _ => None,
    });
    of_sides.chain(of_run).collect()
}
