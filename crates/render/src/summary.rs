//! The one sentence that says how it came out, and the choice of what to show. Not yet neutralised.

use crate::text::{list, plural};
use crate::{remedy, units};
use holdpoint_model::judgement::STATUS_METRIC;
use holdpoint_model::{Check, CheckStatus, Judgement, Outcome, Report, Verdict};
use std::collections::HashMap;

/// Passes shown; everything else is always shown.
const PASSES_SHOWN: usize = 50;
/// Names in a list.
pub(crate) const NAMES_SHOWN: usize = 3;

/// The checks to show, in order, and how many passes are left out.
pub(crate) fn shown(checks: &[Check]) -> (Vec<&Check>, usize) {
    let mut passes = 0;
    let shown = checks.iter().filter(|check| {
        passes += usize::from(check.verdict == Verdict::Pass);
        check.verdict != Verdict::Pass || passes <= PASSES_SHOWN
    });
    let shown = shown.collect();
    (shown, passes.saturating_sub(PASSES_SHOWN))
}

/// `… and 9 950 more passed`.
pub(crate) fn more_passed(left_out: usize) -> Option<String> {
    (left_out > 0).then(|| format!("… and {} more passed", units::count(left_out as u64)))
}

/// Metrics that share a verdict and a reason.
pub(crate) struct Group<'a> {
    pub(crate) verdict: Verdict,
    pub(crate) reason: &'a str,
    pub(crate) metrics: Vec<&'a str>,
}

/// Why, for every check that is neither a pass nor an improvement; the worst first.
pub(crate) fn reasons(checks: &[Check]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut index: HashMap<(Verdict, &str), usize> = HashMap::new();
    for check in checks.iter().filter(|check| check.verdict > Verdict::Pass) {
        let (verdict, reason) = (check.verdict, check.reason.as_str());
        let at = *index.entry((verdict, reason)).or_insert_with(|| {
            groups.push(Group { verdict, reason, metrics: Vec::new() });
            groups.len() - 1
        });
        if check.metric != STATUS_METRIC {
            groups[at].metrics.push(&check.metric);
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.verdict));
    groups
}

/// How the judgement came out, after its verdict word.
pub(crate) fn of_judgement(j: &Judgement) -> String {
    let metrics: Vec<&Check> = j.checks.iter().filter(|check| check.metric != STATUS_METRIC).collect();
    let hit: Vec<&Check> = metrics.iter().copied().filter(|check| check.verdict == j.verdict).collect();
    let total = metrics.len();
    let all = |one, many| of(hit.len(), total, one, many);
    let said = match j.verdict {
        _ if hit.is_empty() => without_metrics(j),
        Verdict::Improved => format!("{} faster by more than the tolerance", all("is", "are")),
        Verdict::Pass => passed(&metrics),
        Verdict::Skipped => format!("{} not measured{}", all("was", "were"), which(&hit, total)),
        Verdict::Inconclusive => format!("{} not comparable{}", all("is", "are"), which(&hit, total)),
        Verdict::Regressed => regressed(&hit, total),
        Verdict::Broken => format!("{} no value to trust{}", all("has", "have"), which(&hit, total)),
    };
    let also = also(&metrics, j.verdict);
    if also.is_empty() { said } else { format!("{said}; also {also}") }
}

fn without_metrics(j: &Judgement) -> String {
    match j.checks.iter().find(|check| check.verdict == j.verdict) {
        Some(check) => check.reason.clone(),
        None if j.checks.is_empty() => "no metric was judged".to_owned(),
        None => format!("{} judged", plural(j.checks.len(), "metric")),
    }
}

fn passed(metrics: &[&Check]) -> String {
    let improved = metrics.iter().copied().filter(|check| check.verdict == Verdict::Improved);
    let improved: Vec<&Check> = improved.collect();
    let said = match metrics.len() {
        1 => "the only metric is not slower than allowed".to_owned(),
        n => format!("none of the {} is slower than allowed", plural(n, "metric")),
    };
    match improved.len() {
        0 => said,
        n => format!("{said}, {} improved ({})", units::count(n as u64), changes(&improved)),
    }
}

