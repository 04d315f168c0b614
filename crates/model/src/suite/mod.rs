//! Suites: workloads as data, read from TOML.

mod check;
mod engine;
mod file;
mod fuzz;
mod gate;
mod harness;
mod history;
mod kernel;
mod metrics;
mod op;
mod size;
mod workload;

pub use engine::{EngineSpec, OP_INFERENCE, Provider, ShapeCase, WORKER_ENGINE};
pub use file::SuiteFile;
pub use fuzz::{FuzzLimits, OnInaccurate};
pub use gate::{GateSettings, OnInconclusive};
pub use harness::{BenchTask, HarnessFrom, HarnessKind, HarnessSpec};
pub use history::HistorySettings;
pub use kernel::{KernelArgument, KernelCompiler, KernelFileKind, KernelSpec, LaunchSpec, MapArgument};
pub use metrics::{CountedBy, MetricSpec, Metrics, Tolerance};
pub use op::{OpSpec, Shapes};
pub use size::Size;
pub use workload::{CommandTask, DeviceTask, Identity, Task, Workload, metric_name};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A suite that makes sense. Some of its workloads may not be in it yet: those of a harness or a worker, which are asked once they are built.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "SuiteFile")]
pub struct Suite {
    pub schema_version: u32,
    /// Name of the suite; baselines and trends are kept by it. That of its file where absent.
    pub name: String,
    /// The suite's purpose.
    pub description: String,
    /// Seed of all inputs, unless a workload has its own.
    pub seed: u64,
    /// Which CUDA device its `cuda` workloads use, counted from 0.
    pub device: u32,
    /// How to measure, for all workloads that do not say otherwise.
    pub measure: MeasurePlan,
    /// How measurements are judged, unless a flag says otherwise.
    pub gate: GateSettings,
    /// Where its runs are kept.
    pub history: Option<HistorySettings>,
    /// How a revision is built before it is measured.
    pub build: Option<BuildSpec>,
    /// Names of variables that builds and measured programs see besides those of tools.
    pub pass_env: Vec<String>,
    /// A benchmark harness whose benchmarks are the workloads.
    pub harness: Option<HarnessSpec>,
    /// A model whose shape cases are workloads.
    pub engine: Option<EngineSpec>,
    /// Programs that speak the worker protocol, by name; `builtin` replaces the built-in ops by a program that has them.
    pub workers: BTreeMap<String, WorkerSpec>,
    /// Ops of your own, by name, for `fuzz` and `check`: their tensors, and the worker that knows the right answer.
    pub ops: BTreeMap<String, OpSpec>,
    /// How large the cases are that `fuzz` draws, by op.
    pub fuzz: BTreeMap<String, FuzzLimits>,
    /// The workloads, in order.
    pub workloads: Vec<Workload>,
    /// The one workload that is wanted of those that a harness or a worker lists.
    pub only: Option<String>,
    /// The folder that paths in the suite are relative to and that its programs run in: that of its file, or the same folder of another
    /// revision; the current folder where absent.
    pub dir: Option<PathBuf>,
}

impl Suite {
    /// Whether a CUDA device is used by ops of our own.
    pub fn uses_cuda(&self) -> bool {
        self.workloads.iter().any(|workload| workload.task.device().is_some())
    }

    /// Whether some of its workloads are not in it yet: those of a harness, of a model, or of a worker that has to be asked.
    pub fn has_listed_workloads(&self) -> bool {
        self.harness.is_some()
            || self.engine.is_some()
            || self.workers.values().any(|worker| worker.all_workloads)
    }

    /// The seed of a workload's inputs.
    pub fn seed_of(&self, workload: &Workload) -> u64 {
        workload.seed.unwrap_or(self.seed)
    }
}

/// A program that speaks the worker protocol on stdin and stdout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerSpec {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Whether it uses one thread: `ab` then holds both sides on the same CPU, which takes out most of the noise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub single_threaded: bool,
    /// Units of a comparison that one pair of its processes serves, buffers placed anew for each; 1 where a fresh start is cheap.
    #[serde(default = "one_unit", skip_serializing_if = "is_one_unit")]
    pub units_per_process: u32,
    /// Whether all workloads that it lists belong to the suite, and not only those that the suite names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_workloads: bool,
    /// The folder it runs in, where that is not the suite's: a program named on the command line.
    #[serde(skip)]
    pub dir: Option<PathBuf>,
}

