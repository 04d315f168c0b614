//! Statistics of a workload's units.

use super::{Deciding, times};
use holdpoint_model::ab::{AbEvidence, NeededEvidence};
use holdpoint_model::{AbWorkload, PairRound};
use holdpoint_stats as stats;
use holdpoint_stats::classic;
use holdpoint_stats::sequential::{PAIRS_LEAST, Sequential};

/// Both sides' times per call in milliseconds, a block for each unit.
pub(crate) struct Blocks {
    pub(crate) base: Vec<Vec<f64>>,
    pub(crate) head: Vec<Vec<f64>>,
}

impl Blocks {
    pub(crate) fn new(workload: &AbWorkload) -> Self {
        let side = |side| times::blocks_ms(&workload.units, side, workload.calls_per_sample);
        Self { base: side(holdpoint_model::SideName::Base), head: side(holdpoint_model::SideName::Head) }
    }
}

/// Absent without units, or when a side has no samples.
pub(crate) fn evidence(
    workload: &AbWorkload,
    blocks: &Blocks,
    deciding: &Deciding,
    row: usize,
) -> Option<AbEvidence> {
    let (base, head) = (times::medians(&blocks.base), times::medians(&blocks.head));
    let rounds = || workload.units.iter().flat_map(|unit| &unit.rounds);
    let left_out = |round: &&PairRound| round.left_out;
    let times = AbEvidence {
        ratio: 1.0,
        ratio_interval: None,
        ratio_interval_rate: None,
        needed: None,
        growth: Vec::new(),
        e_slower: 1.0,
        e_not_slower: 1.0,
        e_faster: 1.0,
        smallest_visible_slowdown: None,
        unit_sd: None,
        units_count: 0,
        rounds_count: count(rounds().count()),
        rounds_left_out: count(rounds().filter(left_out).count()),
        base: times::side_times(&blocks.base)?,
        head: times::side_times(&blocks.head)?,
        cliffs_delta: classic::cliffs_delta(&head, &base),
        hedges_g: classic::hedges_g(&head, &base),
        mann_whitney_p: classic::mann_whitney(&head, &base).map(|test| test.p),
    };
    of_row(times, deciding, row)
}

/// The evidence about a metric, beside the workload's times.
pub(crate) fn metric_evidence(times: &AbEvidence, deciding: &Deciding, row: usize) -> Option<AbEvidence> {
    let times = AbEvidence { cliffs_delta: None, hedges_g: None, mann_whitney_p: None, ..times.clone() };
    of_row(times, deciding, row)
}

/// The numbers that the decision about a row is made of.
fn of_row(times: AbEvidence, deciding: &Deciding, row: usize) -> Option<AbEvidence> {
    let (known, plan) = (deciding.evidence(row)?, deciding.plan(row)?);
    let interval = deciding.interval(row);
    let needed = |call| NeededEvidence { call, pairs: PAIRS_LEAST, not_slower: plan.pass_e() };
    Some(AbEvidence {
        ratio: known.median_ratio()?,
        ratio_interval: interval.map(|interval| interval.ends),
        ratio_interval_rate: interval.map(|interval| interval.rate),
        needed: deciding.alarm_e(row).map(needed),
        growth: deciding.alarm_e(row).map(|alarm_e| known.growth(alarm_e)).unwrap_or_default(),
        e_slower: known.e_slower(),
        e_not_slower: known.e_not_slower(),
        e_faster: known.e_faster(),
        smallest_visible_slowdown: known.smallest_visible_slowdown(),
        unit_sd: unit_sd(known),
        units_count: count(known.units_count()),
        ..times
    })
}

/// Robust: the median absolute deviation as a standard deviation. One unit does not tell how far units vary.
fn unit_sd(known: &Sequential) -> Option<f64> {
    stats::robust_sd(known.sorted()).filter(|_| known.units_count() > 1)
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
