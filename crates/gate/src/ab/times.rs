//! Times of one side in blocks, and what is said about them. A block holds what was measured together: a unit, or a round
//! of a report.

use holdpoint_model::ab::SideTimes;
use holdpoint_model::{SideName, Unit};
use holdpoint_stats as stats;
use holdpoint_stats::classic::{Bootstrap, median_interval};

/// Values that the bootstrap draws from. Precision comes from the number of blocks, not of values; 400 order statistics
/// place a median within a quarter of a percent of ranks.
const VALUES_MAX: usize = 400;
/// A dozen medians beyond each end of a 95 % interval; the originals' 10 000 resamples of 20 000 samples would take seconds.
const RESAMPLES_COUNT: usize = 500;

/// One side's times per call in milliseconds, a block for each unit, each block in ascending order.
pub(crate) fn blocks_ms(units: &[Unit], side: SideName, calls_per_sample: u64) -> Vec<Vec<f64>> {
    let ns_per_ms = 1e6 * calls_per_sample.max(1) as f64;
    let block = |unit: &Unit| {
        let samples =
            unit.rounds.iter().flat_map(|round| round.left_ns(side, unit.clock, unit.skip as usize));
        sorted(samples.map(|ns| ns as f64 / ns_per_ms).collect())
    };
    units.iter().map(block).collect()
}

pub(crate) fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// Blocks must be in ascending order. Absent without a sample.
pub(crate) fn side_times(blocks: &[Vec<f64>]) -> Option<SideTimes> {
    // Sorted once: the functions of `stats` sort again, which costs little on what is sorted.
    let pooled = sorted(blocks.concat());
    Some(SideTimes {
        p50_ms: stats::median(&pooled)?,
        p50_interval_ms: interval(blocks),
        p95_ms: stats::percentile_floor(&pooled, 0.95)?,
        p99_ms: stats::percentile_floor(&pooled, 0.99)?,
        cv: stats::coefficient_of_variation(&pooled),
    })
}

/// The 95 % block-bootstrap interval of the median. Blocks must be in ascending order: of many values every
/// n-th is drawn from, with the same n in all blocks, so that each block keeps its weight.
pub(crate) fn interval(blocks: &[Vec<f64>]) -> Option<[f64; 2]> {
    let values_count: usize = blocks.iter().map(Vec::len).sum();
    let stride = values_count.div_ceil(VALUES_MAX).max(1);
    let thin = |block: &Vec<f64>| {
        let middle = block.get(block.len() / 2).filter(|_| block.len() <= stride);
        let strided = block.iter().skip((stride - 1) / 2).step_by(stride).filter(|_| middle.is_none());
        middle.into_iter().chain(strided).copied().collect()
    };
    let thinned: Vec<Vec<f64>> = blocks.iter().map(thin).collect();
    median_interval(&thinned, Bootstrap { resamples_count: RESAMPLES_COUNT, ..Bootstrap::default() })
}

/// The median of each block that holds anything.
pub(crate) fn medians(blocks: &[Vec<f64>]) -> Vec<f64> {
    blocks.iter().filter_map(|block| stats::median(block)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdpoint_stats::random::Random;

    #[test]
    fn drawing_from_a_part_gives_the_interval_of_the_whole() {
        let mut random = Random::new(5);
        let blocks: Vec<Vec<f64>> = (0..30)
            .map(|_| {
                let level = 10.0 + random.normal();
                sorted((0..400).map(|_| level + random.normal()).collect())
            })
            .collect();
        let settings = Bootstrap { resamples_count: RESAMPLES_COUNT, ..Bootstrap::default() };
        let (whole, part) = (median_interval(&blocks, settings).unwrap(), interval(&blocks).unwrap());
        let width = whole[1] - whole[0];
        assert!((0..2).all(|end| (whole[end] - part[end]).abs() < 0.1 * width), "{whole:?} {part:?}");
    }

    #[test]
    fn few_values_are_all_drawn_from() {
        let blocks: Vec<Vec<f64>> = (1..=101).map(|v| vec![f64::from(v)]).collect();
        let settings = Bootstrap { resamples_count: RESAMPLES_COUNT, ..Bootstrap::default() };
        assert_eq!(interval(&blocks), median_interval(&blocks, settings));
        assert_eq!(interval(&[vec![1.0]]), None);
    }
}