fn regressed(hit: &[&Check], total: usize) -> String {
    let (missing, slower): (Vec<&Check>, Vec<&Check>) =
        hit.iter().partition(|check| check.status == CheckStatus::Missing);
    let (n, absent) = (missing.len(), names(&missing));
    let how_slow =
        || format!("{} slower than allowed ({})", of(slower.len(), total, "is", "are"), changes(&slower));
    match (slower.is_empty(), n) {
        (true, _) => format!("{} missing from the run ({absent})", of(n, total, "is", "are")),
        (false, 0) => how_slow(),
        (false, _) => format!("{}, {} missing ({absent})", how_slow(), units::count(n as u64)),
    }
}

/// What else there is that is not good.
fn also(metrics: &[&Check], but: Verdict) -> String {
    let others = [Verdict::Broken, Verdict::Regressed, Verdict::Inconclusive, Verdict::Skipped];
    let counted = others.iter().filter(|other| **other != but).filter_map(|other| {
        let n = metrics.iter().filter(|check| check.verdict == *other).count();
        (n > 0).then(|| format!("{} {}", units::count(n as u64), other.as_str()))
    });
    counted.collect::<Vec<_>>().join(", ")
}

/// The names in brackets, unless it is all of them.
fn which(hit: &[&Check], total: usize) -> String {
    if hit.len() == total { String::new() } else { format!(" ({})", names(hit)) }
}

/// `1 of 9 metrics is`, `9 of 9 metrics are`, `the only metric is`.
fn of(n: usize, total: usize, one: &str, many: &str) -> String {
    match (n, total) {
        (1, 1) => format!("the only metric {one}"),
        (1, _) => format!("1 of {} {one}", plural(total, "metric")),
        _ => format!("{} of {} {many}", units::count(n as u64), plural(total, "metric")),
    }
}

fn names(checks: &[&Check]) -> String {
    let names: Vec<&str> = checks.iter().map(|check| check.metric.as_str()).collect();
    list(&names, NAMES_SHOWN)
}

/// Names with their changes, the largest first.
fn changes(checks: &[&Check]) -> String {
    let mut checks = checks.to_vec();
    let size = |check: &Check| check.regression_ratio.map_or(0.0, f64::abs);
    checks.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let texts: Vec<String> = checks
        .iter()
        .map(|check| match check.regression_ratio {
            Some(ratio) => format!("{} {}", check.metric, units::percent(ratio)),
            None => check.metric.clone(),
        })
        .collect();
    list(&texts, NAMES_SHOWN)
}

/// How the run came out, after its status word.
pub(crate) fn of_report(r: &Report) -> String {
    let total = plural(r.benchmarks.len(), "workload");
    let took =
        if r.config.elapsed_s > 0.0 { format!(" in {:.1} s", r.config.elapsed_s) } else { String::new() };
    let count = |wanted: fn(&Outcome) -> bool| r.benchmarks.values().filter(|m| wanted(&m.outcome)).count();
    let measured = count(|outcome| matches!(outcome, Outcome::Measured(_)));
    let parts = [
        (count(|outcome| matches!(outcome, Outcome::Failed(_))), "failed"),
        (count(|outcome| matches!(outcome, Outcome::Skipped { .. })), "skipped"),
    ];
    if r.benchmarks.is_empty() {
        return r
            .reason
            .as_deref()
            .map_or_else(|| "there was no workload to measure".to_owned(), remedy::with);
    }
    let mut said = if measured == r.benchmarks.len() {
        format!("{total} measured{took}")
    } else {
        format!("{} of {total} measured{took}", units::count(measured as u64))
    };
    for (n, word) in parts.into_iter().filter(|(n, _)| *n > 0) {
        said.push_str(&format!(", {} {word}", units::count(n as u64)));
    }
    match &r.reason {
        Some(reason) => format!("{said}: {}", remedy::with(reason)),
        None => said,
    }
}

/// How much slower the metric may still become, as a share of what it is; negative when it is over.
pub(crate) fn headroom(check: &Check) -> Option<f64> {
    let (allowed, current) = check.allowed_max_ms.zip(check.current_ms)?;
    check.regression_ratio.map(|_| allowed / current - 1.0)
}
