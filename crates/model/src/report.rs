//! One run: what was measured, where, and how it came out.

use crate::machine::{EnvironmentLock, Machine, MachineState, Revision, Toolchain};
pub use crate::oracle::{CheckedBy, OracleKind};
use crate::suite::Identity;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// The report of one run, `report.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "report")]
pub struct Report {
    pub schema_version: u32,
    pub suite: String,
    /// When the run began, ISO-8601 in UTC.
    pub timestamp_utc: String,
    /// Whether the run as a whole can be used.
    pub status: RunStatus,
    /// Why, when the status is not `ok`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The originals' environment block.
    pub environment: Environment,
    pub config: RunConfig,
    /// The machine, where it is known.
    #[serde(default)]
    pub machine: Option<Machine>,
    /// The revision, where there is one.
    #[serde(default)]
    pub revision: Option<Revision>,
    /// The branch that was checked out, or that CI built, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    pub toolchain: Toolchain,
    /// Other conditions that must match for a comparison; absent in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment_lock: Option<EnvironmentLock>,
    /// The metrics that are gated, flat, as the originals name them: `infer_p50_ms`.
    pub metrics: BTreeMap<String, f64>,
    /// One measurement per workload, in the suite's order.
    pub benchmarks: IndexMap<String, Measurement>,
}

impl Report {
    /// Whether another tool measured it. Its machine, settings and versions are not known then.
    pub fn is_imported(&self) -> bool {
        self.toolchain.holdpoint.is_empty()
    }
}

/// Whether a run can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Ok,
    Partial,
    /// Nothing could be measured.
    Skipped,
    /// At least one workload failed.
    Failed,
}

impl RunStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Partial => "partial",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        }
    }

    /// The status of a run with these measurements. An empty run was skipped: missing is never good.
    pub fn from_measurements<'a>(measurements: impl Iterator<Item = &'a Measurement>) -> Self {
        let (mut measured, mut skipped, mut failed) = (0, 0, 0);
        for measurement in measurements {
            match &measurement.outcome {
                // Times that are not to be compared count for nothing.
                Outcome::Measured(times) if times.distrust.is_some() => skipped += 1,
                Outcome::Measured(_) => measured += 1,
                Outcome::Skipped { .. } => skipped += 1,
                Outcome::Failed(_) => failed += 1,
            }
        }
        match (measured, skipped, failed) {
            (_, _, 1..) => Self::Failed,
            (0, _, 0) => Self::Skipped,
            (_, 1.., 0) => Self::Partial,
            _ => Self::Ok,
        }
    }
}

/// The originals' environment block; ours is in `machine` and `toolchain`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Operating system, kernel and instruction set in one line.
    pub platform: String,
    /// `cpu` or `cuda`.
    pub device: String,
    /// Whether a CUDA device could have been used.
    pub cuda_available: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunConfig {
    /// Seed of the inputs and of the order of workloads within a round.
    pub seed: u64,
    /// How percentiles are taken; see METHODOLOGY.md.
    pub percentile_rule: String,
    /// Smallest step of the host clock seen on this machine.
    pub clock_resolution_ns: u64,
    /// Seconds the whole run took, set-up and checks included.
    pub elapsed_s: f64,
    /// Share of the machine's CPU time that other processes, and other machines on its hardware, used meanwhile. Absent where
    /// that cannot be read, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_cpu: Option<f64>,
}

/// One workload's outcome. It never becomes a missing row. `measurement.rs` reads it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Measurement {
    pub identity: Identity,
    /// The metrics of this workload that are gated, such as `p50_ms`.
    #[serde(default)]
    pub gated: Vec<String>,
    #[serde(flatten)]
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// It has times, and its answers were right before and after them.
    Measured(Box<Measured>),
    Skipped {
        /// A reason code, such as `cuda_unavailable`, or a sentence.
        reason: String,
    },
    /// It ran and must not be trusted.
    Failed(Failure),
}

