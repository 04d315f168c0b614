//! The built-in ops on a CUDA device as a worker. It gets its own process, because a fault or a hang takes the process
//! down.

use super::evaluate::{Tensors, evaluation_request};
use super::own;
use super::{Computed, Prepared, Worker, op_request};
use crate::clock::nanos;
use crate::machine;
use crate::program::WorkerError;
use holdpoint_cuda::{CudaError, Timing, Unavailable};
use holdpoint_model::fuzz::{Evaluated, Evaluation};
use holdpoint_model::machine::POWER_LIMIT;
use holdpoint_model::metric::METRIC_ENERGY;
use holdpoint_model::protocol::{RunRequest, RunResult, WorkerInfo, WorkloadInfo};
use holdpoint_model::report::Answer;
use holdpoint_model::suite::{Cache, TIMER_CUDA_EVENTS, TIMER_CUDA_GRAPH, TIMER_HOST, WORKER_CUDA, Workload};
use holdpoint_model::{FailureCause, FuzzCase};
use holdpoint_ops::cuda::{self, Gpu, PrepareError};
use holdpoint_ops::{Domain, Element, Request, Tensor};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};

/// A sample lasts a thousand of these: events step by half a microsecond.
const EVENT_RESOLUTION_NS: u64 = 500;

/// How long calls go on between two looks at the device's energy.
const ENERGY_BATCH_NS: u64 = 5_000_000;
/// How long calls go on for a figure of their energy, and when to give up.
const ENERGY_LEAST: Duration = Duration::from_millis(300);
const ENERGY_MAX: Duration = Duration::from_secs(3);
/// Rest after calls that may have drawn more power than the device may draw for long: it lowers its clock for a while.
const ENERGY_REST: Duration = Duration::from_millis(100);

/// The built-in ops on a CUDA device.
pub struct Cuda {
    specs: Vec<Workload>,
    gpu: Result<Gpu, Unavailable>,
    prepared: HashMap<String, (cuda::Prepared, (Timing, Cache))>,
    /// Time added to each sample, as a share of it.
    slowdown: f64,
    /// Whether kernels that were missing in the cache have been compiled for all workloads.
    is_compiled_ahead: bool,
}

impl Cuda {
    /// Without a device, every workload is skipped with the reason.
    pub fn new(workloads: &[Workload], ordinal: u32, cache_dir: &Path, slowdown: f64) -> Self {
        Self {
            specs: workloads.iter().filter(|w| w.task.device().is_some()).cloned().collect(),
            gpu: Gpu::open(ordinal, cache_dir),
            prepared: HashMap::new(),
            slowdown,
            is_compiled_ahead: false,
        }
    }
}

/// Millijoules of a call. The device counts in steps of a tenth of a second, so that calls are counted from one step to another,
/// and reading the count takes milliseconds, in which the device works on what `queue` gave it. Absent where it does not count.
fn energy_per_call(
    gpu: &mut Gpu,
    queue: &mut dyn FnMut(&mut Gpu) -> Result<u64, CudaError>,
) -> Result<Option<f64>, WorkerError> {
    let Some(mut seen_mj) = gpu.energy_mj() else { return Ok(None) };
    let (start, mut calls, mut first) = (Instant::now(), 0, None);
    while start.elapsed() < ENERGY_MAX {
        calls += queue(gpu)?;
        let now_mj = gpu.energy_mj();
        gpu.synchronize()?;
        let Some(now_mj) = now_mj.filter(|now_mj| *now_mj > seen_mj) else { continue };
        seen_mj = now_mj;
        let (at, first_mj, first_calls) = *first.get_or_insert((Instant::now(), now_mj, calls));
        if at.elapsed() >= ENERGY_LEAST {
            return Ok(Some((now_mj - first_mj) as f64 / (calls - first_calls) as f64));
        }
    }
    Ok(None)
}

pub(crate) fn choose_timing(spec: &Workload) -> (Timing, Cache) {
    let timing = match spec.timer() {
        TIMER_CUDA_EVENTS => Timing::Events,
        TIMER_HOST => Timing::Host,
        _ => Timing::Graph,
    };
    (timing, spec.task.device().map(|device| device.cache).unwrap_or_default())
}

impl From<CudaError> for WorkerError {
    fn from(error: CudaError) -> Self {
        Self { fatal: error.fatal, ..Self::new(error.cause, error.detail) }
    }
}

