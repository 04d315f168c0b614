//! The same, one point at a time: a new point costs about a microsecond.

use super::partition::Partition;
use super::scale::Scale;
use super::{Change, POINTS_MIN, noise, report};

/// A series that grows.
///
/// Noise and scale are those of the points at the last rebuild, which comes when the series has grown by half: then, and at the
/// end of a series of such a length, the changes are those of [`super::find_changes`].
#[derive(Clone, Debug, Default)]
pub struct Online {
    values: Vec<f64>,
    /// The index of each value among all that were pushed: those that are not finite are left out.
    indices: Vec<usize>,
    pushed_count: usize,
    state: Option<State>,
}

#[derive(Clone, Debug)]
struct State {
    scale: Scale,
    points: Vec<f64>,
    partition: Partition,
    /// Points at which noise and scale are estimated anew.
    rebuild_at: usize,
}

impl Online {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the newest value.
    pub fn push(&mut self, value: f64) {
        self.pushed_count += 1;
        if !value.is_finite() {
            return;
        }
        self.values.push(value);
        self.indices.push(self.pushed_count - 1);
        match &mut self.state {
            Some(state) if self.values.len() < state.rebuild_at && state.scale.takes(value) => {
                let point = state.scale.apply(value);
                state.points.push(point);
                state.partition.push(point);
            }
            _ => self.state = build(&self.values),
        }
    }

    /// Where the present level began, as far as the points show it.
    pub fn level_start(&self) -> usize {
        let start = self.state.as_ref().map_or(0, |state| state.partition.last_start());
        self.indices.get(start).copied().unwrap_or(0)
    }

    /// The changes so far.
    pub fn changes(&self) -> Vec<Change> {
        let Some(state) = &self.state else { return Vec::new() };
        let mut changes = report(&state.points, &state.partition, state.scale);
        for change in &mut changes {
            change.index = self.indices[change.index];
            change.range = change.range.map(|index| self.indices[index]);
        }
        changes
    }
}

fn build(values: &[f64]) -> Option<State> {
    let count = values.len();
    let scale = Scale::fit(values)?;
    if count < POINTS_MIN {
        return None;
    }
    let points: Vec<f64> = values.iter().map(|value| scale.apply(*value)).collect();
    let mut partition = Partition::new(noise::estimate(&points), count);
    points.iter().for_each(|point| partition.push(*point));
    Some(State { scale, points, partition, rebuild_at: count + count.div_ceil(2) })
}
