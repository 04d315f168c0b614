//! An op on a device, ready to be timed and checked.

use super::oracle::ProvenOracle;
use super::program::{CASE_COST_MAX, DeviceInput, HostInputs, ORACLE_COST_MAX, Program};
use super::{Gpu, Launches};
use crate::case::{Answer, compare};
use crate::compare::{Check, Comparison, Leeway, Tolerance};
use crate::error::BuildError;
use crate::op::{Input, Op};
use crate::registry::plan;
use crate::request::{Backend, Request};
use crate::tensor::Tensor;
use crate::values::{self, Precision, Recipe};
use holdpoint_cuda::compile::UserKernelError;
use holdpoint_cuda::{
    Buffer, CachedGraph, Call, CudaError, Dtype, Launch, Module, TimedCall, Times, Timing, trace,
};
use holdpoint_model::machine::DeviceState;
use holdpoint_model::report::{CheckedBy, KernelInfo, OracleKind};
use holdpoint_model::suite::{Cache, Work};
use holdpoint_model::{FailureCause, Values};
use std::ops::Range;
use std::thread::JoinHandle;

#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error(transparent)]
    Request(#[from] BuildError),
    /// The device cannot run it; a reason code.
    #[error("{0}")]
    Skipped(String),
    #[error(transparent)]
    Device(#[from] CudaError),
}

impl From<UserKernelError> for PrepareError {
    fn from(error: UserKernelError) -> Self {
        match error {
            UserKernelError::Missing(unavailable) => Self::Skipped(unavailable.reason.to_owned()),
            UserKernelError::Failed(error) => Self::Device(error),
        }
    }
}

/// Unused memory kept between cases, which are small.
const ANSWERS_BYTES_KEPT: u64 = 256 << 20;

/// Elements of all inputs from which on a case's values are drawn on the device: most of fuzzing stays below. The host takes 40 ns for
/// each, to draw, round, upload and compare it.
const DEVICE_DRAWN_MIN: usize = 1 << 22;

/// Values from which on an answer is compared on the device: the host takes 70 ns for each.
const TALLY_LEN_MIN: usize = 1 << 17;

/// Values of an answer whose errors are looked at one by one, on the host.
const GRADED_LEN_MAX: usize = 1 << 17;

/// The seed of one of the inputs.
fn input_seed(seed: u64, index: usize) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index as u64
}

pub struct Prepared {
    // Before what its launches use, which it must not outlive.
    graph: CachedGraph,
    pub(super) program: Program,
    request: Request,
    draws_count: u64,
    tolerance: Tolerance,
    has_answer: bool,
    /// Whether an answer was checked before anything was timed.
    is_checked_first: bool,
    /// The CPU oracle's answer, while another thread computes it.
    pending: Option<Pending>,
    /// Operations that the oracle may take.
    cost_max: u64,
}

/// The CPU oracle's answer to rows of the inputs of a draw.
struct Pending {
    draws_count: u64,
    rows: Range<usize>,
    answer: JoinHandle<Answer>,
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
            tolerance,
            has_answer: false,
            is_checked_first: false,
            pending: None,
            cost_max: ORACLE_COST_MAX,
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

    /// Draws fresh inputs, each from its own seed and the same on every device, and poisons the outputs.
    fn redraw(&mut self, gpu: &mut Gpu) -> Result<(), CudaError> {
        for (index, input) in self.program.inputs.iter().enumerate() {
            let seed = input_seed(self.request.seed, index) ^ (self.draws_count << 8);
            if let Some(buffer) = &input.buffer {
                gpu.draw(buffer, self.program.dtype, &input.spec.draw, seed)?;
            }
        }
        self.draws_count += 1;
        self.has_answer = false;
        self.poison()
    }

    fn poison(&mut self) -> Result<(), CudaError> {
        self.program.outputs.iter_mut().try_for_each(|output| output.buffer.poison())
    }

