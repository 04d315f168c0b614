//! Suites: workloads as data, read from TOML.

mod check;
mod engine;
mod fuzz;
mod gate;
mod harness;
mod history;
mod kernel;
mod metrics;
mod op;
mod size;

pub use engine::{EngineSpec, OP_INFERENCE, Provider, ShapeCase, ShapeError, WORKER_ENGINE};
pub use fuzz::{FuzzLimits, OnInaccurate};
pub use gate::{GateSettings, OnInconclusive, WorkloadGate};
pub use harness::{BenchSpec, HarnessFrom, HarnessKind, HarnessSpec};
pub use history::HistorySettings;
pub use kernel::{
    FloatArgument, KernelArgument, KernelCompiler, KernelFileKind, KernelSpec, LaunchSpec, MapArgument,
    RsqrtArgument, WorkspaceSpec,
};
pub use metrics::{CountedBy, MetricSpec, Metrics, Tolerance};
pub use op::{OpSpec, Shapes};
pub use size::Size;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    #[serde(default = "default_version")]
    pub schema_version: u32,
    /// Name of the suite; baselines and trends are kept by it. That of its file where absent.
    #[serde(default)]
    pub name: String,
    /// The suite's purpose.
    #[serde(default)]
    pub description: String,
    /// Seed of all inputs, unless a workload has its own.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Which CUDA device its `cuda` workloads use, counted from 0.
    #[serde(default, skip_serializing_if = "is_first")]
    pub device: u32,
    /// How to measure, for all workloads that do not say otherwise.
    #[serde(default)]
    pub measure: MeasurePlan,
    /// How measurements are judged, unless a flag says otherwise.
    #[serde(default, skip_serializing_if = "GateSettings::is_default")]
    pub gate: GateSettings,
    /// Where its runs are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<HistorySettings>,
    /// How a revision is built before it is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildSpec>,
    /// Names of variables that builds and measured programs see besides those of tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass_env: Vec<String>,
    /// A benchmark harness whose benchmarks are the workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<HarnessSpec>,
    /// A model whose shape cases are workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineSpec>,
    /// Programs that speak the worker protocol, by name; `builtin` replaces the built-in ops by a program that has them.
    #[serde(default)]
    pub workers: BTreeMap<String, WorkerSpec>,
    /// Ops of your own, by name, for `fuzz` and `check`: their tensors, and the worker that knows the right answer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ops: BTreeMap<String, OpSpec>,
    /// How large the cases are that `fuzz` draws, by op.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fuzz: BTreeMap<String, FuzzLimits>,
    /// The workloads, in order.
    #[serde(default, rename = "workload")]
    pub workloads: Vec<WorkloadSpec>,
    /// The one workload that is wanted of those that a harness or a worker lists.
    #[serde(skip)]
    pub only: Option<String>,
    /// The folder that paths in the suite are relative to and that its programs run in: that of its file, or the same folder of another
    /// revision; the current folder where absent.
    #[serde(skip)]
    pub dir: Option<PathBuf>,
}

impl Suite {
    /// Whether a CUDA device is used by ops of our own.
    pub fn uses_cuda(&self) -> bool {
        self.workloads.iter().any(|workload| workload.worker == WORKER_CUDA)
    }

    /// Whether some of its workloads are not in it yet: those of a harness, of a model, or of a worker that has to be asked.
    pub fn has_listed_workloads(&self) -> bool {
        self.harness.is_some()
            || self.engine.is_some()
            || self.workers.values().any(|worker| worker.all_workloads)
    }

    /// The seed of a workload's inputs.
    pub fn seed_of(&self, workload: &WorkloadSpec) -> u64 {
        workload.seed.unwrap_or(self.seed)
    }
}

fn is_first(device: &u32) -> bool {
    *device == 0
}

fn default_version() -> u32 {
    crate::SCHEMA_VERSION
}

