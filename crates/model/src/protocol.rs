//! The worker protocol: JSON lines on stdin and stdout. `docs/worker-protocol.md` explains it.

use crate::fuzz::{Evaluated, Evaluation, FuzzCase};
use crate::machine::{CudaVersions, DeviceState, EnvironmentLock};
use crate::report::{Answer, FailureCause, KernelInfo};
use crate::suite::Work;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version that this holdpoint speaks.
pub const PROTOCOL_VERSION: u32 = 2;

/// A line of the protocol: a request with its number, or the answer that repeats it. An answer to another number is to
/// another request, whatever it says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message<T> {
    /// Number of the request: 1 for the first, each used once. 0 answers a line that has none.
    #[serde(default)]
    pub id: u64,
    #[serde(flatten)]
    pub body: T,
}

/// A request to a worker, one object per line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Identifies the worker. Always first.
    Hello {
        /// The version spoken here.
        protocol: u32,
    },
    /// Which workloads do you have?
    List {},
    /// Allocate buffers and draw inputs.
    Prepare {
        workload: String,
        seed: u64,
    },
    /// Run and time.
    Run(RunRequest),
    /// Check the answer that the last calls left behind; run once first when nothing has run yet.
    Verify {
        /// Name of the workload, already prepared.
        workload: String,
    },
    /// Free the workload's buffers.
    Release {
        workload: String,
    },
    /// Compute on tensors that lie in a file, and write what comes out back into it. For workers of users.
    Evaluate(Evaluation),
    /// Run a case and check the answer. For holdpoint's own workers, which have the oracles with them.
    Fuzz {
        case: FuzzCase,
    },
    Bye {},
}

/// Samples to take of one workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// Name of the workload, already prepared.
    pub workload: String,
    /// Seed of the inputs of these samples. Where it is not that of the inputs at hand, they are drawn anew before the clock starts.
    pub seed: u64,
    /// How many samples.
    pub samples_count: u64,
    /// How many calls make a sample.
    pub calls_per_sample: u64,
}

/// A worker's answer, one object per line, one answer per request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Response {
    /// Answer to `hello`.
    Hello(WorkerInfo),
    /// Answer to `list`.
    Workloads { workloads: Vec<WorkloadInfo> },
    /// Answer to `prepare`.
    Prepared {
        workload: String,
        /// Work of one call, where the worker knows it.
        #[serde(default)]
        work: Option<Work>,
        /// The kernel behind it, where it is one that can be told apart.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kernel: Option<KernelInfo>,
    },
    /// Answer to `run`.
    Samples(RunResult),
    /// Answer to `verify`.
    Verified {
        workload: String,
        /// How the answer compared; null when the worker has no check for it.
        answer: Option<Answer>,
    },
    /// Answer to `evaluate`.
    Computed {
        /// Time of all calls together.
        elapsed_ns: u64,
    },
    /// Answer to `fuzz`.
    Evaluated(Evaluated),
    /// Answer to `release`.
    Released { workload: String },
    /// The workload cannot run here; not a failure.
    Skipped {
        workload: String,
        /// A reason code or a sentence.
        reason: String,
    },
    /// The request could not be met; the worker lives on.
    Error {
        message: String,
        /// The kind of failure, where it is a known one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<FailureCause>,
        /// Whether the worker can do nothing more.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        fatal: bool,
    },
    /// Answer to `bye`.
    Bye {},
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerInfo {
    /// The version it speaks.
    pub protocol: u32,
    pub name: String,
    pub version: String,
    /// Its clock, and what the clock includes: `host_monotonic`, `process_wall`, …
    pub timer: String,
    /// Smallest step of that clock.
    pub clock_resolution_ns: u64,
    /// The process that makes the calls, where another one was started and handed its pipes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_id: Option<u32>,
    /// The device it uses, where it uses one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceInfo>,
    /// Settings that its times depend on: precision and determinism modes, threads, versions. Only equal ones are
    /// compared.
    #[serde(default, skip_serializing_if = "EnvironmentLock::is_empty")]
    pub environment_lock: EnvironmentLock,
}

/// The device that a worker uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceInfo {
    /// The device's number on this machine.
    pub ordinal: u32,
    pub name: String,
    #[serde(default)]
    pub uuid: String,
    /// Compute capability, `major.minor`.
    #[serde(default)]
    pub compute_capability: String,
    /// The versions behind its numbers.
    #[serde(default)]
    pub versions: CudaVersions,
    /// What it can do at most follows from these, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiprocessors: Option<u32>,
    /// The highest clock of its multiprocessors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_mhz_max: Option<u32>,
    /// The highest clock of its memory, which transfers twice per clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mhz_max: Option<u32>,
    /// Width of the memory's bus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bus_bits: Option<u32>,
    /// Size of the L2 cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2_bytes: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadInfo {
    pub name: String,
    pub op: String,
    /// Shape of the main input.
    #[serde(default)]
    pub shape: Vec<usize>,
    #[serde(default)]
    pub dtype: String,
    /// Its timer, if it is not the worker's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<String>,
    /// Whether its calls may be quick because of earlier ones on the same inputs: a cache is what is measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remembers: bool,
}

/// Times of one `run` request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    pub workload: String,
    /// Calls behind each sample.
    pub calls_per_sample: u64,
    /// Time of each sample.
    pub elapsed_ns: Vec<u64>,
    /// CPU time of each sample, where known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_ns: Vec<u64>,
    /// For how long of each sample it was ready to run and had no CPU, where known: others' doing, not the code's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wait_ns: Vec<u64>,
    /// Time spent on other work than the calls, all samples together: flushing caches, checking answers between samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untimed_ns: Option<u64>,
    /// Time of the first call on inputs that were drawn for this request, where the worker tells: no answer to them can have been kept.
    /// Not of a process's first call, which may have to load or compile something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_ns: Option<u64>,
    /// Numbers that the program printed, by metric, one for each call; absent where a call printed none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub printed: BTreeMap<String, Vec<f64>>,
    /// Peak resident memory of the process that ran the calls, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_rss_bytes: Option<u64>,
    /// Clock of the device's multiprocessors during each sample in MHz, where known; 0 where it could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sm_mhz: Vec<u32>,
    /// Most device memory held at a time since the workload was prepared, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_device_bytes: Option<u64>,
    /// The device's state after the samples, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceState>,
}
