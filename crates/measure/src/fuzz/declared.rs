//! Ops that a suite declares: their tensors are known from it, their answers from another worker.

use super::arena::{GAP_BYTES, POISON, Tensors};
use crate::slot::Slot;
use crate::worker::{Computed, Place};
use holdpoint_cuda::Dtype;
use holdpoint_model::fuzz::{CallPlaces, Evaluation, TensorPlace};
use holdpoint_model::suite::OpSpec;
use holdpoint_model::{FuzzCase, Suite};
use holdpoint_ops::compare::Comparison;
use holdpoint_ops::{Check, Domain, Leeway, PreparedOp, Tensor, Tolerance, Work};
use std::collections::BTreeMap;
use std::path::Path;

/// Whether the op can do what a case asks.
pub(super) fn takes(op: &OpSpec, case: &FuzzCase) -> bool {
    Dtype::parse(&case.dtype).is_some() && op.tensors(&case.shape).is_ok()
}

struct Values {
    name: String,
    dims: Vec<usize>,
    values: Vec<f32>,
}

impl Values {
    fn tensor(&mut self) -> Tensor<'_> {
        Tensor::new(self.name.clone(), &self.dims, Domain::Any, &mut self.values)
    }
}

/// One call of a declared op.
pub(super) struct Declared {
    inputs: Vec<Values>,
    outputs: Vec<Values>,
    /// The right answer, once it has been asked for.
    want: Vec<Vec<f32>>,
    tolerance: Tolerance,
    /// Who knows it.
    oracle: String,
}

impl Declared {
    /// Its tensors, all zero.
    ///
    /// # Errors
    /// When the shape does not fit.
    pub(super) fn new(op: &OpSpec, shape: &[usize], dtype: Dtype) -> Result<Self, String> {
        let (inputs, outputs) = op.tensors(shape)?;
        let values = |(name, dims): (String, Vec<usize>)| {
            let values = vec![0.0; dims.iter().product()];
            Values { name, dims, values }
        };
        let [atol, rtol] = op.check.map_or(dtype.tolerance(), |check| [check.atol, check.rtol]);
        Ok(Self {
            inputs: inputs.into_iter().map(values).collect(),
            outputs: outputs.into_iter().map(values).collect(),
            want: Vec::new(),
            tolerance: Tolerance { atol, rtol },
            oracle: op.oracle.clone(),
        })
    }
}

impl PreparedOp for Declared {
    fn call(&mut self) {}

    fn poison(&mut self) {
        self.outputs.iter_mut().for_each(|output| output.values.fill(f32::NAN));
    }

    fn check_given(&self, leeway: Leeway) -> Check {
        let start = Comparison::new(self.tolerance).given(leeway);
        let all = self.outputs.iter().zip(&self.want);
        all.fold(start, |all, (got, want)| all.floats(&got.name, &got.dims, &got.values, want)).finish()
    }

    fn work(&self) -> Work {
        Work { bytes: 0, flops: 0, items: 0, item: "" }
    }

    fn inputs(&mut self) -> Vec<Tensor<'_>> {
        self.inputs.iter_mut().map(Values::tensor).collect()
    }

    fn outputs(&mut self) -> Vec<Tensor<'_>> {
        self.outputs.iter_mut().map(Values::tensor).collect()
    }
}

/// The workers that know the right answers.
pub(super) struct Oracle<'a> {
    suite: &'a Suite,
    slots: BTreeMap<&'a str, Slot<'a>>,
    tensors: Tensors,
}

impl<'a> Oracle<'a> {
    /// Those of a suite, none of them started.
    ///
    /// # Errors
    /// When no file can be made in `dir`.
    pub(super) fn new(suite: &'a Suite, dir: &Path) -> std::io::Result<Self> {
        Ok(Self { suite, slots: BTreeMap::new(), tensors: Tensors::new(dir, "oracle")? })
    }

    /// Computes what a call's outputs must be, unless that is known.
    ///
    /// # Errors
    /// With what went wrong: that is not the kernel's fault.
    pub(super) fn answer(&mut self, asked: &Evaluation, call: &mut Declared) -> Result<(), String> {
        if !call.want.is_empty() {
            return Ok(());
        }
        let Some((name, _)) = self.suite.workers.get_key_value(&call.oracle) else {
            return Err(format!("no worker {:?} in suite {:?}", call.oracle, self.suite.name));
        };
        let slot = self.slots.entry(name).or_insert_with(|| Slot::new(self.suite, name, Place::default()));
        let mut bytes = vec![POISON; GAP_BYTES];
        let mut lay = |tensor: &Values, is_input: bool| {
            bytes.resize(bytes.len().next_multiple_of(64), POISON);
            let place = TensorPlace {
                name: tensor.name.clone(),
                shape: tensor.dims.clone(),
                byte_offset: bytes.len() as u64,
                dtype: None,
            };
            match is_input {
                true => bytes.extend(Dtype::F32.encode(&tensor.values)),
                false => bytes.resize(bytes.len() + 4 * tensor.values.len(), POISON),
            }
            bytes.resize(bytes.len() + GAP_BYTES, POISON);
            place
        };
        let inputs = call.inputs.iter().map(|tensor| lay(tensor, true)).collect();
        let outputs: Vec<TensorPlace> = call.outputs.iter().map(|tensor| lay(tensor, false)).collect();
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
        for (place, tensor) in outputs.iter().zip(&call.outputs) {
            let start = place.byte_offset as usize;
            let written = &bytes[start..start + 4 * tensor.values.len()];
            if let Some(at) = written.chunks(4).position(|value| value.iter().all(|byte| *byte == POISON)) {
                return Err(format!("{}[{at}] was not written", place.name));
            }
            want.push(Dtype::F32.decode(written));
        }
        call.want = want;
        Ok(())
    }
}
