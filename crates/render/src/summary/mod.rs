//! The one sentence that says how it came out, and the choice of what to show. Not yet neutralised.

pub(crate) mod baseline;
pub(crate) mod bisection;
pub(crate) mod calibration;
pub(crate) mod judgement;
mod report;
pub(crate) mod sides;
pub(crate) mod trend;

pub(crate) use report::{describe_run, measured, samples_count, stopped};

use crate::text::{list, plural};
use crate::units;
use holdpoint_model::{Check, Verdict};
use std::collections::HashMap;
use std::hash::Hash;

/// Passes shown; everything else is always shown.
const PASSES_SHOWN: usize = 50;
/// Names in a list.
pub(crate) const NAMES_SHOWN: usize = 3;
pub(crate) const DEBUG_BUILD: &str = "holdpoint is a debug build: its own times say little";

/// The checks to show, in order, and how many passes are left out.
fn shown(checks: &[Check]) -> (Vec<&Check>, usize) {
    let mut passes = 0;
    let shown = checks.iter().filter(|check| {
        passes += usize::from(check.verdict == Verdict::Pass);
        check.verdict != Verdict::Pass || passes <= PASSES_SHOWN
    });
    let shown = shown.collect();
    (shown, passes.saturating_sub(PASSES_SHOWN))
}

/// `… and 9 950 more passed`.
fn more_passed(left_out: usize) -> Option<String> {
    (left_out > 0).then(|| format!("… and {} more passed", units::count(left_out as u64)))
}

/// Metrics or workloads that share a verdict and a reason.
pub(crate) struct Group<'a> {
    pub(crate) verdict: Verdict,
    pub(crate) reason: &'a str,
    pub(crate) names: Vec<&'a str>,
}

/// Values by their keys, in the order of the first value of each.
pub(crate) fn group<K: Hash + Eq + Copy, V>(items: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    let mut index: HashMap<K, usize> = HashMap::new();
    for (key, value) in items {
        let at = *index.entry(key).or_insert_with(|| {
            groups.push((key, Vec::new()));
            groups.len() - 1
        });
        groups[at].1.push(value);
    }
    groups
}

/// Checks of metrics or workloads, and the word for them.
struct Items<'a> {
    noun: &'static str,
    /// The word for a change that is not wanted.
    worse: &'static str,
    all: Vec<&'a Check>,
}

impl<'a> Items<'a> {
    fn with(&self, verdict: Verdict) -> Vec<&'a Check> {
        self.all.iter().copied().filter(|check| check.verdict == verdict).collect()
    }

    /// `1 of 9 metrics is`, `9 of 9 metrics are`, `the only metric is`.
    fn count(&self, n: usize, one: &str, many: &str) -> String {
        let total = plural(self.all.len(), self.noun);
        match (n, self.all.len()) {
            (1, 1) => format!("the only {} {one}", self.noun),
            (1, _) => format!("1 of {total} {one}"),
            _ => format!("{} of {total} {many}", units::count(n as u64)),
        }
    }

    /// The names in brackets, unless it is all of them.
    fn which(&self, hit: &[&Check]) -> String {
        if hit.len() == self.all.len() { String::new() } else { format!(" ({})", names(hit)) }
    }

    /// Nothing is slower than what `allowed` says, and what is faster.
    fn passed(&self, allowed: &str) -> String {
        let improved = self.with(Verdict::Improved);
        let text = match self.all.len() {
            1 => format!("the only {} is not {} than {allowed}", self.noun, self.worse),
            n => format!("none of the {} is {} than {allowed}", plural(n, self.noun), self.worse),
        };
        match improved.len() {
            0 => text,
            n => format!("{text}, {} improved ({})", units::count(n as u64), changes(&improved)),
        }
    }

    /// The sentence, with what else there is that is not good.
    fn also(&self, sentence: String, but: Verdict) -> String {
        let others =
            [Verdict::Broken, Verdict::Regressed, Verdict::Inconclusive, Verdict::Skipped, Verdict::Waived];
        let counted = others.iter().filter(|other| **other != but).filter_map(|other| {
            let n = self.all.iter().filter(|check| check.verdict == *other).count();
            (n > 0).then(|| format!("{} {}", units::count(n as u64), other.as_str()))
        });
        let also = counted.collect::<Vec<_>>().join(", ");
        if also.is_empty() { sentence } else { format!("{sentence}; also {also}") }
    }
}

fn names(checks: &[&Check]) -> String {
    let names: Vec<&str> = checks.iter().map(|check| check.name()).collect();
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
            Some(worse) => format!("{} {}", check.name(), units::percent(check.change_of_value(worse))),
            None => check.name().to_owned(),
        })
        .collect();
    list(&texts, NAMES_SHOWN)
}
