//! Ops that a suite declares: it names their tensors, and another worker knows their answers.

use super::arena::{GAP_BYTES, POISON, Tensors};
use super::call::{Layout, byte_range, find_unwritten};
use crate::meter::Slot;
use crate::program::WorkerError;
use crate::worker::{Computed, Worker};
use holdpoint_model::fuzz::{CallPlaces, Evaluation, TensorPlace};
use holdpoint_model::suite::OpSpec;
use holdpoint_model::{FailureCause, Suite};
use holdpoint_ops::{Case, Domain, Dtype, Element, Precision, Tensor, Tolerance};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
    /// Calls that it had no answer for.
    pub(super) skipped_count: u64,
    /// Not the folder of the candidate's tensors, whose path it knows.
    dir: PathBuf,
}

/// Why an oracle gave no answer.
#[derive(Debug, PartialEq)]
pub(super) enum NoAnswer {
    /// It does not support the case.
    Skipped(String),
    /// It crashed, hung or answered with garbage: whether the kernel is right is not known.
    Failed(String),
}

impl<'a> Oracle<'a> {
    pub(super) fn new(suite: &'a Suite, dir: &Path) -> Self {
        Self { suite, slots: BTreeMap::new(), skipped_count: 0, dir: dir.to_owned() }
    }

    /// Computes the right outputs of a call, unless they are known. Only called when the candidate has answered.
    pub(super) fn answer(
        &mut self,
        request: &Evaluation,
        oracle: &str,
        candidate: &dyn Worker,
        case: &mut Case,
    ) -> Result<(), NoAnswer> {
        if case.has_answer() {
            return Ok(());
        }
        let Some((name, _)) = self.suite.workers.get_key_value(oracle) else {
            let detail = format!("no worker {oracle:?} in suite {:?}", self.suite.name);
            return Err(NoAnswer::Failed(detail));
        };
        let slot = self.slots.entry(name).or_insert_with(|| Slot::new(self.suite, name, None));
        let mut bytes = vec![POISON; GAP_BYTES];
        let mut layout = Layout { bytes: &mut bytes, offset: 0 };
        let inputs = case.given().iter().map(|tensor| layout.put_input(&to_f32(tensor))).collect();
        let mut answer: Vec<Tensor> = case.outputs().iter().map(to_f32).collect();
        let outputs: Vec<TensorPlace> = answer.iter().map(|tensor| layout.put_output(tensor)).collect();
        let mut request = Evaluation {
            dtype: "f32".to_owned(),
            bytes: bytes.len() as u64,
            calls: vec![CallPlaces { inputs, outputs: outputs.clone() }],
            repeats: 1,
            kernel: None,
            declared: None,
            ..request.clone()
        };
        let given = bytes.clone();
        let computed =
            ask_in_private(&self.dir, slot, candidate, &mut request, &mut bytes).map_err(|error| {
                if error.fatal {
                    slot.forget();
                }
                NoAnswer::Failed(format!("{oracle}: {}: {}", error.cause.as_str(), error.detail))
            })?;
        if let Computed::Skipped(reason) = computed {
            self.skipped_count += 1;
            return Err(NoAnswer::Skipped(reason));
        }
        let outputs_from = outputs.first().map_or(bytes.len(), |place| place.byte_offset as usize);
        if bytes[..outputs_from] != given[..outputs_from] {
            return Err(NoAnswer::Failed(format!("{oracle}: its inputs were changed while it worked")));
        }
        for (tensor, place) in answer.iter_mut().zip(&outputs) {
            let written = &bytes[byte_range(place, Dtype::F32)];
            if let Some(at) = find_unwritten(written, Dtype::F32.bytes()) {
                return Err(NoAnswer::Failed(format!("{oracle}: {}[{at}] was not written", place.name)));
            }
            tensor.set_bytes(written);
        }
        case.set_answer(answer);
        Ok(())
    }
}

/// Asks through a file that has a name only as long as the oracle works. The candidate stands still meanwhile: it runs as the same user,
/// and could open the file.
fn ask_in_private(
    dir: &Path,
    slot: &mut Slot<'_>,
    candidate: &dyn Worker,
    request: &mut Evaluation,
    bytes: &mut [u8],
) -> Result<Computed, WorkerError> {
    let failed = |what: &str, error| WorkerError::new(FailureCause::WorkerError, format!("{what}: {error}"));
    let _paused = candidate.pause().map_err(|error| failed("the candidate could disturb it", error))?;
    let mut tensors = Tensors::new(dir, "oracle").map_err(|error| failed("the tensors' file", error))?;
    let answered = slot.worker().and_then(|worker| tensors.exchange(worker, request, bytes));
    tensors.remove();
    answered.map(|(computed, _)| computed)
}

/// Oracles compute in single precision, whatever the case's element type.
fn to_f32(tensor: &Tensor) -> Tensor {
    let mut single = Tensor::new(tensor.name.clone(), &tensor.dims, Domain::Any, Element::Float(Dtype::F32));
    single.set(&tensor.values());
    single
}
