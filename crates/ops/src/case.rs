//! A case: all tensors of one call and the right answer to its inputs. Must not compute the answer that is checked.

use crate::accuracy::Roundings;
use crate::compare::{Check, Comparison, Leeway};
use crate::error::BuildError;
use crate::op::{Description, Distribution, Input, Op, Output, Request};
use crate::precision::Precision;
use crate::precision::Tolerance;
use crate::registry::{PlannedOp, plan};
use crate::rng::RandomState;
use crate::tensor::{Data, Element, Tensor};
use holdpoint_cuda::Dtype;
use holdpoint_model::suite::Variant;
use std::ops::Range;
use std::sync::OnceLock;

/// The tensors of one call, and the oracle's answer once it has been asked for.
pub struct Case {
    /// Absent for declared ops, whose answers come from elsewhere.
    op: Option<Box<dyn Op>>,
    dtype: Dtype,
    tolerance: Tolerance,
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) outputs: Vec<Tensor>,
    want: OnceLock<Answer>,
}

/// The right outputs as 32-bit floats and whole numbers, and numbers beside them.
pub(crate) struct Answer {
    pub outputs: Vec<Tensor>,
    pub numbers: Vec<f64>,
}

impl Answer {
    /// The oracle's answer to inputs in 32-bit floats.
    pub(crate) fn compute(op: &dyn Op, dtype: Dtype, inputs: &[Tensor]) -> Self {
        let outputs = op.describe(Dtype::F32).outputs;
        let mut outputs: Vec<Tensor> = outputs.iter().map(Output::tensor).collect();
        let mut oracle = op.cpu(Variant::Reference, dtype);
        oracle.run(inputs, &mut outputs);
        Self { outputs, numbers: oracle.numbers() }
    }

