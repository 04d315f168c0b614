//! An op on the CPU with everything it needs, ready to be timed.

use crate::case::{Case, default_leeway};
use crate::compare::{Check, Leeway};
use crate::error::BuildError;
use crate::op::{Backend, Cpu, Request};
use crate::registry::{PlannedOp, plan};
use crate::tensor::Tensor;
use holdpoint_model::suite::Work;
use holdpoint_stats::random::Random;

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
    /// Values of the inputs that have changed places: input, and both places.
    swapped: Vec<(usize, [usize; 2])>,
}

/// Pairs of values in each input that change places for other inputs: enough that an op that reads a part of them sees some.
const PAIRS: usize = 64;

impl Prepared {
    /// Allocates all buffers and draws the inputs from the seed. Does not run the op: workers start often.
    pub fn new(request: &Request) -> Result<Self, BuildError> {
        let PlannedOp { op, dtype, .. } = plan(request, Some(Backend::Cpu))?;
        let (version, work, copies) = (op.cpu(request.variant, dtype), op.describe(dtype).work, op.copies());
        let case = Case::draw(op, dtype, request);
        let copies = (1..copies).map(|_| (case.inputs.clone(), case.outputs.clone())).collect();
        Ok(Self { case, version, work, copies, turn: 0, swapped: Vec::new() })
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

    /// Makes other inputs of those that were drawn, by a seed: some of their values change places. The answer to earlier ones is wrong
    /// then, and it takes microseconds.
    pub fn vary(&mut self, seed: u64) {
        let mut random = Random::new(seed);
        let mut swaps: Vec<(usize, [usize; 2])> = self.swapped.drain(..).rev().collect();
        let (back, floats) = (swaps.len(), self.case.given().iter().enumerate());
        for (at, input) in floats.filter(|(_, input)| !input.is_integer() && input.len() > 1) {
            let mut place = || random.below(input.len());
            swaps.extend((0..PAIRS.min(input.len() / 2)).map(|_| (at, [place(), place()])));
        }
        let copies = self.copies.iter_mut().map(|(inputs, _)| &mut inputs[..]);
        for inputs in copies.chain([self.case.inputs()]) {
            swaps.iter().for_each(|(at, [a, b])| inputs[*at].swap(*a, *b));
        }
        self.swapped = swaps.split_off(back);
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
        self.swapped.clear();
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
    fn varied_inputs_make_an_earlier_answer_wrong_and_go_by_the_seed_alone() {
        let tiles = json!({"tile_size": 4, "indices": [1, 0, 5]});
        for (op, shape, params) in [
            ("tile_ssm", &[1, 16, 16][..], json!({})),
            ("attention", &[1, 2, 9, 16], json!({"causal": true})),
            ("fusion_gate", &[1, 4, 9, 7], json!({})),
            ("tile_pack", &[1, 2, 16, 16], tiles.clone()),
            ("tile_unpack", &[1, 2, 16, 16], tiles.clone()),
            ("fused_pack_op_unpack", &[1, 2, 16, 16], tiles),
            ("infer", &[1, 3, 32, 32], json!({"tile_size_l0": 1, "kmax_l0": 2})),
            ("copy", &[70], json!({})),
        ] {
            let mut prepared =
                Prepared::new(&Request::new(op, shape, "f32", params.as_object().unwrap())).unwrap();
            let inputs =
                |prepared: &Prepared| prepared.case.given().iter().map(Tensor::bytes).collect::<Vec<_>>();
            let drawn = inputs(&prepared);
            prepared.call();
            assert!(prepared.check().passed, "{op}");
            prepared.vary(3);
            let third = inputs(&prepared);
            assert!(third != drawn && !prepared.check().passed, "{op}: the old answer");
            prepared.call();
            assert!(prepared.check().passed, "{op}: the new one");
            prepared.vary(4);
            assert!(inputs(&prepared) != third && !prepared.check().passed, "{op}");
            prepared.vary(3);
            assert_eq!(inputs(&prepared), third, "{op}: whatever came between");
        }
    }

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
