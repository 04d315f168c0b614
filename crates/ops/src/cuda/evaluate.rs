//! Runs a case on the caller's inputs twice, and checks everything about it.

use super::program::DeviceOutput;
use super::{Gpu, PrepareError, Prepared};
use crate::compare::Check;
use crate::tensor::Tensor;
use crate::values;
use holdpoint_cuda::{Call, CudaError, Dtype};
use holdpoint_model::{FindingKind, Values};
use std::time::{Duration, Instant};

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum Evaluation {
    Checked(Check),
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
        let mut inputs = self.tensors();
        if inputs.is_empty() {
            return Ok(Evaluation::Checked(self.check(gpu)?));
        }
        let leeway = values::fill(kind, &mut inputs, seed, self.program.dtype);
        self.set_inputs(gpu, &inputs)?;
        self.call_once(gpu)?;
        let first = self.download_outputs()?;
        for output in &self.program.outputs {
            if !output.buffer.is_guard_whole()? {
                let detail = format!("memory beside {} was written", output.spec.name);
                return Ok(Evaluation::Wrong(FindingKind::OutOfBounds, detail));
            }
        }
        for (input, given) in self.program.inputs.iter().zip(&inputs) {
            let Some(buffer) = &input.buffer else { continue };
            if buffer.download()? != given.bytes() {
                let detail = format!("input {} holds other bytes after the call", input.spec.name);
                return Ok(Evaluation::Wrong(FindingKind::InputChanged, detail));
            }
        }
        let check = self.check_given(gpu, leeway)?;
        if !check.passed {
            return Ok(Evaluation::Checked(check));
        }
        self.call_once(gpu)?;
        if self.download_outputs()? != first {
            let detail = "the same inputs gave other bits the second time".to_owned();
            return Ok(Evaluation::Wrong(FindingKind::NotDeterministic, detail));
        }
        Ok(Evaluation::Checked(check))
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
