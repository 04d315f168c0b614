//! The plan of a comparison, from what was asked for and what the suite says.

use crate::request::Decision;
use crate::tensors::random_seed;
use holdpoint_gate::Policy;
use holdpoint_gate::tolerance::TOLERANCE;
use holdpoint_model::AbPlan;
use holdpoint_model::suite::GateSettings;
use holdpoint_model::waiver::Limit;
use holdpoint_stats::sequential::{ALARM_RATE, MISS_RATE};
use std::collections::BTreeMap;

/// Default seconds per workload.
const BUDGET_S: f64 = 20.0;
/// Default for the most units of a workload: the budget is over first.
const UNITS_MAX: u32 = 10_000;
/// Default number of units where the policy takes them all.
const UNITS_FIXED: u32 = 400;
/// Pairs of processes measured at the same time.
pub const UNITS_AT_ONCE: u32 = 2;

impl Decision {
    /// The plan that the decision and the suite mean.
    pub fn plan(&self, gate: &GateSettings, policy: Policy) -> AbPlan {
        let units_max = if policy.is_fixed_length() { UNITS_FIXED } else { UNITS_MAX };
        self.question.apply(AbPlan {
            tolerance: gate.tolerance.map_or(TOLERANCE, Limit::share),
            tolerances: gate.tolerances(),
            metrics: BTreeMap::new(),
            speedup_max: gate.speedup_max,
            alarm_rate: gate.alarm_rate.unwrap_or(ALARM_RATE),
            miss_rate: gate.miss_rate.unwrap_or(MISS_RATE),
            units_max: self.units_max.or(gate.units_max).unwrap_or(units_max),
            budget_s: self.budget.or(gate.budget).unwrap_or(BUDGET_S),
            clock: self.metric.or(gate.metric),
            units_at_once: self.at_once.or(gate.at_once).unwrap_or(UNITS_AT_ONCE),
            // Drawn anew each time, so that no order is favoured for ever; kept in the report.
            seed: self.seed.unwrap_or_else(random_seed),
        })
    }

    pub fn pin(&self, gate: &GateSettings) -> bool {
        self.pin || gate.pin == Some(true)
    }

    pub fn measure_same_code(&self, gate: &GateSettings) -> bool {
        self.measure_same_code || gate.measure_same_code == Some(true)
    }
}
