//! Whether measuring several units at the same time pays, by measurement: two units may slow down or disturb each other,
//! depending on the caches and memory that they share. What pays for most workloads may not for those that are left.

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
    /// By workload, with their seconds.
    units: BTreeMap<usize, (Vec<Unit>, f64)>,
    /// ln of the time to a given precision, by workload.
    slowness: BTreeMap<usize, f64>,
}

impl AtOnce {
    /// How many units of these workloads are measured next, `most` or one.
    pub(super) fn choose(&self, lanes: &[&mut Lane], most: usize) -> usize {
        let is_known = |way: &Way| way.units_count >= UNITS_EACH;
        let slowness = |way: &Way| lanes.iter().filter_map(|lane| way.slowness.get(&lane.index)).sum::<f64>();
        match (is_known(&self.alone), is_known(&self.together)) {
            (false, _) => 1,
            (true, false) => most,
            (true, true) if slowness(&self.together) <= slowness(&self.alone) => most,
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
    ) {
        let way = if units_count == 1 { &mut self.alone } else { &mut self.together };
        let is_open = way.units_count < UNITS_EACH && lanes.iter().all(|lane| lane.plan.rounds > 0);
        if !is_open {
            return;
        }
        way.units_count += units_count;
        for lane in lanes {
            let units = &report.workloads[lane.index].units;
            let latest = &units[units.len().saturating_sub(units_count)..];
            let (of_lane, seconds) = way.units.entry(lane.index).or_default();
            of_lane.extend_from_slice(latest);
            *seconds += lane.spent_s * units_count as f64;
        }
        if way.units_count >= UNITS_EACH {
            let slowness = |(index, (units, seconds)): (&usize, &(Vec<Unit>, f64))| {
                let noise = decide.noise(units)?.max(f64::MIN_POSITIVE);
                Some((*index, (noise * seconds).ln()))
            };
            way.slowness = way.units.iter().filter_map(slowness).collect();
        }
    }
}
