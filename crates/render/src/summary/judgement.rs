//! The sentence about a judged run.

use super::{Item, Items, changes, names};
use crate::text::plural;
use crate::units;
use holdpoint_model::{Check, CheckStatus, Judgement, Verdict};

/// How the judgement came out, after its verdict word.
pub(crate) fn of_judgement(j: &Judgement) -> String {
    let metrics = j.checks.iter().filter(|check| !check.is_overall());
    let items = Items { noun: "metric", all: metrics.map(item).collect() };
    let hit = items.with(j.verdict);
    let all = |one, many| items.of(hit.len(), one, many);
    let said = match j.verdict {
        _ if hit.is_empty() => without_metrics(j),
        Verdict::Improved => format!("{} faster by more than the tolerance", all("is", "are")),
        Verdict::Pass => items.passed("allowed"),
        Verdict::Waived => format!("{} slower than allowed, waived ({})", all("is", "are"), changes(&hit)),
        Verdict::Skipped => format!("{} not measured{}", all("was", "were"), items.which(&hit)),
        Verdict::Inconclusive => format!("{} undecided{}", all("is", "are"), items.which(&hit)),
        Verdict::Regressed => regressed(j, &items),
        Verdict::Broken => format!("{} no value to trust{}", all("has", "have"), items.which(&hit)),
    };
    items.also(said, j.verdict)
}

fn item(check: &Check) -> Item<'_> {
    Item { name: &check.metric, verdict: check.verdict, change: check.regression_ratio }
}

fn without_metrics(j: &Judgement) -> String {
    match j.checks.iter().find(|check| check.verdict == j.verdict) {
        Some(check) => check.reason.clone(),
        None if j.checks.is_empty() => "no metric was judged".to_owned(),
        None => format!("{} judged", plural(j.checks.len(), "metric")),
    }
}

fn regressed(j: &Judgement, items: &Items<'_>) -> String {
    let hit = j.checks.iter().filter(|check| !check.is_overall() && check.verdict == j.verdict);
    let (missing, slower): (Vec<&Check>, Vec<&Check>) =
        hit.partition(|check| check.status == CheckStatus::Missing);
    let missing: Vec<Item<'_>> = missing.into_iter().map(item).collect();
    let slower: Vec<Item<'_>> = slower.into_iter().map(item).collect();
    let (n, absent) = (missing.len(), names(&missing));
    let how_slow =
        || format!("{} slower than allowed ({})", items.of(slower.len(), "is", "are"), changes(&slower));
    match (slower.is_empty(), n) {
        (true, _) => format!("{} missing from the run ({absent})", items.of(n, "is", "are")),
        (false, 0) => how_slow(),
        (false, _) => format!("{}, {} missing ({absent})", how_slow(), units::count(n as u64)),
    }
}

/// How much slower the metric may still become, as a share of what it is; negative when it is over.
pub(crate) fn headroom(check: &Check) -> Option<f64> {
    let (allowed, current) = check.allowed_max_ms.zip(check.current_ms)?;
    check.regression_ratio.map(|_| allowed / current - 1.0)
}
