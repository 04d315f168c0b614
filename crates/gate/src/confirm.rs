//! A second look: one slow run is no evidence yet, so the run is made again and the median of all runs is judged.
//!
//! The baseline is a median over processes; a single process that was unlucky must not be held against it. Only a
//! run that is slower than allowed is made again, so a pass costs one run, and the outcome of every run counts.

use crate::Judgement;
use holdpoint_model::{CheckStatus, Current, Verdict};
use holdpoint_stats as stats;

/// Whether running again could change the verdict: something was slower than allowed, and nothing is worse.
pub fn worth_repeating(judgement: &Judgement) -> bool {
    let is_slow = |check: &holdpoint_model::Check| {
        check.verdict == Verdict::Regressed && check.status == CheckStatus::Fail && check.current_ms.is_some()
    };
    judgement.verdict == Verdict::Regressed && judgement.checks.iter().any(is_slow)
}

/// Several runs as one.
#[derive(Clone, Debug, PartialEq)]
pub struct Confirmed {
    /// The run to be judged.
    pub current: Current,
    /// Which run that is, if it is not the median of all.
    pub odd: Option<usize>,
}

/// Several runs as one: the median of each metric. A run in which something failed or is missing speaks for all.
pub fn median_run(runs: &[Current]) -> Option<Confirmed> {
    let first = runs.first()?;
    let differs = |run: &Current| run.status != first.status || !run.metrics.keys().eq(first.metrics.keys());
    if let Some(odd) = runs.iter().position(differs) {
        return Some(Confirmed { current: runs[odd].clone(), odd: Some(odd) });
    }
    let mut merged = first.clone();
    let others: Option<Vec<f64>> = runs.iter().map(|run| run.others_cpu).collect();
    merged.others_cpu = others.and_then(|others| stats::median(&others));
    for (name, metric) in &mut merged.metrics {
        let values: Vec<f64> = runs.iter().filter_map(|run| Some(run.metrics.get(name)?.value_ms)).collect();
        metric.value_ms = stats::median(&values)?;
    }
    Some(Confirmed { current: merged, odd: None })
}
