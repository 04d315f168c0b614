//! The steps of a search for a slow commit: where their line lies, what they found, whether more are wanted.

use holdpoint_model::{Bisection, Stated, StepOutcome, Verdict};

/// Half of a change, in logarithms and to a hundredth of a percent: commits that are unchanged and commits that have all
/// of it are equally far from there.
pub fn half_of_change(ratio: f64) -> f64 {
    ((ratio.sqrt() - 1.0) * 1e4).round() / 1e4
}

/// Whether there is nothing left to find out: nothing was slower, or the culprit was compared with the commit before it.
pub fn is_search_finished(bisection: &Bisection) -> bool {
    let is_nothing_slower =
        bisection.steps.first().is_some_and(|step| step.outcome == StepOutcome::NotSlower);
    let is_decided = |judgement: &Stated| judgement.verdict != Verdict::Inconclusive;
    is_nothing_slower || bisection.judgement.as_ref().is_some_and(is_decided)
}

/// The outcome of comparing a commit with the good one.
pub fn bisect_step(judgement: &Stated) -> StepOutcome {
    match judgement.verdict {
        Verdict::Improved | Verdict::Pass => StepOutcome::NotSlower,
        Verdict::Skipped | Verdict::Inconclusive => StepOutcome::Undecided,
        // No waivers are read here; a waived slowdown is one all the same.
        Verdict::Regressed | Verdict::Waived => StepOutcome::Slower,
        // One workload may be broken and another slower: that is then found.
        Verdict::Broken if judgement.checks.iter().any(|check| check.verdict == Verdict::Regressed) => {
            StepOutcome::Slower
        }
        Verdict::Broken => StepOutcome::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_change_is_as_far_from_all_of_it_as_from_none() {
        for (ratio, half) in [(1.21, 0.1), (1.10, 0.0488), (4.0, 1.0), (1.0, 0.0)] {
            assert_eq!(half_of_change(ratio), half);
        }
    }
}
