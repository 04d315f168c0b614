//! An op with everything it needs on the device: drawn, poisoned, timed, checked.

use crate::compile::Config;
use crate::device::{Buffer, Device};
use crate::dtype::Dtype;
use crate::error::CudaError;
use crate::gpu::{Draw, Gpu};
use crate::launch::Launch;
use crate::ops::{self, Chosen};
use crate::timing::{Cache, Call, Captured, Timed, Times, Timing};
use holdpoint_model::FailureCause;
use holdpoint_model::report::KernelInfo;
use holdpoint_model::suite::KernelSpec;
use holdpoint_ops::compare::Comparison;
use holdpoint_ops::{BuildError, Check, Leeway, Tolerance, Work};
use serde_json::{Map, Value};
use std::ops::Range;

pub use holdpoint_ops::Variant;

/// Operations that the CPU's oracle may take, roughly: a fraction of a second. Where all rows of a batch would take more, some are
/// checked against it, and all are compared on the device with what the plain kernel makes of the same inputs.
const ORACLE_COST_MAX: u64 = 300_000_000;

/// What to prepare.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// One of [`ops::OPS`].
    pub op: &'a str,
    /// Sizes of the main input.
    pub shape: &'a [usize],
    /// Element type.
    pub dtype: Dtype,
    /// The quick kernel or the plain one.
    pub variant: Variant,
    /// The op's parameters; absent ones take their defaults.
    pub params: &'a Map<String, Value>,
    /// Inputs are drawn from it.
    pub seed: u64,
    /// Overrides the tolerance of the element type.
    pub tolerance: Option<Tolerance>,
    /// Bytes by which every buffer is moved off its natural alignment; a multiple of the element's size.
    pub misalign: usize,
    /// Constants to compile with, in place of the registry's or the op's own.
    pub config: Option<Config>,
    /// The user's own kernel, in place of the op's.
    pub kernel: Option<&'a KernelSpec>,
}

/// Why an op cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The request makes no sense.
    #[error(transparent)]
    Request(#[from] BuildError),
    /// This device cannot do it: a reason code.
    #[error("{0}")]
    Skipped(String),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] CudaError),
}

/// An input that is drawn anew for every set of samples.
pub(crate) struct Input {
    pub buffer: Buffer,
    pub dtype: Dtype,
    pub draw: Draw,
    /// Whether its leading dimension is the batch; if not, all rows share it.
    pub by_row: bool,
}

/// An output.
pub(crate) struct Output {
    pub name: &'static str,
    pub dims: Vec<usize>,
    pub buffer: Buffer,
    pub dtype: Dtype,
}

/// What the outputs must be for some rows of the batch, given the inputs of these rows.
pub(crate) type Oracle = Box<dyn Fn(Range<usize>, &[Vec<f32>]) -> Vec<Vec<f32>>>;
/// Builds the same op once more.
type Rebuild = Box<dyn Fn(&mut Gpu) -> Result<Program, PrepareError>>;
/// What the host does before each call.
pub(crate) type HostPart = Box<dyn FnMut() -> Result<(), CudaError>>;

/// What an op is made of.
pub(crate) struct Program {
    pub launches: Vec<Launch>,
    pub inputs: Vec<Input>,
    pub outputs: Vec<Output>,
    /// Whatever else the launches use: indices, parameters, scratch.
    pub _held: Vec<Buffer>,
    pub host: Option<HostPart>,
    /// The op's own tolerance, where that of the element type does not fit.
    pub tolerance: Option<Tolerance>,
    pub batch: usize,
    pub oracle: Oracle,
    pub work: Work,
    /// The kernel's name for the report and the registry.
    pub kernel_name: String,
    pub config: Config,
    pub source: &'static str,
    pub bucket: String,
}

impl Program {
    /// A program whose host has nothing to do for a call.
    pub(crate) fn new(
        chosen: Chosen,
        launches: Vec<Launch>,
        (inputs, outputs, held): (Vec<Input>, Vec<Output>, Vec<Buffer>),
        batch: usize,
        oracle: Oracle,
        work: Work,
    ) -> Self {
        let Chosen { unit, kernel_name, bucket, source } = chosen;
        let config = unit.config;
        Self {
            launches,
            inputs,
            outputs,
            _held: held,
            host: None,
            tolerance: None,
            batch,
            oracle,
            work,
            kernel_name: kernel_name.to_owned(),
            config,
            source,
            bucket,
        }
    }

    /// How many rows of the batch the oracle can look at within reason.
    fn oracle_rows(&self) -> usize {
        let values: usize =
            self.outputs.iter().map(|output| output.buffer.bytes / output.dtype.bytes()).sum();
        let batch = self.batch.max(1) as u64;
        let row_cost = (10 * values as u64 + self.work.flops) / batch;
        (ORACLE_COST_MAX / row_cost.max(1)).clamp(1, batch) as usize
    }
}

