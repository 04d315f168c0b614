//! One call's tensors: drawn, written to a file's bytes, and read back.

use super::arena::{GAP_BYTES, POISON};
use super::declared;
use crate::worker::own;
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
    Requested,
    /// They are computed here, and not checked.
    Computed,
}

pub(super) fn byte_range(place: &TensorPlace, dtype: Dtype) -> Range<usize> {
    let width = if place.dtype.is_some() { size_of::<i32>() } else { dtype.bytes() };
    let start = place.byte_offset as usize;
    start..start + place.shape.iter().product::<usize>() * width
}

/// The first value that still holds the poison.
pub(super) fn find_unwritten(bytes: &[u8], width: usize) -> Option<usize> {
    bytes.chunks(width).position(|value| value.iter().all(|byte| *byte == POISON))
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
        let is_requested =
            |tensor: &&mut Tensor| integers == IntegerOutputs::Requested || !tensor.is_integer();
        let outputs = tensors
            .outputs()
            .iter_mut()
            .filter(is_requested)
            .map(|tensor| layout.put_output(tensor))
            .collect();
        Ok(Self { case: tensors, oracle, leeway, places: CallPlaces { inputs, outputs } })
    }

    /// Reads what the worker has written; reports the first value that it left out.
    pub(super) fn take_outputs(&mut self, after: &[u8], dtype: Dtype) -> Option<Finding> {
        for place in &self.places.outputs {
            let (got, is_integer) = (&after[byte_range(place, dtype)], place.dtype.is_some());
            let width = if is_integer { size_of::<i32>() } else { dtype.bytes() };
            // A planted NaN may come out with the bits of the poison.
            if let Some(at) = find_unwritten(got, width).filter(|_| is_integer || !self.leeway.planted) {
                let detail = format!("{}[{at}] of {} was not written", place.name, got.len() / width);
                return Some(Finding { kind: FindingKind::Unwritten, detail });
            }
        }
        for (tensor, place) in self.case.outputs().iter_mut().zip(&self.places.outputs) {
            tensor.set_bytes(&after[byte_range(place, dtype)]);
        }
        None
    }
}

pub(super) struct Layout<'a> {
    pub(super) bytes: &'a mut Vec<u8>,
    /// Elements by which every tensor is moved off its alignment.
    pub(super) offset: usize,
}

impl Layout<'_> {
    pub(super) fn put_input(&mut self, tensor: &Tensor) -> TensorPlace {
        let place = self.start(tensor);
        self.bytes.extend(tensor.bytes());
        self.end();
        place
    }

    pub(super) fn put_output(&mut self, tensor: &Tensor) -> TensorPlace {
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
