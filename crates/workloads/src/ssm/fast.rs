//! The scan vectorised over channels: neighbouring channels are independent and adjacent in memory.

use super::{DECAY_RANGE, Direction, Merge, ScanInputs, ScanParams, ScanSpec, clean_token, merged};
use crate::simd::vectorized;

/// Same arithmetic in the same order as the oracle, hence the same bits.
pub fn fast(spec: &ScanSpec, inputs: &ScanInputs<'_>, y: &mut [f32], state: &mut [f32]) {
    let slots = spec.direction.slots();
    vectorized(
        #[inline(always)]
        || {
            for b in 0..spec.batch {
                let rows = b * spec.steps * spec.channels..(b + 1) * spec.steps * spec.channels;
                let tokens = &inputs.tokens[rows.clone()];
                let y = &mut y[rows];
                let state = &mut state[b * slots * spec.channels..(b + 1) * slots * spec.channels];
                let mut c = 0;
                while c + 64 <= spec.channels {
                    block::<64>(spec, inputs, b, c, tokens, y, state);
                    c += 64;
                }
                while c + 16 <= spec.channels {
                    block::<16>(spec, inputs, b, c, tokens, y, state);
                    c += 16;
                }
                while c < spec.channels {
                    block::<1>(spec, inputs, b, c, tokens, y, state);
                    c += 1;
                }
            }
        },
    );
}

/// `N` channels from `c` on, all directions.
#[inline(always)]
fn block<const N: usize>(
    spec: &ScanSpec,
    inputs: &ScanInputs<'_>,
    b: usize,
    c: usize,
    tokens: &[f32],
    y: &mut [f32],
    state: &mut [f32],
) {
    let init = |slot: usize| match inputs.init_state {
        Some(state) => take::<N>(&state[inputs.init_offset(spec, b, slot)..], c),
        None => [0.0; N],
    };
    let (stride, clamp) = (spec.channels, spec.clamp.abs());
    let lane = Lane { tokens, stride, c, clamp };
    match spec.direction {
        Direction::Forward => {
            let last = lane.pass::<N, false>(inputs.forward, init(0), y, store);
            state[c..c + N].copy_from_slice(&last);
        }
        Direction::Backward => {
            let last = lane.pass::<N, true>(inputs.backward, init(1), y, store);
            state[c..c + N].copy_from_slice(&last);
        }
        Direction::Bidirectional => {
            let gate = gates::<N>(spec, inputs, b, c);
            let last = lane.pass::<N, false>(inputs.forward, init(0), y, store);
            state[c..c + N].copy_from_slice(&last);
            let last = match spec.merge {
                Merge::Sum => lane.pass::<N, true>(inputs.backward, init(1), y, |y, v, _| {
                    *y = merged(Merge::Sum, 0.5, *y, v);
                }),
                Merge::Avg => lane.pass::<N, true>(inputs.backward, init(1), y, |y, v, _| {
                    *y = merged(Merge::Avg, 0.5, *y, v);
                }),
                Merge::Gated => lane.pass::<N, true>(inputs.backward, init(1), y, |y, v, i| {
                    *y = merged(Merge::Gated, gate[i], *y, v);
                }),
            };
            state[stride + c..stride + c + N].copy_from_slice(&last);
        }
    }
}

#[inline(always)]
fn store(y: &mut f32, value: f32, _lane: usize) {
    *y = value;
}

#[inline(always)]
fn gates<const N: usize>(spec: &ScanSpec, inputs: &ScanInputs<'_>, b: usize, c: usize) -> [f32; N] {
    match inputs.merge_gate {
        Some(gate) => take::<N>(&gate[inputs.gate_offset(spec, b)..], c).map(|g| g.clamp(0.0, 1.0)),
        None => [0.5; N],
    }
}

#[inline(always)]
fn take<const N: usize>(values: &[f32], c: usize) -> [f32; N] {
    let mut out = [0.0; N];
    out.copy_from_slice(&values[c..c + N]);
    out
}

struct Lane<'a> {
    tokens: &'a [f32],
    stride: usize,
    c: usize,
    clamp: f32,
}

impl Lane<'_> {
    #[inline(always)]
    fn pass<const N: usize, const REVERSE: bool>(
        &self,
        params: &ScanParams,
        mut state: [f32; N],
        y: &mut [f32],
        emit: impl Fn(&mut f32, f32, usize),
    ) -> [f32; N] {
        let decay = take::<N>(&params.decay, self.c).map(|d| d.clamp(DECAY_RANGE.0, DECAY_RANGE.1));
        let rest = decay.map(|d| 1.0 - d);
        let input_gain = take::<N>(&params.input_gain, self.c);
        let output_gain = take::<N>(&params.output_gain, self.c);
        let bias = take::<N>(&params.state_bias, self.c);
        let steps = y.len() / self.stride;
        for step in 0..steps {
            let k = if REVERSE { steps - 1 - step } else { step };
            let at = k * self.stride + self.c;
            let (tokens, y) = (&self.tokens[at..at + N], &mut y[at..at + N]);
            for i in 0..N {
                let x = clean_token(tokens[i], self.clamp);
                state[i] = decay[i] * state[i] + rest[i] * (input_gain[i] * x + bias[i]);
                emit(&mut y[i], output_gain[i] * state[i], i);
            }
        }
        state
    }
}
