//! Decisions that may be looked at after every unit: slower than a tolerance, not slower, faster, or not known yet.
//!
//! A unit is a pair of processes, base and head, measured side by side in random order; it gives one number,
//! x = ln(head time / base time). Where starting them takes long, several units have the same pair: then a call of slower or faster
//! needs [`PAIRS_LEAST`] pairs that say so, since what sticks to one process counts again with each of its units; and where pairs
//! differ, each counts once. Evidence is kept as e-values: nonnegative, expected to be at most 1 as long as the null
//! hypothesis holds, given the past. Such a process ever reaches 1/α with a probability of at most α (Ville), so
//! there is no penalty for looking often and stopping when the answer is clear, which is what breaks every p-value.
//! Going back: Wald (sequential analysis), Robbins (mixtures), Shafer and Vovk (testing by betting), Ramdas, Grünwald,
//! Howard, Waudby-Smith and others (e-processes, confidence sequences).
//!
//! The error rates hold if, given the past, x of unchanged code is as likely to be +a as -a. Fresh processes,
//! random order and equal treatment of both sides make it so; see [`bets`](self::BetProcess) for why that is enough.

mod bets;
mod interval;
mod pairs;
mod plan;
mod scale;
mod sign;
mod suite;

pub use bets::Evidence;
pub use interval::Interval;
pub use pairs::PAIRS_LEAST;
pub use plan::{ALARM_RATE, InvalidPlan, MISS_RATE, Plan};
pub(crate) use sign::beyond_count_min;
pub use sign::{SignProcess, ln_e_of_signs};
pub use suite::e_bh;

use pairs::Pairs;
use scale::Scale;

