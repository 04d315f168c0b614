//! Samples of two sides measured in the same seconds, `ab.json`.

use crate::machine::{Machine, MachineState, Revision, Toolchain};
use crate::metric::MetricPlan;
use crate::report::{Failure, KernelInfo};
use crate::suite::{Identity, metric_name};
pub use crate::unit_plan::Clock;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Samples of two sides, base and head, that were alive at the same time. `comparison.json` holds what was decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "ab")]
pub struct AbReport {
    pub schema_version: u32,
    pub suite: String,
    /// When the comparison began, ISO-8601 in UTC.
    pub timestamp_utc: String,
    /// Whether every workload was taken to its end; if not, `--resume` goes on from here.
    pub finished: bool,
    /// Settings of the comparison.
    pub plan: AbPlan,
    pub base: Side,
    pub head: Side,
    #[serde(default)]
    pub machine: Option<Machine>,
    pub toolchain: Toolchain,
    /// Other conditions that the units depend on, by name: the policy, hashes of suites, programs and changed files,
    /// settings. `--resume` requires them to be unchanged.
    #[serde(default)]
    pub conditions: BTreeMap<String, String>,
    /// Seconds spent measuring, starts of processes and checks of answers included, builds not.
    pub elapsed_s: f64,
    /// Remarks for the reader, in sentences.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The workloads, in the suite's order.
    pub workloads: IndexMap<String, AbWorkload>,
}

/// Settings of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbPlan {
    /// How much slower head may be: 0.01 is 1 %.
    pub tolerance: f64,
    /// Tolerances of single workloads, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tolerances: BTreeMap<String, f64>,
    /// Metrics of single workloads that are compared beside the median time, by workload and metric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, BTreeMap<String, MetricPlan>>,
    /// Maximum false alarm rate: the share of unchanged suites reported as slower, whatever the number of workloads.
    pub alarm_rate: f64,
    /// Maximum miss rate: the share of real slowdowns reported as pass.
    pub miss_rate: f64,
    /// Most units of one workload.
    pub units_max: u32,
    /// Time for the whole comparison, in seconds per workload; workloads that are decided early leave theirs to the
    /// others.
    pub budget_s: f64,
    /// How many times faster head may be before that must be checked; `SPEEDUP_MAX` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup_max: Option<f64>,
    /// The times that are compared; chosen from the first units where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// Units measured at the same time, if each is pinned to its own CPU.
    #[serde(default = "one")]
    pub units_at_once: u32,
    /// Seed of the order.
    pub seed: u64,
}

fn one() -> u32 {
    1
}

impl AbPlan {
    /// How much slower head may be in a workload.
    pub fn tolerance_of(&self, workload: &str) -> f64 {
        self.tolerances.get(workload).copied().unwrap_or(self.tolerance)
    }

    /// The metrics of a workload beside the median time, by name.
    pub fn metrics_of(&self, workload: &str) -> impl Iterator<Item = (&str, MetricPlan)> {
        let metrics = self.metrics.get(workload).into_iter().flatten();
        metrics.map(|(name, plan)| (name.as_str(), *plan))
    }

    /// How much worse head may be in a metric of a workload, by the metric's name in judgements.
    pub fn tolerance_of_metric(&self, workload: &str, metric: &str) -> f64 {
        let found = self.metrics_of(workload).find(|(name, _)| metric_name(workload, name) == metric);
        found.map_or(self.tolerance_of(workload), |(_, plan)| plan.tolerance)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// The revision, command or file, as given by the user.
    pub label: String,
    /// The user's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The flags of a command beside it, each as a name and a value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<[String; 2]>,
    #[serde(default)]
    pub revision: Option<Revision>,
}

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

/// One workload, both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbWorkload {
    pub identity: Identity,
    /// Why it was not measured: it cannot run here, or both sides are the same code.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub ended: Ended,
    /// Its share of the machine's time: starts, preparation and rounds.
    pub spent_s: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<SideFailure>,
    /// The kernels of both sides, where the worker tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernels: Option<SideKernels>,
    /// Why both sides are the same build, where they are and were not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_build: Option<SameBuild>,
    /// Quantities that need no statistics, by metric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exact: BTreeMap<String, ExactValues>,
    /// Calls behind each sample.
    pub calls_per_sample: u64,
    /// The units, in order, with every sample.
    pub units: Vec<Unit>,
}

impl AbWorkload {
    /// Seconds in which its timed calls ran on a device; absent without one.
    pub fn busy_s(&self) -> Option<f64> {
        let rounds = || self.units.iter().flat_map(|unit| &unit.rounds);
        rounds().any(|round| round.state.device.is_some()).then(|| {
            let samples_ns = rounds().flat_map(|round| round.base_ns.iter().chain(&round.head_ns));
            samples_ns.map(|ns| *ns as f64).sum::<f64>() / 1e9
        })
    }
}

/// Two builds of which all that a workload runs or can read is the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SameBuild {
    /// Hash of base's files, without build ids and with the folder of the checkout left out.
    pub base_sha256: String,
    /// The same of head's.
    pub head_sha256: String,
    /// Files behind each hash.
    pub files_count: u64,
    /// Tracked files that differ and are no inputs, such as documents.
    #[serde(default)]
    pub ignored: Vec<String>,
}

/// Exact counts of each side, in order; more than once where it may not repeat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExactValues {
    #[serde(default)]
    pub base: Vec<u64>,
    #[serde(default)]
    pub head: Vec<u64>,
    /// Why there is nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The kernels of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideKernels {
    pub base: KernelInfo,
    pub head: KernelInfo,
}

impl SideKernels {
    /// Whether both sides run the same code in the same way.
    pub fn are_same(&self) -> bool {
        self.base.is_same_code(&self.head)
    }
}

