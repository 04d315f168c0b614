//! A round of two sides: the samples of both, taken close together, and which of their times may stand for it.

use crate::machine::MachineState;
use crate::unit_plan::Clock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SideName {
    /// The side that head is compared with.
    #[default]
    Base,
    /// The side under test.
    Head,
}

impl SideName {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Head => "head",
        }
    }
}

/// Samples of both sides taken close together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairRound {
    /// Which round of its unit, from 0.
    pub round: u32,
    /// Position of this workload within its unit.
    pub order: u32,
    /// The side that went first.
    pub first: SideName,
    pub base_ns: Vec<u64>,
    pub head_ns: Vec<u64>,
    /// Time for which the process waited for a CPU in each of base's samples, if the worker reports it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub base_wait_ns: Vec<u64>,
    /// The same for head's samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub head_wait_ns: Vec<u64>,
    /// Base's other numbers.
    #[serde(default, skip_serializing_if = "SideNumbers::is_empty")]
    pub base_numbers: SideNumbers,
    /// Head's other numbers.
    #[serde(default, skip_serializing_if = "SideNumbers::is_empty")]
    pub head_numbers: SideNumbers,
    /// Disturbances of the machine during this round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trouble: Vec<Trouble>,
    /// Whether the round was left out of `x`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_out: bool,
    #[serde(default)]
    pub state: MachineState,
}

/// Numbers of one side in a round beside its times, each where it is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SideNumbers {
    /// CPU time of each sample, user and system.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu_ns: Vec<u64>,
    /// Highest resident memory of the process in this round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_rss_bytes: Option<u64>,
    /// Clock of the device's multiprocessors during each sample, 0 where unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sm_mhz: Vec<u32>,
    /// Numbers that the program printed, by metric, a number for each call.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub printed: BTreeMap<String, Vec<f64>>,
}

impl SideNumbers {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The share of a sample that must be left when its wait is taken off: a process that shares its CPU with three others has as much.
/// Of what is left of less, most may be the error of the wait.
pub const LEFT_MIN: f64 = 0.25;
/// A sample of which this share is left hardly waited: the error of its wait is below most tolerances.
pub const CALM_LEFT: f64 = 0.99;

impl PairRound {
    /// A side's numbers beside its times.
    pub fn numbers(&self, side: SideName) -> &SideNumbers {
        match side {
            SideName::Base => &self.base_numbers,
            SideName::Head => &self.head_numbers,
        }
    }

    /// Whether both sides tell how long their samples waited for a CPU.
    pub fn tells_waits(&self) -> bool {
        self.base_wait_ns.len() == self.base_ns.len() && self.head_wait_ns.len() == self.head_ns.len()
    }

    /// The times of a side's samples as they are compared. A wait that does not fit its sample is not taken off.
    pub fn times_ns(&self, side: SideName, clock: Clock) -> impl Iterator<Item = u64> + '_ {
        self.wall_and_wait_ns(side, clock).map(|(ns, wait_ns)| if wait_ns < ns { ns - wait_ns } else { ns })
    }

    /// The times of both sides that may stand for the round, without the first `skip`: of samples that hardly waited, if each side has one;
    /// else of those of which enough is left. Nothing of a side where no sample is left, then of neither.
    pub fn sound_ns(&self, clock: Clock, skip: usize) -> [Vec<u64>; 2] {
        let kept = |left_min: f64| {
            [SideName::Base, SideName::Head]
                .map(|side| self.at_least_left_ns(side, clock, skip, left_min).collect())
        };
        let has_both = |sides: &[Vec<u64>; 2]| sides.iter().all(|times| !times.is_empty());
        [CALM_LEFT, LEFT_MIN].into_iter().map(kept).find(has_both).unwrap_or_default()
    }

