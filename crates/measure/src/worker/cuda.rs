//! The built-in ops on a CUDA device as a worker. A fault or a hang takes its process with it, so it gets one of its own.

use super::evaluate::Tensors;
use super::{Computed, Known, Prepared, Worker, WorkerError};
use crate::fuzz::own;
use crate::machine;
use holdpoint_cuda::{self as cuda, CudaError, Dtype, Gpu, PrepareError, Timing, Unavailable};
use holdpoint_model::fuzz::{Evaluated, Evaluation, TensorPlace};
use holdpoint_model::protocol::{RunRequest, RunResult, WorkerInfo, WorkloadInfo};
use holdpoint_model::report::Answer;
use holdpoint_model::suite::{
    self, TIMER_CUDA_EVENTS, TIMER_CUDA_GRAPH, TIMER_HOST, WORKER_CUDA, Work, WorkloadSpec,
};
use holdpoint_model::{FailureCause, FuzzCase};
use holdpoint_ops::{BuildError, Tolerance};
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

/// A sample lasts a thousand of these: events step by half a microsecond.
const EVENT_RESOLUTION_NS: u64 = 500;

/// The built-in ops of a suite on one device.
pub struct Cuda {
    specs: Vec<WorkloadSpec>,
    /// The device, or why there is none.
    gpu: Result<Gpu, Unavailable>,
    prepared: HashMap<String, (cuda::Prepared, (Timing, cuda::Cache))>,
    /// Time added to every sample, as a share of it.
    slowdown: f64,
}

impl Cuda {
    /// A worker for those workloads that name it. Where there is no device it says so for each of them.
    #[must_use]
    pub fn new(workloads: &[WorkloadSpec], ordinal: u32, cache_dir: &Path, slowdown: f64) -> Self {
        Self {
            specs: workloads.iter().filter(|w| w.worker == WORKER_CUDA).cloned().collect(),
            gpu: Gpu::open(ordinal, cache_dir),
            prepared: HashMap::new(),
            slowdown,
        }
    }
}

/// Whether the ops can do what a workload asks, without a device.
///
/// # Errors
/// With what is wrong and what would be right.
pub fn validate(spec: &WorkloadSpec) -> Result<(), BuildError> {
    cuda::ops::validate(&request(spec, 0)?)
}

/// What a workload asks of the ops.
pub(crate) fn request(spec: &WorkloadSpec, seed: u64) -> Result<cuda::Request<'_>, BuildError> {
    let dtype = Dtype::parse(&spec.dtype)
        .ok_or_else(|| BuildError::Dtype { op: spec.op.clone(), dtype: spec.dtype.clone() })?;
    Ok(cuda::Request {
        op: &spec.op,
        shape: &spec.shape,
        dtype,
        variant: match spec.variant {
            suite::Variant::Fast => cuda::Variant::Fast,
            suite::Variant::Reference => cuda::Variant::Reference,
        },
        params: &spec.params,
        seed,
        tolerance: spec.check.map(|check| Tolerance { atol: check.atol, rtol: check.rtol }),
        misalign: 0,
        config: None,
        kernel: spec.kernel.as_ref(),
    })
}

/// What a case asks of the ops; absent when there is no such element type.
pub(crate) fn case_request(case: &FuzzCase) -> Option<cuda::Request<'_>> {
    let dtype = Dtype::parse(&case.dtype)?;
    Some(cuda::Request {
        op: &case.op,
        shape: &case.shape,
        dtype,
        variant: cuda::Variant::Fast,
        params: &case.params,
        seed: case.seed,
        tolerance: None,
        misalign: case.offset * dtype.bytes(),
        config: None,
        kernel: case.kernel.as_ref(),
    })
}

fn skipped(reason: &str) -> Evaluated {
    Evaluated { skipped: Some(reason.to_owned()), ..Evaluated::default() }
}

/// How a workload is timed.
pub(crate) fn how(spec: &WorkloadSpec) -> (Timing, cuda::Cache) {
    let timing = match spec.timer() {
        TIMER_CUDA_EVENTS => Timing::Events,
        TIMER_HOST => Timing::Host,
        _ => Timing::Graph,
    };
    let cache = match spec.cache {
        suite::Cache::Warm => cuda::Cache::Warm,
        suite::Cache::Cold => cuda::Cache::Cold,
    };
    (timing, cache)
}

