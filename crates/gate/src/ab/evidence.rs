//! Statistics of a workload's units.

use super::times;
use holdpoint_model::ab::AbEvidence;
use holdpoint_model::{AbWorkload, PairRound};
use holdpoint_stats as stats;
use holdpoint_stats::classic;
use holdpoint_stats::sequential::Sequential;

/// Of the intervals shown.
pub const CONFIDENCE: f64 = 0.95;

/// Both sides' times per call in milliseconds, a block for each unit.
pub(crate) struct Blocks {
    pub(crate) base: Vec<Vec<f64>>,
    pub(crate) head: Vec<Vec<f64>>,
}

impl Blocks {
    pub(super) fn new(workload: &AbWorkload) -> Self {
        let side = |side| times::blocks_ms(&workload.units, side, workload.calls_per_sample);
        Self { base: side(holdpoint_model::SideName::Base), head: side(holdpoint_model::SideName::Head) }
    }
}

/// Absent without units, or when a side has no samples.
pub(super) fn evidence(workload: &AbWorkload, blocks: &Blocks, known: &Sequential) -> Option<AbEvidence> {
    let (base, head) = (times::medians(&blocks.base), times::medians(&blocks.head));
    let rounds = || workload.units.iter().flat_map(|unit| &unit.rounds);
    let left_out = |round: &&PairRound| round.left_out;
    Some(AbEvidence {
        ratio: known.median_ratio()?,
        ratio_interval: known.median_ratio_interval(CONFIDENCE),
        e_slower: known.e_slower(),
        e_not_slower: known.e_not_slower(),
        e_faster: known.e_faster(),
        smallest_visible_slowdown: known.smallest_visible_slowdown(),
        unit_sd: unit_sd(known),
        units_count: count(known.units_count()),
        rounds_count: count(rounds().count()),
        rounds_left_out: count(rounds().filter(left_out).count()),
        base: times::side_times(&blocks.base)?,
        head: times::side_times(&blocks.head)?,
        cliffs_delta: classic::cliffs_delta(&head, &base),
        hedges_g: classic::hedges_g(&head, &base),
        mann_whitney_p: classic::mann_whitney(&head, &base).map(|test| test.p),
    })
}

/// The evidence about a metric, beside the workload's times.
pub(super) fn metric_evidence(times: &AbEvidence, known: &Sequential) -> Option<AbEvidence> {
    Some(AbEvidence {
        ratio: known.median_ratio()?,
        ratio_interval: known.median_ratio_interval(CONFIDENCE),
        e_slower: known.e_slower(),
        e_not_slower: known.e_not_slower(),
        e_faster: known.e_faster(),
        smallest_visible_slowdown: known.smallest_visible_slowdown(),
        unit_sd: unit_sd(known),
        units_count: count(known.units_count()),
        cliffs_delta: None,
        hedges_g: None,
        mann_whitney_p: None,
        ..times.clone()
    })
}

/// Robust: the median absolute deviation as a standard deviation. One unit does not tell how far units vary.
fn unit_sd(known: &Sequential) -> Option<f64> {
    stats::robust_sd(known.sorted()).filter(|_| known.units_count() > 1)
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
