//! The rule of `gate --history`: does the newest run belong to the level of its series?
//!
//! One run beyond the level's noise is a doubt, not a finding: single runs go wrong. When four of the last five lie beyond it, the
//! level has become worse. A drift of small steps never has four such runs, because the level follows; so the newest points
//! together are also held against the level at the time it was accepted. A better level becomes the level by itself. A worse one
//! does not: it stays reported until somebody accepts it or it is gone.
//!
//! Values are compared as ratios, so only positive ones can be judged; others are left out.

use holdpoint_model::HistoryLevel;
use holdpoint_model::metric::Better;
use holdpoint_stats::{NORMAL, median, robust_sd};
use std::f64::consts::FRAC_PI_2;

/// The newest runs looked at together, and how many of them must lie beyond the noise: one of five may be wrong in either direction.
const WINDOW: usize = 5;
const WINDOW_BEYOND: usize = 4;
/// Runs of these that are back at the level end a worsening.
const WINDOW_BACK: usize = 3;
/// Points behind a level at most: older ones tell less of it.
pub(super) const LEVEL_POINTS: usize = 40;
/// Points behind a level at least.
const LEVEL_POINTS_MIN: usize = 10;
/// The same after a change, where the noise is known from before. Where somebody named the first one it is enough, and the noise is taken
/// to be as much wider as the median of so few is.
const CHANGED_POINTS_MIN: usize = 3;
/// The noise of a level: so many times its standard deviation, and at least this ratio (as a logarithm).
const FENCE_NOISE: f64 = 2.0;
const FENCE_MIN: f64 = 0.03;
/// Points that must together be worse than the accepted level to be a drift, and by how much at least.
const DRIFT_POINTS: usize = 20;
const DRIFT_MIN: f64 = 0.05;
/// Least standard deviation: 0.2 %. Rounded values repeat.
const NOISE_MIN: f64 = 0.002;

/// Where a run stands against the level of its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// So are most of the last runs: a better level.
    Improved,
    Inside,
    /// Worse than the noise allows, and not confirmed by other runs yet: so many of the last five.
    Beyond {
        count: usize,
    },
    /// So are most of the last runs: a worse level.
    Worse,
    /// The newest points together are worse than the level that was accepted.
    Drifted,
}

/// The consequence of a worse level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnWorse {
    /// It stays worse: the level is kept.
    Keep,
    /// Somebody accepts it at once: it is the new level.
    Accept,
}

/// Median and noise of a level, on the scale of the rule.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reference {
    middle: f64,
    /// Noise towards worse and towards better: times are skewed, and the noise of both sides together would be too little for one.
    noise: [f64; 2],
    points_count: usize,
}

impl Reference {
    fn of(points: &[f64]) -> Option<Self> {
        let middle = median(points)?;
        let whole = robust_sd(points)?.max(NOISE_MIN);
        let side = |sign: f64| {
            let deviations: Vec<f64> = points
                .iter()
                .map(|point| sign * (point - middle))
                .filter(|deviation| *deviation >= 0.0)
                .collect();
            median(&deviations).map_or(whole, |deviation| (NORMAL * deviation).max(whole))
        };
        Some(Self { middle, noise: [side(1.0), side(-1.0)], points_count: points.len() })
    }

    /// The worst point that is noise, where a worsening is at least so large.
    fn fence(self, step_min: f64) -> f64 {
        self.middle + step_min.max(FENCE_NOISE * self.noise[0])
    }

    /// The best one.
    fn floor(self) -> f64 {
        self.middle - FENCE_MIN.max(FENCE_NOISE * self.noise[1])
    }
}

/// A series under the rule, point by point.
#[derive(Clone, Debug)]
pub(crate) struct HistoryRule {
    better: Better,
    /// Logarithms, turned such that more is worse.
    points: Vec<f64>,
    /// The first point of the present level.
    start: usize,
    /// Whether somebody accepted it, and so named its first point.
    is_accepted: bool,
    /// Noise of the level before it.
    noise_before: Option<[f64; 2]>,
    /// The level that the present points are worse than, or have come back to.
    kept: Option<Reference>,
    has_come_back: bool,
}

impl HistoryRule {
    pub fn new(better: Better) -> Self {
        Self {
            better,
            points: Vec::new(),
            start: 0,
            is_accepted: false,
            noise_before: None,
            kept: None,
            has_come_back: false,
        }
    }

    /// The level that the points so far expect of the next one; absent while they are too few.
    pub fn level(&self) -> Option<HistoryLevel> {
        let reference = self.reference()?;
        let drift = self.accepted_reference();
        let newest = self.points.len().saturating_sub(DRIFT_POINTS - 1).max(self.start);
        let value = |point: f64| (self.better.sign() * point).exp();
        Some(HistoryLevel {
            better: self.better,
            level: value(reference.middle),
            fence: value(reference.fence(FENCE_MIN)),
            floor: value(reference.floor()),
            points_count: reference.points_count,
            accepted_level: drift.map(|at| value(at.middle)),
            drift_fence: drift.map(|at| value(at.fence(DRIFT_MIN))),
            newest: self.points[newest..].iter().map(|point| value(*point)).collect(),
            tolerance: None,
        })
    }

