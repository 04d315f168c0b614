//! Computing on tensors that somebody else has put into a file, by holdpoint's own ops.

use super::{Computed, WorkerError};
use holdpoint_model::FailureCause;
use holdpoint_model::fuzz::{Evaluation, TensorPlace};
use holdpoint_ops::{PreparedOp, Request, Variant, build, validate};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

/// Bytes of an element on the CPU.
const WIDTH: usize = 4;

fn refused(what: impl ToString) -> WorkerError {
    WorkerError::new(FailureCause::WorkerError, what.to_string())
}

/// The file that holds the tensors.
pub(super) struct Tensors {
    file: File,
    bytes: u64,
}

impl Tensors {
    /// Opens it.
    ///
    /// # Errors
    /// When it is not there, or shorter than it is said to be.
    pub(super) fn open(asked: &Evaluation) -> Result<Self, WorkerError> {
        let file = File::options().read(true).write(true).open(&asked.file);
        let file = file.map_err(|error| refused(format!("the tensors' file: {error}")))?;
        let len = file.metadata().map_err(refused)?.len();
        if len < asked.bytes {
            return Err(refused(format!("the tensors' file has {len} bytes, not {}", asked.bytes)));
        }
        Ok(Self { file, bytes: asked.bytes })
    }

    /// Reads a tensor of so many bytes.
    ///
    /// # Errors
    /// When it does not lie in the file.
    pub(super) fn read(&self, place: &TensorPlace, bytes: usize) -> Result<Vec<u8>, WorkerError> {
        self.check(place, bytes)?;
        let mut read = vec![0; bytes];
        self.file.read_exact_at(&mut read, place.byte_offset).map_err(refused)?;
        Ok(read)
    }

    /// Writes one.
    ///
    /// # Errors
    /// When it would not lie in the file.
    pub(super) fn write(&self, place: &TensorPlace, bytes: &[u8]) -> Result<(), WorkerError> {
        self.check(place, bytes.len())?;
        self.file.write_all_at(bytes, place.byte_offset).map_err(refused)
    }

    fn check(&self, place: &TensorPlace, bytes: usize) -> Result<(), WorkerError> {
        match place.byte_offset.checked_add(bytes as u64) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(refused(format!("tensor {:?} does not lie in the file", place.name))),
        }
    }
}

/// Makes the calls with the built-in ops.
///
/// # Errors
/// When an op does not take what is asked, or the tensors are not where they are said to be.
pub(super) fn on_the_cpu(asked: &Evaluation) -> Result<Computed, WorkerError> {
    let request = Request {
        op: &asked.op,
        shape: &asked.shape,
        dtype: &asked.dtype,
        variant: Variant::Fast,
        params: &asked.params,
        seed: asked.seed.unwrap_or(0),
        tolerance: None,
    };
    if let Err(error) = validate(&request) {
        return Ok(Computed::Skipped(error.to_string()));
    }
    let tensors = Tensors::open(asked)?;
    let mut ops: Vec<Box<dyn PreparedOp>> = Vec::new();
    for call in &asked.calls {
        let mut op = build(&request).map_err(refused)?;
        let inputs = op.inputs();
        let known = inputs.iter().map(|tensor| (tensor.name.to_string(), tensor.dims.clone())).collect();
        check_places(&call.inputs, known)?;
        for (place, tensor) in call.inputs.iter().zip(inputs) {
            let bytes = tensors.read(place, tensor.values.len() * WIDTH)?;
            for (value, bytes) in tensor.values.iter_mut().zip(bytes.as_chunks().0) {
                *value = f32::from_le_bytes(*bytes);
            }
        }
        check_outputs(&call.outputs, op.as_mut())?;
        op.poison();
        ops.push(op);
    }
    let start = Instant::now();
    for _ in 0..asked.repeats {
        ops.iter_mut().for_each(|op| op.call());
    }
    let elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    for (call, op) in asked.calls.iter().zip(&mut ops) {
        for (place, tensor) in call.outputs.iter().zip(op.outputs()) {
            let bytes: Vec<u8> = tensor.values.iter().flat_map(|value| value.to_le_bytes()).collect();
            tensors.write(place, &bytes)?;
        }
        let floats_count = op.outputs().len();
        for (place, tensor) in call.outputs.iter().skip(floats_count).zip(op.integer_outputs()) {
            let bytes: Vec<u8> = tensor.values.get().iter().flat_map(|value| value.to_le_bytes()).collect();
            tensors.write(place, &bytes)?;
        }
    }
    Ok(Computed::Timed(elapsed_ns.max(1)))
}

/// Whether the outputs are those of the op: its floats, and behind them its whole numbers, unless nobody asks for those.
fn check_outputs(places: &[TensorPlace], op: &mut dyn PreparedOp) -> Result<(), WorkerError> {
    let mut known: Known =
        op.outputs().iter().map(|tensor| (tensor.name.to_string(), tensor.dims.clone())).collect();
    if places.len() > known.len() {
        known.extend(op.integer_outputs().into_iter().map(|tensor| (tensor.name.to_owned(), tensor.dims)));
    }
    check_places(places, known)
}

/// Tensors of an op by name, with their sizes.
type Known = Vec<(String, Vec<usize>)>;

/// Whether the tensors are those of the op, in its order.
fn check_places(places: &[TensorPlace], known: Known) -> Result<(), WorkerError> {
    if places
        .iter()
        .map(|place| (&place.name, &place.shape))
        .eq(known.iter().map(|(name, dims)| (name, dims)))
    {
        return Ok(());
    }
    let wanted: Vec<String> = known.iter().map(|(name, dims)| format!("{name} {dims:?}")).collect();
    Err(refused(format!("the op has tensors {}", wanted.join(", "))))
}
