//! A case: all tensors of one call and the right answer to its inputs. Must not compute the answer that is checked.

use crate::accuracy::Roundings;
use crate::compare::{Check, Comparison, Leeway, Tolerance};
use crate::error::BuildError;
use crate::op::{Description, Op, Output, Request};
use crate::registry::{PlannedOp, plan};
use crate::rng::RandomState;
use crate::tensor::{Data, Element, Tensor};
use crate::values::Precision;
use holdpoint_cuda::Dtype;
use holdpoint_model::suite::Variant;
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
