//! An op on a device, ready to be timed and checked.

use super::Gpu;
use super::program::Program;
use crate::case::{Answer, compare};
use crate::compare::{Check, Comparison, Leeway, Tolerance};
use crate::error::BuildError;
use crate::request::Request;
use crate::tensor::Tensor;
use crate::values::Precision;
use holdpoint_cuda::compile::{Config, OwnError};
use holdpoint_cuda::{Buffer, Call, Captured, CudaError, Dtype, Launch, Timed, Times, Timing};
use holdpoint_model::FailureCause;
use holdpoint_model::report::KernelInfo;
use holdpoint_model::suite::{Cache, KernelSpec, Variant, Work};
use serde_json::{Map, Value};
use std::ops::Range;

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

impl From<OwnError> for PrepareError {
    fn from(error: OwnError) -> Self {
        match error {
            OwnError::Missing(unavailable) => Self::Skipped(unavailable.reason.to_owned()),
            OwnError::Failed(error) => Self::Device(error),
        }
    }
}

/// A request that outlives what it borrowed.
struct Kept {
    op: String,
    shape: Vec<usize>,
    dtype: String,
    variant: Variant,
    params: Map<String, Value>,
    seed: u64,
    misalign: usize,
    config: Option<Config>,
    kernel: Option<KernelSpec>,
}

impl Kept {
    fn request(&self) -> Request<'_> {
        Request {
            variant: self.variant,
            seed: self.seed,
            misalign: self.misalign,
            config: self.config.clone(),
            kernel: self.kernel.as_ref(),
            ..Request::new(&self.op, &self.shape, &self.dtype, &self.params)
        }
    }

    /// The plain version of the same op.
    fn reference(&self) -> Request<'_> {
        Request { variant: Variant::Reference, misalign: 0, config: None, kernel: None, ..self.request() }
    }
}

pub struct Prepared {
    // Before what its launches use, which it must not outlive.
    graph: Captured,
    pub(super) program: Program,
    kept: Kept,
    draws_count: u64,
    tolerance: Tolerance,
    has_answer: bool,
}

impl Prepared {
    /// Allocates, compiles and draws inputs.
    pub fn new(gpu: &mut Gpu, request: &Request<'_>) -> Result<Self, PrepareError> {
        let mut prepared = Self::build(gpu, request, None)?;
        prepared.redraw(gpu)?;
        Ok(prepared)
    }

    fn build(gpu: &mut Gpu, request: &Request<'_>, given: Option<&[Tensor]>) -> Result<Self, PrepareError> {
        if Dtype::parse(request.dtype) == Some(Dtype::E4m3) {
            gpu.device.fp8().map_err(|reason| PrepareError::Skipped(reason.to_owned()))?;
        }
        // Placed anew each time: where memory lies is luck, and must not stick to one side of a comparison.
        gpu.device.synchronize()?;
        gpu.device.trim();
        gpu.device.reset_peak();
        let program = Program::new(gpu, request, given)?;
        let kept = Kept {
            op: request.op.to_owned(),
            shape: request.shape.to_vec(),
            dtype: request.dtype.to_owned(),
            variant: request.variant,
            params: request.params.clone(),
            seed: request.seed,
            misalign: request.misalign,
            config: request.config.clone(),
            kernel: request.kernel.cloned(),
        };
        let tolerance = request.tolerance.unwrap_or_else(|| program.op.tolerance(program.dtype));
        Ok(Self { graph: None, program, kept, draws_count: 0, tolerance, has_answer: false })
    }

