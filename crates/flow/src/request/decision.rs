//! How two sides are measured and judged.

use holdpoint_gate::Policy;
use holdpoint_model::AbPlan;
use holdpoint_model::ab::Clock;
use std::collections::BTreeMap;

/// The question that is to be answered. What is absent is the suite's to say.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// How much slower a workload may be.
    pub tolerance: Option<f64>,
    /// An improvement of so many times is inconclusive.
    pub speedup_max: Option<f64>,
    pub alarm_rate: Option<f64>,
    pub miss_rate: Option<f64>,
}

impl Question {
    /// A plan with this question in place of its own. A tolerance that is given is meant for all workloads.
    pub fn apply(&self, plan: AbPlan) -> AbPlan {
        AbPlan {
            tolerance: self.tolerance.unwrap_or(plan.tolerance),
            tolerances: if self.tolerance.is_some() { BTreeMap::new() } else { plan.tolerances },
            speedup_max: self.speedup_max.or(plan.speedup_max),
            alarm_rate: self.alarm_rate.unwrap_or(plan.alarm_rate),
            miss_rate: self.miss_rate.unwrap_or(plan.miss_rate),
            ..plan
        }
    }
}

/// The question, and how its units are measured. What is absent is the suite's to say.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    pub question: Question,
    /// Seconds per workload.
    pub budget: Option<f64>,
    pub units_max: Option<u32>,
    /// Units measured at the same time.
    pub at_once: Option<u32>,
    /// For the order of sides and workloads; random, if absent.
    pub seed: Option<u64>,
    pub metric: Option<Clock>,
    /// All processes of a pair run on one CPU.
    pub pin: bool,
    /// Workloads are measured even if both sides run the same code.
    pub measure_same_code: bool,
}

/// How two sides are compared.
#[derive(Clone, Debug, Default)]
pub struct SidesRequest {
    pub decision: Decision,
    pub policy: Option<Policy>,
    /// Whether the interrupted comparison in the folder of the evidence is continued.
    pub resume: bool,
}