    /// Takes samples on fresh inputs. Outputs are poisoned before each and checked for poison after it. `slowdown` is time added
    /// to each sample, as a share of it.
    pub fn run(
        &mut self,
        gpu: &mut Gpu,
        how: (Timing, Cache),
        samples_count: u64,
        calls_per_sample: u64,
        slowdown: f64,
    ) -> Result<Times, CudaError> {
        self.ready(gpu, how, calls_per_sample, slowdown)?;
        self.samples(gpu, how, samples_count, calls_per_sample)
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
        trace::step("ready", "", || self.ready(gpu, how, calls_per_sample, slowdown))?;
        let reading = (how.0 != Timing::Host).then(|| gpu.device.state_meanwhile());
        let times = trace::step("samples", "", || self.samples(gpu, how, samples_count, calls_per_sample));
        let state = trace::step("state", "", || match reading {
            Some(reading) => reading.join().ok().flatten(),
            None => gpu.state(),
        });
        Ok((times?, state))
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
            self.poison()?;
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
    fn look_for_poison(&self, gpu: &mut Gpu) -> Result<(), CudaError> {
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

    /// Compares what the last calls left with the oracle's answer; makes one call where there were none.
    pub fn check(&mut self, gpu: &mut Gpu) -> Result<Check, CudaError> {
        self.is_checked_first |= self.is_fresh();
        self.check_given(gpu, Leeway::NONE)
    }

    /// Whether nothing was timed since it was prepared.
    pub fn is_fresh(&self) -> bool {
        self.draws_count <= 1
    }

    /// Whether it will be checked soon, if a workload that is as fresh is checked now: answers of a suite are checked all before
    /// anything is timed, and all after it; where they were not checked before, nothing is known about when they will be.
    pub fn is_checked_with(&self, is_fresh: bool) -> bool {
        self.is_fresh() == is_fresh && (is_fresh || self.is_checked_first && self.has_answer)
    }

    /// Lets another thread compute the CPU oracle's answer to the inputs of now, if that is the one that a check will ask.
    pub fn begin_check(&mut self) -> Result<(), CudaError> {
        let is_begun = self.pending.as_ref().is_some_and(|pending| pending.draws_count == self.draws_count);
        let is_elsewhere = is_begun || self.request.declared.is_some();
        let Some(rows) = self.cpu_rows().filter(|_| !is_elsewhere) else { return Ok(()) };
        let Program { op, dtype, .. } = &self.program;
        let (dtype, part) = (*dtype, op.part(rows.clone()));
        let part = match part {
            Some(part) => part,
            None if self.request.kernel.is_some() => return Ok(()),
            // It has one row only, and another thread cannot borrow it.
            None => match plan(&self.request, Some(Backend::Cuda)) {
                Ok(planned) => planned.op,
                Err(_) => return Ok(()),
            },
        };
        let fetched = self.fetch_inputs(&rows)?;
        let answer = std::thread::spawn(move || {
            let inputs = widen_inputs(&*part, dtype, fetched);
            Answer::compute_rows(&*part, dtype, &inputs)
        });
        self.pending = Some(Pending { draws_count: self.draws_count, rows, answer });
        Ok(())
    }

    /// The rows that a check compares with the CPU's oracle; absent where another oracle is asked first.
    fn cpu_rows(&self) -> Option<Range<usize>> {
        let (all, rows) = (self.program.rows, self.program.oracle_rows(self.cost_max));
        if rows >= all {
            return Some(0..all);
        }
        if self.program.op.device_oracle().is_some() {
            return None;
        }
        Some(self.some_rows(rows))
    }

    /// So many rows, others for every draw; one at least, whatever it costs.
    fn some_rows(&self, count: usize) -> Range<usize> {
        let (all, count) = (self.program.rows.max(1), count.max(1));
        let last = all.saturating_sub(count) as u64;
        let first = (self.request.seed.wrapping_add(self.draws_count) % (last + 1)) as usize;
        first..(first + count).min(all)
    }

    /// The same, for inputs set by the caller.
    pub(super) fn check_given(&mut self, gpu: &mut Gpu, leeway: Leeway) -> Result<Check, CudaError> {
        if !self.has_answer {
            trace::step("call once", "", || self.call_once(gpu))?;
        }
        let (all, rows) = (self.program.rows, self.program.oracle_rows(self.cost_max));
        if rows >= all {
            return self.check_rows(gpu, 0..all, leeway);
        }
        let Program { op, dtype, .. } = &self.program;
        if let Some(oracle) = gpu.proven_oracle(&**op, &self.request.op, *dtype)? {
            return self.check_on_device(gpu, &oracle, leeway);
        }
        // Compared with the plain kernel's, nothing that is not a number equals anything.
        let rows = self.some_rows(rows);
        if rows.len() >= all || leeway.planted {
            return self.check_rows(gpu, 0..all, leeway);
        }
        let by_oracle = self.check_rows(gpu, rows, leeway)?;
        if by_oracle.passed { self.check_whole(gpu, by_oracle, leeway.scale) } else { Ok(by_oracle) }
    }

    /// Compares all of the output with the answer of an oracle on the device; some values also here, as any other answer.
    fn check_on_device(
        &self,
        gpu: &mut Gpu,
        oracle: &ProvenOracle,
        leeway: Leeway,
    ) -> Result<Check, CudaError> {
        let Program { inputs, outputs, rows, .. } = &self.program;
        let inputs: Vec<u64> =
            inputs.iter().map(|input| input.buffer.as_ref().map_or(0, |buffer| buffer.ptr)).collect();
        let lens: Vec<usize> =
            outputs.iter().map(|output| output.buffer.bytes / output.dtype.bytes()).collect();
        let answers = trace::step("oracle", "on the device", || oracle.compute(gpu, &inputs, &lens))?;
        let mut comparison = self.comparison(leeway);
        for (output, want) in outputs.iter().zip(&answers) {
            comparison = comparison.stored_as(output.dtype.overflow());
            let got = (&output.buffer, 0, output.dtype);
            let tally = gpu.tally(got, want, comparison.tolerance(), leeway)?;
            comparison = comparison.tally(&output.spec.name, &output.spec.dims, &tally);
            if leeway.graded {
                let width = output.spec.dims.last().copied().unwrap_or(1).max(1);
                let graded = GRADED_LEN_MAX.min(want.bytes / size_of::<f32>()) / width * width;
                let got = output.buffer.download_part(0, graded * output.dtype.bytes())?;
                let want = Dtype::F32.decode(&want.download_part(0, graded * size_of::<f32>())?);
                let dims = [graded / width, width];
                comparison = comparison.floats(&output.spec.name, &dims, &output.dtype.decode(&got), &want);
            }
        }
        Ok(Check {
            checked_by: Some(CheckedBy {
                oracle: OracleKind::Device,
                rows: None,
                rows_count: *rows as u64,
                code_sha256: Some(oracle.kernel.module.code_sha256.clone()),
            }),
            ..comparison.finish()
        })
    }

    fn comparison(&self, leeway: Leeway) -> Comparison {
        let Program { op, dtype, .. } = &self.program;
        Comparison::new(self.tolerance).with_leeway(leeway).with_roundings(op.roundings(*dtype))
    }

    pub(super) fn call_once(&mut self, gpu: &mut Gpu) -> Result<(), CudaError> {
        self.poison()?;
        self.program.host()?;
        self.program.enqueue(&gpu.device)?;
        gpu.device.synchronize()?;
        self.has_answer = true;
        Ok(())
    }

    fn check_rows(&mut self, gpu: &mut Gpu, rows: Range<usize>, leeway: Leeway) -> Result<Check, CudaError> {
        let pending = self.pending.take();
        let is_same = |pending: &Pending| pending.draws_count == self.draws_count && pending.rows == rows;
        let begun = pending
            .filter(is_same)
            .map(|pending| trace::step("oracle begun", &self.request.op, || pending.answer.join()));
        let Program { op, dtype, rows: all, .. } = &self.program;
        let all = (*all).max(1);
        let part = op.part(rows.clone());
        let part = part.as_deref().unwrap_or(&**op);
        let description = part.describe(*dtype);
        let bytes_of = |buffer: &Buffer| {
            let row_bytes = buffer.bytes / all;
            buffer.download_part(row_bytes * rows.start, row_bytes * rows.len())
        };
        let want = match begun {
            Some(Ok(answer)) => answer,
            _ => {
                let fetch = || Ok::<_, CudaError>(widen_inputs(part, *dtype, self.fetch_inputs(&rows)?));
                let inputs = trace::step("fetch inputs", &self.request.op, fetch)?;
                trace::step("oracle", &self.request.op, || Answer::compute_rows(part, *dtype, &inputs))
            }
        };
        let mut comparison = self.comparison(leeway);
        for (at, (output, spec)) in self.program.outputs.iter().zip(description.outputs).enumerate() {
            comparison = comparison.stored_as(output.dtype.overflow());
            let want = &want.outputs[at];
            if want.len() >= TALLY_LEN_MIN && !leeway.graded {
                let mut on_device = Buffer::new(&gpu.device, want.len() * size_of::<f32>(), 0)?;
                on_device.upload(want.f32())?;
                let from = output.buffer.bytes / all * rows.start;
                let got = (&output.buffer, from, output.dtype);
                let tally = gpu.tally(got, &on_device, comparison.tolerance(), leeway)?;
                comparison = comparison.tally(&spec.name, &spec.dims, &tally);
            } else {
                let mut tensor = spec.tensor();
                tensor.set_bytes(&bytes_of(&output.buffer)?);
                comparison = compare(comparison, std::slice::from_ref(&tensor), std::slice::from_ref(want));
            }
        }
        let sampled = (rows.len() < all).then_some([rows.start as u64, rows.end as u64]);
        let (oracle, rows_count) = (OracleKind::Cpu, all as u64);
        Ok(Check {
            checked_by: Some(CheckedBy { oracle, rows: sampled, rows_count, code_sha256: None }),
            ..comparison.finish()
        })
    }

    /// Rows of all inputs, as the device has them; of inputs that the host reads, their values.
    fn fetch_inputs(&self, rows: &Range<usize>) -> Result<Vec<Fetched>, CudaError> {
        let all = self.program.rows.max(1);
        let fetch = |input: &DeviceInput| {
            Ok(match &input.buffer {
                Some(buffer) if input.spec.by_row => {
                    let row_bytes = buffer.bytes / all;
                    Fetched::Bytes(buffer.download_part(row_bytes * rows.start, row_bytes * rows.len())?)
                }
                Some(buffer) => Fetched::Bytes(buffer.download()?),
                None => {
                    let row = input.host.len() / all;
                    Fetched::Values(input.host[row * rows.start..row * rows.end].to_vec())
                }
            })
        };
        self.program.inputs.iter().map(fetch).collect()
    }

    /// Compares all of the output with the plain kernel's answer to the same inputs.
    fn check_whole(&self, gpu: &mut Gpu, by_oracle: Check, scale: f64) -> Result<Check, CudaError> {
        let given = |at: usize| self.program.inputs[at].host.clone();
        let reference = Request { misalign: 0, ..self.request.plain() };
        let built = trace::step("build", "plain kernel", || Program::new(gpu, &reference, Some(&given)));
        let mut reference = built?;
        for (to, from) in reference.inputs.iter_mut().zip(&self.program.inputs) {
            if let (Some(to), Some(from)) = (&mut to.buffer, &from.buffer) {
                to.copy_from(from)?;
            }
        }
        reference.host()?;
        reference.enqueue(&gpu.device)?;
        let mut check = by_oracle;
        for (got, want) in self.program.outputs.iter().zip(&reference.outputs) {
            let tolerance = Tolerance { atol: self.tolerance.atol * scale, ..self.tolerance };
            let found = gpu.compare(&got.buffer, &want.buffer, got.dtype, tolerance)?;
            check.total += (got.buffer.bytes / got.dtype.bytes()) as u64;
            check.max_abs_err = check.max_abs_err.max(found.max_abs_err);
            check.mismatches += found.mismatches;
            if let Some(first) = found.first {
                check.passed = false;
                let what = format!("{}[{first}] differs from the plain kernel's", got.spec.name);
                check.first_bad.get_or_insert(what);
            }
        }
        Ok(check)
    }
}

/// An input on its way to the CPU's oracle.
enum Fetched {
    Bytes(Vec<u8>),
    Values(Vec<f32>),
}

/// Inputs of an op as 32-bit floats.
fn widen_inputs(op: &dyn Op, dtype: Dtype, fetched: Vec<Fetched>) -> Vec<Tensor> {
    let widen = |(spec, fetched): (Input, Fetched)| {
        let mut tensor = spec.tensor(Dtype::F32);
        match fetched {
            Fetched::Bytes(bytes) => tensor.widen_from(dtype, &bytes),
            Fetched::Values(values) => tensor.set(&values),
        }
        tensor
    };
    op.describe(dtype).inputs.into_iter().zip(fetched).map(widen).collect()
}
