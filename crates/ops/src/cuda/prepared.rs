//! An op on a device, ready to be timed and checked.

use super::checking::Pending;
use super::fresh::{Fresh, Look};
use super::program::{CASE_COST_MAX, HostInputs, ORACLE_COST_MAX, Program};
use crate::compare::Leeway;
use crate::device::{DeviceInput, Gpu, Launches, PrepareError};
use crate::precision::Precision;
use crate::precision::Tolerance;
use crate::request::Request;
use crate::tensor::Tensor;
use crate::values::{self, Recipe};
use holdpoint_cuda::{CachedGraph, Call, CudaError, Dtype, Launch, Module, TimedCall, Times, Timing, trace};
use holdpoint_model::machine::DeviceState;
use holdpoint_model::report::KernelInfo;
use holdpoint_model::suite::{Cache, Work};
use holdpoint_model::{FailureCause, Values};
use std::time::Instant;

/// Unused memory kept between cases, which are small.
const ANSWERS_BYTES_KEPT: u64 = 256 << 20;

/// Elements of all inputs from which on a case's values are drawn on the device: most of fuzzing stays below. The host takes 40 ns for
/// each, to draw, round, upload and compare it.
const DEVICE_DRAWN_MIN: usize = 1 << 22;

/// The seed of one of the inputs.
pub(super) fn input_seed(seed: u64, index: usize) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index as u64
}

pub struct Prepared {
    // Before what its launches use, which it must not outlive.
    pub(super) graph: CachedGraph,
    pub(super) program: Program,
    pub(super) request: Request,
    pub(super) draws_count: u64,
    /// Of the next inputs, where the caller chose one.
    seed_next: Option<u64>,
    pub(super) tolerance: Tolerance,
    pub(super) has_answer: bool,
    /// Whether an answer was checked before anything was timed.
    pub(super) is_checked_first: bool,
    /// The CPU oracle's answer, while another thread computes it.
    pub(super) pending: Option<Pending>,
    /// Operations that the oracle may take.
    pub(super) cost_max: u64,
    pub(super) fresh: Fresh,
}

impl Prepared {
    /// Allocates, compiles and draws inputs.
    pub fn new(gpu: &mut Gpu, request: &Request) -> Result<Self, PrepareError> {
        let mut prepared = Self::build(gpu, request, None)?;
        trace::step("draw", &request.op, || prepared.redraw(gpu))?;
        Ok(prepared)
    }

    /// The same for answers alone: memory of the last case is used again, and nothing is drawn yet.
    pub fn for_answers(gpu: &mut Gpu, request: &Request) -> Result<Self, PrepareError> {
        gpu.device.keep_unused(ANSWERS_BYTES_KEPT);
        Ok(Self { cost_max: CASE_COST_MAX, ..Self::allocate(gpu, request, None)? })
    }

    fn build(gpu: &mut Gpu, request: &Request, given: HostInputs<'_>) -> Result<Self, PrepareError> {
        // Placed anew each time: where memory lies is luck, and must not stick to one side of a comparison.
        gpu.device.synchronize()?;
        trace::step("trim", "", || gpu.device.trim());
        gpu.device.reset_peak();
        Self::allocate(gpu, request, given)
    }

    fn allocate(gpu: &mut Gpu, request: &Request, given: HostInputs<'_>) -> Result<Self, PrepareError> {
        if Dtype::parse(&request.dtype) == Some(Dtype::E4m3) {
            gpu.device.fp8().map_err(|reason| PrepareError::Skipped(reason.to_owned()))?;
        }
        let program = trace::step("build", &request.op, || Program::new(gpu, request, given))?;
        let tolerance = request.tolerance.unwrap_or(program.tolerance);
        Ok(Self {
            graph: None,
            program,
            request: request.clone(),
            draws_count: 0,
            seed_next: None,
            tolerance,
            has_answer: false,
            is_checked_first: false,
            pending: None,
            cost_max: ORACLE_COST_MAX,
            fresh: Fresh::default(),
        })
    }

    /// Takes the caller's inputs. Those that the host reads decide what is launched, so the program is built anew then.
    pub(super) fn set_inputs(&mut self, gpu: &mut Gpu, inputs: &[Tensor]) -> Result<(), PrepareError> {
        if self.program.inputs.iter().any(|input| input.buffer.is_none()) {
            self.graph = None;
            self.program = Program::new(gpu, &self.request, Some(&|at| inputs[at].values().into_owned()))?;
        }
        for (input, given) in self.program.inputs.iter_mut().zip(inputs) {
            if let Some(buffer) = &mut input.buffer {
                buffer.upload(&given.bytes())?;
            }
        }
        self.has_answer = false;
        Ok(())
    }

    pub fn work(&self) -> Work {
        self.program.work.clone()
    }