impl Call for Program {
    fn host(&mut self) -> Result<(), CudaError> {
        self.host.as_mut().map_or(Ok(()), |host| host())
    }

    fn enqueue(&mut self, device: &Device) -> Result<(), CudaError> {
        self.launches.iter().try_for_each(|launch| launch.enqueue(&device.stream))
    }
}

/// An op ready to be timed.
pub struct Prepared {
    // Before what its launches use, which it must not outlive.
    graph: Captured,
    pub(crate) program: Program,
    pub(crate) op: String,
    seed: u64,
    /// How often inputs have been drawn.
    draws_count: u64,
    tolerance: Option<Tolerance>,
    has_answer: bool,
    /// Builds the plain version of the same op, to compare whole outputs on the device.
    reference: Rebuild,
}

impl Prepared {
    /// Allocates, compiles, draws.
    ///
    /// # Errors
    /// When the request makes no sense, the device cannot do it, or fails.
    pub fn new(gpu: &mut Gpu, request: &Request<'_>) -> Result<Self, PrepareError> {
        if request.dtype == Dtype::E4m3 {
            gpu.device.fp8().map_err(|reason| PrepareError::Skipped(reason.to_owned()))?;
        }
        // Placed anew each time: where memory lies is luck, and must not stick to one side of a comparison.
        gpu.device.synchronize()?;
        gpu.device.trim();
        gpu.device.reset_peak();
        let program = ops::build(gpu, request)?;
        let (op, shape, params) = (request.op.to_owned(), request.shape.to_vec(), request.params.clone());
        let (dtype, seed, tolerance) = (request.dtype, request.seed, request.tolerance);
        let again = op.clone();
        let reference = move |gpu: &mut Gpu| {
            let request = Request {
                op: &again,
                shape: &shape,
                dtype,
                variant: Variant::Reference,
                params: &params,
                seed,
                tolerance,
                misalign: 0,
                config: None,
                kernel: None,
            };
            ops::build(gpu, &request)
        };
        let reference = Box::new(reference);
        let mut prepared =
            Self { graph: None, program, op, seed, draws_count: 0, tolerance, has_answer: false, reference };
        prepared.redraw(gpu)?;
        Ok(prepared)
    }

    /// Work of one call.
    #[must_use]
    pub fn work(&self) -> Work {
        self.program.work
    }

    /// What really runs.
    #[must_use]
    pub fn kernel_info(&self) -> KernelInfo {
        let program = &self.program;
        let kernels = || program.launches.iter().map(|launch| &launch.kernel);
        let mut codes: Vec<&str> = kernels().map(|kernel| kernel.module.code_sha256.as_str()).collect();
        codes.dedup();
        let mut functions: Vec<String> = kernels().map(|kernel| kernel.name.clone()).collect();
        functions.sort_unstable();
        functions.dedup();
        KernelInfo {
            op_name: self.op.clone(),
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

    /// Fresh inputs, and outputs that hold no answer.
    fn redraw(&mut self, gpu: &mut Gpu) -> Result<(), CudaError> {
        draw(gpu, &self.program, self.seed, self.draws_count)?;
        self.draws_count += 1;
        self.has_answer = false;
        self.poison()
    }

    fn poison(&mut self) -> Result<(), CudaError> {
        self.program.outputs.iter_mut().try_for_each(|output| output.buffer.poison())
    }

    /// Takes samples on fresh inputs. Outputs are poisoned before each, and looked at after it. `slowdown` is time added to each
    /// sample, as a share of it.
    ///
    /// # Errors
    /// When the device fails, a time is not one, or a call leaves part of its outputs unwritten.
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
            let found = gpu.compare(&output.buffer, &output.buffer, output.dtype, [0.0, 0.0])?;
            if let Some(first) = found.first {
                let detail = format!(
                    "a timed call left {} of {} values of {} not numbers, the first at {first}",
                    found.mismatches,
                    output.dims.iter().product::<usize>(),
                    output.name
                );
                return Err(CudaError::new(FailureCause::WrongAnswer, detail));
            }
        }
        Ok(())
    }

    /// Most device memory held at a time since this was prepared.
    #[must_use]
    pub fn peak_bytes(&self, gpu: &Gpu) -> Option<u64> {
        gpu.device.peak_bytes()
    }

    /// Compares what the last calls left with the oracle's answer; makes one call where there were none.
    ///
    /// # Errors
    /// When the device fails.
    pub fn check(&mut self, gpu: &mut Gpu) -> Result<Check, CudaError> {
        self.check_given(gpu, Leeway::NONE)
    }

