//! An oracle on the device, in 64-bit floats, for answers that would take the CPU's oracle too long. It is believed only after it gave the
//! CPU oracle's answers on small and odd shapes, and only as that machine code, on that device with that driver.

use crate::case::{Answer, compare, widen};
use crate::compare::{Comparison, Leeway};
use crate::device::{DeviceOracle, Gpu, Proof};
use crate::op::Op;
use crate::precision::Overflow;
use crate::precision::Tolerance;
use crate::registry::{PlannedOp, plan};
use crate::request::Request;
use crate::tensor::Tensor;
use crate::values;
use holdpoint_cuda::compile::Unit;
use holdpoint_cuda::{Arguments, Buffer, CudaError, Dtype, Kernel, trace};
use holdpoint_model::{FailureCause, Values};

/// Both oracles sum 64-bit floats and round once to 32 bits, so that they differ by a unit in the last place or two; of values that cancel
/// to almost nothing, by what the roundings of a 64-bit sum leave.
const PROOF: Tolerance = Tolerance::new(1e-9, 3e-7);
/// Kinds of values that a proof takes: ordinary, large ones that make a step of an exponential, and one that is not a number.
const PROOF_VALUES: &[Values] = &[Values::Normal, Values::Large, Values::Nan];

/// An oracle whose answers are believed.
pub(super) struct ProvenOracle {
    pub oracle: DeviceOracle,
    pub kernel: Kernel,
}

impl ProvenOracle {
    /// Computes the answer to inputs on the device into 32-bit floats there.
    pub(super) fn compute(
        &self,
        gpu: &mut Gpu,
        inputs: &[u64],
        outputs_len: &[usize],
    ) -> Result<Vec<Buffer>, CudaError> {
        compute(gpu, &self.oracle, &self.kernel, inputs, outputs_len)
    }
}

impl Gpu {
    /// The op's oracle on the device; it is proven first where that was not done here before. Absent where there is none, or where it
    /// does not give the CPU's answers.
    pub(super) fn proven_oracle(
        &mut self,
        op: &dyn Op,
        name: &str,
        dtype: Dtype,
    ) -> Result<Option<ProvenOracle>, CudaError> {
        let Some(oracle) = op.device_oracle() else { return Ok(None) };
        let kernel = match self.kernel(&Unit::new(oracle.source, dtype), oracle.kernel) {
            // Neither compiled before nor a compiler: the CPU's oracle answers.
            Err(error) if error.cause == FailureCause::NotStarted => return Ok(None),
            kernel => kernel?,
        };
        let code = kernel.module.code_sha256.clone();
        if self.proofs.get(&code).is_none() {
            let proof = trace::step("prove", name, || prove(self, name, dtype, &oracle, &kernel))?;
            let Some(proof) = proof else { return Ok(None) };
            // What cannot be kept is proven again next time.
            let _ = self.proofs.put(code, proof);
        }
        Ok(Some(ProvenOracle { oracle, kernel }))
    }
}

/// Compares it with the CPU's oracle on every shape of its proof.
fn prove(
    gpu: &mut Gpu,
    name: &str,
    dtype: Dtype,
    oracle: &DeviceOracle,
    kernel: &Kernel,
) -> Result<Option<Proof>, CudaError> {
    let mut proof = Proof {
        op: name.to_owned(),
        dtype: dtype.name().to_owned(),
        cases_count: 0,
        values_count: 0,
        max_rel_err: 0.0,
    };
    for (at, (shape, params)) in (oracle.proof)().into_iter().enumerate() {
        let params = params.as_object().cloned().unwrap_or_default();
        let Ok(PlannedOp { op, .. }) = plan(&Request::new(name, &shape, dtype.name(), &params), None) else {
            return Ok(None);
        };
        let Some(of_shape) = op.device_oracle() else { return Ok(None) };
        for &kind in PROOF_VALUES {
            let check = agree(gpu, &*op, dtype, (&of_shape, kernel), kind, at as u64)?;
            if !check.passed {
                return Ok(None);
            }
            proof.cases_count += 1;
            proof.values_count += check.total;
            proof.max_rel_err = proof.max_rel_err.max(check.max_rel_err);
        }
    }
    Ok(Some(proof).filter(|proof| proof.values_count > 0))
}

/// Compares both oracles on one set of inputs.
fn agree(
    gpu: &mut Gpu,
    op: &dyn Op,
    dtype: Dtype,
    (oracle, kernel): (&DeviceOracle, &Kernel),
    kind: Values,
    seed: u64,
) -> Result<crate::compare::Check, CudaError> {
    let mut inputs: Vec<Tensor> = op.describe(dtype).inputs.iter().map(|input| input.tensor(dtype)).collect();
    let leeway = values::fill(kind, &mut inputs, seed, dtype);
    let mut buffers = Vec::new();
    for input in &inputs {
        let bytes = input.bytes();
        let mut buffer = Buffer::new(&gpu.device, bytes.len(), 0)?;
        buffer.upload(&bytes)?;
        buffers.push(buffer);
    }
    let want = Answer::compute(op, dtype, &widen(&inputs));
    let pointers: Vec<u64> = buffers.iter().map(|buffer| buffer.ptr).collect();
    let lens: Vec<usize> = want.outputs.iter().map(Tensor::len).collect();
    let answers = compute(gpu, oracle, kernel, &pointers, &lens)?;
    // Relative to nothing but themselves: the inputs were the same, and so were all steps.
    let leeway = Leeway { scale: 1.0, overflow: Overflow::F32, ..leeway };
    let mut comparison = Comparison::new(PROOF).with_leeway(leeway);
    for (spec, (answer, want)) in
        op.describe(Dtype::F32).outputs.iter().zip(answers.iter().zip(&want.outputs))
    {
        let mut tensor = spec.tensor();
        tensor.set_bytes(&answer.download()?);
        comparison = compare(comparison, std::slice::from_ref(&tensor), std::slice::from_ref(want));
    }
    Ok(comparison.finish())
}

fn compute(
    gpu: &mut Gpu,
    oracle: &DeviceOracle,
    kernel: &Kernel,
    inputs: &[u64],
    outputs_len: &[usize],
) -> Result<Vec<Buffer>, CudaError> {
    let mut outputs = Vec::new();
    for len in outputs_len {
        let mut buffer = Buffer::new(&gpu.device, len * size_of::<f32>(), 0)?;
        // A value that the oracle leaves out matches nothing.
        buffer.poison()?;
        outputs.push(buffer);
    }
    let arguments = inputs.iter().fold(Arguments::new(), |all, ptr| all.ptr(*ptr));
    let arguments = outputs.iter().fold(arguments, Arguments::buffer);
    (oracle.launch)(kernel, arguments)?.enqueue(&gpu.device)?;
    Ok(outputs)
}