    /// Takes the caller's inputs. Those that the host reads decide what is launched, so the program is built anew then.
    pub(super) fn give(&mut self, gpu: &mut Gpu, inputs: &[Tensor]) -> Result<(), PrepareError> {
        if self.program.inputs.iter().any(|input| input.buffer.is_none()) {
            self.graph = None;
            self.program = Program::new(gpu, &self.kept.request(), Some(inputs))?;
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
        self.program.op.work(self.program.dtype)
    }

    /// The kernels and launches that actually run.
    pub fn kernel_info(&self) -> KernelInfo {
        let program = &self.program;
        let kernels = || program.launches.iter().map(|launch| &launch.kernel);
        let mut codes: Vec<&str> = kernels().map(|kernel| kernel.module.code_sha256.as_str()).collect();
        codes.dedup();
        let mut functions: Vec<String> = kernels().map(|kernel| kernel.name.clone()).collect();
        functions.sort_unstable();
        functions.dedup();
        KernelInfo {
            op_name: self.kept.op.clone(),
            kernel_name: program.kernel_name.clone(),
            shape_bucket: program.bucket.clone(),
            selected_config: program.config.clone(),
            selection_source: program.source.to_owned(),
            launches_per_call: u32::try_from(program.launches.len()).unwrap_or(u32::MAX),
            registers: kernels().filter_map(|kernel| kernel.registers()).max(),
            local_bytes: kernels().filter_map(|kernel| kernel.local_bytes()).max(),
            shared_bytes: program.launches.iter().filter_map(Launch::shared_bytes).max(),
            code_sha256: Some(codes.join(" ")).filter(|codes| !codes.is_empty()),
            functions,
            launches: program.launches.iter().map(Launch::describe).collect(),
        }
    }

    /// Draws fresh inputs, each from its own seed and the same on every device, and poisons the outputs.
    fn redraw(&mut self, gpu: &mut Gpu) -> Result<(), CudaError> {
        for (index, input) in self.program.inputs.iter().enumerate() {
            let seed = self.kept.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let seed = seed ^ (self.draws_count << 8) ^ index as u64;
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
        self.redraw(gpu)?;
        let mut timed = Timed { call: &mut self.program, graph: &mut self.graph };
        gpu.timer.ready(&gpu.device, &mut timed, how, calls_per_sample, slowdown)?;
        let mut times = Times::default();
        for _ in 0..samples_count {
            self.poison()?;
            let mut timed = Timed { call: &mut self.program, graph: &mut self.graph };
            let (ns, mhz) = gpu.timer.sample(&gpu.device, &mut timed, how, calls_per_sample)?;
            times.elapsed_ns.push(ns);
            times.sm_mhz.extend(mhz);
            self.look_for_poison(gpu)?;
        }
        self.has_answer = true;
        Ok(times)
    }

    /// A value that is still poison was not written by the call.
    fn look_for_poison(&self, gpu: &mut Gpu) -> Result<(), CudaError> {
        for output in &self.program.outputs {
            let found = gpu.compare(&output.buffer, &output.buffer, output.dtype, Tolerance::EXACT)?;
            if let Some(first) = found.first {
                let detail = format!(
                    "a timed call left {} of {} values of {} not numbers, the first at {first}",
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
        self.check_given(gpu, Leeway::NONE)
    }

    /// The same, for inputs set by the caller.
    pub(super) fn check_given(&mut self, gpu: &mut Gpu, leeway: Leeway) -> Result<Check, CudaError> {
        if !self.has_answer {
            self.call_once(gpu)?;
        }
        let (all, rows) = (self.program.op.rows(), self.program.oracle_rows());
        // On the device nothing that is not a number equals anything.
        if rows >= all || leeway.planted {
            return self.check_rows(0..all, leeway);
        }
        let first = (self.kept.seed.wrapping_add(self.draws_count) % (all - rows + 1) as u64) as usize;
        let by_oracle = self.check_rows(first..first + rows, leeway)?;
        if by_oracle.passed { self.check_whole(gpu, by_oracle, leeway.scale) } else { Ok(by_oracle) }
    }

    pub(super) fn call_once(&mut self, gpu: &mut Gpu) -> Result<(), CudaError> {
        self.poison()?;
        self.program.host()?;
        self.program.enqueue(&gpu.device)?;
        gpu.device.synchronize()?;
        self.has_answer = true;
        Ok(())
    }

    fn check_rows(&self, rows: Range<usize>, leeway: Leeway) -> Result<Check, CudaError> {
        let Program { op, dtype, .. } = &self.program;
        let all = op.rows().max(1);
        let part = op.part(rows.clone());
        let bytes_of = |buffer: &Buffer| {
            let row_bytes = buffer.bytes / all;
            buffer.download_part(row_bytes * rows.start, row_bytes * rows.len())
        };
        let mut inputs = Vec::new();
        for (input, spec) in self.program.inputs.iter().zip(part.inputs()) {
            let mut tensor = spec.tensor(Dtype::F32);
            match &input.buffer {
                Some(buffer) if spec.by_row => tensor.set(&dtype.decode(&bytes_of(buffer)?)),
                Some(buffer) => tensor.set(&dtype.decode(&buffer.download()?)),
                None => {
                    let row = input.host.len() / all;
                    tensor.set(&input.host[row * rows.start..row * rows.end]);
                }
            }
            inputs.push(tensor);
        }
        let want = Answer::compute(&*part, *dtype, &inputs);
        let mut outputs = Vec::new();
        for (output, spec) in self.program.outputs.iter().zip(part.outputs(*dtype)) {
            let mut tensor = spec.tensor();
            tensor.set_bytes(&bytes_of(&output.buffer)?);
            outputs.push((tensor, Leeway { overflow: output.dtype.overflow(), ..leeway }));
        }
        let check = |(at, (tensor, leeway)): (usize, &(Tensor, Leeway))| {
            let start = Comparison::new(self.tolerance).given(*leeway);
            compare(start, std::slice::from_ref(tensor), &want.outputs[at..]).finish()
        };
        Ok(worst(outputs.iter().enumerate().map(check).collect()))
    }

    /// Compares all of the output with the plain kernel's answer to the same inputs.
    fn check_whole(&self, gpu: &mut Gpu, by_oracle: Check, scale: f64) -> Result<Check, CudaError> {
        let given = self.program.inputs.iter().map(|input| {
            let mut tensor = input.spec.tensor(self.program.dtype);
            if input.buffer.is_none() {
                tensor.set(&input.host);
            }
            tensor
        });
        let given: Option<Vec<Tensor>> =
            self.program.inputs.iter().any(|input| input.buffer.is_none()).then(|| given.collect());
        let built = Program::new(gpu, &self.kept.reference(), given.as_deref());
        let mut reference = built.map_err(|error| match error {
            PrepareError::Device(error) => error,
            other => CudaError::new(FailureCause::WorkerError, other.to_string()),
        })?;
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

/// Combines several checks.
fn worst(checks: Vec<Check>) -> Check {
    let mut all = checks.into_iter();
    let first = all.next().unwrap_or_else(|| Comparison::new(Tolerance::EXACT).finish());
    all.fold(first, |a, b| Check {
        passed: a.passed && b.passed,
        total: a.total + b.total,
        mismatches: a.mismatches + b.mismatches,
        max_abs_err: a.max_abs_err.max(b.max_abs_err),
        mean_abs_err: (a.mean_abs_err * a.total as f64 + b.mean_abs_err * b.total as f64)
            / (a.total + b.total).max(1) as f64,
        max_rel_err: a.max_rel_err.max(b.max_rel_err),
        rel_norm: a.rel_norm.max(b.rel_norm),
        correlation: a
            .correlation
            .zip(b.correlation)
            .map(|(a, b)| a.min(b))
            .or(a.correlation)
            .or(b.correlation),
        first_bad: a.first_bad.or(b.first_bad),
        ..a
    })
}
