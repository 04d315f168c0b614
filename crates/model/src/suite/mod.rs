//! Suites: workloads as data, read from TOML.

mod check;

pub use check::SuiteError;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A suite file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Version of this format.
    pub schema_version: u32,
    /// Name of the suite; baselines and trends are kept by it.
    pub name: String,
    /// What the suite is for.
    #[serde(default)]
    pub description: String,
    /// Seed of all inputs, unless a workload has its own.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// How to measure, for all workloads that do not say otherwise.
    #[serde(default)]
    pub measure: MeasurePlan,
    /// How a revision is built before it is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildSpec>,
    /// Programs that speak the worker protocol, by name; `builtin` replaces the built-in ops by a program that has them.
    #[serde(default)]
    pub workers: BTreeMap<String, WorkerSpec>,
    /// The workloads, in order.
    #[serde(default, rename = "workload")]
    pub workloads: Vec<WorkloadSpec>,
}

impl Suite {
    /// The seed of a workload's inputs.
    #[must_use]
    pub fn seed_of(&self, workload: &WorkloadSpec) -> u64 {
        workload.seed.unwrap_or(self.seed)
    }
}

/// The seeds' default.
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
    /// What to compute; `command` when `command` is given.
    #[serde(default)]
    pub op: String,
    /// Which worker runs it: `builtin` (default), `command`, or a name from `[workers]`.
    #[serde(default)]
    pub worker: String,
    /// Program and arguments of a `command` workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// What a `command` workload must print on stdout; its exit status must always be 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_stdout: Option<String>,
    /// Shape of the main input.
    #[serde(default)]
    pub shape: Vec<usize>,
    /// Element type.
    #[serde(default = "default_dtype")]
    pub dtype: String,
    /// Which implementation of a built-in op is timed.
    #[serde(default)]
    pub variant: Variant,
    /// What else the op wants to know.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// Seed of the inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The metrics to gate: `p50_ms`, `p95_ms`, `p99_ms`, `mean_ms`, `min_ms`, `cpu_p50_ms`.
    #[serde(default = "default_metrics")]
    pub metrics: Vec<String>,
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

fn default_metrics() -> Vec<String> {
    vec!["p50_ms".to_owned()]
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

/// Tolerance of the answer check: right when `|got - want| <= atol + rtol·|want|`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckSpec {
    /// Absolute tolerance.
    pub atol: f64,
    /// Relative tolerance.
    pub rtol: f64,
}

/// Work of one call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Work {
    /// Bytes that must move: each input read once, each output written once.
    pub bytes: u64,
    /// Floating-point operations.
    pub flops: u64,
    /// Items in the workload's own unit.
    pub items: u64,
    /// That unit, plural: `tiles`, `frames`.
    pub item: String,
}

/// What makes two measurements the same workload: only such times may be compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Identity {
    /// What was computed.
    pub op: String,
    /// Shape of the main input.
    #[serde(default)]
    pub shape: Vec<usize>,
    /// Element type.
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
/// Name of the worker that holds the built-in ops.
pub const WORKER_BUILTIN: &str = "builtin";
/// Name of the worker that runs programs.
pub const WORKER_COMMAND: &str = "command";

impl WorkloadSpec {
    /// The identity of this workload when timed with `timer`.
    #[must_use]
    pub fn identity(&self, timer: &str) -> Identity {
        let mut params = self.params.clone();
        if self.variant == Variant::Reference {
            params.insert("variant".to_owned(), Value::from("reference"));
        }
        if !self.command.is_empty() {
            params.insert("command".to_owned(), Value::from(self.command.clone()));
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
    #[must_use]
    pub fn timer(&self) -> &'static str {
        if self.worker == WORKER_COMMAND { TIMER_PROCESS } else { TIMER_HOST }
    }

    /// The flat name of one of this workload's metrics.
    #[must_use]
    pub fn metric_name(&self, metric: &str) -> String {
        format!("{}_{metric}", self.name)
    }
}
