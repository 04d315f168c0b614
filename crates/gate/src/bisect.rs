//! The outcome of one step of a search for a slow commit.

use holdpoint_model::{Judgement, StepOutcome, Verdict};

/// The outcome of comparing a commit with the good one.
pub fn bisect_step(judgement: &Judgement) -> StepOutcome {
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
