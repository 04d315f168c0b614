//! Flags of the rule that decides, and of the differences that it may overlook.

use super::values::{self, Words};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use holdpoint_flow::request::{Policy, PolicyChoice};
use holdpoint_model::Allow;

/// How to decide.
#[derive(Clone, Debug, clap::Args)]
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
        value_parser = values::word(DIFFERENCES),
        value_name = "WHAT",
        value_delimiter = ',',
        hide_possible_values = true,
        help_heading = "Decision"
    )]
    pub allow: Vec<Difference>,
}

/// A difference between the sides that may be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    Machine,
    Environment,
    Shape,
    Dtype,
    Timer,
    Params,
}

const DIFFERENCES: Words<Difference> = &[
    ("machine", "Another machine", Difference::Machine),
    ("environment", "Other precision modes, threads, seeds or versions", Difference::Environment),
    ("shape", "Another shape", Difference::Shape),
    ("dtype", "Another element type", Difference::Dtype),
    ("timer", "Another clock", Difference::Timer),
    ("params", "Other parameters", Difference::Params),
];

impl From<PolicyArgs> for PolicyChoice {
    fn from(PolicyArgs { policy, threshold, allow }: PolicyArgs) -> Self {
        let has = |difference| allow.contains(&difference);
        let allow = Allow {
            machine: has(Difference::Machine),
            environment: has(Difference::Environment),
            shape: has(Difference::Shape),
            dtype: has(Difference::Dtype),
            timer: has(Difference::Timer),
            params: has(Difference::Params),
        };
        Self { policy, threshold, allow }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if percent.is_finite() => Ok(percent),
        _ => Err("a number of percent is wanted, such as -3.0".to_owned()),
    }
}

/// Reads a policy by its name; `--threshold` brings the number of `threshold`.
pub(super) fn policy_parser() -> impl TypedValueParser<Value = Policy> {
    let values = Policy::ALL.map(|policy| PossibleValue::new(policy.name()).help(policy.about()));
    PossibleValuesParser::new(values).try_map(|name| {
        Policy::ALL.into_iter().find(|policy| policy.name() == name).ok_or("there is no such policy")
    })
}
