//! The obvious loops: one sample, one channel, one token at a time.

use super::{DECAY_RANGE, Direction, ScanInputs, ScanSpec, ScanVectors, clean_token, merged};

/// Scans into `y` (`[B, K, C]`) and `state` (`[B, C]` or `[B, 2, C]`).
pub fn oracle(spec: &ScanSpec, inputs: &ScanInputs<'_>, y: &mut [f32], state: &mut [f32]) {
    for b in 0..spec.batch {
        for c in 0..spec.channels {
            match spec.direction {
                Direction::Forward => {
                    let init = initial(spec, inputs, b, 0, c);
                    let store = |y: &mut f32, value| *y = value;
                    state[b * spec.channels + c] =
                        pass(spec, inputs, inputs.forward, (b, c), init, 0..spec.steps, y, store);
                }
                Direction::Backward => {
                    let init = initial(spec, inputs, b, 1, c);
                    let store = |y: &mut f32, value| *y = value;
                    let order = (0..spec.steps).rev();
                    state[b * spec.channels + c] =
                        pass(spec, inputs, inputs.backward, (b, c), init, order, y, store);
                }
                Direction::Bidirectional => both(spec, inputs, (b, c), y, state),
            }
        }
    }
}

fn both(spec: &ScanSpec, inputs: &ScanInputs<'_>, (b, c): (usize, usize), y: &mut [f32], state: &mut [f32]) {
    let gate = inputs.merge_gate.map_or(0.5, |g| g[inputs.gate_offset(spec, b) + c]).clamp(0.0, 1.0);
    let init = initial(spec, inputs, b, 0, c);
    state[2 * b * spec.channels + c] =
        pass(spec, inputs, inputs.forward, (b, c), init, 0..spec.steps, y, |y, value| *y = value);
    let init = initial(spec, inputs, b, 1, c);
    let merge = |y: &mut f32, value| *y = merged(spec.merge, gate, *y, value);
    state[(2 * b + 1) * spec.channels + c] =
        pass(spec, inputs, inputs.backward, (b, c), init, (0..spec.steps).rev(), y, merge);
}

fn initial(spec: &ScanSpec, inputs: &ScanInputs<'_>, b: usize, slot: usize, c: usize) -> f32 {
    inputs.init_state.map_or(0.0, |state| state[inputs.init_offset(spec, b, slot) + c])
}

#[allow(clippy::too_many_arguments)] // One recurrence, its coordinates and its sink; a struct would hide it.
fn pass(
    spec: &ScanSpec,
    inputs: &ScanInputs<'_>,
    params: ScanVectors<'_>,
    (b, c): (usize, usize),
    init: f32,
    order: impl Iterator<Item = usize>,
    y: &mut [f32],
    emit: impl Fn(&mut f32, f32),
) -> f32 {
    let decay = params.decay[c].clamp(DECAY_RANGE.0, DECAY_RANGE.1);
    let mut state = init;
    for k in order {
        let at = (b * spec.steps + k) * spec.channels + c;
        let x = clean_token(inputs.tokens[at], spec.clamp.abs());
        state = decay * state + (1.0 - decay) * (params.input_gain[c] * x + params.state_bias[c]);
        emit(&mut y[at], params.output_gain[c] * state);
    }
    state
}
