//! The interval that a decision is read from: the ratios that the evidence has not refuted.
//!
//! An end is found by asking the decision's own question at other lines: of those that head is surely beyond, it is the
//! farthest. A line nearer by is refuted as well, since evidence and pairs of processes only grow as the line comes closer, so
//! halving finds the border. The plan's own lines are asked first: an end lies on the side of them that the decision says.

use super::pairs::Pairs;
use super::{Decision, Evidence, PAIRS_LEAST, Sequential};

/// 0.001 %: how exactly an end is found.
const STEP: f64 = 1e-5;
/// Up to e^10: an end farther away is none.
const DOUBLINGS: u32 = 20;

/// A confidence interval that holds at all times together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Ratios of head's time to base's.
    pub ends: [f64; 2],
    /// How often each end may ever be wrong.
    pub rate: f64,
}

impl Sequential {
    /// The interval that the present decision is read from.
    pub fn interval(&self) -> Option<Interval> {
        self.interval_of(self.decision(), self.plan.alarm_e())
    }

    /// The interval that a decision is read from, where `alarm_e` is what it took to call a row: slower than the tolerance if it lies
    /// above it, not slower if below, faster if below `1 / (1 + tolerance)`; around the tolerance if undecided. Absent while there
    /// are too few units for any.
    pub fn interval_of(&self, decision: Decision, alarm_e: f64) -> Option<Interval> {
        let (needed, pairs_least) = match decision {
            Decision::Slower | Decision::Faster => (alarm_e, PAIRS_LEAST),
            Decision::NotSlower => (self.plan.pass_e(), 0),
            // Neither was enough.
            Decision::Undecided => (alarm_e.max(self.plan.pass_e()), PAIRS_LEAST),
        };
        let middle = self.scale.median()?;
        let mut low = self.refuted_farthest(1.0, needed, pairs_least)?;
        let mut high = -self.refuted_farthest(-1.0, needed, pairs_least)?;
        // The end that decided stands. The other one may contradict it where the level moved: then nothing is known of it.
        if decision != Decision::Slower {
            low = low.min(middle).min(high);
        }
        if matches!(decision, Decision::Slower | Decision::Undecided) {
            high = high.max(middle).max(low);
        }
        Some(Interval { ends: [low.exp(), high.exp()], rate: 1.0 / needed })
    }

    /// The largest line that `sign · x` is surely beyond.
    fn refuted_farthest(&self, sign: f64, needed: f64, pairs_least: u32) -> Option<f64> {
        let is_refuted = |at: f64| self.is_beyond(sign, at, needed, pairs_least);
        let line = self.plan.line();
        let (mut low, mut high) = if is_refuted(line) {
            let most = self.units.iter().map(|unit| sign * unit.x).fold(line, f64::max);
            (line, most)
        } else if is_refuted(-line) {
            (-line, line)
        } else {
            let mut high = -line;
            let steps = (1..=DOUBLINGS).map(|i| -line - STEP * f64::from(2_u32.pow(i)));
            let low = steps.into_iter().find(|at| is_refuted(*at) || (high = *at, false).1)?;
            (low, high)
        };
        while high - low > STEP {
            let middle = f64::midpoint(low, high);
            if is_refuted(middle) { low = middle } else { high = middle }
        }
        Some(low)
    }