/// The evidence on a workload so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    Undecided,
    /// Not slower than the tolerance; it may still turn out to be faster.
    NotSlower,
    /// Faster than the tolerance: head takes less than `1 / (1 + tolerance)` of base's time.
    Faster,
    Slower,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Unit {
    x: f64,
    /// The scale that its bets were made with.
    scale: f64,
    /// Whether its pair of processes was fresh.
    is_fresh: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sequential {
    plan: Plan,
    decision: Decision,
    scale: Scale,
    /// Units in order.
    units: Vec<Unit>,
    slower: Evidence,
    not_slower: Evidence,
    faster: Evidence,
    slower_pairs: Pairs,
    faster_pairs: Pairs,
}

impl Sequential {
    /// No units yet.
    pub fn new(plan: Plan) -> Result<Self, InvalidPlan> {
        plan.check()?;
        Ok(Self {
            plan,
            decision: Decision::Undecided,
            scale: Scale::new(plan.line()),
            units: Vec::new(),
            slower: Evidence::default(),
            not_slower: Evidence::default(),
            faster: Evidence::default(),
            slower_pairs: Pairs::default(),
            faster_pairs: Pairs::default(),
        })
    }

    /// One more unit, of a pair of processes of its own.
    pub fn push(&mut self, x: f64) -> Decision {
        self.push_from(true, x)
    }

    /// One more unit, `x = ln(head time / base time)`, of a pair of processes that is fresh or had the last one; what is known now. No number is no evidence: it changes nothing.
    ///
    /// Slower and Faster are final. `NotSlower` is an answer to stop at; going on may turn it into Faster, or into Slower
    /// where it was one of the misses, and leaves it open while the median is beyond the line. None costs error rate, since each line
    /// of evidence keeps its own.
    pub fn push_from(&mut self, is_fresh: bool, x: f64) -> Decision {
        if !x.is_finite() {
            return self.decision();
        }
        let (line, scale) = (self.plan.line(), self.scale.get());
        self.slower.push(x - line, scale);
        self.not_slower.push(line - x, scale);
        self.faster.push(-line - x, scale);
        self.slower_pairs.push(is_fresh, x - line, scale);
        self.faster_pairs.push(is_fresh, -line - x, scale);
        self.scale.push(x);
        self.units.push(Unit { x, scale, is_fresh });
        // Evidence grows only by units beyond its line, so only there can it have become enough.
        self.decision = match self.decision {
            Decision::Slower | Decision::Faster => self.decision,
            _ if x > line && self.e_to_call(Decision::Slower) >= self.plan.alarm_e() => Decision::Slower,
            _ if x < -line && self.e_to_call(Decision::Faster) >= self.plan.alarm_e() => Decision::Faster,
            Decision::Undecided if x < line && self.not_slower.e() >= self.plan.pass_e() => {
                Decision::NotSlower
            }
            before => before,
        };
        self.decision()
    }

    pub fn decision(&self) -> Decision {
        let looks_slower = || self.scale.median().is_some_and(|middle| middle > self.plan.line());
        match self.decision {
            Decision::NotSlower if looks_slower() => Decision::Undecided,
            decision => decision,
        }
    }

    /// The evidence by which head may be called slower or faster; input for [`e_bh`]. None as long as too few pairs of processes say so.
    pub fn e_to_call(&self, to: Decision) -> f64 {
        let (evidence, pairs) = match to {
            Decision::Slower => (&self.slower, &self.slower_pairs),
            Decision::Faster => (&self.faster, &self.faster_pairs),
            Decision::Undecided | Decision::NotSlower => return 0.0,
        };
        if pairs.count() < PAIRS_LEAST { 0.0 } else { pairs.e(evidence) }
    }

    /// Pairs of processes that say slower, or faster.
    pub(crate) fn pairs_count(&self, to: Decision) -> u32 {
        match to {
            Decision::Slower => self.slower_pairs.count(),
            Decision::Faster => self.faster_pairs.count(),
            Decision::Undecided | Decision::NotSlower => 0,
        }
    }

    /// Whether more pairs of processes are what is missing for a call of slower or faster: all else is there, or they differ.
    pub fn lacks_pairs(&self) -> bool {
        let is_final = matches!(self.decision, Decision::Slower | Decision::Faster);
        !is_final && (self.pairs_differ() || self.slower.e().max(self.faster.e()) >= self.plan.alarm_e())
    }

    /// Whether processes serve several units, and some pairs of them lie beyond a line where others do not.
    pub fn pairs_differ(&self) -> bool {
        let differ = self.slower_pairs.differ() || self.faster_pairs.differ();
        differ && self.units.iter().any(|unit| !unit.is_fresh)
    }

    /// After each unit the shares of what it takes to call head slower, not slower and faster, where a call takes evidence of
    /// `call_e` and [`PAIRS_LEAST`] pairs of processes: 1 is enough.
    pub fn growth(&self, call_e: f64) -> Vec<[f64; 3]> {
        let Ok(mut known) = Self::new(self.plan) else { return Vec::new() };
        let share = |e: f64, needed: f64| (e.ln() / needed.ln()).max(0.0);
        let after = |unit: &Unit| {
            known.push_from(unit.is_fresh, unit.x);
            let pairs = |to| f64::from(known.pairs_count(to)) / f64::from(PAIRS_LEAST);
            [
                share(known.slower_pairs.e(&known.slower), call_e).min(pairs(Decision::Slower)),
                share(known.e_not_slower(), self.plan.pass_e()),
                share(known.faster_pairs.e(&known.faster), call_e).min(pairs(Decision::Faster)),
            ]
        };
        self.units.iter().map(after).collect()
    }

    /// The units in order: whether the pair of processes was fresh, and x.
    pub fn units(&self) -> impl Iterator<Item = (bool, f64)> + '_ {
        self.units.iter().map(|unit| (unit.is_fresh, unit.x))
    }

    /// The units' numbers, in order.
    pub fn xs(&self) -> impl Iterator<Item = f64> + '_ {
        self.units.iter().map(|unit| unit.x)
    }

    pub fn units_count(&self) -> usize {
        self.units.len()
    }

    /// The units' numbers, from the least.
    pub fn sorted(&self) -> &[f64] {
        self.scale.sorted()
    }

    /// Evidence that head is slower than the tolerance.
    pub fn e_slower(&self) -> f64 {
        self.slower.e()
    }

    /// Shares of the evidence that is needed to call head slower, and to call it not slower: 1 is enough.
    pub fn shares(&self) -> [f64; 2] {
        let share = |e: f64, needed: f64| (e.ln() / needed.ln()).clamp(0.0, 1.0);
        [share(self.e_slower(), self.plan.alarm_e()), share(self.e_not_slower(), self.plan.pass_e())]
    }

    /// Evidence that head is not slower than the tolerance.
    pub fn e_not_slower(&self) -> f64 {
        self.not_slower.e()
    }

    /// Evidence that head is faster than the tolerance.
    pub fn e_faster(&self) -> f64 {
        self.faster.e()
    }

    /// The median of head's time over base's.
    pub fn median_ratio(&self) -> Option<f64> {
        self.scale.median().map(f64::exp)
    }

    /// An interval for the median ratio that covers it at all times together with probability `confidence`, under the
    /// one assumption that the median stays the same: all ratios that signs alone do not yet speak against. It is cheap; what
    /// decides is [`Self::interval`].
    /// Absent while there are too few units for any interval.
    pub fn median_ratio_interval(&self, confidence: f64) -> Option<[f64; 2]> {
        median_interval(self.scale.sorted(), confidence).map(|interval| interval.map(f64::exp))
    }

    /// The smallest slowdown that would have been called by now, had it been there beside the noise that was: 0.03 is
    /// 3 %. What an undecided workload does rule out. Absent while no slowdown at all could have been called.
    pub fn smallest_visible_slowdown(&self) -> Option<f64> {
        let middle = self.scale.median()?;
        let line = self.plan.line();
        let would_be_called = |change: f64| {
            let (mut evidence, mut pairs) = (Evidence::default(), Pairs::default());
            self.units.iter().any(|unit| {
                let distance = unit.x - middle + change - line;
                evidence.push(distance, unit.scale);
                pairs.push(unit.is_fresh, distance, unit.scale);
                pairs.count() >= PAIRS_LEAST && pairs.reach(&evidence, self.plan.alarm_e())
            })
        };
        // A larger change is worth more at every unit, so doubling and halving find the border.
        let mut high = (1..=SLOWDOWN_DOUBLINGS)
            .map(|i| SLOWDOWN_STEP * f64::from(2_u32.pow(i)))
            .find(|change| would_be_called(*change))?;
        let mut low = 0.0;
        while high - low > SLOWDOWN_STEP {
            let change = f64::midpoint(low, high);
            if would_be_called(change) { high = change } else { low = change }
        }
        Some(high.exp_m1())
    }
}

/// 0.01 %: finer than anybody asks.
const SLOWDOWN_STEP: f64 = 1e-4;
/// Up to e^6.5, 700 times slower; what is not seen at that is not seen.
const SLOWDOWN_DOUBLINGS: u32 = 16;

/// An interval for the median of `sorted` values, valid at every count at once: each end gets half of the error, and is
/// where the count of values beyond it is just worth that.
pub fn median_interval(sorted: &[f64], confidence: f64) -> Option<[f64; 2]> {
    let beyond = beyond_count_min(sorted.len(), 2.0 / (1.0 - confidence))?;
    let low = sorted.len().checked_sub(beyond)?;
    Some([*sorted.get(low)?, *sorted.get(beyond.checked_sub(1)?)?])
}
