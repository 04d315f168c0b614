//! The size of each change with its interval, and the range of indices where it may lie.

use super::levels::Level;
use super::scale::Scale;
use super::{Change, REACH, noise};
use crate::{MEDIAN_VARIANCE, robust_sd, student_t_975};

/// Indices count as possible while the points are at most this much less likely than at the best one, as a difference of twice the
/// log-likelihood: 2 ln 20, one twentieth.
const RANGE_LOSS: f64 = 5.991;

pub(super) fn changes(points: &[f64], levels: &[Level], noise: f64, scale: Scale) -> Vec<Change> {
    let residuals: Vec<f64> = levels
        .iter()
        .flat_map(|level| points[level.from..level.to].iter().map(|point| point - level.middle))
        .collect();
    let inflation = noise::inflation(&residuals, noise);
    let describe = |pair: &[Level]| {
        let [before, after] = [pair[0], pair[1]];
        let difference = after.middle - before.middle;
        let half_width = half_width(points, [before, after], noise, inflation);
        let levels = [before, after].map(|level| scale.invert(level.middle));
        let ratio = |difference: f64| match scale {
            Scale::Log => difference.exp(),
            Scale::Linear { .. } => (before.middle + difference) / before.middle,
        };
        let is_ratio = levels.iter().all(|level| *level > 0.0);
        Change {
            index: after.from,
            range: range(points, [before, after], noise, inflation),
            levels,
            ratio: is_ratio.then(|| ratio(difference)),
            interval: is_ratio.then(|| [ratio(difference - half_width), ratio(difference + half_width)]),
        }
    };
    levels.windows(2).map(describe).collect()
}

/// Half of the interval of the difference of two medians.
fn half_width(points: &[f64], levels: [Level; 2], noise: f64, inflation: f64) -> f64 {
    let variance = |level: Level| {
        let own = robust_sd(&points[level.from..level.to]).unwrap_or(noise);
        // A short level shows little of its scatter.
        let sd = if level.to - level.from < 2 * SCATTER_POINTS_MIN { own.max(noise) } else { own };
        MEDIAN_VARIANCE * sd * sd * inflation / (level.to - level.from) as f64
    };
    let shorter = levels.map(|level| level.to - level.from).into_iter().min().unwrap_or(1);
    let degrees = (shorter as f64 - 1.0).max(3.0);
    student_t_975(degrees) * levels.map(variance).iter().sum::<f64>().sqrt()
}

/// Points that show their own scatter.
const SCATTER_POINTS_MIN: usize = 10;

/// The indices at which a cut between the two levels explains the points nearly as well as at the best one.
fn range(points: &[f64], [before, after]: [Level; 2], noise: f64, inflation: f64) -> [usize; 2] {
    let loss = |point: f64, level: Level| (((point - level.middle) / noise).powi(2)).min(REACH * REACH);
    // Moving the cut behind a point gives that point to the level before.
    let gain = |point: &f64| loss(*point, before) - loss(*point, after);
    let costs = points[before.from..after.to].iter().scan(0.0, |sum, point| {
        *sum += gain(point);
        Some(*sum)
    });
    // The cost of a cut before point i + 1; both levels keep a point.
    let costs: Vec<f64> = costs.collect();
    let costs = &costs[..costs.len() - 1];
    let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
    let is_possible = |cost: &f64| *cost <= least + RANGE_LOSS * inflation;
    let index = |at: usize| before.from + at + 1;
    let earliest = costs.iter().position(is_possible).map_or(after.from, index);
    let latest = costs.iter().rposition(is_possible).map_or(after.from, index);
    [earliest.min(after.from), latest.max(after.from)]
}
