//! The levels between changes, and the merging of those that hardly differ.

/// A stretch of points with one level, their median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Level {
    pub(super) from: usize,
    /// Behind the last point.
    pub(super) to: usize,
    pub(super) middle: f64,
}

/// The levels between the changes; a step below `step_min` or beside a level of a few points is none.
pub(super) fn merge_small_steps(points: &[f64], changes: &[usize], step_min: f64) -> Vec<Level> {
    let ends = changes.iter().copied().chain([points.len()]);
    let starts = [0].into_iter().chain(changes.iter().copied());
    let mut levels: Vec<Level> = starts.zip(ends).map(|(from, to)| level(points, from, to)).collect();
    let step = |pair: &[Level]| Step {
        is_lasting: pair.iter().all(|level| level.to - level.from >= LEVEL_POINTS_MIN),
        size: (pair[1].middle - pair[0].middle).abs(),
    };
    loop {
        let steps = levels.windows(2).map(step).enumerate();
        let Some((at, least)) = steps.min_by(|a, b| a.1.cmp(&b.1)) else { return levels };
        if least.is_lasting && least.size >= step_min {
            return levels;
        }
        levels[at] = level(points, levels[at].from, levels[at + 1].to);
        levels.remove(at + 1);
    }
}

/// Shorter levels are bad runs; at the end of a series two of them would else be one.
const LEVEL_POINTS_MIN: usize = 4;

/// A step between two levels. The first to be merged is the smallest beside a short level, then the smallest of all.
struct Step {
    is_lasting: bool,
    size: f64,
}

impl Step {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.is_lasting.cmp(&other.is_lasting).then(self.size.total_cmp(&other.size))
    }
}

fn level(points: &[f64], from: usize, to: usize) -> Level {
    Level { from, to, middle: crate::median(&points[from..to]).unwrap_or(f64::NAN) }
}