impl From<CudaError> for WorkerError {
    fn from(error: CudaError) -> Self {
        Self { fatal: error.fatal, ..Self::new(error.cause, error.detail) }
    }
}

impl Worker for Cuda {
    fn hello(&mut self) -> Result<WorkerInfo, WorkerError> {
        let mut info = super::own_info(WORKER_CUDA, TIMER_CUDA_GRAPH, EVENT_RESOLUTION_NS);
        info.device = self.gpu.as_ref().ok().map(|gpu| gpu.info().clone());
        Ok(info)
    }

    fn list(&mut self) -> Result<Vec<WorkloadInfo>, WorkerError> {
        Ok(self.specs.iter().map(super::info_of).collect())
    }

    fn prepare(&mut self, workload: &str, seed: u64) -> Result<Prepared, WorkerError> {
        let spec = self.specs.iter().find(|spec| spec.name == workload);
        let spec = spec.ok_or_else(|| WorkerError::no_workload(workload))?;
        let gpu = match &mut self.gpu {
            Ok(gpu) => gpu,
            Err(unavailable) => return Ok(Prepared::Skipped(unavailable.reason.to_owned())),
        };
        // The memory of the one before goes back first.
        self.prepared.remove(workload);
        let refused = |error: &dyn ToString| WorkerError::new(FailureCause::WorkerError, error.to_string());
        let request = request(spec, seed).map_err(|error| refused(&error))?;
        let prepared = match cuda::Prepared::new(gpu, &request) {
            Ok(prepared) => prepared,
            Err(PrepareError::Skipped(reason)) => return Ok(Prepared::Skipped(reason)),
            Err(PrepareError::Request(error)) => return Err(refused(&error)),
            // Without a compiler, what was never compiled here cannot run: a fact about the machine.
            Err(PrepareError::Device(error)) if error.cause == FailureCause::NotStarted => {
                return Ok(Prepared::Skipped("nvrtc_not_found".to_owned()));
            }
            Err(PrepareError::Device(error)) => return Err(error.into()),
        };
        let work = prepared.work();
        let mut kernel = prepared.kernel_info();
        // Time that is put in is not in the kernel's code.
        kernel.code_sha256 = kernel.code_sha256.filter(|_| self.slowdown == 0.0);
        let kernel = Some(kernel);
        self.prepared.insert(workload.to_owned(), (prepared, how(spec)));
        let (bytes, flops, items) = (work.bytes, work.flops, work.items);
        let work = Some(Work { bytes, flops, items, item: work.item.to_owned() });
        Ok(Prepared::Ready(Box::new(Known { work, kernel })))
    }

    /// Inputs are drawn anew for every request, whatever its seed.
    fn run(&mut self, request: &RunRequest) -> Result<RunResult, WorkerError> {
        let RunRequest { workload, samples_count, calls_per_sample, .. } = request;
        let (Ok(gpu), Some((prepared, how))) = (&mut self.gpu, self.prepared.get_mut(workload)) else {
            return Err(WorkerError::no_workload(workload));
        };
        let times = prepared.run(gpu, *how, *samples_count, *calls_per_sample, self.slowdown)?;
        Ok(RunResult {
            workload: workload.clone(),
            calls_per_sample: *calls_per_sample,
            elapsed_ns: times.elapsed_ns,
            peak_rss_bytes: machine::peak_rss_bytes(),
            sm_mhz: times.sm_mhz,
            peak_device_bytes: prepared.peak_bytes(gpu),
            device: gpu.state(),
            ..RunResult::default()
        })
    }

    fn verify(&mut self, workload: &str) -> Result<Option<Answer>, WorkerError> {
        let (Ok(gpu), Some((prepared, _))) = (&mut self.gpu, self.prepared.get_mut(workload)) else {
            return Err(WorkerError::no_workload(workload));
        };
        let check = prepared.check(gpu)?;
        Ok(Some(Answer {
            passed: check.passed,
            values_count: check.total,
            max_abs_err: check.max_abs_err,
            max_rel_err: check.max_rel_err,
            first_bad: check.first_bad,
        }))
    }

