//! The obvious loops: one sample, one channel, one token at a time.

use super::{DECAY_RANGE, Direction, ScanInputs, ScanSpec, ScanVectors, clean_token, merged};

/// Scans into `y` (`[B, K, C]`) and `state` (`[B, C]` or `[B, 2, C]`).
pub fn oracle(spec: &ScanSpec, inputs: &ScanInputs<'_>, y: &mut [f32], state: &mut [f32]) {
    let (steps, slots) = (spec.steps, spec.direction.slots());
    for b in 0..spec.batch {
        for c in 0..spec.channels {
            let init = |slot: usize| {
                inputs.init_state.map_or(0.0, |state| state[inputs.init_offset(spec, b, slot) + c])
            };
            let mut scan = Scan { spec, tokens: inputs.tokens, b, c, y: &mut *y };
            let at = |slot: usize| (slots * b + slot) * spec.channels + c;
            if spec.direction != Direction::Backward {
                let store = |y: &mut f32, value| *y = value;
                state[at(0)] = scan.pass(inputs.forward, init(0), 0..steps, store);
            }
            if spec.direction != Direction::Forward {
                let gate =
                    inputs.merge_gate.map_or(0.5, |g| g[inputs.gate_offset(spec, b) + c]).clamp(0.0, 1.0);
                let store = |y: &mut f32, value| match slots {
                    1 => *y = value,
                    _ => *y = merged(spec.merge, gate, *y, value),
                };
                state[at(slots - 1)] = scan.pass(inputs.backward, init(1), (0..steps).rev(), store);
            }
        }
    }
}

/// One channel of one sample.
struct Scan<'a> {
    spec: &'a ScanSpec,
    tokens: &'a [f32],
    b: usize,
    c: usize,
    y: &'a mut [f32],
}

impl Scan<'_> {
    /// Gives the final state.
    fn pass(
        &mut self,
        params: ScanVectors<'_>,
        init: f32,
        order: impl Iterator<Item = usize>,
        store: impl Fn(&mut f32, f32),
    ) -> f32 {
        let Self { spec, b, c, .. } = *self;
        let decay = params.decay[c].clamp(DECAY_RANGE.0, DECAY_RANGE.1);
        let mut state = init;
        for k in order {
            let at = (b * spec.steps + k) * spec.channels + c;
            let x = clean_token(self.tokens[at], spec.clamp.abs());
            state = decay * state + (1.0 - decay) * (params.input_gain[c] * x + params.state_bias[c]);
            store(&mut self.y[at], params.output_gain[c] * state);
        }
        state
    }
}
