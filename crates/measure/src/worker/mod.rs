//! Workers own workloads and time them when asked.
//!
//! One trait, in process ([`Builtin`], [`Commands`]) or in a child process that speaks the protocol ([`Child`]). A
//! worker never decides anything, and its caller checks everything it reports.

mod builtin;
mod child;
mod commands;
pub(crate) mod cuda;
mod evaluate;
pub(crate) mod own;
mod serve;
mod server;
mod turns;

pub use builtin::Builtin;
pub use child::Child;
pub use commands::Commands;
pub use cuda::Cuda;
pub use serve::serve;

use crate::jobs::Paused;
use crate::program::WorkerError;
use holdpoint_model::fuzz::{Evaluated, Evaluation};
use holdpoint_model::machine::EnvironmentLock;
use holdpoint_model::protocol::{PROTOCOL_VERSION, RunRequest, RunResult, WorkerInfo, WorkloadInfo};
use holdpoint_model::report::{Answer, KernelInfo};
use holdpoint_model::suite::{Work, Workload};
use holdpoint_model::{FailureCause, FuzzCase};
use holdpoint_ops::{Backend, BuildError, Check, Request, Tolerance};

/// Checks that the built-in ops can run a workload, without preparing it and without a device.
pub fn validate(spec: &Workload) -> Result<(), BuildError> {
    let backend = if spec.task.device().is_some() { Backend::Cuda } else { Backend::Cpu };
    holdpoint_ops::validate(&op_request(spec, 0), backend)
}

pub(crate) fn op_request(spec: &Workload, seed: u64) -> Request {
    Request {
        variant: spec.variant,
        seed,
        tolerance: spec.check.map(|check| Tolerance { atol: check.atol, rtol: check.rtol }),
        kernel: spec.task.kernel().cloned(),
        declared: spec.task.declared().cloned(),
        ..Request::new(&spec.op, &spec.shape, &spec.dtype, &spec.params)
    }
}

fn to_answer(check: Check) -> Answer {
    Answer {
        passed: check.passed,
        values_count: check.total,
        max_abs_err: check.max_abs_err,
        max_rel_err: check.max_rel_err,
        first_bad: check.first_bad,
        checked_by: check.checked_by,
    }
}

/// Something that owns workloads and times them when asked.
/// Requests for a workload that will come next.
#[derive(Clone, Debug)]
pub struct Coming {
    pub workload: String,
    pub samples_count: u64,
    pub requests: u32,
}

pub trait Worker {
    /// Always asked first.
    fn hello(&mut self) -> Result<WorkerInfo, WorkerError>;

    fn list(&mut self) -> Result<Vec<WorkloadInfo>, WorkerError>;

    /// Allocates buffers and draws inputs.
    fn prepare(&mut self, workload: &str, seed: u64) -> Result<Prepared, WorkerError>;

    /// Makes untimed calls first where caches may have gone cold since the last request.
    fn run(&mut self, request: &RunRequest) -> Result<RunResult, WorkerError>;

    /// Which requests will come next, so that one process of a harness can serve several.
    fn announce(&mut self, _: Vec<Coming>) {}

    /// Checks the answer that the last timed calls left behind, or makes a call if there were none.
    fn verify(&mut self, workload: &str) -> Result<Option<Answer>, WorkerError>;

    /// Runs a case and checks its answer, in our own workers.
    fn fuzz(&mut self, _: &FuzzCase) -> Result<Evaluated, WorkerError> {
        Err(WorkerError::new(FailureCause::WorkerError, "this worker has no oracles"))
    }

    /// Computes on tensors in a file and times it.
    fn evaluate(&mut self, _: &Evaluation) -> Result<Computed, WorkerError> {
        Err(WorkerError::new(FailureCause::WorkerError, "this worker does not take tensors"))
    }

    fn release(&mut self, workload: &str) -> Result<(), WorkerError>;

    /// Stops its processes, if it has some of its own, until the value is dropped.
    fn pause(&self) -> std::io::Result<Paused> {
        Ok(Paused::default())
    }

    /// Its process, if it has one of its own.
    fn process_id(&self) -> Option<u32> {
        None
    }

    /// The process that makes its calls, if it is not ours: another one where a wrapper was started.
    fn caller_id(&self) -> Option<u32> {
        self.process_id()
    }

    /// How long a thread of ours waited for a CPU in order to read the last answer.
    fn reader_wait_ns(&self) -> u64 {
        0
    }
}

fn worker_info(name: &str, timer: &str, clock_resolution_ns: u64) -> WorkerInfo {
    WorkerInfo {
        protocol: PROTOCOL_VERSION,
        name: name.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        timer: timer.to_owned(),
        clock_resolution_ns,
        process_id: None,
        device: None,
        environment_lock: EnvironmentLock::new(),
    }
}

fn workload_info(spec: &Workload) -> WorkloadInfo {
    let (name, op) = (spec.name.clone(), spec.op.clone());
    let timer = Some(spec.timer().to_owned()).filter(|_| spec.task.device().is_some());
    WorkloadInfo { name, op, shape: spec.shape.clone(), dtype: spec.dtype.clone(), timer, remembers: false }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Prepared {
    Ready(Box<PreparedInfo>),
    /// Cannot run here, which is not a failure.
    Skipped(String),
}

impl Prepared {
    fn ready(work: Option<Work>, kernel: Option<KernelInfo>) -> Self {
        Self::Ready(Box::new(PreparedInfo { work, kernel }))
    }
}

/// The outcome of computing on tensors in a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Computed {
    /// Nanoseconds of all calls together.
    Timed(u64),
    /// The worker has no kernel for this, which is not a failure.
    Skipped(String),
}

/// Properties of a prepared workload, as the worker states them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PreparedInfo {
    pub work: Option<Work>,
    pub kernel: Option<KernelInfo>,
}
