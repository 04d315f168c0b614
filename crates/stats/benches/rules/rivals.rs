//! Other people's rules on what they see: a block of base, then a block of head.

use holdpoint_stats::classic::{cliffs_delta, mann_whitney, welch};
use holdpoint_stats::{mean, median};

use crate::noise::{Machine, Side};

/// The originals' count; nvbench takes more or fewer by its own criterion.
pub const SAMPLES_PER_SIDE: usize = 100;

/// Times of both sides, sorted.
pub struct Blocks {
    base: Vec<f64>,
    head: Vec<f64>,
}

impl Blocks {
    pub fn new(mut base: Vec<f64>, mut head: Vec<f64>) -> Self {
        base.sort_by(f64::total_cmp);
        head.sort_by(f64::total_cmp);
        Self { base, head }
    }
}

pub fn measure(machine: &mut Machine, change: f64) -> Blocks {
    let mut block = |side, change: f64| -> Vec<f64> {
        let process = machine.start(side);
        (0..SAMPLES_PER_SIDE).map(|_| (machine.sample(&process) + change).exp()).collect()
    };
    Blocks::new(block(Side::Base, 0.0), block(Side::Head, change))
}

/// A rule: is head called slower?
pub type Rule = fn(&Blocks) -> Option<bool>;

/// Names and rules, in the order of the tables.
pub const ALL: [(&str, Rule); 7] = [
    ("means −3 %", means_differ_by_3_percent),
    ("CIs apart, δ ≥ 0.3", intervals_apart_with_effect),
    ("bootstrap CIs apart", intervals_apart),
    ("Mann-Whitney", mann_whitney_rejects),
    ("Welch t", welch_rejects),
    ("nvbench", nvbench),
    ("nvbench robust", nvbench_robust),
];

/// The first seed's: `(base - head) / base < -3 %` on means.
fn means_differ_by_3_percent(blocks: &Blocks) -> Option<bool> {
    let (base, head) = (mean(&blocks.base)?, mean(&blocks.head)?);
    Some((base - head) / base * 100.0 < -3.0)
}

/// The second seed's, with the sign as its documents mean it.
fn intervals_apart_with_effect(blocks: &Blocks) -> Option<bool> {
    Some(intervals_apart(blocks)? && cliffs_delta(&blocks.head, &blocks.base)? >= 0.3)
}

/// Ranks (from 0) of the 95 % percentile bootstrap of the median of 100 values, with as many resamples as there are: a
/// drawn median lies below the k-th value with the probability that half of 100 draws do, so the ends are binomial.
const RANKS: [usize; 2] = [40, 59];

fn intervals_apart(blocks: &Blocks) -> Option<bool> {
    Some(blocks.head.get(RANKS[0])? > blocks.base.get(RANKS[1])?)
}

fn mann_whitney_rejects(blocks: &Blocks) -> Option<bool> {
    let test = mann_whitney(&blocks.head, &blocks.base)?;
    Some(test.p < 0.05 && median(&blocks.head)? > median(&blocks.base)?)
}

fn welch_rejects(blocks: &Blocks) -> Option<bool> {
    let test = welch(&blocks.head, &blocks.base)?;
    Some(test.p < 0.05 && test.t > 0.0)
}

/// `nvbench_compare`: slow when the means differ by more than the smaller relative standard deviation.
fn nvbench(blocks: &Blocks) -> Option<bool> {
    let noise = |values| holdpoint_stats::coefficient_of_variation(values);
    let (base, head) = (mean(&blocks.base)?, mean(&blocks.head)?);
    Some((head - base) / base > noise(&blocks.base)?.min(noise(&blocks.head)?))
}

/// `nvbench-compare-robust`, default preset: each side's interval is [minimum, third quartile]; slow when head's lies above
/// base's with a gap of at least 0.5 %. Its confirmation by clock cycles is left out: there are no clocks here.
fn nvbench_robust(blocks: &Blocks) -> Option<bool> {
    let third_quartile = blocks.base.get((75 * (SAMPLES_PER_SIDE - 1) + 50) / 100)?;
    Some((blocks.head.first()? - third_quartile) / third_quartile >= 0.005)
}
