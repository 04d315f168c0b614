//! Our rule on what it sees: units of interleaved rounds in fresh processes.

use holdpoint_stats::sequential::{Decision, Plan, Sequential};

use crate::noise::{Machine, Side};

/// A unit: three rounds, one sample a side each.
pub const ROUNDS_PER_UNIT: usize = 3;
/// After this many units a workload stays undecided: 240 samples a side.
pub const UNITS_MAX: usize = 80;

/// ln(head time / base time) of one unit, `change` being the true one.
pub fn unit(machine: &mut Machine, change: f64) -> f64 {
    let (base, head) = (machine.start(Side::Base), machine.start(Side::Head));
    let mut differences = [0.0; ROUNDS_PER_UNIT];
    for difference in &mut differences {
        // Who goes first is drawn: drift then has no side.
        *difference = if machine.random.bits() & 1 == 0 {
            let base_time = machine.sample(&base);
            machine.sample(&head) - base_time
        } else {
            let head_time = machine.sample(&head);
            head_time - machine.sample(&base)
        };
    }
    differences.sort_by(f64::total_cmp);
    differences[ROUNDS_PER_UNIT / 2] + change
}

/// Units until the first decision, and what it was; `limit` units at most.
pub fn decide(plan: Plan, machine: &mut Machine, change: f64, limit: usize) -> (Decision, usize) {
    decide_units(plan, std::iter::repeat_with(|| unit(machine, change)).take(limit))
}

/// The same for units from anywhere.
pub fn decide_units(plan: Plan, units: impl Iterator<Item = f64>) -> (Decision, usize) {
    let Ok(mut sequential) = Sequential::new(plan) else { return (Decision::Undecided, 0) };
    for x in units {
        let decision = sequential.push(x);
        if decision != Decision::Undecided {
            return (decision, sequential.units_count());
        }
    }
    (Decision::Undecided, sequential.units_count())
}