    /// How many of the points that could be judged lie before the present level.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// Adds a run and tells where it stands; absent where the points before were too few or the value cannot be judged.
    pub fn push(&mut self, value: f64, on_worse: OnWorse) -> Option<Standing> {
        if !is_positive(value) {
            return None;
        }
        let level = self.level();
        let standing = level.map(|level| standing(&level, value));
        let reference = self.reference();
        self.points.push(self.better.sign() * value.ln());
        let begin = |count: usize| self.points.len().saturating_sub(count);
        match (standing, on_worse) {
            (Some(Standing::Improved), _) | (Some(Standing::Worse), OnWorse::Accept) => {
                self.start_at(begin(WINDOW), reference)
            }
            (Some(Standing::Drifted), OnWorse::Accept) => self.start_at(begin(DRIFT_POINTS), reference),
            (Some(Standing::Worse), OnWorse::Keep) => {
                self.kept = reference;
                self.has_come_back = false;
            }
            (Some(Standing::Inside), _)
                if self.kept.is_some() && !self.has_come_back && !self.is_mostly_beyond() =>
            {
                self.has_come_back = true;
                self.start = begin(WINDOW_BACK);
                self.is_accepted = false;
            }
            _ => {}
        }
        standing
    }

    /// Somebody accepted the level that the next point begins.
    pub fn accept(&mut self) {
        let reference = self.reference();
        self.start_at(self.points.len(), reference);
        self.is_accepted = true;
    }

    fn start_at(&mut self, start: usize, before: Option<Reference>) {
        self.noise_before = before.map(|reference| reference.noise).or(self.noise_before);
        self.start = start;
        self.is_accepted = false;
        self.kept = None;
        self.has_come_back = false;
    }

    /// The level before the newest runs, which are what is judged.
    fn reference(&self) -> Option<Reference> {
        let end = self.points.len().saturating_sub(WINDOW - 1);
        let from = self.start.max(end.saturating_sub(LEVEL_POINTS));
        // The run that somebody named is a level by itself: what follows is judged at once.
        let (end, least) =
            if self.is_accepted { (end.max(self.start + 1), 1) } else { (end, CHANGED_POINTS_MIN) };
        let points = self.points.get(from..end).unwrap_or_default();
        let is_own = points.len() >= LEVEL_POINTS_MIN;
        if let Some(kept) = self.kept.filter(|_| !(self.has_come_back && is_own)) {
            return Some(kept);
        }
        if is_own {
            return Reference::of(points);
        }
        let noise = self.noise_before.filter(|_| points.len() >= least)?;
        let own = Reference::of(points)?;
        let wider = match points.len() {
            few @ ..CHANGED_POINTS_MIN => (1.0 + FRAC_PI_2 / few as f64).sqrt(),
            _ => 1.0,
        };
        let noise = [0, 1].map(|side| own.noise[side].max(noise[side]) * wider);
        Some(Reference { noise, ..own })
    }

    /// The first points of the present level, once as many others have followed as a drift takes.
    fn accepted_reference(&self) -> Option<Reference> {
        let first = self.points.get(self.start..self.start + LEVEL_POINTS)?;
        (self.points.len() + 1 >= self.start + LEVEL_POINTS + DRIFT_POINTS).then(|| Reference::of(first))?
    }

    /// Whether too many of the newest runs for a return are worse than the level that is kept.
    fn is_mostly_beyond(&self) -> bool {
        let Some(kept) = self.kept else { return false };
        let newest = &self.points[self.points.len().saturating_sub(WINDOW)..];
        newest.iter().filter(|point| **point <= kept.fence(FENCE_MIN)).count() < WINDOW_BACK
    }
}

/// Where a value stands against a level: all that a judgement of it takes.
pub fn standing(level: &HistoryLevel, value: f64) -> Standing {
    let is_worse = |value: f64, than: f64| level.better.sign() * (value - than) > 0.0;
    let newest = || level.newest.iter().rev().copied();
    let window = || std::iter::once(value).chain(newest()).take(WINDOW);
    let beyond = window().filter(|value| is_worse(*value, level.fence)).count();
    if is_worse(value, level.fence) {
        return if beyond >= WINDOW_BEYOND { Standing::Worse } else { Standing::Beyond { count: beyond } };
    }
    let is_below = |value: f64| is_worse(level.floor, value);
    if is_below(value) && window().filter(|value| is_below(*value)).count() >= WINDOW_BEYOND {
        return Standing::Improved;
    }
    // The last few must agree: points from before a return to the level are no drift.
    let is_drift = |fence: f64| {
        [WINDOW, DRIFT_POINTS].into_iter().all(|count| {
            let together: Vec<f64> = std::iter::once(value).chain(newest()).take(count).collect();
            together.len() == count && median(&together).is_some_and(|middle| is_worse(middle, fence))
        })
    };
    if level.drift_fence.is_some_and(is_drift) { Standing::Drifted } else { Standing::Inside }
}

pub(super) fn is_positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}
