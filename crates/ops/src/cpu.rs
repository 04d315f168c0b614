//! An op on the CPU with everything it needs, ready to be timed.

use crate::case::{Case, default_leeway};
use crate::compare::{Check, Leeway};
use crate::error::BuildError;
use crate::op::{Backend, Cpu, Request};
use crate::registry::{PlannedOp, plan};
use crate::tensor::Tensor;
use holdpoint_model::suite::Work;

/// An op, its tensors and the version that is timed.
///
/// Where an op wants several copies of its tensors, each call takes those that were used longest ago: what one call touches can just
/// fit a cache, and then the pages a process was given decide whether it does.
pub struct Prepared {
    case: Case,
    version: Box<dyn Cpu>,
    work: Work,
    /// Inputs and outputs of the copies that wait for their turn.
    copies: Vec<(Vec<Tensor>, Vec<Tensor>)>,
    turn: usize,
}

impl Prepared {
    /// Allocates all buffers and draws the inputs from the seed. Does not run the op: workers start often.
    pub fn new(request: &Request) -> Result<Self, BuildError> {
        let PlannedOp { op, dtype, .. } = plan(request, Some(Backend::Cpu))?;
        let (version, work, copies) = (op.cpu(request.variant, dtype), op.describe(dtype).work, op.copies());
        let case = Case::draw(op, dtype, request);
        let copies = (1..copies).map(|_| (case.inputs.clone(), case.outputs.clone())).collect();
        Ok(Self { case, version, work, copies, turn: 0 })
    }

    /// The timed call: no allocation, no I/O.
    pub fn call(&mut self) {
        if let Some((inputs, outputs)) = self.copies.get_mut(self.turn) {
            std::mem::swap(inputs, &mut self.case.inputs);
            std::mem::swap(outputs, &mut self.case.outputs);
            self.turn = (self.turn + 1) % self.copies.len();
        }
        self.version.run(&self.case.inputs, &mut self.case.outputs);
    }

    /// Fills every output with values that are no answer, and resets any state that `call` carries.
    pub fn poison(&mut self) {
        let copies = self.copies.iter_mut().flat_map(|(_, outputs)| outputs);
        self.case.outputs.iter_mut().chain(copies).for_each(Tensor::poison);
        self.version.reset();
    }

    /// Compares the outputs in the buffers with the oracle's, which the first check computes.
    pub fn check(&self) -> Check {
        self.check_given(default_leeway(self.case.dtype()))
    }

    /// The same, for inputs set by the caller.
    pub fn check_given(&self, leeway: Leeway) -> Check {
        self.case.check_with(&self.version.numbers(), leeway)
    }

    pub fn work(&self) -> &Work {
        &self.work
    }

    /// The inputs, for callers that bring their own values.
    pub fn inputs(&mut self) -> &mut [Tensor] {
        // Copies are for timing alone; they would keep the old values.
        self.copies.clear();
        self.turn = 0;
        self.case.inputs()
    }

    pub fn outputs(&mut self) -> &mut [Tensor] {
        self.case.outputs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn calls_take_every_copy_in_turn_and_poison_covers_them_all() {
        let params = json!({"tile_size": 4, "indices": [1, 0]});
        let request = Request::new("tile_pack", &[1, 2, 8, 8], "f32", params.as_object().unwrap());
        let mut prepared = Prepared::new(&request).unwrap();
        let written = |prepared: &Prepared| {
            let copies = prepared.copies.iter().map(|(_, outputs)| outputs);
            let is_whole = |outputs: &&Vec<Tensor>| outputs[0].f32().iter().all(|value| !value.is_nan());
            copies.chain([&prepared.case.outputs]).filter(is_whole).count()
        };
        for calls in 1..=3 {
            prepared.call();
            assert_eq!(written(&prepared), calls);
            assert!(prepared.check().passed);
        }
        prepared.call();
        prepared.poison();
        assert_eq!((prepared.copies.len(), written(&prepared)), (2, 0));
        assert!(!prepared.check().passed);
    }
}