/// Times and what is computed from them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// Median over all samples.
    pub p50_ms: f64,
    /// `sorted[floor(0.95(n-1))]`, the originals' rule.
    pub p95_ms: f64,
    /// `sorted[floor(0.99(n-1))]`.
    pub p99_ms: f64,
    pub mean_ms: f64,
    pub min_ms: f64,
    /// Standard deviation over mean; absent with a single sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cv: Option<f64>,
    /// 95 % interval of the median, by how far rounds differ; absent with fewer than six rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_interval_ms: Option<[f64; 2]>,
    /// How much slower the slowest tenth of the run's stretches was than the middle one, as a share: what a busy neighbour or
    /// a lower clock does to the same code. Absent with few rounds, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_stretches: Option<f64>,
    /// Declared work over the median, by name: `tiles_per_s`, `gb_per_s`, `gflops`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub throughput: BTreeMap<String, f64>,
    /// Peak resident memory of the process that ran the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_mb: Option<f64>,
    /// Median CPU time (user and system) per call, where the worker reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_p50_ms: Option<f64>,
    /// How the answer compared with the oracle's; absent when the workload has no check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    pub warmup: Warmup,
    pub stopped: Stopped,
    /// Most device memory that the workload's process held at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_device_memory_mb: Option<f64>,
    /// Why the times are not comparable although they were taken: `device_throttled` or `device_shared` in most rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distrust: Option<String>,
    /// Cycles of the device's multiprocessors in a call, median: time by clock, sample by sample. Absent where the clock is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_cycles_p50: Option<f64>,
    /// Present where the device drew as much power as it may in most rounds: it is as fast as that allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_limited: Option<PowerLimited>,
    /// The share of what the device or machine can do at most, where the median is near it: to be checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_peak: Option<f64>,
    /// The kernel behind the times, where the worker tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelInfo>,
    /// The times themselves.
    pub samples: Samples,
}

/// A device at its power limit: its state in the rounds in which it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PowerLimited {
    pub rounds_count: u64,
    /// Clock of the multiprocessors, median over the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_mhz: Option<f64>,
    /// The highest that clock can go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_mhz_max: Option<u32>,
    /// Power drawn, rests included, median over the rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// The most that it may draw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_limit_w: Option<f64>,
    /// Energy of a call at that power, by the median time; only where the device was at its limit despite its rests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_mj: Option<f64>,
}

impl PowerLimited {
    /// `1665 of 1980 MHz at 697 of 700 W, 540.000 mJ a call`; between rests, when the power is not that of the calls, `1665 of 1980 MHz
    /// under a limit of 700 W`.
    pub fn describe(&self) -> String {
        let of = |most: Option<String>| most.map(|most| format!(" of {most}")).unwrap_or_default();
        let limit = self.power_limit_w.map(|most| format!("{most:.0}"));
        let most_mhz = self.sm_mhz_max.map(|most| most.to_string());
        let clock = self.sm_mhz.map_or_else(
            || "a clock that is not known".to_owned(),
            |mhz| format!("{mhz:.0}{} MHz", of(most_mhz)),
        );
        match (self.energy_mj.zip(self.power_w), limit) {
            (Some((energy, watts)), limit) => {
                format!("{clock} at {watts:.0}{} W, {energy:.3} mJ a call", of(limit))
            }
            (None, Some(limit)) => format!("{clock} under a limit of {limit} W"),
            (None, None) => clock,
        }
    }
}

impl Measured {
    /// The value of a metric by its name in the suite file, such as `p50_ms`.
    pub fn metric(&self, name: &str) -> Option<f64> {
        match name {
            "p50_ms" => Some(self.p50_ms),
            "p95_ms" => Some(self.p95_ms),
            "p99_ms" => Some(self.p99_ms),
            "mean_ms" => Some(self.mean_ms),
            "min_ms" => Some(self.min_ms),
            "cpu_p50_ms" => self.cpu_p50_ms,
            _ => None,
        }
    }
}

/// The kernel behind a workload: what really ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelInfo {
    pub op_name: String,
    /// Its name in the source; the first, where a call takes several. Of a model, its file.
    pub kernel_name: String,
    /// The sizes it was chosen for, as `key=value|…`.
    pub shape_bucket: String,
    /// The constants it was compiled with.
    #[serde(default)]
    pub selected_config: BTreeMap<String, i64>,
    /// Where they come from: `registry_cache` (measured before on this device), `triton_best_config` (chosen by Triton's tuner) or
    /// `heuristic`; of a model, the library that runs it.
    pub selection_source: String,
    /// The language of the kernel if it is not CUDA, such as `triton`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// Launches in one call.
    pub launches_per_call: u32,
    /// Registers per thread, the most of all its kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registers: Option<u32>,
    /// Bytes per thread that went to local memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_bytes: Option<u32>,
    /// Size of the machine code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_bytes: Option<u64>,
    /// Bytes of shared memory per block, the most of all its launches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_bytes: Option<u32>,
    /// Hash of the machine code, or of a model's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_sha256: Option<String>,
    /// Names of the kernels of a call as a profiler shows them, each once; empty where the worker does not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<String>,
    /// The launches of a call, each with grid, block and dynamic shared memory; empty where the worker does not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<String>,
}

impl KernelInfo {
    /// Whether both are the same machine code, launched in the same way for the same sizes; what is not told is not the same.
    pub fn is_same_code(&self, other: &Self) -> bool {
        self.code_sha256.is_some() && !self.launches.is_empty() && self == other
    }
}

