//! Ops that a suite declares: it names their tensors, and another worker knows their answers.

use super::arena::{GAP_BYTES, POISON, Tensors};
use crate::slot::Slot;
use crate::worker::{Computed, Place};
use holdpoint_model::fuzz::{CallPlaces, Evaluation, TensorPlace};
use holdpoint_model::suite::OpSpec;
use holdpoint_model::{FuzzCase, Suite};
use holdpoint_ops::{Case, Domain, Dtype, Element, Precision, Tensor, Tolerance};
use std::collections::BTreeMap;
use std::path::Path;

pub(super) fn takes(op: &OpSpec, case: &FuzzCase) -> bool {
    Dtype::parse(&case.dtype).is_some() && op.tensors(&case.shape).is_ok()
}

/// The tensors of one call, all zero.
pub(super) fn case(op: &OpSpec, shape: &[usize], dtype: Dtype) -> Result<Case, String> {
    let (inputs, outputs) = op.tensors(shape)?;
    let tensors = |named: Vec<(String, Vec<usize>)>| {
        let tensor =
            |(name, dims): (String, Vec<usize>)| Tensor::new(name, &dims, Domain::Any, Element::Float(dtype));
        named.into_iter().map(tensor).collect()
    };
    let tolerance = op.check.map(|check| Tolerance { atol: check.atol, rtol: check.rtol });
    let tolerance = tolerance.unwrap_or(dtype.tolerance());
    Ok(Case::declared(tensors(inputs), tensors(outputs), dtype, tolerance))
}

pub(super) struct Oracle<'a> {
    suite: &'a Suite,
    slots: BTreeMap<&'a str, Slot<'a>>,
    tensors: Tensors,
}

impl<'a> Oracle<'a> {
    pub(super) fn new(suite: &'a Suite, dir: &Path) -> std::io::Result<Self> {
        Ok(Self { suite, slots: BTreeMap::new(), tensors: Tensors::new(dir, "oracle")? })
    }

    /// Computes the right outputs of a call, unless they are known. A failure here is not the kernel's.
    pub(super) fn answer(&mut self, asked: &Evaluation, oracle: &str, case: &mut Case) -> Result<(), String> {
        if case.has_answer() {
            return Ok(());
        }
        let Some((name, _)) = self.suite.workers.get_key_value(oracle) else {
            return Err(format!("no worker {oracle:?} in suite {:?}", self.suite.name));
        };
        let slot = self.slots.entry(name).or_insert_with(|| Slot::new(self.suite, name, Place::default()));
        let mut bytes = vec![POISON; GAP_BYTES];
        let mut lay = |tensor: &Tensor, is_input: bool| {
            bytes.resize(bytes.len().next_multiple_of(64), POISON);
            let place = TensorPlace {
                name: tensor.name.to_string(),
                shape: tensor.dims.clone(),
                byte_offset: bytes.len() as u64,
                dtype: None,
            };
            match is_input {
                true => bytes.extend(Dtype::F32.encode(&tensor.values())),
                false => bytes.resize(bytes.len() + 4 * tensor.len(), POISON),
            }
            bytes.resize(bytes.len() + GAP_BYTES, POISON);
            place
        };
        let inputs = case.given().iter().map(|tensor| lay(tensor, true)).collect();
        let outputs: Vec<TensorPlace> = case.outputs().iter().map(|tensor| lay(tensor, false)).collect();
        let mut request = Evaluation {
            dtype: "f32".to_owned(),
            bytes: bytes.len() as u64,
            calls: vec![CallPlaces { inputs, outputs: outputs.clone() }],
            repeats: 1,
            ..asked.clone()
        };
        let answered = slot.worker().and_then(|w| self.tensors.exchange(w, &mut request, &mut bytes));
        let (computed, _) = answered.map_err(|error| {
            if error.fatal {
                slot.forget();
            }
            format!("{}: {}", error.cause.as_str(), error.detail)
        })?;
        if let Computed::Skipped(reason) = computed {
            return Err(reason);
        }
        let mut want = Vec::new();
        for place in &outputs {
            let mut tensor =
                Tensor::new(place.name.clone(), &place.shape, Domain::Any, Element::Float(Dtype::F32));
            let start = place.byte_offset as usize;
            let written = &bytes[start..start + 4 * tensor.len()];
            if let Some(at) = written.chunks(4).position(|value| value.iter().all(|byte| *byte == POISON)) {
                return Err(format!("{}[{at}] was not written", place.name));
            }
            tensor.set_bytes(written);
            want.push(tensor);
        }
        case.set_answer(want);
        Ok(())
    }
}