    /// The kernels and launches that actually run.
    pub fn kernel_info(&self) -> KernelInfo {
        let Launches { chosen, launches, library, .. } = &self.program.version;
        let kernels = || launches.iter().map(|launch| &launch.kernel);
        let mut modules: Vec<&Module> = kernels().map(|kernel| &*kernel.module).collect();
        modules.dedup_by_key(|module| module.code_sha256.as_str());
        let mut codes: Vec<&str> = modules.iter().map(|module| module.code_sha256.as_str()).collect();
        codes.extend(library.iter().map(|call| call.library.sha256.as_str()));
        let mut functions: Vec<String> = kernels().map(|kernel| kernel.name.clone()).collect();
        functions.sort_unstable();
        functions.dedup();
        KernelInfo {
            op_name: self.request.op.clone(),
            kernel_name: chosen.kernel_name.clone(),
            shape_bucket: chosen.bucket.clone(),
            selected_config: chosen.unit.config.clone(),
            selection_source: chosen.source.to_owned(),
            backend: None,
            launches_per_call: u32::try_from(launches.len()).unwrap_or(u32::MAX),
            registers: kernels().filter_map(|kernel| kernel.registers()).max(),
            local_bytes: kernels().filter_map(|kernel| kernel.local_bytes()).max(),
            code_bytes: modules.iter().map(|module| module.code_bytes).sum(),
            shared_bytes: launches.iter().filter_map(Launch::shared_bytes).max(),
            code_sha256: Some(codes.join(" ")).filter(|codes| !codes.is_empty()),
            functions,
            launches: launches.iter().map(Launch::describe).collect(),
        }
    }

    /// Draws inputs of a kind on the device, where there are more than the host should draw; returns the leeway for answers to them.
    /// Absent where the host has to.
    pub(super) fn draw_kind(
        &mut self,
        gpu: &mut Gpu,
        kind: Values,
        seed: u64,
    ) -> Result<Option<Leeway>, CudaError> {
        let Program { inputs, dtype, .. } = &self.program;
        let elements: usize = inputs.iter().map(|input| input.spec.dims.iter().product::<usize>()).sum();
        let recipe = |input: &DeviceInput| values::recipe(kind, input.spec.domain, *dtype, seed);
        let recipes: Option<Vec<Recipe>> = inputs.iter().map(recipe).collect();
        let (Some(recipes), true) = (recipes, elements >= DEVICE_DRAWN_MIN) else { return Ok(None) };
        if inputs.iter().any(|input| input.buffer.is_none()) {
            return Ok(None);
        }
        let mut scale = 1.0_f64;
        for (at, (input, recipe)) in inputs.iter().zip(recipes).enumerate() {
            if let Some(buffer) = &input.buffer {
                gpu.draw_values(buffer, *dtype, recipe, input_seed(seed, at))?;
            }
            scale = scale.max(f64::from(recipe.largest()));
        }
        self.has_answer = false;
        let overflow = dtype.overflow();
        let (ordinary, graded) = (kind.is_ordinary(), kind.is_graded());
        Ok(Some(Leeway { scale, planted: false, ordinary, graded, overflow }))
    }

    /// The next run's inputs follow from this seed, whatever was drawn before.
    pub fn draw_next(&mut self, seed: u64) {
        self.seed_next = Some(seed);
    }

    /// Draws fresh inputs, each from its own seed and the same on every device, and poisons the outputs.
    fn redraw(&mut self, gpu: &mut Gpu) -> Result<(), CudaError> {
        let next = self.seed_next.take();
        for (index, input) in self.program.inputs.iter().enumerate() {
            let seed = match next {
                Some(seed) => input_seed(seed, index),
                None => input_seed(self.request.seed, index) ^ (self.draws_count << 8),
            };
            if let Some(buffer) = &input.buffer {
                gpu.draw(buffer, self.program.dtype, &input.spec.draw, seed)?;
            }
        }
        self.draws_count += 1;
        self.has_answer = false;
        self.program.poison()
    }

    /// Takes samples on fresh inputs. Outputs are poisoned before each and checked for poison after it, and from time to time calls
    /// on fresh inputs are timed beside them. `slowdown` is time added to each sample, as a share of it.
    pub fn run(
        &mut self,
        gpu: &mut Gpu,
        how: (Timing, Cache),
        samples_count: u64,
        calls_per_sample: u64,
        slowdown: f64,
    ) -> Result<Times, CudaError> {
        self.run_beside(gpu, how, calls_per_sample, slowdown, |prepared, gpu| {
            prepared.samples(gpu, how, samples_count, calls_per_sample)
        })
    }