    fn fuzz(&mut self, case: &FuzzCase) -> Result<Evaluated, WorkerError> {
        let gpu = match &mut self.gpu {
            Ok(gpu) => gpu,
            Err(unavailable) => return Ok(skipped(unavailable.reason)),
        };
        let refused = |detail: String| WorkerError::new(FailureCause::WorkerError, detail);
        let request =
            case_request(case).ok_or_else(|| refused(format!("no such dtype: {:?}", case.dtype)))?;
        let mut prepared = match cuda::Prepared::new(gpu, &request) {
            Ok(prepared) => prepared,
            Err(PrepareError::Skipped(reason)) => return Ok(skipped(&reason)),
            Err(PrepareError::Request(error)) => return Err(refused(error.to_string())),
            Err(PrepareError::Device(error)) if error.cause == FailureCause::NotStarted => {
                return Ok(skipped("nvrtc_not_found"));
            }
            Err(PrepareError::Device(error)) => return Err(error.into()),
        };
        Ok(match prepared.evaluate(gpu, case.values, case.seed)? {
            cuda::Evaluation::Checked(check) if check.passed => {
                Evaluated { errors: Some(own::errors(&check)), ..Evaluated::default() }
            }
            cuda::Evaluation::Checked(check) => own::wrong(&check),
            cuda::Evaluation::Wrong(kind, detail) => Evaluated::wrong(kind, detail),
        })
    }

    fn evaluate(&mut self, asked: &Evaluation) -> Result<Computed, WorkerError> {
        let gpu = match &mut self.gpu {
            Ok(gpu) => gpu,
            Err(unavailable) => return Ok(Computed::Skipped(unavailable.reason.to_owned())),
        };
        let refused = |detail: String| WorkerError::new(FailureCause::WorkerError, detail);
        let no_dtype = || refused(format!("no such dtype: {:?}", asked.dtype));
        let dtype = Dtype::parse(&asked.dtype).ok_or_else(no_dtype)?;
        let request = cuda::Request {
            op: &asked.op,
            shape: &asked.shape,
            dtype,
            variant: cuda::Variant::Fast,
            params: &asked.params,
            seed: asked.seed.unwrap_or(0),
            tolerance: None,
            misalign: 0,
            config: None,
            kernel: asked.kernel.as_ref(),
        };
        let mut prepared = match cuda::Prepared::new(gpu, &request) {
            Ok(prepared) => prepared,
            Err(PrepareError::Skipped(reason)) => return Ok(Computed::Skipped(reason)),
            Err(PrepareError::Request(error)) => return Ok(Computed::Skipped(error.to_string())),
            Err(PrepareError::Device(error)) if error.cause == FailureCause::NotStarted => {
                return Ok(Computed::Skipped("nvrtc_not_found".to_owned()));
            }
            Err(PrepareError::Device(error)) => return Err(error.into()),
        };
        let tensors = Tensors::open(asked)?;
        let bytes = |place: &TensorPlace| place.shape.iter().product::<usize>() * dtype.bytes();
        let mut elapsed = Duration::ZERO;
        for call in &asked.calls {
            let mut inputs: Vec<(&str, Vec<u8>)> = Vec::new();
            for place in &call.inputs {
                inputs.push((&place.name, tensors.read(place, bytes(place))?));
            }
            let computed = prepared.compute(gpu, &inputs, asked.repeats)?;
            let Some(computed) = computed else {
                let reason = format!("on a device {:?} takes other tensors than these", asked.op);
                return Ok(Computed::Skipped(reason));
            };
            for place in &call.outputs {
                let output = computed
                    .outputs
                    .iter()
                    .find(|(name, output)| *name == place.name && output.len() == bytes(place));
                let Some((_, output)) = output else {
                    let reason =
                        format!("on a device {:?} does not give {:?} in this form", asked.op, place.name);
                    return Ok(Computed::Skipped(reason));
                };
                tensors.write(place, output)?;
            }
            elapsed += computed.elapsed;
        }
        Ok(Computed::Timed(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX).max(1)))
    }

    fn release(&mut self, workload: &str) -> Result<(), WorkerError> {
        self.prepared.remove(workload);
        Ok(())
    }
}
