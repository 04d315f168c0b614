//! Compares what an op on a device has computed with an oracle. Must not time anything.

use super::Prepared;
use super::oracle::ProvenOracle;
use super::program::Program;
use crate::case::{Answer, compare};
use crate::compare::{Check, Comparison, Leeway};
use crate::device::{DeviceInput, Gpu};
use crate::op::{Input, Op};
use crate::precision::Precision;
use crate::precision::Tolerance;
use crate::registry::plan;
use crate::request::{Backend, Request};
use crate::tensor::Tensor;
use holdpoint_cuda::{Buffer, Call, CudaError, Dtype, trace};
use holdpoint_model::report::{CheckedBy, OracleKind};
use std::ops::Range;
use std::thread::JoinHandle;

/// Values from which on an answer is compared on the device: the host takes 70 ns for each.
const TALLY_LEN_MIN: usize = 1 << 17;

/// Values of an answer whose errors are looked at one by one, on the host.
const GRADED_LEN_MAX: usize = 1 << 17;

/// The CPU oracle's answer to rows of the inputs of a draw.
pub(super) struct Pending {
    draws_count: u64,
    rows: Range<usize>,
    answer: JoinHandle<Answer>,
}

impl Prepared {
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
            // What it is compared with is rounded too.
            let rtol = self.tolerance.rtol + got.dtype.unit();
            let tolerance = Tolerance { atol: self.tolerance.atol * scale, rtol };
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
