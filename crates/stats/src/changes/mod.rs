//! Change points of a series: the indices where its level moved and stayed moved.
//!
//! The series is cut into levels such that the loss of all points plus a penalty per change is least (optimal partitioning). A
//! point's loss is the square of its distance from the level in units of the noise, and bounded: beyond [`REACH`] every distance costs
//! the same. So one bad run, however bad, never makes a change, nor do two or three. Steps too small to matter are merged afterwards.
//!
//! Positive series are taken on a log scale, where a step is a ratio; others in units of their typical size. Values that are not
//! finite count as absent. The settings are few and were chosen on whole series of others, not on the series at hand (docs/changes.md).

mod describe;
mod levels;
mod noise;
mod partition;
mod scale;
#[cfg(test)]
mod tests;

use partition::Partition;
use scale::Scale;

/// Distance, in units of the noise, beyond which a point counts as a bad run: it costs no more however far it lies.
const REACH: f64 = 3.5;
/// Penalty of a change, times ln n. With [`REACH`] it sets the shortest level that is told from bad runs: with a thousand points, five.
const PENALTY: f64 = 4.0;
/// Steps below this are not reported: 1.5 %, as a difference of logarithms.
const STEP_MIN: f64 = 0.015;
/// Nor are steps below this many times the noise: a person does not see them.
const STEP_NOISE_MIN: f64 = 1.0;
/// Fewer points have no change.
const POINTS_MIN: usize = 6;

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The first point of the new level.
    pub index: usize,
    /// The earliest and the latest index that explain the points nearly as well.
    pub range: [usize; 2],
    /// The levels before and after: medians of the points between two changes.
    pub levels: [f64; 2],
    /// The new level over the old one; absent where a level is not positive.
    pub ratio: Option<f64>,
    /// The ratio's interval at 95 %, with the correlation of neighbouring points taken into account.
    pub interval: Option<[f64; 2]>,
}

/// The change points of a series, in order.
pub fn find_changes(values: &[f64]) -> Vec<Change> {
    let kept: Vec<usize> = (0..values.len()).filter(|i| values[*i].is_finite()).collect();
    let finite: Vec<f64> = kept.iter().map(|i| values[*i]).collect();
    let Some(scale) = Scale::fit(&finite) else { return Vec::new() };
    let points: Vec<f64> = finite.iter().map(|value| scale.apply(*value)).collect();
    let mut changes = changes_of_points(&points, scale);
    for change in &mut changes {
        change.index = kept[change.index];
        change.range = change.range.map(|index| kept[index]);
    }
    changes
}

fn changes_of_points(points: &[f64], scale: Scale) -> Vec<Change> {
    if points.len() < POINTS_MIN {
        return Vec::new();
    }
    let noise = noise::estimate(points);
    let mut partition = Partition::new(noise, points.len());
    for point in points {
        partition.push(*point);
    }
    let levels =
        levels::merge_small_steps(points, &partition.changes(), STEP_MIN.max(STEP_NOISE_MIN * noise));
    describe::changes(points, &levels, noise, scale)
}
