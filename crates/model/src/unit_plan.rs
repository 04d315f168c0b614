//! How a unit of two sides is measured: the plan, and the costs that it is made from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which times of a sample are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Wall time without the time spent waiting for a CPU, if both sides tell it.
    #[default]
    Unwaited,
    /// Wall time as it is.
    Wall,
    /// CPU time, user and system.
    Cpu,
    /// CPU time of both sides while they take turns on one CPU, as the kernel's scheduler gives them out: a few milliseconds each.
    Tandem,
}

impl Clock {
    pub fn from_name(name: &str) -> Option<Self> {
        [("wall", Self::Wall), ("cpu", Self::Cpu)]
            .into_iter()
            .find(|known| known.0 == name)
            .map(|known| known.1)
    }

    pub fn is_cpu(self) -> bool {
        matches!(self, Self::Cpu | Self::Tandem)
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How the next unit of a workload is to be measured; chosen before it begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitPlan {
    pub rounds: u32,
    /// Samples of each side in a round, those that are left out included.
    pub samples: u32,
    /// See [`Unit::skip`](crate::Unit::skip).
    pub skip: u32,
    /// See [`Unit::quantile`](crate::Unit::quantile).
    pub quantile: f64,
    pub clock: Clock,
}

/// Seconds that the units of a workload take, as measured so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UnitCost {
    /// A unit without its rounds: starting processes and preparing inputs.
    pub fixed_s: f64,
    /// A round without its samples.
    pub round_s: f64,
    /// One sample; 0 as long as it is unknown.
    pub sample_s: f64,
    /// Remaining budget.
    pub unit_s_max: f64,
    /// Whether both sides can run at the same time.
    pub may_overlap: bool,
    /// Whether a turn is to have a single sample, as each takes a process of its own.
    pub one_sample: bool,
    /// Whether turns may be long: a harness does more for a sample than time it.
    pub long_turns: bool,
}

impl UnitCost {
    /// Seconds of a unit with these rounds, and samples of each side in a round.
    pub fn unit_s(&self, rounds: u32, samples: u32) -> f64 {
        self.fixed_s + f64::from(rounds) * (self.round_s + 2.0 * f64::from(samples) * self.sample_s)
    }
}
