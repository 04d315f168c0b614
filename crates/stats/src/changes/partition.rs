//! The best cut of a series into levels, one point at a time.
//!
//! Levels lie on a grid. Beside each level stands the least cost of all cuts whose last level it is, and where that level began. A
//! new point either continues a level or starts one anew behind the best cut so far, for the penalty.
//!
//! The loss is bounded, so a point costs the bound at every level out of its reach. With the bound taken off all costs, these do not
//! change, and only the levels within reach are visited: some sixty of them, however many there are. A level that was not visited
//! need not be compared with a start in between: starting it later, at the next visit, costs the same or less.

use super::{PENALTY, REACH};

/// Levels per unit of noise.
const LEVELS_PER_NOISE: f64 = 8.0;
/// Levels on either side of a point that are within its reach.
const REACH_LEVELS: i64 = (REACH * LEVELS_PER_NOISE) as i64;
/// Points further than this from the first one, in units of the noise, count as being there: a limit on the levels kept. With the
/// least noise this is a factor of 3 600.
const PLACE_MAX: f64 = 4_096.0;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Cut {
    /// Cost of the best cut, less the bound for each point.
    cost: f64,
    /// The first point of its last level.
    start: usize,
}

/// No point yet: every level is possible from the first point on.
const UNCUT: Cut = Cut { cost: 0.0, start: 0 };

#[derive(Clone, Debug)]
pub(super) struct Partition {
    noise: f64,
    penalty: f64,
    /// The value of level 0: the first point.
    origin: Option<f64>,
    /// The number of the first of `cuts`.
    first_level: i64,
    cuts: Vec<Cut>,
    best: Cut,
    /// For each point: where the last level began in the best cut that ends there.
    starts: Vec<usize>,
}

impl Partition {
    /// An empty one for a series of about so many points.
    pub(super) fn new(noise: f64, points_count: usize) -> Self {
        Self {
            noise,
            penalty: PENALTY * (points_count.max(2) as f64).ln(),
            origin: None,
            first_level: 0,
            cuts: Vec::new(),
            best: UNCUT,
            starts: Vec::with_capacity(points_count),
        }
    }

    pub(super) fn push(&mut self, point: f64) {
        let index = self.starts.len();
        let origin = *self.origin.get_or_insert(point);
        let place = ((point - origin) / self.noise).clamp(-PLACE_MAX, PLACE_MAX);
        let nearest = (place * LEVELS_PER_NOISE).round() as i64;
        let anew = Cut { cost: self.best.cost + self.penalty, start: index };
        let (low, high) = (nearest - REACH_LEVELS, nearest + REACH_LEVELS);
        self.cover(low, high);
        let from = (low - self.first_level) as usize;
        let to = (high - self.first_level) as usize;
        for (level, cut) in (low..).zip(&mut self.cuts[from..=to]) {
            if anew.cost < cut.cost {
                *cut = anew;
            }
            let distance = place - level as f64 / LEVELS_PER_NOISE;
            cut.cost += (distance * distance - REACH * REACH).min(0.0);
            if cut.cost < self.best.cost {
                self.best = *cut;
            }
        }
        self.starts.push(self.best.start);
    }

    /// The first points of all levels but the first.
    pub(super) fn changes(&self) -> Vec<usize> {
        let mut changes = Vec::new();
        let mut start = self.starts.last().copied().unwrap_or(0);
        while start > 0 {
            changes.push(start);
            start = self.starts[start - 1];
        }
        changes.reverse();
        changes
    }

    /// Makes room for these levels.
    fn cover(&mut self, low: i64, high: i64) {
        if self.cuts.is_empty() {
            self.first_level = low;
        }
        if low < self.first_level {
            // More than is missing, so that a falling series does not move everything at every point.
            let more = (self.first_level - low) as usize + self.cuts.len() / 2;
            self.cuts.splice(0..0, std::iter::repeat_n(UNCUT, more));
            self.first_level -= more as i64;
        }
        let count = (high - self.first_level + 1) as usize;
        if count > self.cuts.len() {
            self.cuts.resize(count, UNCUT);
        }
    }
}