    /// The times of those of a side's samples of which enough is left without their waits, without the first `skip`.
    pub fn left_ns(&self, side: SideName, clock: Clock, skip: usize) -> impl Iterator<Item = u64> + '_ {
        self.at_least_left_ns(side, clock, skip, LEFT_MIN)
    }

    fn at_least_left_ns(
        &self,
        side: SideName,
        clock: Clock,
        skip: usize,
        left_min: f64,
    ) -> impl Iterator<Item = u64> + '_ {
        let samples = self.wall_and_wait_ns(side, clock).skip(skip);
        let left = samples.map(|(ns, wait_ns)| (ns, ns.saturating_sub(wait_ns)));
        left.filter(move |(ns, left)| *left as f64 >= left_min * *ns as f64).map(|(_, left)| left)
    }

    fn wall_and_wait_ns(&self, side: SideName, clock: Clock) -> impl Iterator<Item = (u64, u64)> + '_ {
        let takes_off = clock == Clock::Unwaited && self.tells_waits();
        let (times, waits) = match side {
            SideName::Base => (&self.base_ns, &self.base_wait_ns),
            SideName::Head => (&self.head_ns, &self.head_wait_ns),
        };
        let times = if clock.is_cpu() { &self.numbers(side).cpu_ns } else { times };
        times.iter().enumerate().map(move |(i, ns)| (*ns, if takes_off { waits[i] } else { 0 }))
    }
}

/// Disturbances of the machine during a round, seen on the machine or on both sides together, never on one side against
/// the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// The system's clock was set.
    ClockStep,
    /// The hypervisor gave the CPU to others.
    Steal,
    /// The CPU ran slower than it had before, its throttle counter moved, or the device held its clocks back.
    Throttled,
    /// Other processes kept ours waiting.
    Competing,
    /// Other processes were on the device.
    SharedDevice,
    /// Both sides together were slower or faster than in the unit's other rounds.
    Drift,
    /// A side has no sample of which enough is left without its wait for a CPU.
    Waits,
}

impl Trouble {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClockStep => "clock_step",
            Self::Steal => "steal",
            Self::Throttled => "throttled",
            Self::Competing => "competing",
            Self::SharedDevice => "shared_device",
            Self::Drift => "drift",
            Self::Waits => "waits",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(base_wait_ns: &[u64], head_wait_ns: &[u64]) -> PairRound {
        PairRound {
            base_ns: vec![100, 200],
            head_ns: vec![110, 210],
            base_wait_ns: base_wait_ns.to_vec(),
            head_wait_ns: head_wait_ns.to_vec(),
            ..PairRound::default()
        }
    }

    #[test]
    fn waits_are_taken_off_where_both_sides_tell_them() {
        let times = |round: &PairRound, side| round.times_ns(side, Clock::Unwaited).collect::<Vec<_>>();
        let told = round(&[0, 50], &[10, 0]);
        assert_eq!(
            (times(&told, SideName::Base), times(&told, SideName::Head)),
            (vec![100, 150], vec![100, 210])
        );
        let unfitting = round(&[100, 199], &[110, 500]);
        assert_eq!(
            (times(&unfitting, SideName::Base), times(&unfitting, SideName::Head)),
            (vec![100, 1], vec![110, 210])
        );
        for untold in [round(&[], &[10, 0]), round(&[0, 50], &[]), round(&[1], &[1])] {
            assert_eq!(times(&untold, SideName::Base), [100, 200]);
            assert_eq!(times(&untold, SideName::Head), [110, 210]);
        }
    }

    #[test]
    fn what_stands_for_a_round_has_hardly_waited_or_has_enough_left() {
        let sound = |base: &[u64], head: &[u64]| round(base, head).sound_ns(Clock::Unwaited, 0);
        let none = [Vec::<u64>::new(), Vec::new()];
        assert_eq!(sound(&[1, 100], &[0, 0]), [vec![99], vec![110, 210]]);
        assert_eq!(sound(&[1, 100], &[11, 150]), [vec![99, 100], vec![99, 60]], "base alone hardly waited");
        assert_eq!(sound(&[76, 151], &[0, 0]), none, "of base less than a quarter is left");
        assert_eq!(sound(&[100, 900], &[0, 0]), none);
        let untold = round(&[100, 900], &[]);
        assert_eq!(untold.sound_ns(Clock::Unwaited, 1), [vec![200], vec![210]], "waits of one side");
        let wall = round(&[100, 900], &[0, 0]).sound_ns(Clock::Wall, 0);
        assert_eq!(wall, [vec![100, 200], vec![110, 210]]);
    }
}
