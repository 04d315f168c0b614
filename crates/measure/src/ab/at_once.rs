//! Whether measuring several units at the same time pays, by measurement: two units may slow down or disturb each other,
//! depending on the caches and memory that they share.

use super::Decide;
use super::lane::Lane;
use holdpoint_model::{AbReport, Unit};
use std::collections::BTreeMap;

/// Units of each way before one of them is chosen.
const UNITS_EACH: usize = 4;

#[derive(Default)]
pub(super) struct AtOnce {
    alone: Way,
    together: Way,
}

/// Units measured in one of the two ways.
#[derive(Default)]
struct Way {
    units_count: usize,
    seconds: f64,
    /// By workload.
    units: BTreeMap<usize, Vec<Unit>>,
    /// ln of variance, summed over workloads.
    noise: f64,
}

impl AtOnce {
    /// How many units are measured next, `most` or one.
    pub(super) fn choose(&self, most: usize) -> usize {
        let is_known = |way: &Way| way.units_count >= UNITS_EACH;
        match (is_known(&self.alone), is_known(&self.together)) {
            (false, _) => 1,
            (true, false) => most,
            (true, true) if self.together.slowness() <= self.alone.slowness() => most,
            (true, true) => 1,
        }
    }

    /// Takes note of units that were just measured.
    pub(super) fn push(
        &mut self,
        lanes: &[&mut Lane],
        report: &AbReport,
        decide: &dyn Decide,
        units_count: usize,
        seconds: f64,
    ) {
        let way = if units_count == 1 { &mut self.alone } else { &mut self.together };
        let is_open = way.units_count < UNITS_EACH && lanes.iter().all(|lane| lane.plan.rounds > 0);
        if !is_open {
            return;
        }
        way.units_count += units_count;
        way.seconds += seconds;
        for lane in lanes {
            let units = &report.workloads[lane.index].units;
            let latest = &units[units.len().saturating_sub(units_count)..];
            way.units.entry(lane.index).or_default().extend_from_slice(latest);
        }
        if way.units_count >= UNITS_EACH {
            let noises = way.units.values().filter_map(|units| decide.noise(units));
            way.noise = noises.map(|noise| noise.max(f64::MIN_POSITIVE).ln()).sum();
        }
    }
}

impl Way {
    /// ln of the time to a given precision, summed over workloads.
    fn slowness(&self) -> f64 {
        self.noise + self.units.len() as f64 * (self.seconds / self.units_count.max(1) as f64).ln()
    }
}