/// Why measuring a workload ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The evidence suffices.
    Decided,
    /// `units_max` was reached first.
    UnitsMax,
    /// The budget was spent first.
    Budget,
    /// A signal came first.
    Interrupted,
    /// A side failed.
    Failed,
    /// It cannot run here, or one side does not have it.
    Skipped,
    /// Both sides run the same machine code, launched in the same way on the same inputs, or are the same build: there was nothing to
    /// measure.
    SameCode,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideFailure {
    pub side: SideName,
    #[serde(flatten)]
    pub failure: Failure,
}

/// A fresh pair of processes, base and head, measured side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unit {
    /// Which pair of processes, from 0; workloads that shared it have the same number.
    pub process: u32,
    /// `ln(head / base)` over the rounds that count: what the decision is made of.
    pub x: f64,
    /// Samples at the beginning of each side's turn that `x` leaves out: caches were still cold.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skip: u32,
    /// Quantile of a turn's other samples that stands for the turn.
    #[serde(default = "quantile", skip_serializing_if = "is_usual")]
    pub quantile: f64,
    /// The times that are compared.
    #[serde(default, skip_serializing_if = "Clock::is_default")]
    pub clock: Clock,
    pub rounds: Vec<PairRound>,
}

/// Quantile of a turn's samples that stands for it, unless the noise suggests another one: nearly the fastest. What
/// disturbs a sample only adds to it, so the fast ones are the undisturbed ones; the very fastest may be a fluke.
pub const QUANTILE: f64 = 0.1;

fn quantile() -> f64 {
    QUANTILE
}

fn is_usual(quantile: &f64) -> bool {
    *quantile == QUANTILE
}

fn is_zero(count: &u32) -> bool {
    *count == 0
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
            [SideName::Base, SideName::Head].map(|side| {
                let samples = self.wall_and_wait_ns(side, clock).skip(skip);
                let left = samples.map(|(ns, wait_ns)| (ns, ns.saturating_sub(wait_ns)));
                left.filter(|(ns, left)| *left as f64 >= left_min * *ns as f64)
                    .map(|(_, left)| left)
                    .collect()
            })
        };
        let has_both = |sides: &[Vec<u64>; 2]| sides.iter().all(|times| !times.is_empty());
        [CALM_LEFT, LEFT_MIN].into_iter().map(kept).find(has_both).unwrap_or_default()
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

/// Statistical evidence from a workload's units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbEvidence {
    /// Median over units of head's time over base's.
    pub ratio: f64,
    /// The ratios that the evidence has not refuted, valid at every moment: the interval that the verdict is read from. Absent with too
    /// few units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_interval: Option<[f64; 2]>,
    /// How often each end of that interval may ever be wrong. In older files, where it is absent, the interval is one of 95 %, from signs
    /// alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_interval_rate: Option<f64>,
    /// What a decision takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<NeededEvidence>,
    /// Evidence that head is slower than the tolerance: unchanged code reaches E with a probability of 1/E.
    pub e_slower: f64,
    /// Evidence that head is not slower than the tolerance.
    pub e_not_slower: f64,
    /// Evidence that head is faster than the tolerance.
    pub e_faster: f64,
    /// The smallest slowdown that would have been detected by now, given this noise: 0.03 is 3 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_visible_slowdown: Option<f64>,
    /// Standard deviation of `x` over units, robust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_sd: Option<f64>,
    /// Units behind all this.
    pub units_count: u32,
    /// Rounds taken.
    pub rounds_count: u32,
    /// Rounds left out for trouble.
    pub rounds_left_out: u32,
    pub base: SideTimes,
    pub head: SideTimes,
    /// Cliff's delta over the units' medians; positive where head is slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cliffs_delta: Option<f64>,
    /// Hedges' g over the units' medians; positive where head is slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hedges_g: Option<f64>,
    /// Two-sided Mann-Whitney p over the units' medians; not valid after looking more than once, which is what was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mann_whitney_p: Option<f64>,
}

/// The evidence from which on a row is decided.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NeededEvidence {
    /// To call head slower, or faster; less where several rows were called together.
    pub call: f64,
    /// Pairs of processes that must say so as well.
    pub pairs: u32,
    /// To call head not slower.
    pub not_slower: f64,
}

/// One side's times, over all its samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideTimes {
    /// Median.
    pub p50_ms: f64,
    /// Its 95 % block-bootstrap interval, units as blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_interval_ms: Option<[f64; 2]>,
    /// `sorted[floor(0.95(n-1))]`.
    pub p95_ms: f64,
    /// `sorted[floor(0.99(n-1))]`.
    pub p99_ms: f64,
    /// Standard deviation over mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cv: Option<f64>,
}

/// Keys of cudadent42's statistical comparison, with the sign corrected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DisjointCiKeys {
    /// Base's median.
    pub baseline_median_ms: f64,
    /// Head's median.
    pub candidate_median_ms: f64,
    /// `(candidate - baseline) / baseline · 100`: positive is slower.
    pub delta_pct: f64,
    /// Baseline over candidate: above 1 is faster.
    pub speedup: f64,
    /// Whether the intervals of the medians overlap.
    pub cis_overlap: bool,
    /// Positive if the candidate is faster, as in cudadent42.
    pub cliffs_delta: f64,
    /// `negligible`, `small`, `medium` or `large`.
    pub cliffs_interpretation: String,
    /// Two-sided.
    pub mann_whitney_p: f64,
    /// Disjoint intervals, p < 0.05 and |δ| ≥ 0.147.
    pub is_significant: bool,
    /// cudadent42's sentence: `REGRESSION: …`, `IMPROVEMENT: …`, `NO SIGNIFICANT DIFFERENCE: …`, `MAINTAINED: …`.
    pub verdict: String,
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