/// The originals' default.
fn default_seed() -> u64 {
    123
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

/// One workload of a suite: what to run. It does not run itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// Unique within the suite; metrics are named after it.
    pub name: String,
    /// The op to compute; `command` if `command` is given.
    #[serde(default)]
    pub op: String,
    /// Which worker runs it: `builtin` (default), `cuda`, `command`, or a name from `[workers]`.
    #[serde(default)]
    pub worker: String,
    /// Program and arguments of a `command` workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Text that a `command` workload must print on stdout; its exit status must always be 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_stdout: Option<String>,
    /// Program and arguments that a `command` workload needs run once before its first call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
    /// Program and arguments that a `command` workload needs run before each call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepare: Vec<String>,
    /// Program and arguments of a server that a `command` workload calls: started before its first call, ended after its last one, in every
    /// unit anew. Both find its TCP port on 127.0.0.1 in the variable HOLDPOINT_PORT; it is ready once the port is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server: Vec<String>,
    /// File that a `command` workload reads from stdin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Environment variables of a `command` workload, beside those that holdpoint has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The benchmark that a call of its command runs, where a harness takes the times.
    #[serde(skip)]
    pub bench: Option<BenchSpec>,
    /// Shape of the main input.
    #[serde(default)]
    pub shape: Vec<usize>,
    #[serde(default = "default_dtype")]
    pub dtype: String,
    /// Which implementation of a built-in op is timed.
    #[serde(default)]
    pub variant: Variant,
    /// The clock of a `cuda` workload: `cuda_graph` (default), `cuda_events` or `host_monotonic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<String>,
    /// Whether a `cuda` workload finds its inputs in the device's cache.
    #[serde(default, skip_serializing_if = "Cache::is_warm")]
    pub cache: Cache,
    /// The op's other parameters.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// A kernel of your own that a `cuda` workload runs in place of the op's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelSpec>,
    /// The declaration of its op, where a `cuda` workload runs one that the suite declares.
    #[serde(skip)]
    pub declared: Option<OpSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The metrics to gate: with a stored baseline `p50_ms` (default), `p95_ms`, `p99_ms`, `mean_ms`, `min_ms`, `cpu_p50_ms`;
    /// between two sides those with a tolerance.
    #[serde(default)]
    pub metrics: Metrics,
    /// Exactly this many samples, instead of measuring until the interval is narrow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// Cap on the measuring time of this workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_budget_ms: Option<f64>,
    /// How the answer is checked, where the op's own tolerance does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckSpec>,
    /// Work per call, for throughput; built-in ops declare their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
}

fn default_dtype() -> String {
    "f32".to_owned()
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
    fn is_warm(&self) -> bool {
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

/// The properties that two measurements must share for their times to be compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Identity {
    pub op: String,
    /// Shape of the main input.
    #[serde(default)]
    pub shape: Vec<usize>,
    #[serde(default)]
    pub dtype: String,
    /// The clock and what it enclosed: `host_monotonic`, `process_wall`, …
    pub timer: String,
    /// Everything else that the op was told.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
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
pub const TIMERS_CUDA: &[&str] = &[TIMER_CUDA_GRAPH, TIMER_CUDA_EVENTS, TIMER_HOST];
/// Name of the worker that holds the built-in ops on a CUDA device.
pub const WORKER_CUDA: &str = "cuda";
/// Name of the worker that holds the built-in ops.
pub const WORKER_BUILTIN: &str = "builtin";
/// Name of the worker that runs programs.
pub const WORKER_COMMAND: &str = "command";

impl WorkloadSpec {
    /// The identity of this workload when timed with `timer`.
    pub fn identity(&self, timer: &str) -> Identity {
        let mut params = self.params.clone();
        if self.variant == Variant::Reference {
            params.insert("variant".to_owned(), Value::from("reference"));
        }
        if self.cache == Cache::Cold {
            params.insert("cache".to_owned(), Value::from("cold"));
        }
        match &self.bench {
            // Where a harness is built differs between revisions.
            Some(bench) => _ = params.insert("benchmark".to_owned(), Value::from(bench.id.clone())),
            None if self.command.is_empty() => {}
            None => _ = params.insert("command".to_owned(), Value::from(self.command.clone())),
        }
        Identity {
            op: self.op.clone(),
            shape: self.shape.clone(),
            dtype: self.dtype.clone(),
            timer: timer.to_owned(),
            params,
        }
    }

    /// The clock that the suite promises for this workload.
    pub fn timer(&self) -> &str {
        match (self.worker.as_str(), &self.timer) {
            (_, Some(timer)) => timer,
            (WORKER_CUDA, None) => TIMER_CUDA_GRAPH,
            (WORKER_COMMAND, None) => self.bench.as_ref().map_or(TIMER_PROCESS, |bench| bench.kind.as_str()),
            (_, None) => TIMER_HOST,
        }
    }

    /// Whether our CUDA worker times it by the host's clock, launches and waiting included.
    pub fn is_cuda_by_host_clock(&self) -> bool {
        self.worker == WORKER_CUDA && self.timer() == TIMER_HOST
    }

    /// The name of one of this workload's metrics.
    pub fn metric_name(&self, metric: &str) -> String {
        metric_name(&self.name, metric)
    }
}

/// The name of a workload's metric. A workload whose name has dots is a place in the originals' GPU report, and its metrics are
/// paths in it; all others have flat names.
pub fn metric_name(workload: &str, metric: &str) -> String {
    if workload.contains('.') {
        ["benchmarks.", workload, ".", metric].concat()
    } else {
        [workload, "_", metric].concat()
    }
}
