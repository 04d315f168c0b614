//! Judging again what was judged before: the same samples give the same verdict, so a reader can check it.

use crate::ab::judge_sides;
use crate::{Policy, confirm, judge_run};
use holdpoint_model::{AbReport, Basis, Current, Judgement};

/// The samples that a judgement was made of.
#[derive(Clone, Debug)]
pub enum Evidence {
    Runs(Vec<Current>),
    Sides(Box<AbReport>),
}

/// Judges the samples again by the judgement's own basis, before any waiver. Absent where the basis is missing, makes no sense or does
/// not fit the samples.
#[must_use]
pub fn judge_again(judgement: &Judgement, evidence: &Evidence) -> Option<Judgement> {
    match (judgement.basis.as_ref()?, evidence) {
        (Basis::Baseline(basis), Evidence::Runs(runs)) => {
            let policy = Policy::from_name(&judgement.policy, basis.threshold_pct)?;
            let current = match runs.as_slice() {
                [one] => one.clone(),
                several => confirm::median_run(several)?.current,
            };
            Some(judge_run(&current, &basis.baseline, basis.allow, policy))
        }
        (Basis::Sides { plan }, Evidence::Sides(report)) => {
            judge_sides(report, plan, Policy::from_name(&judgement.policy, None)?).ok()
        }
        _ => None,
    }
}
