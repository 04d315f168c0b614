//! One call's tensors: drawn, laid into a file's bytes, and read back from them.

use super::arena::{GAP_BYTES, POISON};
use super::declared::Declared;
use super::own;
use holdpoint_cuda::Dtype;
use holdpoint_model::fuzz::{CallPlaces, Finding, TensorPlace};
use holdpoint_model::{FindingKind, FuzzCase};
use holdpoint_ops::{Leeway, PreparedOp, Request, Tensor, Tolerance, build, values};
use std::ops::Range;

/// Element type of outputs of whole numbers.
const INTEGER: &str = "i32";

/// The oracle's side of one call.
pub(super) struct Call {
    pub(super) op: Op,
    pub(super) leeway: Leeway,
    pub(super) places: CallPlaces,
}

/// Where outputs of whole numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IntegerOutputs {
    /// The worker writes them.
    Asked,
    /// They are computed here, and not checked.
    Computed,
}

/// An op of ours, or one that the suite declares.
pub(super) enum Op {
    Known(Box<dyn PreparedOp>),
    Declared(Declared),
}

impl Op {
    fn new(case: &FuzzCase, dtype: Dtype, seed: u64) -> Result<Self, String> {
        if let Some(declared) = &case.declared {
            return Ok(Self::Declared(Declared::new(declared, &case.shape, dtype)?));
        }
        let [atol, rtol] = dtype.tolerance();
        // The oracle computes in 32 and 64 bits, on inputs that the element type can hold.
        let tolerance = (dtype != Dtype::F32).then_some(Tolerance { atol, rtol });
        let request = Request { dtype: "f32", tolerance, seed, ..own::request(case) };
        Ok(Self::Known(build(&request).map_err(|error| error.to_string())?))
    }

    pub(super) fn get(&mut self) -> &mut dyn PreparedOp {
        match self {
            Self::Known(op) => &mut **op,
            Self::Declared(op) => op,
        }
    }
}

/// Where a tensor lies in the file.
pub(super) fn bytes_of(place: &TensorPlace, dtype: Dtype) -> Range<usize> {
    let width = if place.dtype.is_some() { size_of::<i32>() } else { dtype.bytes() };
    let start = place.byte_offset as usize;
    start..start + place.shape.iter().product::<usize>() * width
}

impl Call {
    /// Draws the inputs of a case and puts its tensors behind what is in `bytes`.
    ///
    /// # Errors
    /// When there are no such tensors.
    pub(super) fn new(
        case: &FuzzCase,
        dtype: Dtype,
        seed: u64,
        integers: IntegerOutputs,
        bytes: &mut Vec<u8>,
    ) -> Result<Self, String> {
        let mut op = Op::new(case, dtype, seed)?;
        let round = |value: f32| dtype.decode(&dtype.encode(&[value]))[0];
        let leeway = values::fill(case.values, &mut op.get().inputs(), seed, dtype.range(), &round);
        let mut layout = Layout { bytes, offset: case.offset };
        let inputs = op.get().inputs().into_iter().map(|tensor| layout.put_input(tensor, dtype)).collect();
        let floats = op.get().outputs();
        let mut outputs: Vec<TensorPlace> = floats
            .into_iter()
            .map(|tensor| layout.put_output(&tensor.name, tensor.dims, tensor.values.len(), dtype.bytes()))
            .collect();
        if integers == IntegerOutputs::Asked {
            for tensor in op.get().integer_outputs() {
                let width = size_of::<i32>();
                let place = layout.put_output(tensor.name, tensor.dims, tensor.values.len(), width);
                outputs.push(TensorPlace { dtype: Some(INTEGER.to_owned()), ..place });
            }
        }
        Ok(Self { op, leeway, places: CallPlaces { inputs, outputs } })
    }

    /// Reads what the worker has written, unless it has left something out.
    pub(super) fn take_outputs(&mut self, after: &[u8], dtype: Dtype) -> Option<Finding> {
        for place in &self.places.outputs {
            let (got, is_integer) = (&after[bytes_of(place, dtype)], place.dtype.is_some());
            let width = if is_integer { size_of::<i32>() } else { dtype.bytes() };
            let left = got.chunks(width).position(|value| value.iter().all(|byte| *byte == POISON));
            // A planted NaN may come out with the bits of the poison.
            if let Some(at) = left.filter(|_| is_integer || !self.leeway.planted) {
                let detail = format!("{}[{at}] of {} was not written", place.name, got.len() / width);
                return Some(Finding { kind: FindingKind::Unwritten, detail });
            }
        }
        let op = self.op.get();
        let mut places = self.places.outputs.iter();
        for (tensor, place) in op.outputs().into_iter().zip(places.by_ref()) {
            tensor.values.copy_from_slice(&dtype.decode(&after[bytes_of(place, dtype)]));
        }
        for (mut tensor, place) in op.integer_outputs().into_iter().zip(places) {
            let bytes = after[bytes_of(place, dtype)].as_chunks().0;
            tensor.values.set(&bytes.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect::<Vec<_>>());
        }
        None
    }
}

/// Bytes of a file that grow by tensor.
struct Layout<'a> {
    bytes: &'a mut Vec<u8>,
    /// Elements by which every tensor is moved off its alignment.
    offset: usize,
}

impl Layout<'_> {
    fn put_input(&mut self, tensor: Tensor<'_>, dtype: Dtype) -> TensorPlace {
        let place = self.start(&tensor.name, tensor.dims, dtype.bytes());
        self.bytes.extend(dtype.encode(tensor.values));
        self.end();
        place
    }

    fn put_output(&mut self, name: &str, dims: Vec<usize>, len: usize, width: usize) -> TensorPlace {
        let place = self.start(name, dims, width);
        self.bytes.resize(self.bytes.len() + len * width, POISON);
        self.end();
        place
    }

    /// Aligned to 64 bytes, then moved by the case's offset.
    fn start(&mut self, name: &str, shape: Vec<usize>, width: usize) -> TensorPlace {
        self.bytes.resize(self.bytes.len().next_multiple_of(64) + self.offset * width, POISON);
        TensorPlace { name: name.to_owned(), shape, byte_offset: self.bytes.len() as u64, dtype: None }
    }

    fn end(&mut self) {
        self.bytes.resize(self.bytes.len() + GAP_BYTES, POISON);
    }
}