    /// Whether the units have ever been evidence enough that `sign · x` lies beyond a line.
    fn is_beyond(&self, sign: f64, line: f64, needed: f64, pairs_least: u32) -> bool {
        let (mut evidence, mut pairs) = (Evidence::default(), Pairs::default());
        self.units.iter().any(|unit| {
            let distance = sign * unit.x - line;
            evidence.push(distance, unit.scale);
            pairs.push(unit.is_fresh, distance, unit.scale);
            let is_enough =
                if pairs_least == 0 { evidence.reaches(needed) } else { pairs.reach(&evidence, needed) };
            distance > 0.0 && pairs.count() >= pairs_least && is_enough
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequential::Plan;
    use proptest::prelude::*;

    fn sequential(units: &[(bool, f64)]) -> Sequential {
        let plan = Plan { workloads_count: 3, alarm_rate: 0.01, ..Plan::default() };
        let mut sequential = Sequential::new(plan).expect("a plan that makes sense");
        units.iter().for_each(|(is_fresh, x)| _ = sequential.push_from(*is_fresh, *x));
        sequential
    }

    fn units() -> impl Strategy<Value = Vec<(bool, f64)>> {
        prop::collection::vec((any::<bool>(), -0.03_f64..0.03), 1..60)
    }

    proptest! {
        #[test]
        fn the_interval_says_what_the_decision_says(units in units(), shift in -0.06_f64..0.06) {
            let units: Vec<_> = units.iter().map(|(is_fresh, x)| (*is_fresh, x + shift)).collect();
            let known = sequential(&units);
            let line = known.plan.line();
            let read = match known.interval().map(|interval| interval.ends.map(f64::ln)) {
                Some([low, _]) if low >= line - 1e-12 => Decision::Slower,
                // Of what is not slower, faster is read from the interval at the alarm rate.
                Some([_, high]) if high <= line + 1e-12 => match known
                    .interval_of(Decision::Faster, known.plan.alarm_e())
                {
                    Some(alarm) if alarm.ends[1].ln() <= -line + 1e-12 => Decision::Faster,
                    _ => Decision::NotSlower,
                },
                _ => Decision::Undecided,
            };
            prop_assert_eq!(read, known.decision());
        }

        #[test]
        fn a_line_nearer_by_is_refuted_as_well(units in units(), near in 0.0_f64..0.1, at in -0.1_f64..0.1) {
            let known = sequential(&units);
            for sign in [1.0, -1.0] {
                prop_assert!(known.is_beyond(sign, at - near, 20.0, 3) || !known.is_beyond(sign, at, 20.0, 3));
            }
        }

        #[test]
        fn swapping_the_sides_turns_the_interval_around(units in units(), shift in -0.06_f64..0.06) {
            let units: Vec<_> = units.iter().map(|(is_fresh, x)| (*is_fresh, x + shift)).collect();
            let swapped: Vec<_> = units.iter().map(|(is_fresh, x)| (*is_fresh, -x)).collect();
            let of = |units: &[_], decision| {
                sequential(units).interval_of(decision, 300.0).map(|interval| interval.ends)
            };
            let pairs = [(Decision::Slower, Decision::Faster), (Decision::Undecided, Decision::Undecided)];
            for (decision, turned) in pairs {
                let there = of(&units, decision);
                let back = of(&swapped, turned).map(|[low, high]| [1.0 / high, 1.0 / low]);
                prop_assert_eq!(there.is_some(), back.is_some());
                for (there, back) in there.into_iter().flatten().zip(back.into_iter().flatten()) {
                    prop_assert!((there - back).abs() < 1e-9, "{there} {back}");
                }
            }
        }
    }

    #[test]
    fn no_end_is_known_before_an_alarm_is_possible() {
        let clear = |count: usize| sequential(&vec![(true, 0.14); count]);
        let first = (1..40).find(|count| clear(*count).interval().is_some());
        assert_eq!(first, (1..40).find(|count| clear(*count).decision() == Decision::Slower));
    }

    #[test]
    fn the_interval_covers_the_ratio_at_all_times_together() {
        let (mut random, trials_count) = (crate::random::Random::new(21), 2_000);
        let plan = Plan { alarm_rate: 0.1, miss_rate: 0.1, ..Plan::default() };
        let ever_misses = |random: &mut crate::random::Random| {
            let mut known = Sequential::new(plan).expect("a plan that makes sense");
            (0..40).for_each(|_| _ = known.push(0.004 + 0.01 * random.normal()));
            // The ends only ever come closer.
            known.is_beyond(1.0, 0.004, 10.0, 3) || known.is_beyond(-1.0, -0.004, 10.0, 3)
        };
        let count = (0..trials_count).filter(|_| ever_misses(&mut random)).count();
        assert!(count * 5 < trials_count && count > 20, "{count}: at most a tenth for each end");
    }
}
