//! Runs holdpoint's own ops on tensors in a file.

use super::Computed;
use crate::clock::nanos;
use crate::program::WorkerError;
use holdpoint_model::FailureCause;
use holdpoint_model::fuzz::{Evaluation, TensorPlace};
use holdpoint_ops::{Backend, Prepared, Request, Tensor, validate};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

fn request_error(what: impl ToString) -> WorkerError {
    WorkerError::new(FailureCause::WorkerError, what.to_string())
}

pub(super) struct Tensors {
    file: File,
    bytes: u64,
}

impl Tensors {
    pub(super) fn open(evaluation: &Evaluation) -> Result<Self, WorkerError> {
        let file = File::options().read(true).write(true).open(&evaluation.file);
        let file = file.map_err(|error| request_error(format!("the tensors' file: {error}")))?;
        let len = file.metadata().map_err(request_error)?.len();
        if len < evaluation.bytes {
            return Err(request_error(format!(
                "the tensors' file has {len} bytes, not {}",
                evaluation.bytes
            )));
        }
        Ok(Self { file, bytes: evaluation.bytes })
    }

    pub(super) fn read_inputs(
        &self,
        places: &[TensorPlace],
        inputs: &mut [Tensor],
    ) -> Result<(), WorkerError> {
        check_places(places, inputs)?;
        for (place, tensor) in places.iter().zip(inputs) {
            let mut bytes = vec![0; tensor.len() * tensor.width()];
            self.check(place, bytes.len())?;
            self.file.read_exact_at(&mut bytes, place.byte_offset).map_err(request_error)?;
            tensor.set_bytes(&bytes);
        }
        Ok(())
    }

    pub(super) fn write(&self, place: &TensorPlace, bytes: &[u8]) -> Result<(), WorkerError> {
        self.check(place, bytes.len())?;
        self.file.write_all_at(bytes, place.byte_offset).map_err(request_error)
    }

    fn check(&self, place: &TensorPlace, bytes: usize) -> Result<(), WorkerError> {
        match place.byte_offset.checked_add(bytes as u64) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(request_error(format!("tensor {:?} does not lie in the file", place.name))),
        }
    }
}

pub(super) fn evaluation_request(evaluation: &Evaluation) -> Request {
    Request {
        seed: evaluation.seed.unwrap_or(0),
        kernel: evaluation.kernel.clone(),
        declared: evaluation.declared.clone(),
        ..Request::new(&evaluation.op, &evaluation.shape, &evaluation.dtype, &evaluation.params)
    }
}

pub(super) fn compute_on_cpu(evaluation: &Evaluation) -> Result<Computed, WorkerError> {
    let request = evaluation_request(evaluation);
    if let Err(error) = validate(&request, Backend::Cpu) {
        return Ok(Computed::Skipped(error.to_string()));
    }
    let tensors = Tensors::open(evaluation)?;
    let mut ops = Vec::new();
    for call in &evaluation.calls {
        let mut op = Prepared::new(&request).map_err(request_error)?;
        tensors.read_inputs(&call.inputs, op.inputs())?;
        // Float outputs come first, then integer outputs, which a request may leave out.
        let floats_count = op.outputs().iter().filter(|tensor| !tensor.is_integer()).count();
        let is_all = call.outputs.len() > floats_count;
        let outputs = op.outputs();
        check_places(&call.outputs, if is_all { outputs } else { &outputs[..floats_count] })?;
        op.poison();
        ops.push(op);
    }
    let start = Instant::now();
    for _ in 0..evaluation.repeats {
        ops.iter_mut().for_each(Prepared::call);
    }
    let elapsed_ns = nanos(start.elapsed());
    for (call, op) in evaluation.calls.iter().zip(&mut ops) {
        for (place, tensor) in call.outputs.iter().zip(op.outputs()) {
            tensors.write(place, &tensor.bytes())?;
        }
    }
    Ok(Computed::Timed(elapsed_ns.max(1)))
}

/// Checks that the tensors are those of the op, in its order.
fn check_places(places: &[TensorPlace], known: &[Tensor]) -> Result<(), WorkerError> {
    let are_same =
        |(place, tensor): (&TensorPlace, &Tensor)| place.name == tensor.name && place.shape == tensor.dims;
    if places.len() == known.len() && places.iter().zip(known).all(are_same) {
        return Ok(());
    }
    let wanted: Vec<String> =
        known.iter().map(|tensor| format!("{} {:?}", tensor.name, tensor.dims)).collect();
    Err(request_error(format!("the op has tensors {}", wanted.join(", "))))
}