fn one_unit() -> u32 {
    1
}

fn is_one_unit(units: &u32) -> bool {
    *units == 1
}

/// How a revision is built, in the root of its own checkout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BuildSpec {
    /// Program and arguments.
    pub command: Vec<String>,
    /// How long it may take.
    #[serde(default = "default_build_timeout_s")]
    pub timeout_s: f64,
    /// When a build may start from what an earlier one left in its folder.
    #[serde(default, skip_serializing_if = "Reuse::is_default")]
    pub reuse: Reuse,
}

impl BuildSpec {
    /// A build by this command line, as a suite that gives nothing else has it.
    pub fn new(command: Vec<String>) -> Self {
        Self { command, timeout_s: default_build_timeout_s(), reuse: Reuse::default() }
    }
}

/// When a revision's build may start from what an earlier revision's left in its folder, rather than from nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reuse {
    /// In the steps of a search (`bisect`), whose outcome is confirmed by builds from nothing.
    #[default]
    Search,
    /// In `ab` and `gate --against` as well.
    Always,
    Never,
}

impl Reuse {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

fn default_build_timeout_s() -> f64 {
    1_800.0
}

/// When a workload has been measured enough.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MeasurePlan {
    /// Rounds that are always taken.
    pub rounds_min: u32,
    /// Rounds after which measuring ends.
    pub rounds_max: u32,
    /// How long one round of one workload aims to last.
    pub round_ms: f64,
    /// Stop once the 95 % interval of the median is this narrow, as a share of the median.
    pub target_width: f64,
    /// Cap on the measuring time of one workload, warm-up not counted.
    pub time_budget_ms: f64,
    /// Cap on warm-up.
    pub warmup_ms_max: f64,
    /// How long a worker may take over one request.
    pub timeout_ms: f64,
}

impl Default for MeasurePlan {
    fn default() -> Self {
        Self {
            rounds_min: 10,
            rounds_max: 400,
            round_ms: 5.0,
            target_width: 0.01,
            time_budget_ms: 1_000.0,
            warmup_ms_max: 300.0,
            timeout_ms: 60_000.0,
        }
    }
}

/// Which implementation of a built-in op is timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    /// The quick one.
    #[default]
    Fast,
    /// The plain oracle itself.
    Reference,
}

/// The content of the device's cache when a call begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// Whatever the previous call left there.
    #[default]
    Warm,
    /// Nothing of the workload's: flushed before every call, and shown to be.
    Cold,
}

impl Cache {
    pub(super) fn is_warm(&self) -> bool {
        *self == Self::Warm
    }
}

/// Tolerance of the answer check: right when `|got - want| <= atol + rtol·|want|`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckSpec {
    pub atol: f64,
    pub rtol: f64,
}

/// Work of one call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Work {
    /// Bytes that must move: each input read once, each output written once.
    pub bytes: u64,
    pub flops: u64,
    /// Items in the workload's own unit.
    pub items: u64,
    /// That unit, plural: `tiles`, `frames`.
    pub item: String,
}

/// Clock reads around calls in the same process.
pub const TIMER_HOST: &str = "host_monotonic";
/// Clock reads around the start and end of a process.
pub const TIMER_PROCESS: &str = "process_wall";
/// Events around a graph of calls, queued while the device waits: device time, launch gaps included.
pub const TIMER_CUDA_GRAPH: &str = "cuda_graph";
/// Events around each call, queued while the device waits: device time of one launch.
pub const TIMER_CUDA_EVENTS: &str = "cuda_events";
/// The clocks that a `cuda` workload can name.
pub(crate) const TIMERS_CUDA: &[&str] = &[TIMER_CUDA_GRAPH, TIMER_CUDA_EVENTS, TIMER_HOST];
/// Name of the worker that holds the built-in ops on a CUDA device.
pub const WORKER_CUDA: &str = "cuda";
/// Name of the worker that holds the built-in ops.
pub const WORKER_BUILTIN: &str = "builtin";
/// Name of the worker that runs programs.
pub const WORKER_COMMAND: &str = "command";