    /// The same, for inputs that were brought.
    pub(crate) fn check_given(&mut self, gpu: &mut Gpu, leeway: Leeway) -> Result<Check, CudaError> {
        if !self.has_answer {
            self.call_once(gpu)?;
        }
        let (batch, rows) = (self.program.batch, self.program.oracle_rows());
        // On the device nothing that is not a number equals anything.
        if rows >= batch || leeway.planted {
            return self.check_rows(0..batch, leeway);
        }
        let first = (self.seed.wrapping_add(self.draws_count) % (batch - rows + 1) as u64) as usize;
        let by_oracle = self.check_rows(first..first + rows, leeway)?;
        if by_oracle.passed { self.check_whole(gpu, by_oracle, leeway.scale) } else { Ok(by_oracle) }
    }

    /// One plain call on the inputs that are there.
    pub(crate) fn call_once(&mut self, gpu: &mut Gpu) -> Result<(), CudaError> {
        self.poison()?;
        self.program.host()?;
        self.program.enqueue(&gpu.device)?;
        gpu.device.synchronize()?;
        self.has_answer = true;
        Ok(())
    }

    fn check_rows(&self, rows: Range<usize>, leeway: Leeway) -> Result<Check, CudaError> {
        let batch = self.program.batch.max(1);
        let part = |buffer: &Buffer, dtype: Dtype, by_row: bool| -> Result<Vec<f32>, CudaError> {
            let row_bytes = buffer.bytes / batch;
            let bytes = match by_row {
                true => buffer.download_part(row_bytes * rows.start, row_bytes * rows.len())?,
                false => buffer.download()?,
            };
            Ok(dtype.decode(&bytes))
        };
        let inputs: Vec<Vec<f32>> = self
            .program
            .inputs
            .iter()
            .map(|input| part(&input.buffer, input.dtype, input.by_row))
            .collect::<Result<_, _>>()?;
        let want = (self.program.oracle)(rows.clone(), &inputs);
        let mut parts = Vec::new();
        for (output, want) in self.program.outputs.iter().zip(&want) {
            let leeway = Leeway { overflow: output.dtype.overflow(), ..leeway };
            let [atol, rtol] = output.dtype.tolerance();
            let own = self.program.tolerance.unwrap_or(Tolerance::new(atol, rtol));
            let tolerance = self.tolerance.unwrap_or(own);
            let got = part(&output.buffer, output.dtype, true)?;
            let mut dims = output.dims.clone();
            dims[0] = dims[0] / batch * rows.len();
            parts.push(
                Comparison::new(tolerance).given(leeway).floats(output.name, &dims, &got, want).finish(),
            );
        }
        Ok(worst(parts))
    }

    /// All of the output beside what the plain kernel makes of the same inputs.
    fn check_whole(&self, gpu: &mut Gpu, by_oracle: Check, scale: f64) -> Result<Check, CudaError> {
        let mut reference = (self.reference)(gpu).map_err(|error| match error {
            PrepareError::Device(error) => error,
            other => CudaError::new(FailureCause::WorkerError, other.to_string()),
        })?;
        for (to, from) in reference.inputs.iter_mut().zip(&self.program.inputs) {
            to.buffer.copy_from(&from.buffer)?;
        }
        reference.host()?;
        reference.enqueue(&gpu.device)?;
        let mut check = by_oracle;
        for (got, want) in self.program.outputs.iter().zip(&reference.outputs) {
            let [atol, rtol] = got.dtype.tolerance();
            let tolerance =
                self.tolerance.or(self.program.tolerance).map_or([atol, rtol], |t| [t.atol, t.rtol]);
            let tolerance = [tolerance[0] * scale, tolerance[1]];
            let found = gpu.compare(&got.buffer, &want.buffer, got.dtype, tolerance)?;
            check.total += (got.buffer.bytes / got.dtype.bytes()) as u64;
            check.max_abs_err = check.max_abs_err.max(found.max_abs_err);
            check.mismatches += found.mismatches;
            if let Some(first) = found.first {
                check.passed = false;
                let what = format!("{}[{first}] differs from the plain kernel's", got.name);
                check.first_bad.get_or_insert(what);
            }
        }
        Ok(check)
    }
}

/// Each input from a seed of its own, the same on every device.
fn draw(gpu: &mut Gpu, program: &Program, seed: u64, draws_count: u64) -> Result<(), CudaError> {
    for (index, input) in program.inputs.iter().enumerate() {
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (draws_count << 8) ^ index as u64;
        gpu.draw(&input.buffer, input.dtype, input.draw, seed)?;
    }
    Ok(())
}

/// Several checks as one.
fn worst(checks: Vec<Check>) -> Check {
    let mut all = checks.into_iter();
    let first = all.next().unwrap_or_else(|| Comparison::new(Tolerance::new(0.0, 0.0)).finish());
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
