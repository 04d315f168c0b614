//! One call's tensors: drawn, written to a file's bytes, and read back.

use super::arena::{GAP_BYTES, POISON};
use super::{declared, own};
use holdpoint_model::fuzz::{CallPlaces, Finding, TensorPlace};
use holdpoint_model::{FindingKind, FuzzCase};
use holdpoint_ops::{Case, Dtype, Leeway, Request, Tensor, values};
use std::ops::Range;

/// Element type of integer outputs.
const INTEGER: &str = "i32";

pub(super) struct Call {
    pub(super) case: Case,
    /// The worker that knows the answer, if the suite declares the op.
    pub(super) oracle: Option<String>,
    pub(super) leeway: Leeway,
    pub(super) places: CallPlaces,
}

/// Where integer outputs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IntegerOutputs {
    Asked,
    /// They are computed here, and not checked.
    Computed,
}

pub(super) fn bytes_of(place: &TensorPlace, dtype: Dtype) -> Range<usize> {
    let width = if place.dtype.is_some() { size_of::<i32>() } else { dtype.bytes() };
    let start = place.byte_offset as usize;
    start..start + place.shape.iter().product::<usize>() * width
}

impl Call {
    /// Draws the inputs of a case and appends its tensors to `bytes`.
    pub(super) fn new(
        case: &FuzzCase,
        dtype: Dtype,
        seed: u64,
        integers: IntegerOutputs,
        bytes: &mut Vec<u8>,
    ) -> Result<Self, String> {
        let (mut tensors, oracle) = match &case.declared {
            Some(op) => (declared::case(op, &case.shape, dtype)?, Some(op.oracle.clone())),
            None => {
                let request = Request { seed, ..own::request(case) };
                (Case::new(&request).map_err(|error| error.to_string())?, None)
            }
        };
        let leeway = values::fill(case.values, tensors.inputs(), seed, dtype);
        let mut layout = Layout { bytes, offset: case.offset };
        let inputs = tensors.given().iter().map(|tensor| layout.put_input(tensor)).collect();
        let is_asked = |tensor: &&mut Tensor| integers == IntegerOutputs::Asked || !tensor.is_integer();
        let outputs =
            tensors.outputs().iter_mut().filter(is_asked).map(|tensor| layout.put_output(tensor)).collect();
        Ok(Self { case: tensors, oracle, leeway, places: CallPlaces { inputs, outputs } })
    }

    /// Reads what the worker has written; reports the first value that it left out.
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
        for (tensor, place) in self.case.outputs().iter_mut().zip(&self.places.outputs) {
            tensor.set_bytes(&after[bytes_of(place, dtype)]);
        }
        None
    }
}

struct Layout<'a> {
    bytes: &'a mut Vec<u8>,
    /// Elements by which every tensor is moved off its alignment.
    offset: usize,
}

impl Layout<'_> {
    fn put_input(&mut self, tensor: &Tensor) -> TensorPlace {
        let place = self.start(tensor);
        self.bytes.extend(tensor.bytes());
        self.end();
        place
    }

    fn put_output(&mut self, tensor: &Tensor) -> TensorPlace {
        let place = self.start(tensor);
        self.bytes.resize(self.bytes.len() + tensor.len() * tensor.width(), POISON);
        self.end();
        place
    }

    /// Aligned to 64 bytes, then moved by the case's offset.
    fn start(&mut self, tensor: &Tensor) -> TensorPlace {
        self.bytes.resize(self.bytes.len().next_multiple_of(64) + self.offset * tensor.width(), POISON);
        TensorPlace {
            name: tensor.name.to_string(),
            shape: tensor.dims.clone(),
            byte_offset: self.bytes.len() as u64,
            dtype: tensor.is_integer().then(|| INTEGER.to_owned()),
        }
    }

    fn end(&mut self) {
        self.bytes.resize(self.bytes.len() + GAP_BYTES, POISON);
    }
}