    /// The same, and the device's state meanwhile: reading it takes longer than many samples do. Beside the host's clock it would
    /// disturb what is timed, so that it comes afterwards there.
    pub fn run_watched(
        &mut self,
        gpu: &mut Gpu,
        how: (Timing, Cache),
        samples_count: u64,
        calls_per_sample: u64,
        slowdown: f64,
    ) -> Result<(Times, Option<DeviceState>), CudaError> {
        let mut state = None;
        let times = self.run_beside(gpu, how, calls_per_sample, slowdown, |prepared, gpu| {
            let reading = (how.0 != Timing::Host).then(|| gpu.device.state_meanwhile());
            let times =
                trace::step("samples", "", || prepared.samples(gpu, how, samples_count, calls_per_sample));
            state = trace::step("state", "", || match reading {
                Some(reading) => reading.join().ok().flatten(),
                None => gpu.state(),
            });
            times
        })?;
        Ok((times, state))
    }

    /// Takes samples by `take`, and looks at calls on fresh inputs, if it is time to: before them or after them, as the kernel must not
    /// know.
    fn run_beside(
        &mut self,
        gpu: &mut Gpu,
        how: (Timing, Cache),
        calls_per_sample: u64,
        slowdown: f64,
        take: impl FnOnce(&mut Self, &mut Gpu) -> Result<Times, CudaError>,
    ) -> Result<Times, CudaError> {
        let look = self.fresh.plan(calls_per_sample);
        let before = match look {
            Look::Before => Some(self.look_at_fresh_calls(gpu, how, calls_per_sample)?),
            Look::None | Look::After => None,
        };
        trace::step("ready", "", || self.ready(gpu, how, calls_per_sample, slowdown))?;
        let start = Instant::now();
        let times = take(self, gpu)?;
        self.fresh.note_timed(start.elapsed(), calls_per_sample, &times.elapsed_ns);
        let after = match look {
            Look::After => Some(self.look_at_fresh_calls(gpu, how, calls_per_sample)?),
            Look::None | Look::Before => None,
        };
        if let Some(fresh_ns) = before.or(after) {
            self.weigh_fresh_calls(gpu, how, fresh_ns)?;
        }
        Ok(times)
    }

    fn ready(
        &mut self,
        gpu: &mut Gpu,
        how: (Timing, Cache),
        calls_per_sample: u64,
        slowdown: f64,
    ) -> Result<(), CudaError> {
        self.redraw(gpu)?;
        let mut timed = TimedCall { call: &mut self.program, graph: &mut self.graph };
        gpu.timer.ready(&gpu.device, &mut timed, how, calls_per_sample, slowdown)
    }

    fn samples(
        &mut self,
        gpu: &mut Gpu,
        how: (Timing, Cache),
        samples_count: u64,
        calls_per_sample: u64,
    ) -> Result<Times, CudaError> {
        let mut times = Times::default();
        for _ in 0..samples_count {
            self.program.poison()?;
            let mut timed = TimedCall { call: &mut self.program, graph: &mut self.graph };
            let (ns, mhz) = gpu.timer.sample(&gpu.device, &mut timed, how, calls_per_sample)?;
            times.elapsed_ns.push(ns);
            times.sm_mhz.extend(mhz);
            self.look_for_poison(gpu)?;
        }
        self.has_answer = true;
        Ok(times)
    }

    /// Queues more calls like those of the last run, at least so many, and nothing else; returns how many.
    pub fn queue_untimed(
        &mut self,
        gpu: &mut Gpu,
        timing: Timing,
        calls_count: u64,
    ) -> Result<u64, CudaError> {
        let mut timed = TimedCall { call: &mut self.program, graph: &mut self.graph };
        gpu.timer.queue_untimed(&gpu.device, &mut timed, timing, calls_count)
    }

    /// A value that is still poison was not written by the call.
    pub(super) fn look_for_poison(&self, gpu: &mut Gpu) -> Result<(), CudaError> {
        for output in &self.program.outputs {
            let found = gpu.compare(&output.buffer, &output.buffer, output.dtype, Tolerance::EXACT)?;
            if let Some(first) = found.first {
                let detail = format!(
                    "a timed call left {} of {} values of {} unwritten or NaN, the first at {first}",
                    found.mismatches,
                    output.spec.dims.iter().product::<usize>(),
                    output.spec.name
                );
                return Err(CudaError::new(FailureCause::WrongAnswer, detail));
            }
        }
        Ok(())
    }

    /// Peak device memory since this was prepared.
    pub fn peak_bytes(&self, gpu: &Gpu) -> Option<u64> {
        gpu.device.peak_bytes()
    }

    pub(super) fn call_once(&mut self, gpu: &mut Gpu) -> Result<(), CudaError> {
        self.program.poison()?;
        self.program.host()?;
        self.program.enqueue(&gpu.device)?;
        gpu.device.synchronize()?;
        self.has_answer = true;
        Ok(())
    }
}