/// How the timed answer compared with the oracle's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    pub passed: bool,
    pub values_count: u64,
    /// Largest absolute difference; infinite, in a file null, when a value is not a number.
    #[serde(deserialize_with = "null_is_infinite")]
    #[schemars(with = "Option<f64>")]
    pub max_abs_err: f64,
    /// Largest relative difference; infinite, in a file null, when a value is not a number.
    #[serde(deserialize_with = "null_is_infinite")]
    #[schemars(with = "Option<f64>")]
    pub max_rel_err: f64,
    /// The first wrong value, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_bad: Option<String>,
    /// The oracle that it was compared with, where the worker says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_by: Option<CheckedBy>,
}

/// JSON has no infinity, and serde writes null for it; a wrong answer must not become an unreadable one.
pub(crate) fn null_is_infinite<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
}

/// Calls made before the first sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warmup {
    pub calls_count: u64,
    /// Whether successive windows agreed; if not, the cap on warm-up time ended it.
    pub stable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// The interval of the median is as narrow as asked.
    TargetWidth,
    /// The cap on time was reached first.
    TimeBudget,
    /// The cap on rounds was reached first.
    RoundsMax,
    /// The fixed number of iterations was taken.
    Iterations,
}

/// Times in the order they were taken. Nothing is dropped or sorted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Samples {
    /// Calls behind each sample: a sample is the time of that many calls in a row.
    pub calls_per_sample: u64,
    /// The rounds, in order.
    pub rounds: Vec<Round>,
}

impl Samples {
    /// Time per call in nanoseconds, in order.
    pub fn per_call_ns(&self) -> impl Iterator<Item = f64> + '_ {
        self.rounds.iter().flat_map(|round| round.per_call_ns(self.calls_per_sample))
    }
}

/// Samples taken close together, with the machine's state beside them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// Which start of the worker's process, from 0.
    pub process: u32,
    /// Which round, from 0.
    pub round: u32,
    /// Position of this workload within its round.
    pub order: u32,
    /// Time of each sample.
    pub elapsed_ns: Vec<u64>,
    /// CPU time of each sample, where the worker reports it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_ns: Vec<u64>,
    /// Peak resident memory of the process that ran the calls, where the worker reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_rss_bytes: Option<u64>,
    /// Clock of the device's multiprocessors during each sample in MHz, where the worker reports it; 0 where it could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sm_mhz: Vec<u32>,
    /// Most device memory that the workload's process held at a time, where the worker reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_device_bytes: Option<u64>,
    /// The machine's state during the round.
    #[serde(default)]
    pub state: MachineState,
}

impl Round {
    /// Time per call in nanoseconds, in order.
    pub fn per_call_ns(&self, calls_per_sample: u64) -> impl Iterator<Item = f64> + '_ {
        self.elapsed_ns.iter().map(move |ns| *ns as f64 / calls_per_sample as f64)
    }
}

/// Why a measurement must not be trusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    pub cause: FailureCause,
    /// A sentence for people.
    pub detail: String,
    /// The last lines the worker wrote to stderr.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stderr_tail: Vec<String>,
    /// Samples taken before the failure; kept as evidence, never summarised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// The answer differs from the oracle's, or is not a number.
    WrongAnswer,
    /// The worker could not be started.
    NotStarted,
    /// The worker ended or was killed.
    Crashed,
    /// The worker did not answer in time and was killed.
    TimedOut,
    /// The worker wrote a line over the limit, or more than was asked for.
    Flooded,
    /// The worker wrote something that is not of the protocol.
    Garbage,
    /// The worker's workloads or answers are not those that were asked for.
    Mismatch,
    /// A time was zero or beyond reason.
    BadTime,
    /// The worker itself reported an error.
    WorkerError,
    /// The device has not enough free memory.
    OutOfMemory,
    /// A kernel faulted.
    DeviceFault,
    /// The device went away, or its driver gave up on it.
    DeviceLost,
    /// A kernel did not compile.
    CompileFailed,
}

impl FailureCause {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WrongAnswer => "wrong_answer",
            Self::NotStarted => "not_started",
            Self::Crashed => "crashed",
            Self::TimedOut => "timed_out",
            Self::Flooded => "flooded",
            Self::Garbage => "garbage",
            Self::Mismatch => "mismatch",
            Self::BadTime => "bad_time",
            Self::WorkerError => "worker_error",
            Self::OutOfMemory => "out_of_memory",
            Self::DeviceFault => "device_fault",
            Self::DeviceLost => "device_lost",
            Self::CompileFailed => "compile_failed",
        }
    }
}
