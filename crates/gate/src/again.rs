//! Judging what was judged before: the same files give the same verdict, so whoever has them can see whether it is theirs.

use crate::{Policy, compare, confirm, judge};
use holdpoint_model::{Allow, Baseline, Basis, Current, Judgement};

/// Judges a run against a baseline, and keeps with the judgement what it was judged by.
#[must_use]
pub fn judge_run(current: &Current, baseline: &Baseline, allow: Allow, policy: Policy) -> Judgement {
    let threshold_pct = match policy {
        Policy::AllowedMax => None,
        Policy::Threshold { threshold_pct } => Some(threshold_pct),
    };
    Judgement {
        basis: Some(Basis { baseline: baseline.clone(), allow, threshold_pct }),
        ..judge(&compare(current, baseline, allow), policy)
    }
}

/// Judges the runs of a judgement again by what it says it was judged by, before any waiver. Absent where it does not say.
#[must_use]
pub fn judge_again(judgement: &Judgement, runs: &[Current]) -> Option<Judgement> {
    let basis = judgement.basis.as_ref()?;
    let policy = Policy::from_name(&judgement.policy, basis.threshold_pct)?;
    let current = match runs {
        [one] => one.clone(),
        several => confirm::median_run(several)?.current,
    };
    Some(judge_run(&current, &basis.baseline, basis.allow, policy))
}
