//! Sentences and cells about two sides, for the terminal and Markdown alike. Not yet neutralised.

use super::{Group, Item, Items, changes, grouped};
use crate::judged::Judged;
use crate::text::{self, clip_middle, revision};
use crate::units::{self, MISSING};
use holdpoint_model::ab::{AbEvidence, Ended, SideFailure, SideTimes};
use holdpoint_model::{Check, Judgement, PairRound, Side, Verdict};
use std::collections::BTreeMap;

/// The policy that decides by the second seed's rule, which promises no error rate.
const DISJOINT_CI: &str = "disjoint-ci";
/// Characters of a side's label; it may be a whole command.
const LABEL_CHARS: usize = 40;
/// Characters of the shortest label that is taken for the beginning of its commit, as Git abbreviates.
const COMMIT_CHARS_MIN: usize = 7;
/// A tenth of the rounds: with fewer marked, what was measured is still mostly the workload.
const MARKED_MANY: f64 = 0.1;

/// How to read what stands under a title.
const REMARKS: [(&str, &str); 5] = [
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

/// Whether cudadent42's rule decided.
pub(crate) fn is_disjoint_ci(judged: Judged<'_>) -> bool {
    judged.judgement.policy == DISJOINT_CI
}

/// What it is as it was given, and its revision, short.
pub(crate) fn side(side: &Side) -> String {
    let label = side.label.trim();
    match &side.revision {
        None => clip_middle(label, LABEL_CHARS),
        Some(at) if label.is_empty() || is_commit(label, &at.commit) => revision(at),
        Some(at) => format!("{} {}", clip_middle(label, LABEL_CHARS), revision(at)),
    }
}

fn is_commit(label: &str, commit: &str) -> bool {
    label.len() >= COMMIT_CHARS_MIN && commit.starts_with(label)
}

/// `main 0a1b2c3d4e5f → HEAD 4f2c9e1d07ab`.
pub(crate) fn sides(judged: Judged<'_>) -> String {
    let sides = judged.judgement.sides.as_ref();
    sides.map(|sides| format!("{} → {}", side(&sides.base), side(&sides.head))).unwrap_or_default()
}

/// What the verdicts can be held to.
pub(crate) fn promise(judged: Judged<'_>) -> String {
    if is_disjoint_ci(judged) {
        return "disjoint intervals, p < 0.05, |δ| ≥ 0.147, to improve 0.3; no error rate is promised"
            .to_owned();
    }
    let Some(plan) = judged.plan() else { return String::new() };
    let tolerance = units::setting(plan.tolerance);
    let one_in = 1.0 / plan.alarm_rate;
    if one_in.is_finite() && one_in >= 1.0 && (one_in - one_in.round()).abs() < 1e-6 * one_in {
        let suites = units::count(one_in.round() as u64);
        format!("tolerance {tolerance}, at most 1 false alarm in {suites} unchanged suites")
    } else {
        let rate = units::setting(plan.alarm_rate);
        format!("tolerance {tolerance}, false alarms in at most {rate} of unchanged suites")
    }
}

/// Titles of [`cells`].
pub(crate) const TITLES: [&str; 8] =
    ["base p50", "head p50", "change", "95 % interval", "sees", "units", "seconds", "A/A"];

/// The numbers of one workload.
pub(crate) fn cells(judged: Judged<'_>, check: &Check) -> [String; 8] {
    let evidence = check.evidence();
    // What another rule sees says nothing about this one.
    let sees =
        evidence.and_then(|evidence| evidence.smallest_visible_slowdown).filter(|_| !is_disjoint_ci(judged));
    let interval = evidence.and_then(|evidence| evidence.ratio_interval);
    let spent_s = check.paired.as_ref().map(|paired| paired.spent_s).filter(|spent_s| *spent_s > 0.0);
    [
        number(check.baseline_ms, units::time),
        number(check.current_ms, units::time),
        number(check.regression_ratio, units::percent),
        interval.map_or_else(missing, |[low, high]| units::percent_interval(low - 1.0, high - 1.0)),
        number(sees, units::share),
        evidence.map_or_else(missing, |evidence| units::count(evidence.units_count.into())),
        number(spent_s, units::seconds),
        calibrated(judged, check),
    ]
}

/// False alarms of trials, with the tolerance where that was another one.
fn calibrated(judged: Judged<'_>, check: &Check) -> String {
    let calibrated = check.paired.as_ref().and_then(|paired| paired.calibrated.as_ref());
    let Some(seen) = calibrated.filter(|seen| seen.inject <= 0.0) else { return missing() };
    let alarms = out_of(seen.false_alarms, seen.trials);
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

pub(crate) fn number(value: Option<f64>, format: fn(f64) -> String) -> String {
    value.map_or_else(missing, format)
}

fn missing() -> String {
    MISSING.to_owned()
}

/// Why, the worst first: for what is neither a pass nor an improvement, and for all where cudadent42's rule decided.
pub(crate) fn reasons(judged: Judged<'_>) -> Vec<Group<'_>> {
    let by_seed = is_disjoint_ci(judged);
    // What passed without being measured says so.
    let is_told =
        |check: &&Check| by_seed || check.verdict > Verdict::Pass || ended(check) == Some(Ended::SameCode);
    let checks = judged.judgement.checks.iter().filter(is_told);
    grouped(checks.map(|check| (check.verdict, check.reason.as_str(), Some(check.name()))))
}

fn ended(check: &Check) -> Option<Ended> {
    check.paired.as_ref().map(|paired| paired.ended)
}

/// The failures, and whether the reason has said already what happened on which side.
pub(crate) fn failures(judged: Judged<'_>) -> impl Iterator<Item = (&str, &SideFailure, bool)> {
    judged.judgement.checks.iter().filter_map(move |check| {
        let failed = judged.failure(check)?;
        let said =
            check.reason.contains(&failed.failure.detail) && check.reason.contains(failed.side.as_str());
        Some((check.name(), failed, said))
    })
}

/// What the reader should know, each with a word before it.
pub(crate) fn notes(judged: Judged<'_>) -> Vec<(&'static str, String)> {
    let mut notes: Vec<(&str, String)> = rounds(judged).into_iter().map(|line| ("rounds", line)).collect();
    notes.extend(judged.judgement.notes.iter().map(|note| ("note", note.clone())));
    if judged.toolchain().is_some_and(|toolchain| toolchain.profile == "debug") {
        notes.push(("warning", "holdpoint is a debug build: its own times say little".to_owned()));
    }
    if !is_finished(judged) {
        notes.push(("unfinished", "interrupted; go on with --resume".to_owned()));
    }
    notes
}

fn is_finished(judged: Judged<'_>) -> bool {
    judged.judgement.sides.as_ref().is_none_or(|sides| sides.finished)
}

/// The rounds in which the machine was troubled: how many, and whether they were left out.
fn rounds(judged: Judged<'_>) -> Vec<String> {
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
        lines.push(format!("{} {} left out{}", of(gone), was(gone), causes(&left_out)));
    }
    if marked as f64 > MARKED_MANY * total as f64 {
        lines.push(format!("{} {} troubled, and kept{}", of(marked), was(marked), causes(&kept)));
    }
    lines
}

/// `: competing 30, drift 8`. A round with several troubles counts for the first, which is the most certain one.
fn causes(rounds: &[&PairRound]) -> String {
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

/// How the comparison came out, after its verdict word.
pub(crate) fn describe_sides(judged: Judged<'_>) -> String {
    let Judgement { checks, verdict, .. } = judged.judgement;
    let verdict = *verdict;
    let all = checks.iter().filter(|check| !check.is_overall()).map(|check| Item {
        name: check.name(),
        verdict: check.verdict,
        change: check.regression_ratio,
    });
    let items = Items { noun: "workload", all: all.collect() };
    let hit = items.with(verdict);
    let all = |one, many| items.of(hit.len(), one, many);
    let [slower, faster] = bounds(judged);
    let said = match verdict {
        _ if checks.is_empty() => "no workload was compared".to_owned(),
        _ if hit.is_empty() && !is_finished(judged) => {
            "interrupted before every workload was decided".to_owned()
        }
        _ if hit.is_empty() => format!("{} compared", text::plural(checks.len(), "workload")),
        Verdict::Improved => format!("{} {faster} ({})", all("is", "are"), changes(&hit)),
        Verdict::Pass if is_disjoint_ci(judged) => items.passed("base by that rule"),
        Verdict::Pass => items.passed(&tolerance(judged)),
        Verdict::Waived => format!("{} {slower}, waived ({})", all("is", "are"), changes(&hit)),
        Verdict::Skipped => format!("{} not compared{}", all("was", "were"), items.which(&hit)),
        Verdict::Inconclusive => {
            let undecided = "could not be decided";
            format!("{}{}", all(undecided, undecided), items.which(&hit))
        }
        Verdict::Regressed => format!("{} {slower} ({})", all("is", "are"), changes(&hit)),
        Verdict::Broken => {
            let failed = format!("failed{}", failed_on(judged));
            format!("{}{}", all(&failed, &failed), items.which(&hit))
        }
    };
    let said = items.also(said, verdict);
    match judged.sides().map(|report| report.elapsed_s).filter(|elapsed_s| *elapsed_s > 0.0) {
        Some(elapsed_s) if verdict <= Verdict::Pass => format!("{said}, in {} s", units::seconds(elapsed_s)),
        _ => said,
    }
}

fn tolerance(judged: Judged<'_>) -> String {
    judged.plan().map(|plan| units::setting(plan.tolerance)).unwrap_or_else(missing)
}

/// Slower and faster than what.
fn bounds(judged: Judged<'_>) -> [String; 2] {
    if is_disjoint_ci(judged) {
        return ["significantly slower", "significantly faster"].map(str::to_owned);
    }
    let tolerance = tolerance(judged);
    [format!("slower than {tolerance}"), format!("faster by more than {tolerance}")]
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

/// The workloads that have evidence.
pub(crate) fn with_evidence(judged: Judged<'_>) -> impl Iterator<Item = (&str, &AbEvidence)> {
    judged.judgement.checks.iter().filter_map(|check| Some((check.name(), check.evidence()?)))
}

/// Titles of [`time_cells`].
pub(crate) const TIME_TITLES: [&str; 5] = ["p50", "95 % interval", "p95", "p99", "CV"];

/// One side's times.
pub(crate) fn time_cells(times: &SideTimes) -> [String; 5] {
    [
        units::time(times.p50_ms),
        times.p50_interval_ms.map_or_else(missing, |[low, high]| units::time_interval(low, high)),
        units::time(times.p95_ms),
        units::time(times.p99_ms),
        number(times.cv, units::share),
    ]
}

/// Titles of [`evidence_cells`].
pub(crate) const EVIDENCE_TITLES: [&str; 9] = [
    "E slower",
    "E not slower",
    "E faster",
    "unit sd",
    "Cliff's δ",
    "Hedges' g",
    MANN_WHITNEY,
    "rounds",
    "left out",
];

/// What the decision is made of, and what is usually asked for beside it.
pub(crate) fn evidence_cells(e: &AbEvidence) -> [String; 9] {
    [
        units::evidence(e.e_slower),
        units::evidence(e.e_not_slower),
        units::evidence(e.e_faster),
        number(e.unit_sd, units::small_share),
        number(e.cliffs_delta, units::effect),
        number(e.hedges_g, units::effect),
        number(e.mann_whitney_p, units::probability),
        units::count(e.rounds_count.into()),
        units::count(e.rounds_left_out.into()),
    ]
}

/// How to read these tables. cudadent42's rule decides by p, at the end.
pub(crate) fn remarks(judged: Judged<'_>, tables: &[&str]) -> Vec<&'static str> {
    let by_seed = is_disjoint_ci(judged);
    let stands = |title: &str| tables.iter().any(|table| table.contains(title));
    let fits = |(title, _): &&(&str, &str)| stands(title) && !(by_seed && *title == MANN_WHITNEY);
    REMARKS.iter().filter(fits).map(|(_, remark)| *remark).collect()
}