fn prepare(gpu: &mut Gpu, request: &Request) -> Result<cuda::Prepared, PrepareError> {
    found_or_skipped(cuda::Prepared::new(gpu, request))
}

fn found_or_skipped(prepared: Result<cuda::Prepared, PrepareError>) -> Result<cuda::Prepared, PrepareError> {
    prepared.map_err(|error| match error {
        // Without a compiler, a kernel that was never compiled here cannot run: a fact about the machine.
        PrepareError::Device(error) if error.cause == FailureCause::NotStarted => {
            PrepareError::Skipped("nvrtc_not_found".to_owned())
        }
        error => error,
    })
}

impl From<PrepareError> for WorkerError {
    fn from(error: PrepareError) -> Self {
        match error {
            PrepareError::Device(error) => error.into(),
            other => Self::new(FailureCause::WorkerError, other.to_string()),
        }
    }
}

impl Worker for Cuda {
    fn hello(&mut self) -> Result<WorkerInfo, WorkerError> {
        let mut info = super::worker_info(WORKER_CUDA, TIMER_CUDA_GRAPH, EVENT_RESOLUTION_NS);
        info.device = self.gpu.as_ref().ok().map(|gpu| gpu.info().clone());
        let power_limit_w = self.gpu.as_ref().ok().and_then(Gpu::power_limit_w);
        info.environment_lock
            .extend(power_limit_w.map(|watts| (POWER_LIMIT.to_owned(), format!("{watts:.0}"))));
        Ok(info)
    }

    fn list(&mut self) -> Result<Vec<WorkloadInfo>, WorkerError> {
        Ok(self.specs.iter().map(super::workload_info).collect())
    }

    fn prepare(&mut self, workload: &str, seed: u64) -> Result<Prepared, WorkerError> {
        let spec = self.specs.iter().find(|spec| spec.name == workload);
        let spec = spec.ok_or_else(|| WorkerError::no_workload(workload))?;
        let gpu = match &mut self.gpu {
            Ok(gpu) => gpu,
            Err(unavailable) => return Ok(Prepared::Skipped(unavailable.reason.to_owned())),
        };
        if gpu.has_compiled() && !std::mem::replace(&mut self.is_compiled_ahead, true) {
            let requests: Vec<Request> = self.specs.iter().map(|spec| op_request(spec, seed)).collect();
            gpu.compile_ahead(&requests);
        }
        // Free the previous buffers first.
        self.prepared.remove(workload);
        let prepared = match prepare(gpu, &op_request(spec, seed)) {
            Err(PrepareError::Skipped(reason)) => return Ok(Prepared::Skipped(reason)),
            prepared => prepared?,
        };
        let work = Some(prepared.work());
        let mut kernel = prepared.kernel_info();
        // An artificial slowdown is not part of the kernel's code.
        kernel.code_sha256 = kernel.code_sha256.filter(|_| self.slowdown == 0.0);
        let kernel = Some(kernel);
        self.prepared.insert(workload.to_owned(), (prepared, choose_timing(spec)));
        Ok(Prepared::ready(work, kernel))
    }

    fn run(&mut self, request: &RunRequest) -> Result<RunResult, WorkerError> {
        let RunRequest { workload, seed, samples_count, calls_per_sample } = request;
        let (Ok(gpu), Some((prepared, timing))) = (&mut self.gpu, self.prepared.get_mut(workload)) else {
            return Err(WorkerError::no_workload(workload));
        };
        prepared.draw_next(*seed);
        let (times, device) =
            prepared.run_watched(gpu, *timing, *samples_count, *calls_per_sample, self.slowdown)?;
        let wants_energy =
            self.specs.iter().any(|spec| spec.name == *workload && spec.metrics.is_of_sides(METRIC_ENERGY));
        let (mut printed, mut untimed_ns) = (BTreeMap::new(), None);
        if wants_energy {
            let start = Instant::now();
            let call_ns = times.elapsed_ns.iter().min().copied().unwrap_or(0) / (*calls_per_sample).max(1);
            let calls_count = (ENERGY_BATCH_NS / call_ns.max(1)).max(1);
            let mut queue = |gpu: &mut Gpu| prepared.queue_untimed(gpu, timing.0, calls_count);
            if let Some(energy_mj) = energy_per_call(gpu, &mut queue)? {
                printed.insert(METRIC_ENERGY.to_owned(), vec![energy_mj]);
            }
            std::thread::sleep(ENERGY_REST);
            untimed_ns = Some(nanos(start.elapsed()));
        }
        Ok(RunResult {
            printed,
            untimed_ns,
            workload: workload.clone(),
            calls_per_sample: *calls_per_sample,
            elapsed_ns: times.elapsed_ns,
            peak_rss_bytes: machine::peak_rss_bytes(),
            sm_mhz: times.sm_mhz,
            peak_device_bytes: prepared.peak_bytes(gpu),
            device,
            ..RunResult::default()
        })
    }

