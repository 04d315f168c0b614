//! Chooses the tiles of the expensive path under a budget, level by level. Must not look at pixels, and must give
//! the same answer for the same numbers everywhere: ties go to the lower id.

mod greedy;
mod hysteresis;
mod split;

pub use greedy::{Greedy, greedy};
pub(crate) use hysteresis::Hysteresis;
pub use split::{Split, SplitInput, TwoStage, two_stage};

use crate::error::OpError;

/// Slack of every budget comparison and floor of every denominator.
pub(crate) const EPS: f64 = 1e-9;

/// Marks an unused slot of a fixed-size buffer.
pub(crate) const UNUSED: i64 = -1;

pub(crate) fn check_budget(name: &'static str, value: f64) -> Result<(), OpError> {
    if value.is_finite() && value >= 0.0 { Ok(()) } else { Err(OpError::Budget { name, value }) }
}

fn check_finite(name: &'static str, values: &[f64]) -> Result<(), OpError> {
    match values.iter().position(|v| !v.is_finite()) {
        Some(index) => Err(OpError::NotFinite { name, index }),
        None => Ok(()),
    }
}

pub(crate) fn check_length(name: &'static str, expected: usize, got: usize) -> Result<(), OpError> {
    if expected == got { Ok(()) } else { Err(OpError::Length { name, expected, got }) }
}

fn ratio(utility: f64, cost: f64) -> f64 {
    utility / if cost <= EPS { EPS } else { cost }
}

/// Sorts ids by score, best first, ties by lower id. Scores are finite, so the order is total.
fn sort_by_score(ids: &mut [u32], score: impl Fn(u32) -> f64) {
    ids.sort_unstable_by(|&a, &b| score(b).total_cmp(&score(a)).then(a.cmp(&b)));
}

/// `selected` padded with [`UNUSED`] to `kmax`, reusing `buffer`.
fn fill_kmax_buffer(buffer: &mut Vec<i64>, selected: &[u32], kmax: usize) {
    buffer.clear();
    buffer.extend(selected.iter().take(kmax).map(|&id| i64::from(id)));
    buffer.resize(kmax, UNUSED);
}
