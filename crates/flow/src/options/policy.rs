//! The rule that decides, and the differences that it may overlook.

use crate::error::FlowError;
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use holdpoint_gate::{Allow, Policy};
use holdpoint_model::suite::GateSettings;

const THRESHOLD_ALONE: &str = "--threshold goes with --policy threshold; leave out one of the two";

/// How to decide.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PolicyArgs {
    /// The rule that decides: stored, allowed-max or threshold for a baseline, sequential or disjoint-ci for two sides
    #[arg(long, value_name = "NAME", value_parser = policy_parser(), hide_possible_values = true, help_heading = "Decision")]
    pub policy: Option<Policy>,
    /// For the policy `threshold`: the least improvement that passes, in percent [default: -3.0]
    #[arg(long, value_name = "PERCENT", hide = true, allow_negative_numbers = true, value_parser = percent, help_heading = "Decision")]
    pub threshold: Option<f64>,
    /// Allow the comparison despite this difference: machine, environment, shape, dtype, timer, params
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        value_delimiter = ',',
        hide_possible_values = true,
        help_heading = "Decision"
    )]
    pub allow: Vec<Difference>,
}

impl PolicyArgs {
    /// The policy for a baseline that the flags and the suite mean: a threshold means the policy of that name.
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

    /// Refuses a policy that cannot judge two sides.
    pub fn check_for_sides(policy: Option<Policy>) -> Result<(), FlowError> {
        match policy.filter(|policy| policy.takes_baseline()) {
            None => Ok(()),
            Some(policy) => Err(FlowError::Input(format!(
                "--policy {} needs a baseline; for two sides choose sequential or disjoint-ci",
                policy.name()
            ))),
        }
    }

    /// The policy for two sides that the flags and the suite mean.
    pub fn policy_of_sides(policy: Option<Policy>, gate: &GateSettings) -> Result<Policy, FlowError> {
        Self::check_for_sides(policy)?;
        let recorded = suite_policy(gate)?.filter(|policy| !policy.takes_baseline());
        Ok(policy.or(recorded).unwrap_or(Policy::Sequential))
    }

    /// The differences declared harmless.
    pub fn allow(&self) -> Allow {
        let has = |difference| self.allow.contains(&difference);
        Allow {
            machine: has(Difference::Machine),
            environment: has(Difference::Environment),
            shape: has(Difference::Shape),
            dtype: has(Difference::Dtype),
            timer: has(Difference::Timer),
            params: has(Difference::Params),
        }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if percent.is_finite() => Ok(percent),
        _ => Err("a number of percent is wanted, such as -3.0".to_owned()),
    }
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

/// Reads a policy by its name; `--threshold` brings the number of `threshold`.
pub(super) fn policy_parser() -> impl TypedValueParser<Value = Policy> {
    let values = Policy::ALL.map(|policy| PossibleValue::new(policy.name()).help(policy.about()));
    PossibleValuesParser::new(values).try_map(|name| {
        Policy::ALL.into_iter().find(|policy| policy.name() == name).ok_or("there is no such policy")
    })
}

/// A difference between the sides that may be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Difference {
    /// Another machine
    Machine,
    /// Other precision modes, threads, seeds or versions
    Environment,
    /// Another shape
    Shape,
    /// Another element type
    Dtype,
    /// Another clock
    Timer,
    /// Other parameters
    Params,
}
