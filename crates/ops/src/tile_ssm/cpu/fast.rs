//! The scan vectorised over channels: neighbouring channels are independent and adjacent in memory.

use pulp::{Arch, Scalar, Simd, WithSimd};

use super::{DECAY_RANGE, Direction, Merge, ScanInputs, ScanSpec, ScanVectors};

/// Same arithmetic in the same order as the oracle, hence the same bits.
pub fn fast(spec: &ScanSpec, inputs: &ScanInputs<'_>, y: &mut [f32], state: &mut [f32]) {
    Arch::new().dispatch(Scan { spec, inputs, y, state });
}

struct Scan<'a> {
    spec: &'a ScanSpec,
    inputs: &'a ScanInputs<'a>,
    y: &'a mut [f32],
    state: &'a mut [f32],
}

impl WithSimd for Scan<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let ScanSpec { batch, steps, channels, direction, .. } = *self.spec;
        for b in 0..batch {
            let rows = b * steps * channels..(b + 1) * steps * channels;
            let states = b * direction.slots() * channels..(b + 1) * direction.slots() * channels;
            let mut sample = Sample {
                spec: self.spec,
                inputs: self.inputs,
                b,
                tokens: &self.inputs.tokens[rows.clone()],
                y: &mut self.y[rows],
                state: &mut self.state[states],
            };
            // Four vectors at a time hide the latency of the recurrence; what is left goes one by one.
            let (wide, narrow) = (4 * S::F32_LANES, S::F32_LANES);
            let mut c = 0;
            while c + wide <= channels {
                sample.block::<S, 4>(simd, c);
                c += wide;
            }
            while c + narrow <= channels {
                sample.block::<S, 1>(simd, c);
                c += narrow;
            }
            while c < channels {
                sample.block::<Scalar, 1>(Scalar::new(), c);
                c += 1;
            }
        }
    }
}

/// Whether a pass keeps its output or merges it with that of the forward pass.
const STORE: u8 = 0;
const SUM: u8 = 1;
const AVG: u8 = 2;
const GATED: u8 = 3;

struct Sample<'a> {
    spec: &'a ScanSpec,
    inputs: &'a ScanInputs<'a>,
    b: usize,
    tokens: &'a [f32],
    y: &'a mut [f32],
    state: &'a mut [f32],
}

impl Sample<'_> {
    /// `V` vectors of channels from `c` on, all directions.
    #[inline(always)]
    fn block<S: Simd, const V: usize>(&mut self, simd: S, c: usize) {
        let (forward, backward) = (self.inputs.forward, self.inputs.backward);
        match (self.spec.direction, self.spec.merge) {
            (Direction::Forward, _) => self.pass::<S, V, STORE>(simd, c, forward, 0, 0, false),
            (Direction::Backward, _) => self.pass::<S, V, STORE>(simd, c, backward, 1, 0, true),
            (Direction::Bidirectional, merge) => {
                self.pass::<S, V, STORE>(simd, c, forward, 0, 0, false);
                match merge {
                    Merge::Sum => self.pass::<S, V, SUM>(simd, c, backward, 1, 1, true),
                    Merge::Avg => self.pass::<S, V, AVG>(simd, c, backward, 1, 1, true),
                    Merge::Gated => self.pass::<S, V, GATED>(simd, c, backward, 1, 1, true),
                }
            }
        }
    }

    /// One direction. `init_slot` says whose initial state it takes, `slot` where its final state goes.
    #[inline(always)]
    fn pass<S: Simd, const V: usize, const EMIT: u8>(
        &mut self,
        simd: S,
        c: usize,
        params: ScanVectors<'_>,
        init_slot: usize,
        slot: usize,
        reverse: bool,
    ) {
        let (steps, channels) = (self.spec.steps, self.spec.channels);
        let mut lanes = Lanes::<S, V>::load(simd, params, c, self.spec.clamp.abs());
        if EMIT == GATED {
            lanes.set_gate(simd, self.inputs, self.inputs.gate_offset(self.spec, self.b) + c);
        }
        let mut state = [simd.splat_f32s(0.0); V];
        if let Some(init) = self.inputs.init_state {
            state = load(simd, init, self.inputs.init_offset(self.spec, self.b, init_slot) + c);
        }
        for step in 0..steps {
            let k = if reverse { steps - 1 - step } else { step };
            let at = k * channels + c;
            lanes.step::<EMIT>(simd, self.tokens, at, &mut state, self.y);
        }
        store(simd, state, self.state, slot * channels + c);
    }
}

