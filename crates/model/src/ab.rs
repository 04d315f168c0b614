//! Samples of two sides measured in the same seconds, `ab.json`.

use crate::machine::{Machine, Revision, Toolchain};
use crate::metric::MetricPlan;
pub use crate::pair_round::{CALM_LEFT, LEFT_MIN, PairRound, SideName, SideNumbers, Trouble};
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
    /// The branch that was checked out, or that CI built, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
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
    /// After each unit the shares of what it takes to call head slower, not slower and faster. Made with the judgement and not kept in
    /// files: it follows from the samples.
    #[serde(skip)]
    pub growth: Vec<[f64; 3]>,
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
