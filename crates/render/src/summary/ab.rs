//! What is said of two sides, on the terminal and in Markdown alike. Not yet neutralised.

use super::{Group, Item, Items, changes, grouped};
use crate::text::{self, clip_middle, revision};
use crate::units::{self, MISSING};
use holdpoint_model::ab::{AbEvidence, Ended, SideFailure, SideTimes};
use holdpoint_model::{AbReport, AbWorkload, PairRound, Side, Verdict};
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

/// Whether the second seed's rule decided.
pub(crate) fn is_disjoint_ci(r: &AbReport) -> bool {
    r.policy == DISJOINT_CI
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
pub(crate) fn sides(r: &AbReport) -> String {
    format!("{} → {}", side(&r.base), side(&r.head))
}

/// What the verdicts can be held to.
pub(crate) fn promise(r: &AbReport) -> String {
    if is_disjoint_ci(r) {
        return "disjoint intervals, p < 0.05, |δ| ≥ 0.147, to improve 0.3; no error rate is promised"
            .to_owned();
    }
    let tolerance = units::setting(r.plan.tolerance);
    let one_in = 1.0 / r.plan.alarm_rate;
    if one_in.is_finite() && one_in >= 1.0 && (one_in - one_in.round()).abs() < 1e-6 * one_in {
        let suites = units::count(one_in.round() as u64);
        format!("tolerance {tolerance}, at most 1 false alarm in {suites} unchanged suites")
    } else {
        let rate = units::setting(r.plan.alarm_rate);
        format!("tolerance {tolerance}, false alarms in at most {rate} of unchanged suites")
    }
}

/// Titles of [`cells`].
pub(crate) const TITLES: [&str; 8] =
    ["base p50", "head p50", "change", "95 % interval", "sees", "units", "seconds", "A/A"];

/// The numbers of one workload.
pub(crate) fn cells(r: &AbReport, w: &AbWorkload) -> [String; 8] {
    let evidence = w.evidence.as_ref();
    // What another rule sees says nothing about this one.
    let sees =
        evidence.and_then(|evidence| evidence.smallest_visible_slowdown).filter(|_| !is_disjoint_ci(r));
    let interval = evidence.and_then(|evidence| evidence.ratio_interval);
    let [base_ms, head_ms] = medians_ms(r, w);
    [
        number(base_ms, units::time),
        number(head_ms, units::time),
        number(w.change(), units::percent),
        interval.map_or_else(missing, |[low, high]| units::percent_interval(low - 1.0, high - 1.0)),
        number(sees, units::share),
        evidence.map_or_else(missing, |evidence| units::count(evidence.units_count.into())),
        number((w.spent_s > 0.0).then_some(w.spent_s), units::seconds),
        calibrated(r, w),
    ]
}

/// The medians that were compared.
pub(crate) fn medians_ms(r: &AbReport, w: &AbWorkload) -> [Option<f64>; 2] {
    match (&w.disjoint_ci, &w.evidence) {
        (Some(keys), _) if is_disjoint_ci(r) => {
            [Some(keys.baseline_median_ms), Some(keys.candidate_median_ms)]
        }
        (_, Some(evidence)) => [Some(evidence.base.p50_ms), Some(evidence.head.p50_ms)],
        (_, None) => [None, None],
    }
}

/// False alarms of trials, with the tolerance where that was another one.
fn calibrated(r: &AbReport, w: &AbWorkload) -> String {
    let Some(seen) = w.calibrated.as_ref().filter(|seen| seen.inject <= 0.0) else { return missing() };
    let alarms = out_of(seen.false_alarms, seen.trials);
    if seen.tolerance == r.plan.tolerance {
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

/// Why, the worst first: for what is neither a pass nor an improvement, and for all where the seed's rule decided.
pub(crate) fn reasons(r: &AbReport) -> Vec<Group<'_>> {
    let by_seed = is_disjoint_ci(r);
    // What passed without being measured says so.
    let is_told = |w: &AbWorkload| by_seed || w.verdict > Verdict::Pass || w.ended == Ended::SameCode;
    let workloads = r.workloads.iter().filter(|(_, w)| is_told(w));
    grouped(workloads.map(|(name, w)| {
        let sentence = w.disjoint_ci.as_ref().filter(|_| by_seed).map(|keys| keys.verdict.as_str());
        // What a waiver has to say stands in the reason, behind the sentence.
        let sentence = sentence.filter(|_| w.waiver.is_none());
        (w.verdict, sentence.unwrap_or(&w.reason), Some(name.as_str()))
    }))
}

/// The failures, and whether the reason has said already what happened on which side.
pub(crate) fn failures(r: &AbReport) -> impl Iterator<Item = (&str, &SideFailure, bool)> {
    r.workloads.iter().filter_map(|(name, w)| {
        let failed = w.failure.as_ref()?;
        let said = w.reason.contains(&failed.failure.detail) && w.reason.contains(failed.side.as_str());
        Some((name.as_str(), failed, said))
    })
}

/// What the reader should know, each with a word before it.
pub(crate) fn notes(r: &AbReport) -> Vec<(&'static str, String)> {
    let mut notes: Vec<(&str, String)> = rounds(r).into_iter().map(|line| ("rounds", line)).collect();
    notes.extend(r.notes.iter().map(|note| ("note", note.clone())));
    if r.toolchain.profile == "debug" {
        notes.push(("warning", "holdpoint is a debug build: its own times say little".to_owned()));
    }
    if !r.finished {
        notes.push(("unfinished", "interrupted; go on with --resume".to_owned()));
    }
    notes
}

/// What became of the rounds in which the machine was troubled.
fn rounds(r: &AbReport) -> Vec<String> {
    let all = || r.workloads.values().flat_map(|w| &w.units).flat_map(|unit| &unit.rounds);
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
pub(crate) fn of_ab(r: &AbReport) -> String {
    let all = r.workloads.iter().map(|(name, w)| Item { name, verdict: w.verdict, change: w.change() });
    let items = Items { noun: "workload", all: all.collect() };
    let hit = items.with(r.verdict);
    let all = |one, many| items.of(hit.len(), one, many);
    let [slower, faster] = bounds(r);
    let said = match r.verdict {
        _ if r.workloads.is_empty() => "no workload was compared".to_owned(),
        _ if hit.is_empty() && !r.finished => "interrupted before every workload was decided".to_owned(),
        _ if hit.is_empty() => format!("{} compared", text::plural(r.workloads.len(), "workload")),
        Verdict::Improved => format!("{} {faster} ({})", all("is", "are"), changes(&hit)),
        Verdict::Pass if is_disjoint_ci(r) => items.passed("base by that rule"),
        Verdict::Pass => items.passed(&units::setting(r.plan.tolerance)),
        Verdict::Waived => format!("{} {slower}, waived ({})", all("is", "are"), changes(&hit)),
        Verdict::Skipped => format!("{} not compared{}", all("was", "were"), items.which(&hit)),
        Verdict::Inconclusive => {
            let undecided = "could not be decided";
            format!("{}{}", all(undecided, undecided), items.which(&hit))
        }
        Verdict::Regressed => format!("{} {slower} ({})", all("is", "are"), changes(&hit)),
        Verdict::Broken => {
            let failed = format!("failed{}", failed_on(r));
            format!("{}{}", all(&failed, &failed), items.which(&hit))
        }
    };
    let said = items.also(said, r.verdict);
    let took = r.elapsed_s > 0.0 && r.verdict <= Verdict::Pass;
    if took { format!("{said}, in {} s", units::seconds(r.elapsed_s)) } else { said }
}

/// What slower and faster mean.
fn bounds(r: &AbReport) -> [String; 2] {
    if is_disjoint_ci(r) {
        return ["significantly slower", "significantly faster"].map(str::to_owned);
    }
    let tolerance = units::setting(r.plan.tolerance);
    [format!("slower than {tolerance}"), format!("faster by more than {tolerance}")]
}

/// ` on head`, where all failed on the same side.
fn failed_on(r: &AbReport) -> String {
    let mut sides = r.workloads.values().filter_map(|w| w.failure.as_ref()).map(|failed| failed.side);
    match sides.next() {
        Some(first) if sides.all(|side| side == first) => format!(" on {}", first.as_str()),
        _ => String::new(),
    }
}

/// The workloads that have evidence.
pub(crate) fn with_evidence(r: &AbReport) -> impl Iterator<Item = (&str, &AbEvidence)> {
    r.workloads.iter().filter_map(|(name, w)| Some((name.as_str(), w.evidence.as_ref()?)))
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

/// How to read these tables. The seed's rule decides by p, at the end.
pub(crate) fn remarks(r: &AbReport, tables: &[&str]) -> Vec<&'static str> {
    let by_seed = is_disjoint_ci(r);
    let stands = |title: &str| tables.iter().any(|table| table.contains(title));
    let fits = |(title, _): &&(&str, &str)| stands(title) && !(by_seed && *title == MANN_WHITNEY);
    REMARKS.iter().filter(fits).map(|(_, remark)| *remark).collect()
}