#[inline(always)]
fn load<S: Simd, const V: usize>(simd: S, values: &[f32], at: usize) -> [S::f32s; V] {
    let (vectors, _) = S::as_simd_f32s(&values[at..at + V * S::F32_LANES]);
    let mut out = [simd.splat_f32s(0.0); V];
    for (out, &vector) in out.iter_mut().zip(vectors) {
        *out = vector;
    }
    out
}

#[inline(always)]
fn store<S: Simd, const V: usize>(_simd: S, from: [S::f32s; V], values: &mut [f32], at: usize) {
    let (vectors, _) = S::as_mut_simd_f32s(&mut values[at..at + V * S::F32_LANES]);
    for (vector, &from) in vectors.iter_mut().zip(&from) {
        *vector = from;
    }
}

/// One direction's parameters in registers.
struct Lanes<S: Simd, const V: usize> {
    decay: [S::f32s; V],
    rest: [S::f32s; V],
    input_gain: [S::f32s; V],
    output_gain: [S::f32s; V],
    bias: [S::f32s; V],
    gate: [S::f32s; V],
    limit: f32,
}

impl<S: Simd, const V: usize> Lanes<S, V> {
    #[inline(always)]
    fn load(simd: S, params: ScanVectors<'_>, c: usize, limit: f32) -> Self {
        let mut decay: [S::f32s; V] = load(simd, params.decay, c);
        let mut rest = decay;
        for v in 0..V {
            decay[v] = clamp(simd, decay[v], DECAY_RANGE.0, DECAY_RANGE.1);
            rest[v] = simd.sub_f32s(simd.splat_f32s(1.0), decay[v]);
        }
        Self {
            decay,
            rest,
            input_gain: load(simd, params.input_gain, c),
            output_gain: load(simd, params.output_gain, c),
            bias: load(simd, params.state_bias, c),
            gate: [simd.splat_f32s(0.5); V],
            limit,
        }
    }

    #[inline(always)]
    fn set_gate(&mut self, simd: S, inputs: &ScanInputs<'_>, at: usize) {
        if let Some(gate) = inputs.merge_gate {
            self.gate = load(simd, gate, at);
            for gate in &mut self.gate {
                *gate = clamp(simd, *gate, 0.0, 1.0);
            }
        }
    }

    #[inline(always)]
    fn step<const EMIT: u8>(
        &self,
        simd: S,
        tokens: &[f32],
        at: usize,
        state: &mut [S::f32s; V],
        y: &mut [f32],
    ) {
        let tokens: [S::f32s; V] = load(simd, tokens, at);
        let mut out: [S::f32s; V] = tokens;
        for v in 0..V {
            let x = simd.select_f32s(simd.equal_f32s(tokens[v], tokens[v]), tokens[v], simd.splat_f32s(0.0));
            let x = clamp(simd, x, -self.limit, self.limit);
            let input = simd.add_f32s(simd.mul_f32s(self.input_gain[v], x), self.bias[v]);
            let kept = simd.mul_f32s(self.decay[v], state[v]);
            state[v] = simd.add_f32s(kept, simd.mul_f32s(self.rest[v], input));
            out[v] = simd.mul_f32s(self.output_gain[v], state[v]);
        }
        if EMIT != STORE {
            let forward: [S::f32s; V] = load(simd, y, at);
            for v in 0..V {
                out[v] = merged::<S, EMIT>(simd, self.gate[v], forward[v], out[v]);
            }
        }
        store(simd, out, y, at);
    }
}

#[inline(always)]
fn merged<S: Simd, const EMIT: u8>(simd: S, gate: S::f32s, forward: S::f32s, backward: S::f32s) -> S::f32s {
    match EMIT {
        SUM => simd.add_f32s(forward, backward),
        AVG => simd.mul_f32s(simd.splat_f32s(0.5), simd.add_f32s(forward, backward)),
        _ => {
            let rest = simd.sub_f32s(simd.splat_f32s(1.0), gate);
            simd.add_f32s(simd.mul_f32s(gate, forward), simd.mul_f32s(rest, backward))
        }
    }
}

/// Selects as the oracle's comparisons do, so that signed zeros come out the same.
#[inline(always)]
fn clamp<S: Simd>(simd: S, x: S::f32s, low: f32, high: f32) -> S::f32s {
    let (low, high) = (simd.splat_f32s(low), simd.splat_f32s(high));
    let x = simd.select_f32s(simd.greater_than_f32s(x, high), high, x);
    simd.select_f32s(simd.less_than_f32s(x, low), low, x)
}
