//! Workloads: their calls, the worker that makes them, and the clock around them.

use super::{
    BenchTask, Cache, CheckSpec, KernelSpec, Metrics, OpSpec, TIMER_CUDA_GRAPH, TIMER_HOST, TIMER_PROCESS,
    Variant, WORKER_BUILTIN, WORKER_COMMAND, WORKER_CUDA, WORKER_ENGINE, Work,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One workload of a suite: what to run. It does not run itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Unique within the suite; metrics are named after it.
    pub name: String,
    pub task: Task,
    /// The op to compute; `command` or `benchmark` where none of holdpoint's or a worker's is.
    pub op: String,
    /// Shape of the main input.
    pub shape: Vec<usize>,
    pub dtype: String,
    pub variant: Variant,
    /// The op's other parameters.
    pub params: Map<String, Value>,
    pub seed: Option<u64>,
    pub metrics: Metrics,
    /// Exactly this many samples, instead of measuring until the interval is narrow.
    pub iterations: Option<u32>,
    /// Cap on the measuring time of this workload.
    pub time_budget_ms: Option<f64>,
    /// How the answer is checked, where the op's own tolerance does not fit.
    pub check: Option<CheckSpec>,
    /// Work per call, for throughput; built-in ops declare their own.
    pub work: Option<Work>,
}

/// The kind of a workload's calls, with the settings of that kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// A built-in op on the CPU, or that of the program which the suite has in its place.
    Op,
    /// A built-in op on a CUDA device.
    DeviceOp(DeviceTask),
    /// A kernel of the user's in place of an op's.
    Kernel(Box<KernelSpec>, DeviceTask),
    /// A program: each call is a process.
    Command(CommandTask),
    /// A benchmark of a harness, which takes the times.
    Benchmark(Box<BenchTask>),
    /// A workload of this worker of the suite's.
    Served(String),
    /// A shape case of the suite's model.
    Engine,
}

/// How an op on a device is timed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceTask {
    /// The clock, where the suite names one.
    pub timer: Option<String>,
    /// Whether it finds its inputs in the device's cache.
    pub cache: Cache,
    /// The declaration of its op, where the suite declares it.
    pub declared: Option<OpSpec>,
}

/// A program, and what its calls need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandTask {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Text that it must print on stdout; its exit status must always be 0.
    pub expect_stdout: Option<String>,
    /// Program and arguments that are run once before its first call.
    pub setup: Vec<String>,
    /// Program and arguments that are run before each call.
    pub prepare: Vec<String>,
    /// Program and arguments of a server that it calls.
    pub server: Vec<String>,
    /// File that it reads from stdin.
    pub stdin: Option<String>,
    /// Environment variables, beside those that holdpoint has.
    pub env: BTreeMap<String, String>,
}

impl Task {
    /// A workload that this worker has by itself: an op of one of ours, or whatever one of the suite's calls so.
    pub fn of_worker(worker: &str) -> Self {
        match worker {
            WORKER_BUILTIN => Self::Op,
            WORKER_CUDA => Self::DeviceOp(DeviceTask::default()),
            worker => Self::Served(worker.to_owned()),
        }
    }

    /// The worker that makes the calls, by the name that suites and reports have for it.
    pub fn worker(&self) -> &str {
        match self {
            Self::Op => WORKER_BUILTIN,
            Self::DeviceOp(_) | Self::Kernel(..) => WORKER_CUDA,
            Self::Command(_) | Self::Benchmark(_) => WORKER_COMMAND,
            Self::Served(worker) => worker,
            Self::Engine => WORKER_ENGINE,
        }
    }

    /// The clock that the suite promises.
    pub fn timer(&self) -> &str {
        match self {
            Self::DeviceOp(device) | Self::Kernel(_, device) => {
                device.timer.as_deref().unwrap_or(TIMER_CUDA_GRAPH)
            }
            Self::Command(_) => TIMER_PROCESS,
            Self::Benchmark(bench) => bench.kind.as_str(),
            Self::Op | Self::Served(_) | Self::Engine => TIMER_HOST,
        }
    }

    /// How it is timed on a device, if our CUDA worker runs it.
    pub fn device(&self) -> Option<&DeviceTask> {
        match self {
            Self::DeviceOp(device) | Self::Kernel(_, device) => Some(device),
            _ => None,
        }
    }

    /// The declaration of its op, where the suite declares it and our CUDA worker runs it.
    pub fn declared(&self) -> Option<&OpSpec> {
        self.device()?.declared.as_ref()
    }

    pub fn kernel(&self) -> Option<&KernelSpec> {
        match self {
            Self::Kernel(kernel, _) => Some(kernel),
            _ => None,
        }
    }

    /// A program that is timed by itself.
    pub fn command(&self) -> Option<&CommandTask> {
        match self {
            Self::Command(command) => Some(command),
            _ => None,
        }
    }

    pub fn bench(&self) -> Option<&BenchTask> {
        match self {
            Self::Benchmark(bench) => Some(bench),
            _ => None,
        }
    }

    /// The program that is started, by itself or by a harness's turn.
    pub fn call(&self) -> Option<&CommandTask> {
        match self {
            Self::Command(command) => Some(command),
            Self::Benchmark(bench) => Some(&bench.call),
            _ => None,
        }
    }
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

impl Workload {
    /// A workload with nothing beside what has to be said.
    pub fn new(name: &str, task: Task, op: &str) -> Self {
        Self {
            name: name.to_owned(),
            task,
            op: op.to_owned(),
            shape: Vec::new(),
            dtype: String::new(),
            variant: Variant::default(),
            params: Map::new(),
            seed: None,
            metrics: Metrics::default(),
            iterations: None,
            time_budget_ms: None,
            check: None,
            work: None,
        }
    }

    /// The identity of this workload when timed with `timer`.
    pub fn identity(&self, timer: &str) -> Identity {
        let mut params = self.params.clone();
        if self.variant == Variant::Reference {
            params.insert("variant".to_owned(), Value::from("reference"));
        }
        match &self.task {
            Task::DeviceOp(device) | Task::Kernel(_, device) if device.cache == Cache::Cold => {
                params.insert("cache".to_owned(), Value::from("cold"));
            }
            // Where a harness is built differs between revisions.
            Task::Benchmark(bench) => {
                _ = params.insert("benchmark".to_owned(), Value::from(bench.id.clone()))
            }
            Task::Command(task) => _ = params.insert("command".to_owned(), Value::from(task.command.clone())),
            Task::Op | Task::DeviceOp(_) | Task::Kernel(..) | Task::Served(_) | Task::Engine => {}
        }
        Identity {
            op: self.op.clone(),
            shape: self.shape.clone(),
            dtype: self.dtype.clone(),
            timer: timer.to_owned(),
            params,
        }
    }

    /// The worker that makes its calls.
    pub fn worker(&self) -> &str {
        self.task.worker()
    }

    /// The clock that the suite promises for it.
    pub fn timer(&self) -> &str {
        self.task.timer()
    }

    /// Whether our CUDA worker times it by the host's clock, launches and waiting included.
    pub fn is_cuda_by_host_clock(&self) -> bool {
        self.task.device().is_some() && self.timer() == TIMER_HOST
    }

    /// The name of one of its metrics.
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