    /// The same on all cores, where the op has independent rows: each thread takes a part of them.
    pub(crate) fn compute_rows(op: &dyn Op, dtype: Dtype, inputs: &[Tensor]) -> Self {
        let Description { inputs: specs, rows, work, .. } = op.describe(Dtype::F32);
        let threads_count = std::thread::available_parallelism().map_or(1, usize::from).min(rows);
        let values: usize = inputs.iter().map(Tensor::len).sum();
        let is_small = work.flops + 10 * (values as u64) < PARALLEL_COST_MIN;
        if threads_count < 2 || is_small {
            return Self::compute(op, dtype, inputs);
        }
        let bounds: Vec<usize> = (0..=threads_count).map(|at| rows * at / threads_count).collect();
        let parts: Option<Vec<Box<dyn Op>>> =
            bounds.windows(2).map(|ends| op.part(ends[0]..ends[1])).collect();
        let Some(parts) = parts else { return Self::compute(op, dtype, inputs) };
        let answers: Vec<Option<Self>> = std::thread::scope(|scope| {
            let specs = &specs;
            let threads: Vec<_> = parts
                .into_iter()
                .zip(bounds.windows(2))
                .map(|(part, ends)| {
                    let ends = ends[0]..ends[1];
                    scope.spawn(move || {
                        let inputs = rows_of(specs, inputs, ends, rows, &*part);
                        Self::compute(&*part, dtype, &inputs)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().ok()).collect()
        });
        let mut whole: Vec<Tensor> = op.describe(Dtype::F32).outputs.iter().map(Output::tensor).collect();
        let mut numbers = Vec::new();
        for (at, output) in whole.iter_mut().enumerate() {
            let parts: Vec<&Tensor> =
                answers.iter().flatten().filter_map(|answer| answer.outputs.get(at)).collect();
            output.join(&parts);
        }
        answers.into_iter().flatten().for_each(|answer| numbers.extend(answer.numbers));
        Self { outputs: whole, numbers }
    }
}

/// Approximate operations from which on several threads are worth their start: some milliseconds of one.
const PARALLEL_COST_MIN: u64 = 5_000_000;

/// The rows of inputs that a part of the op takes; those that all rows share are taken whole.
fn rows_of(
    specs: &[Input],
    inputs: &[Tensor],
    ends: Range<usize>,
    rows: usize,
    part: &dyn Op,
) -> Vec<Tensor> {
    let of_part = part.describe(Dtype::F32).inputs;
    let some = |((spec, own), tensor): ((&Input, &Input), &Tensor)| {
        let is_by_row = spec.by_row || matches!(spec.draw, Distribution::Host(_));
        let row = tensor.len() / rows.max(1);
        let taken = if is_by_row { row * ends.start..row * ends.end } else { 0..tensor.len() };
        let mut some = own.tensor(Dtype::F32);
        some.set(&tensor.f32()[taken]);
        some
    };
    specs.iter().zip(&of_part).zip(inputs).map(some).collect()
}

impl Case {
    /// The case of a request, in any element type, its inputs drawn from the seed. Does not compute anything.
    pub fn new(request: &Request) -> Result<Self, BuildError> {
        let PlannedOp { op, dtype, .. } = plan(request, None)?;
        Ok(Self::draw(op, dtype, request))
    }

    pub(crate) fn draw(op: Box<dyn Op>, dtype: Dtype, request: &Request) -> Self {
        let mut random = RandomState::new(request.seed);
        let Description { inputs, mut outputs, tolerance, .. } = op.describe(dtype);
        let inputs = inputs.iter().map(|input| input.drawn_tensor(dtype, &mut random)).collect();
        // Handed from process to process, all floats are in the element type that was asked for: rounding to it is no error.
        let mut own = tolerance;
        for output in outputs.iter_mut().filter(|output| !output.is_integer()) {
            if output.element != Element::Float(dtype) {
                (output.element, own) = (Element::Float(dtype), dtype.tolerance());
            }
        }
        let outputs = outputs.iter().map(Output::tensor).collect();
        let tolerance = request.tolerance.unwrap_or(own);
        Self { op: Some(op), dtype, tolerance, inputs, outputs, want: OnceLock::new() }
    }

    /// A case of a declared op; [`Case::set_answer`] must come before any check.
    pub fn declared(inputs: Vec<Tensor>, outputs: Vec<Tensor>, dtype: Dtype, tolerance: Tolerance) -> Self {
        Self { op: None, dtype, tolerance, inputs, outputs, want: OnceLock::new() }
    }

    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The inputs, to be written; the answer to the old ones is forgotten. Weights and the like that are drawn from the seed alone are
    /// not among them.
    pub fn inputs(&mut self) -> &mut [Tensor] {
        self.want.take();
        &mut self.inputs
    }

    pub fn given(&self) -> &[Tensor] {
        &self.inputs
    }

    /// Floats first, then whole numbers.
    pub fn outputs(&mut self) -> &mut [Tensor] {
        &mut self.outputs
    }

    /// Sets the right answer where it is known from elsewhere.
    pub fn set_answer(&mut self, outputs: Vec<Tensor>) {
        self.want = OnceLock::from(Answer { outputs, numbers: Vec::new() });
    }

    pub fn has_answer(&self) -> bool {
        self.want.get().is_some()
    }

    /// Fills in the outputs of whole numbers, for workers that compute only the floats.
    pub fn complete_integers(&mut self) {
        self.answer();
        let Some(want) = self.want.get() else { return };
        for (got, want) in self.outputs.iter_mut().zip(&want.outputs).filter(|(got, _)| got.is_integer()) {
            got.data = want.data.clone();
        }
    }

    fn answer(&self) -> &Answer {
        self.want.get_or_init(|| match &self.op {
            Some(op) => Answer::compute(&**op, self.dtype, &widen(&self.inputs)),
            None => Answer { outputs: Vec::new(), numbers: Vec::new() },
        })
    }

    /// Compares the outputs in the buffers with the oracle's, which the first check computes.
    pub fn check(&self, leeway: Leeway) -> Check {
        let numbers = &self.answer().numbers;
        self.check_with(numbers, leeway)
    }

    /// The same, also comparing numbers beside the tensors.
    pub(crate) fn check_with(&self, numbers: &[f64], leeway: Leeway) -> Check {
        let want = self.answer();
        let roundings = match &self.op {
            Some(op) => op.roundings(self.dtype),
            // How many terms are summed in 32 bits is not known; what is stored in fewer is rounded at least once.
            None => Some(Roundings::new(self.dtype, 4)).filter(|_| self.dtype != Dtype::F32),
        };
        let comparison = Comparison::new(self.tolerance).with_leeway(leeway).with_roundings(roundings);
        let comparison = compare(comparison, &self.outputs, &want.outputs);
        comparison.doubles("numbers", numbers, &want.numbers).finish()
    }
}

/// Tensors as 32-bit floats.
pub(crate) fn widen(tensors: &[Tensor]) -> Vec<Tensor> {
    let widen = |tensor: &Tensor| {
        let mut wide =
            Tensor::new(tensor.name.clone(), &tensor.dims, tensor.domain, Element::Float(Dtype::F32));
        wide.set(&tensor.values());
        wide
    };
    tensors.iter().map(widen).collect()
}

/// Compares outputs one after the other; one that is missing is wrong.
pub(crate) fn compare(start: Comparison, got: &[Tensor], want: &[Tensor]) -> Comparison {
    let mut comparison = start;
    for (at, got) in got.iter().enumerate() {
        let (name, dims) = (&*got.name, &got.dims);
        comparison = match (&got.data, want.get(at).map(|want| &want.data)) {
            (Data::U32(got), Some(Data::U32(want))) => comparison.exact(name, dims, got, want),
            (Data::I8(got), Some(Data::I8(want))) => comparison.exact(name, dims, got, want),
            (_, _) => {
                let want = want.get(at).map(Tensor::values).unwrap_or_default();
                comparison.floats(name, dims, &got.values(), &want)
            }
        };
    }
    comparison
}

/// The leeway for an answer in this element type when nothing is known about its inputs.
pub(crate) fn default_leeway(dtype: Dtype) -> Leeway {
    Leeway { overflow: dtype.overflow(), ..Leeway::NONE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The oracle's answer in one piece, and by threads.
    fn answers(op: &str, shape: &[usize], params: &serde_json::Value) -> [Answer; 2] {
        let params = params.as_object().cloned().unwrap_or_default();
        let request = Request { seed: 3, ..Request::new(op, shape, "f32", &params) };
        let PlannedOp { op, dtype, .. } = plan(&request, None).unwrap();
        let mut random = RandomState::new(3);
        let inputs: Vec<Tensor> =
            op.describe(dtype).inputs.iter().map(|input| input.drawn_tensor(dtype, &mut random)).collect();
        [Answer::compute(&*op, dtype, &inputs), Answer::compute_rows(&*op, dtype, &inputs)]
    }

    #[test]
    fn threads_give_the_answer_that_one_gives() {
        for (op, shape, params) in [
            ("attention", &[3, 5, 97, 32][..], json!({})),
            ("attention", &[1, 7, 130, 64], json!({ "causal": true })),
            ("tile_pack", &[5, 32, 64, 64], json!({ "tile_size": 8, "kmax": 20 })),
            ("tile_unpack", &[5, 32, 64, 64], json!({ "tile_size": 8, "kmax": 20 })),
            ("fusion_gate", &[3, 40, 64, 64], json!({})),
            ("tile_ssm", &[9, 300, 64], json!({})),
            ("rms_norm", &[7, 100, 512], json!({})),
            // One row only: there is nothing to share out.
            ("ff_path", &[1, 16, 32, 32], json!({ "kmax_l0": 4, "kmax_l1": 8 })),
        ] {
            let [whole, parts] = answers(op, shape, &params);
            assert_eq!(whole.outputs.len(), parts.outputs.len(), "{op}");
            for (whole, parts) in whole.outputs.iter().zip(&parts.outputs) {
                assert_eq!(whole.bytes(), parts.bytes(), "{op} {:?} {}", shape, whole.name);
            }
            assert_eq!(whole.numbers, parts.numbers, "{op}");
        }
    }
}
