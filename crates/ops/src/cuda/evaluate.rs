//! Runs a case on the caller's inputs twice, and checks everything about it.

use super::Prepared;
use crate::compare::{Check, Leeway};
use crate::device::{DeviceInput, DeviceOutput, Gpu, PrepareError};
use crate::tensor::Tensor;
use crate::values;
use holdpoint_cuda::{Buffer, Call, CudaError, Dtype};
use holdpoint_model::{FailureCause, FindingKind, Values};
use std::time::{Duration, Instant};

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum Evaluation {
    Checked(Box<Check>),
    Wrong(FindingKind, String),
}

#[derive(Clone, Debug)]
pub struct Computation {
    /// Time of all calls.
    pub elapsed: Duration,
    pub outputs: Vec<Tensor>,
}

impl Prepared {
    pub fn dtype(&self) -> Dtype {
        self.program.dtype
    }

    /// The op's inputs, filled with zeros.
    pub fn tensors(&self) -> Vec<Tensor> {
        self.program.inputs.iter().map(|input| input.spec.tensor(self.program.dtype)).collect()
    }

    /// Runs the op twice on values of a kind, with poison in the outputs and beside them.
    pub fn evaluate(&mut self, gpu: &mut Gpu, kind: Values, seed: u64) -> Result<Evaluation, PrepareError> {
        if self.program.inputs.is_empty() {
            return Ok(Evaluation::Checked(Box::new(self.check(gpu)?)));
        }
        if let Some(leeway) = self.draw_kind(gpu, kind, seed)? {
            return Ok(self.evaluate_on_device(gpu, leeway)?);
        }
        let mut inputs = self.tensors();
        let leeway = values::fill(kind, &mut inputs, seed, self.program.dtype);
        self.set_inputs(gpu, &inputs)?;
        self.call_once(gpu)?;
        let first = self.download_outputs()?;
        if let Some(wrong) = self.find_write_beside()? {
            return Ok(wrong);
        }
        for (input, given) in self.program.inputs.iter().zip(&inputs) {
            let Some(buffer) = &input.buffer else { continue };
            if buffer.download()? != given.bytes() {
                return Ok(input_changed(input));
            }
        }
        let check = self.check_given(gpu, leeway)?;
        if !check.passed {
            return Ok(Evaluation::Checked(Box::new(check)));
        }
        self.call_once(gpu)?;
        if self.download_outputs()? != first {
            return Ok(not_deterministic());
        }
        Ok(Evaluation::Checked(Box::new(check)))
    }

    /// The same on inputs that the device has drawn, without bringing anything large to the host.
    fn evaluate_on_device(&mut self, gpu: &mut Gpu, leeway: Leeway) -> Result<Evaluation, CudaError> {
        let mut given = Vec::new();
        for input in &self.program.inputs {
            given.push(input.buffer.as_ref().map(|buffer| copy_of(gpu, buffer)).transpose()?);
        }
        self.call_once(gpu)?;
        let mut first = Vec::new();
        for output in &self.program.outputs {
            first.push(copy_of(gpu, &output.buffer)?);
        }
        if let Some(wrong) = self.find_write_beside()? {
            return Ok(wrong);
        }
        for (input, given) in self.program.inputs.iter().zip(&given) {
            let (Some(now), Some(given)) = (&input.buffer, given) else { continue };
            if gpu.count_changed(given, now, self.program.dtype)? > 0 {
                return Ok(input_changed(input));
            }
        }
        drop(given);
        let check = self.check_given(gpu, leeway)?;
        if !check.passed {
            return Ok(Evaluation::Checked(Box::new(check)));
        }
        self.call_once(gpu)?;
        for (output, first) in self.program.outputs.iter().zip(&first) {
            if gpu.count_changed(first, &output.buffer, output.dtype)? > 0 {
                return Ok(not_deterministic());
            }
        }
        Ok(Evaluation::Checked(Box::new(check)))
    }

    fn find_write_beside(&self) -> Result<Option<Evaluation>, CudaError> {
        for output in &self.program.outputs {
            if !output.buffer.is_guard_whole()? {
                let detail = format!("memory beside {} was written", output.spec.name);
                return Ok(Some(Evaluation::Wrong(FindingKind::OutOfBounds, detail)));
            }
        }
        Ok(None)
    }

    /// Computes on the given inputs: the time of `repeats` calls, and the outputs.
    pub fn compute(
        &mut self,
        gpu: &mut Gpu,
        inputs: &[Tensor],
        repeats: u64,
    ) -> Result<Computation, PrepareError> {
        self.set_inputs(gpu, inputs)?;
        // Poisons the outputs, and pays for what only a first call costs.
        self.call_once(gpu)?;
        let start = Instant::now();
        for _ in 0..repeats {
            self.program.host()?;
            self.program.enqueue(&gpu.device)?;
        }
        gpu.device.synchronize()?;
        let elapsed = start.elapsed();
        if let Some(Evaluation::Wrong(_, detail)) = self.find_write_beside()? {
            return Err(CudaError::new(FailureCause::WrongAnswer, detail).into());
        }
        let filled = |(output, bytes): (&DeviceOutput, Vec<u8>)| {
            let mut tensor = output.spec.tensor();
            tensor.set_bytes(&bytes);
            tensor
        };
        let outputs = self.program.outputs.iter().zip(self.download_outputs()?).map(filled).collect();
        Ok(Computation { elapsed, outputs })
    }

    fn download_outputs(&self) -> Result<Vec<Vec<u8>>, CudaError> {
        self.program.outputs.iter().map(|output| output.buffer.download()).collect()
    }
}

fn copy_of(gpu: &Gpu, buffer: &Buffer) -> Result<Buffer, CudaError> {
    let mut copy = Buffer::new(&gpu.device, buffer.bytes, 0)?;
    copy.copy_from(buffer)?;
    Ok(copy)
}

fn input_changed(input: &DeviceInput) -> Evaluation {
    let detail = format!("input {} holds other bytes after the call", input.spec.name);
    Evaluation::Wrong(FindingKind::InputChanged, detail)
}

fn not_deterministic() -> Evaluation {
    let detail = "the same inputs gave other bits the second time".to_owned();
    Evaluation::Wrong(FindingKind::NotDeterministic, detail)
}
