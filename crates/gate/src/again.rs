//! Judging again what was judged before: the same samples give the same verdict, so a reader can check it.

use crate::history::judge_history;
use crate::sides::{SidesError, judge_sides};
use crate::{Judgement, Policy, confirm, judge_run};
use holdpoint_model::{AbReport, Basis, Current, Stated};

/// The samples that a judgement was made of.
#[derive(Clone, Debug)]
pub enum Evidence {
    Runs(Vec<Current>),
    Sides(Box<AbReport>),
}

/// A judgement that its samples cannot give.
#[derive(Debug, thiserror::Error)]
pub enum AgainError {
    #[error("it does not hold what it was judged by")]
    Basis,
    #[error("there is no policy {0:?} of its kind")]
    Policy(String),
    #[error("its samples are not of the kind that it judges")]
    Samples,
    #[error(transparent)]
    Sides(#[from] SidesError),
}

/// Judges the samples again by the file's own basis, before any waiver.
pub fn judge_again(stated: &Stated, evidence: &Evidence) -> Result<Judgement, AgainError> {
    let policy = |threshold_pct| {
        Policy::from_name(&stated.policy, threshold_pct)
            .ok_or_else(|| AgainError::Policy(stated.policy.clone()))
    };
    match (stated.basis.as_ref().ok_or(AgainError::Basis)?, evidence) {
        (Basis::Baseline(basis), Evidence::Runs(runs)) => {
            let policy = policy(basis.threshold_pct)?;
            let current = match runs.as_slice() {
                [one] => one.clone(),
                several => confirm::median_run(several).ok_or(AgainError::Samples)?.current,
            };
            Ok(judge_run(&current, &basis.baseline, basis.allow, policy))
        }
        (Basis::History { levels }, Evidence::Runs(runs)) => match runs.as_slice() {
            [one] => Ok(judge_history(one, levels)),
            _ => Err(AgainError::Samples),
        },
        (Basis::Sides { plan }, Evidence::Sides(report)) => Ok(judge_sides(report, plan, policy(None)?)?),
        _ => Err(AgainError::Samples),
    }
}
