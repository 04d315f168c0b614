//! A case with inputs from outside: run twice, and everything looked at.

use crate::error::CudaError;
use crate::gpu::{Draw, Gpu};
use crate::program::Prepared;
use crate::timing::Call;
use holdpoint_model::{FindingKind, Values};
use holdpoint_ops::{Check, Domain, Tensor, values};
use std::time::{Duration, Instant};

/// What came of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum Evaluation {
    /// The answer was compared with the oracle's.
    Checked(Check),
    /// Something else is wrong.
    Wrong(FindingKind, String),
}

/// What came of computing on inputs that were brought.
#[derive(Clone, Debug, PartialEq)]
pub struct Computation {
    /// The time of all calls.
    pub elapsed: Duration,
    /// The outputs by name.
    pub outputs: Vec<(&'static str, Vec<u8>)>,
}

/// The inputs of an op by the names they have on the CPU, in the order they have here; none for ops with weights of their own.
fn input_names(op: &str) -> &'static [&'static str] {
    match op {
        "attention" => &["q", "k", "v"],
        "tile_ssm" => &["tokens", "decay", "input_gain", "output_gain", "state_bias", "merge_gate"],
        "fusion_gate" => &["boundary", "uncertainty", "base", "heavy"],
        "fused_pack_op_unpack" => &["feature_map"],
        // Packing and unpacking put tiles into an order on the CPU and not here, so their tensors are not the same.
        _ => &[],
    }
}

impl Prepared {
    /// Runs the op on values of a kind: twice, with poison in the outputs and beside them.
    ///
    /// # Errors
    /// When the device fails.
    pub fn evaluate(&mut self, gpu: &mut Gpu, kind: Values, seed: u64) -> Result<Evaluation, CudaError> {
        let mut inputs: Vec<Vec<f32>> = Vec::new();
        for input in &self.program.inputs {
            inputs.push(vec![0.0; input.buffer.bytes / input.dtype.bytes()]);
        }
        let is_attention = self.op == "attention";
        let mut tensors: Vec<Tensor<'_>> = Vec::new();
        for (at, (input, values)) in self.program.inputs.iter().zip(&mut inputs).enumerate() {
            let domain = match input.draw {
                Draw::Uniform { .. } => Domain::Unit,
                Draw::Normal { .. } if is_attention && at < 2 => Domain::Exponent,
                Draw::Normal { .. } if is_attention => Domain::Weighed,
                Draw::Normal { .. } => Domain::Any,
            };
            let len = values.len();
            tensors.push(Tensor::new("input", &[len], domain, values));
        }
        let range = self.program.inputs.first().map(|input| input.dtype.range());
        let Some(range) = range else { return Ok(Evaluation::Checked(self.check(gpu)?)) };
        let leeway = values::fill(kind, &mut tensors, seed, range, &|value| value);
        drop(tensors);
        let mut given = Vec::new();
        for (input, values) in self.program.inputs.iter_mut().zip(&mut inputs) {
            let (Draw::Uniform { scale, shift } | Draw::Normal { scale, shift }) = input.draw;
            values.iter_mut().for_each(|value| *value = *value * scale + shift);
            let bytes = input.dtype.encode(values);
            input.buffer.upload(&bytes)?;
            given.push(bytes);
        }
        self.call_once(gpu)?;
        let first = self.outputs()?;
        for output in &self.program.outputs {
            if !output.buffer.is_guard_whole()? {
                let detail = format!("memory beside {} was written", output.name);
                return Ok(Evaluation::Wrong(FindingKind::OutOfBounds, detail));
            }
        }
        for (at, (input, bytes)) in self.program.inputs.iter().zip(&given).enumerate() {
            if input.buffer.download()? != *bytes {
                let detail = format!("input {at} holds other bytes after the call");
                return Ok(Evaluation::Wrong(FindingKind::InputChanged, detail));
            }
        }
        let check = self.check_given(gpu, leeway)?;
        if !check.passed {
            return Ok(Evaluation::Checked(check));
        }
        self.call_once(gpu)?;
        if self.outputs()? != first {
            let detail = "the same inputs gave other bits the second time".to_owned();
            return Ok(Evaluation::Wrong(FindingKind::NotDeterministic, detail));
        }
        Ok(Evaluation::Checked(check))
    }

    /// Computes on inputs that are brought, by name and in the request's element type: the time of so many calls, and the outputs by
    /// name. Absent where the op takes or gives other tensors than these.
    ///
    /// # Errors
    /// When the device fails.
    pub fn compute(
        &mut self,
        gpu: &mut Gpu,
        inputs: &[(&str, Vec<u8>)],
        repeats: u64,
    ) -> Result<Option<Computation>, CudaError> {
        let names = input_names(&self.op);
        if names.len() != self.program.inputs.len() || names.len() != inputs.len() {
            return Ok(None);
        }
        for (input, name) in self.program.inputs.iter_mut().zip(names) {
            match inputs.iter().find(|(given, bytes)| given == name && bytes.len() == input.buffer.bytes) {
                Some((_, bytes)) => input.buffer.upload(bytes)?,
                None => return Ok(None),
            }
        }
        // Poisons the outputs, and pays for what only a first call costs.
        self.call_once(gpu)?;
        let start = Instant::now();
        for _ in 0..repeats {
            self.program.host()?;
            self.program.enqueue(&gpu.device)?;
        }
        gpu.device.synchronize()?;
        let elapsed = start.elapsed();
        let named = self.program.outputs.iter().map(|output| output.name);
        Ok(Some(Computation { elapsed, outputs: named.zip(self.outputs()?).collect() }))
    }

    fn outputs(&self) -> Result<Vec<Vec<u8>>, CudaError> {
        self.program.outputs.iter().map(|output| output.buffer.download()).collect()
    }
}
