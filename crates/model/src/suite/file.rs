//! A suite as its file has it: keys, their defaults, and which of them go together.

use super::{
    BuildSpec, Cache, CheckSpec, CommandTask, DeviceTask, EngineSpec, FuzzLimits, GateSettings, HarnessSpec,
    HistorySettings, KernelSpec, MeasurePlan, Metrics, OpSpec, Suite, Task, Variant, WORKER_BUILTIN,
    WORKER_COMMAND, WORKER_CUDA, Work, WorkerSpec, Workload,
};
use crate::toml_file::{TomlError, invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Suite")]
pub struct SuiteFile {
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

/// A `[[workload]]` table of a suite's file.
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

impl SuiteFile {
    /// What the file says, each workload as what it is. Whether it makes sense together is for [`Suite`] to check.
    pub(super) fn resolve(self) -> Result<Suite, TomlError> {
        let workloads = self.workloads.into_iter().enumerate().map(|(index, workload)| {
            let place = format!("workload {} ({:?})", index + 1, workload.name);
            workload.resolve(&place)
        });
        Ok(Suite {
            schema_version: self.schema_version,
            name: self.name,
            description: self.description,
            seed: self.seed,
            device: self.device,
            measure: self.measure,
            gate: self.gate,
            history: self.history,
            build: self.build,
            pass_env: self.pass_env,
            harness: self.harness,
            engine: self.engine,
            workers: self.workers,
            ops: self.ops,
            fuzz: self.fuzz,
            workloads: workloads.collect::<Result<_, _>>()?,
            only: None,
            dir: None,
        })
    }
}

impl From<Suite> for SuiteFile {
    fn from(suite: Suite) -> Self {
        Self {
            schema_version: suite.schema_version,
            name: suite.name,
            description: suite.description,
            seed: suite.seed,
            device: suite.device,
            measure: suite.measure,
            gate: suite.gate,
            history: suite.history,
            build: suite.build,
            pass_env: suite.pass_env,
            harness: suite.harness,
            engine: suite.engine,
            workers: suite.workers,
            ops: suite.ops,
            fuzz: suite.fuzz,
            workloads: suite.workloads.into_iter().map(WorkloadSpec::from).collect(),
        }
    }
}

impl WorkloadSpec {
    fn resolve(self, place: &str) -> Result<Workload, TomlError> {
        let has_command = !self.command.is_empty();
        let worker = match self.worker.as_str() {
            "" if has_command => WORKER_COMMAND,
            "" => WORKER_BUILTIN,
            name => name,
        };
        let is_command = worker == WORKER_COMMAND;
        if is_command != has_command {
            return invalid(place, "`command = [program, arguments…]` and worker \"command\" go together");
        }
        let of_commands = [
            ("expect_stdout", self.expect_stdout.is_some()),
            ("setup", !self.setup.is_empty()),
            ("prepare", !self.prepare.is_empty()),
            ("server", !self.server.is_empty()),
            ("stdin", self.stdin.is_some()),
            ("env", !self.env.is_empty()),
        ];
        if let Some((key, _)) = of_commands.iter().find(|(_, is_given)| *is_given && !is_command) {
            return invalid(place, format!("`{key}` is for `command` workloads"));
        }
        let is_cuda = worker == WORKER_CUDA;
        if !is_cuda && (self.timer.is_some() || self.cache != Cache::Warm) {
            return invalid(place, "`timer` and `cache` are for workloads of worker \"cuda\"");
        }
        if self.kernel.is_some() && (!is_cuda || self.variant != Variant::Fast) {
            return invalid(
                place,
                "`kernel` is for worker \"cuda\", and takes the place of its fast variant",
            );
        }
        let device = DeviceTask { timer: self.timer, cache: self.cache, declared: None };
        let (task, dtype) = match (worker, self.kernel) {
            (WORKER_COMMAND, _) => {
                let task = CommandTask {
                    command: self.command,
                    expect_stdout: self.expect_stdout,
                    setup: self.setup,
                    prepare: self.prepare,
                    server: self.server,
                    stdin: self.stdin,
                    env: self.env,
                };
                (Task::Command(task), String::new())
            }
            (WORKER_CUDA, Some(kernel)) => (Task::Kernel(Box::new(kernel), device), self.dtype),
            (WORKER_CUDA, None) => (Task::DeviceOp(device), self.dtype),
            (worker, _) => (Task::of_worker(worker), self.dtype),
        };
        let op = if self.op.is_empty() && is_command { WORKER_COMMAND.to_owned() } else { self.op };
        Ok(Workload {
            name: self.name,
            task,
            op,
            shape: self.shape,
            dtype,
            variant: self.variant,
            params: self.params,
            seed: self.seed,
            metrics: self.metrics,
            iterations: self.iterations,
            time_budget_ms: self.time_budget_ms,
            check: self.check,
            work: self.work,
        })
    }
}

impl From<Workload> for WorkloadSpec {
    fn from(workload: Workload) -> Self {
        let worker = workload.worker().to_owned();
        let (mut timer, mut cache, mut kernel, mut call) = (None, Cache::Warm, None, CommandTask::default());
        match workload.task {
            Task::DeviceOp(device) => (timer, cache) = (device.timer, device.cache),
            Task::Kernel(spec, device) => (kernel, timer, cache) = (Some(*spec), device.timer, device.cache),
            Task::Command(task) => call = task,
            Task::Benchmark(task) => call = task.call,
            Task::Op | Task::Served(_) | Task::Engine => {}
        }
        Self {
            name: workload.name,
            op: workload.op,
            worker,
            command: call.command,
            expect_stdout: call.expect_stdout,
            setup: call.setup,
            prepare: call.prepare,
            server: call.server,
            stdin: call.stdin,
            env: call.env,
            shape: workload.shape,
            dtype: workload.dtype,
            variant: workload.variant,
            timer,
            cache,
            params: workload.params,
            kernel,
            seed: workload.seed,
            metrics: workload.metrics,
            iterations: workload.iterations,
            time_budget_ms: workload.time_budget_ms,
            check: workload.check,
            work: workload.work,
        }
    }
}
