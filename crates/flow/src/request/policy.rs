//! The rule that decides, and the differences that it may overlook.

use crate::error::FlowError;
use holdpoint_gate::Policy;
use holdpoint_model::Allow;
use holdpoint_model::suite::GateSettings;

const THRESHOLD_ALONE: &str = "--threshold goes with --policy threshold; leave out one of the two";

/// How to decide.
#[derive(Clone, Copy, Debug, Default)]
pub struct PolicyChoice {
    pub policy: Option<Policy>,
    /// The least improvement that passes, in percent.
    pub threshold: Option<f64>,
    pub allow: Allow,
}

impl PolicyChoice {
    /// The policy for a baseline that the choice and the suite mean: a threshold means the policy of that name.
    pub fn policy(&self, gate: &GateSettings) -> Result<Policy, FlowError> {
        let recorded = suite_policy(gate)?.filter(|policy| policy.takes_baseline());
        let threshold = self.threshold.or(gate.threshold);
        match (self.policy.or(recorded.filter(|_| self.threshold.is_none())), threshold) {
            (None, None) => Ok(Policy::Stored),
            (None | Some(Policy::Threshold { .. }), Some(threshold_pct)) => {
                Ok(Policy::Threshold { threshold_pct })
            }
            (Some(_), Some(_)) if self.threshold.is_some() => {
                Err(FlowError::Input(THRESHOLD_ALONE.to_owned()))
            }
            (Some(policy), _) => Ok(policy),
        }
    }
}

/// Refuses a policy that cannot judge two sides.
pub fn check_policy_of_sides(policy: Option<Policy>) -> Result<(), FlowError> {
    match policy.filter(|policy| policy.takes_baseline()) {
        None => Ok(()),
        Some(policy) => Err(FlowError::Input(format!(
            "--policy {} needs a baseline; for two sides choose sequential or disjoint-ci",
            policy.name()
        ))),
    }
}

/// The policy for two sides that is given, or that the suite means.
pub(crate) fn policy_of_sides(policy: Option<Policy>, gate: &GateSettings) -> Result<Policy, FlowError> {
    check_policy_of_sides(policy)?;
    let recorded = suite_policy(gate)?.filter(|policy| !policy.takes_baseline());
    Ok(policy.or(recorded).unwrap_or(Policy::Sequential))
}

/// The policy that a suite names.
fn suite_policy(gate: &GateSettings) -> Result<Option<Policy>, FlowError> {
    let Some(name) = &gate.policy else { return Ok(None) };
    let known = Policy::ALL.map(Policy::name);
    match Policy::ALL.into_iter().find(|policy| policy.name() == name) {
        Some(policy) => Ok(Some(policy)),
        None => Err(FlowError::Input(format!(
            "gate.policy of the suite: there is no {name:?}; there are {}",
            known.join(", ")
        ))),
    }
}
