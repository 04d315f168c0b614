//! Workers: whatever owns workloads and times them when asked.
//!
//! One trait, in process ([`Builtin`], [`Commands`]) or in a child process that speaks the protocol
//! ([`Child`]). A worker never decides anything, and what it says is checked by the caller.

mod builtin;
mod child;
mod commands;
pub(crate) mod cuda;
mod evaluate;
mod lines;
mod place;
mod serve;
mod slowdown;
mod tail;
mod waits;

pub use builtin::Builtin;
pub use child::Child;
pub use commands::Commands;
pub use cuda::Cuda;
pub use place::Place;
pub(crate) use place::cpus_allowed;
pub use serve::serve;
pub(crate) use tail::Tail;

use holdpoint_model::fuzz::{Evaluated, Evaluation};
use holdpoint_model::limits::clean_text;
use holdpoint_model::machine::EnvironmentLock;
use holdpoint_model::protocol::{PROTOCOL_VERSION, RunRequest, RunResult, WorkerInfo, WorkloadInfo};
use holdpoint_model::report::{Answer, KernelInfo};
use holdpoint_model::suite::{WORKER_CUDA, Work, WorkloadSpec};
use holdpoint_model::{Failure, FailureCause, FuzzCase};
use holdpoint_ops::{Backend, BuildError, Check, Request, Tolerance};

/// Whether the built-in ops can do what a workload asks, without preparing it and without a device.
///
/// # Errors
/// With what is wrong and what would be right.
pub fn validate(spec: &WorkloadSpec) -> Result<(), BuildError> {
    let backend = if spec.worker == WORKER_CUDA { Backend::Cuda } else { Backend::Cpu };
    holdpoint_ops::validate(&request(spec, 0), backend)
}

/// What a workload asks of the ops.
pub(crate) fn request(spec: &WorkloadSpec, seed: u64) -> Request {
    Request {
        variant: spec.variant,
        seed,
        tolerance: spec.check.map(|check| Tolerance { atol: check.atol, rtol: check.rtol }),
        kernel: spec.kernel.clone(),
        ..Request::new(&spec.op, &spec.shape, &spec.dtype, &spec.params)
    }
}

/// A check's outcome as a worker tells it.
fn answer(check: Check) -> Answer {
    Answer {
        passed: check.passed,
        values_count: check.total,
        max_abs_err: check.max_abs_err,
        max_rel_err: check.max_rel_err,
        first_bad: check.first_bad,
    }
}

/// Something that owns workloads and times them when asked.
pub trait Worker {
    /// Who it is. Always asked first.
    ///
    /// # Errors
    /// When the worker cannot answer.
    fn hello(&mut self) -> Result<WorkerInfo, WorkerError>;

    /// The workloads it has.
    ///
    /// # Errors
    /// When the worker cannot answer.
    fn list(&mut self) -> Result<Vec<WorkloadInfo>, WorkerError>;

    /// Allocates buffers and draws inputs.
    ///
    /// # Errors
    /// When the workload is unknown or cannot be prepared.
    fn prepare(&mut self, workload: &str, seed: u64) -> Result<Prepared, WorkerError>;

    /// Runs and times. It makes untimed calls first where caches may have gone cold since the last request.
    ///
    /// # Errors
    /// When the workload is not prepared or fails.
    fn run(&mut self, request: &RunRequest) -> Result<RunResult, WorkerError>;

    /// Checks the answer that the last timed calls left behind, or that of one call when there were none.
    ///
    /// # Errors
    /// When the workload is not prepared or fails.
    fn verify(&mut self, workload: &str) -> Result<Option<Answer>, WorkerError>;

    /// Runs a case and checks the answer to it; holdpoint's own workers can.
    ///
    /// # Errors
    /// When it fails, or the worker cannot.
    fn fuzz(&mut self, _: &FuzzCase) -> Result<Evaluated, WorkerError> {
        Err(WorkerError::new(FailureCause::WorkerError, "this worker has no oracles"))
    }

    /// Computes on tensors in a file, timed; workers of users can.
    ///
    /// # Errors
    /// When it fails, or the worker cannot.
    fn evaluate(&mut self, _: &Evaluation) -> Result<Computed, WorkerError> {
        Err(WorkerError::new(FailureCause::WorkerError, "this worker does not take tensors"))
    }

    /// Frees the workload's buffers.
    ///
    /// # Errors
    /// When the worker cannot answer.
    fn release(&mut self, workload: &str) -> Result<(), WorkerError>;

    /// The process it lives in, where that is one of its own.
    fn process_id(&self) -> Option<u32> {
        None
    }
}

/// Who a worker of this process is.
fn own_info(name: &str, timer: &str, clock_resolution_ns: u64) -> WorkerInfo {
    WorkerInfo {
        protocol: PROTOCOL_VERSION,
        name: name.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        timer: timer.to_owned(),
        clock_resolution_ns,
        device: None,
        environment_lock: EnvironmentLock::new(),
    }
}

/// A workload of a suite as a worker lists it.
fn info_of(spec: &WorkloadSpec) -> WorkloadInfo {
    let (name, op) = (spec.name.clone(), spec.op.clone());
    let timer = Some(spec.timer().to_owned()).filter(|_| spec.worker == WORKER_CUDA);
    WorkloadInfo { name, op, shape: spec.shape.clone(), dtype: spec.dtype.clone(), timer }
}

/// A workload made ready, or the reason why it cannot run here.
#[derive(Clone, Debug, PartialEq)]
pub enum Prepared {
    /// Ready, with what the worker knows about it.
    Ready(Box<Known>),
    /// Cannot run here; not a failure.
    Skipped(String),
}

/// What came of computing on tensors in a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Computed {
    /// The time of all calls together.
    Timed(u64),
    /// The worker has no kernel for this; not a failure.
    Skipped(String),
}

/// What a worker knows about a workload that is ready.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// Work of one call.
    pub work: Option<Work>,
    /// The kernel behind it.
    pub kernel: Option<KernelInfo>,
}

/// What went wrong with a worker.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{detail}")]
pub struct WorkerError {
    /// The kind of failure.
    pub cause: FailureCause,
    /// What happened.
    pub detail: String,
    /// The last lines it wrote to stderr.
    pub stderr_tail: Vec<String>,
    /// Whether the worker is gone.
    pub fatal: bool,
    /// The workload whose doing it is, where it is not that of the request.
    pub blamed: Option<String>,
}

impl WorkerError {
    /// A failure that the worker survives. The detail may quote the worker, so it is cut and cleaned.
    #[must_use]
    pub fn new(cause: FailureCause, detail: impl Into<String>) -> Self {
        Self {
            cause,
            detail: clean_text(&detail.into()),
            stderr_tail: Vec::new(),
            fatal: false,
            blamed: None,
        }
    }

    /// A failure that ends the worker.
    #[must_use]
    pub fn fatal(cause: FailureCause, detail: impl Into<String>) -> Self {
        Self { fatal: true, ..Self::new(cause, detail) }
    }

    /// A request for a workload that is unknown or not prepared.
    #[must_use]
    pub(crate) fn no_workload(name: &str) -> Self {
        Self::new(FailureCause::WorkerError, format!("workload {name:?} is not known here, or not prepared"))
    }
}

impl From<WorkerError> for Failure {
    fn from(error: WorkerError) -> Self {
        Self { cause: error.cause, detail: error.detail, stderr_tail: error.stderr_tail, samples: None }
    }
}