    fn verify(&mut self, workload: &str) -> Result<Option<Answer>, WorkerError> {
        let (Ok(gpu), Some((prepared, _))) = (&mut self.gpu, self.prepared.get_mut(workload)) else {
            return Err(WorkerError::no_workload(workload));
        };
        // The oracle of a declared op is a worker that only `fuzz` and `check` ask.
        if self.specs.iter().any(|spec| spec.name == workload && spec.task.declared().is_some()) {
            return Ok(None);
        }
        let is_fresh = prepared.is_fresh();
        for (other, _) in self.prepared.values_mut().filter(|(other, _)| other.is_checked_with(is_fresh)) {
            other.begin_check()?;
        }
        let Some((prepared, _)) = self.prepared.get_mut(workload) else {
            return Err(WorkerError::no_workload(workload));
        };
        Ok(Some(super::to_answer(prepared.check(gpu)?)))
    }

    fn fuzz(&mut self, case: &FuzzCase) -> Result<Evaluated, WorkerError> {
        let gpu = match &mut self.gpu {
            Ok(gpu) => gpu,
            Err(unavailable) => return Ok(own::skipped(unavailable.reason)),
        };
        let prepared = found_or_skipped(cuda::Prepared::for_answers(gpu, &own::request(case)));
        match prepared.and_then(|mut prepared| prepared.evaluate(gpu, case.values, case.seed)) {
            Err(PrepareError::Skipped(reason)) => Ok(own::skipped(reason)),
            // Whether tensors beyond 2^31 elements fit is a fact about the machine.
            Err(PrepareError::Device(error))
                if own::is_huge(case) && error.cause == FailureCause::OutOfMemory =>
            {
                Ok(own::skipped(error.detail))
            }
            Err(error) => Err(error.into()),
            Ok(cuda::Evaluation::Checked(check)) => Ok(own::from_check(&check)),
            Ok(cuda::Evaluation::Wrong(kind, detail)) => Ok(Evaluated::wrong(kind, detail)),
        }
    }

    fn evaluate(&mut self, evaluation: &Evaluation) -> Result<Computed, WorkerError> {
        let gpu = match &mut self.gpu {
            Ok(gpu) => gpu,
            Err(unavailable) => return Ok(Computed::Skipped(unavailable.reason.to_owned())),
        };
        let request = evaluation_request(evaluation);
        let prepared = found_or_skipped(cuda::Prepared::for_answers(gpu, &request));
        let mut prepared = match prepared {
            Err(PrepareError::Request(error)) => return Ok(Computed::Skipped(error.to_string())),
            Err(PrepareError::Skipped(reason)) => return Ok(Computed::Skipped(reason)),
            prepared => prepared?,
        };
        let dtype = prepared.dtype();
        let tensors = Tensors::open(evaluation)?;
        let mut elapsed = Duration::ZERO;
        for call in &evaluation.calls {
            let mut inputs = prepared.tensors();
            tensors.read_inputs(&call.inputs, &mut inputs)?;
            let computed = match prepared.compute(gpu, &inputs, evaluation.repeats) {
                Err(PrepareError::Skipped(reason)) => return Ok(Computed::Skipped(reason)),
                computed => computed?,
            };
            for place in &call.outputs {
                let Some(output) = computed.outputs.iter().find(|output| output.name == place.name) else {
                    let reason = format!("on a device {:?} does not give {:?}", evaluation.op, place.name);
                    return Ok(Computed::Skipped(reason));
                };
                // All float outputs have the requested element type.
                let mut rounded = Tensor::new("", &output.dims, Domain::Any, Element::Float(dtype));
                rounded.set(&output.values());
                tensors.write(place, &rounded.bytes())?;
            }
            elapsed += computed.elapsed;
        }
        Ok(Computed::Timed(nanos(elapsed).max(1)))
    }

    fn release(&mut self, workload: &str) -> Result<(), WorkerError> {
        self.prepared.remove(workload);
        Ok(())
    }
}
