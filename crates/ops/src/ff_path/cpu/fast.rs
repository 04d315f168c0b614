//! The FF path tile by tile: the map is copied once, then every chosen tile is read, refined and written back
//! while its working set is in cache. Level 1 works in place on level 0's output.

use super::path::FastPath;
use super::{FfInputs, Levels, PathWeights, SampleOutputs};
use crate::select::TwoStage;
use crate::shape::{Grid, Nchw};
use crate::simd::{self, vectorized};

/// The fast version of both levels, with prepacked weights. Does not allocate in a run.
#[derive(Clone, Debug)]
pub struct FastLevels([FastPath; 2]);

impl Levels for FastLevels {
    fn new(dims: Nchw, [l0, l1]: [(Grid, usize); 2], weights: &[PathWeights; 2]) -> Self {
        Self([FastPath::new(dims, l0, &weights[0]), FastPath::new(dims, l1, &weights[1])])
    }

    fn run(&mut self, inputs: &FfInputs<'_>, route: &TwoStage, out: SampleOutputs<'_>) {
        let Self([level0, level1]) = self;
        let proxies = [inputs.boundary, inputs.uncertainty];
        vectorized!(copy_through_gate(inputs.dense, out.heavy, out.detail));
        let children = &route.l1.ordered;
        let detail = children.is_empty().then_some(&mut *out.detail);
        let [states0, states1] = out.states;
        level0.run(&route.l0.selected, proxies, out.heavy, detail, out.alpha, states0);
        if children.is_empty() {
            states1.fill(0.0);
        } else {
            level1.run(children, proxies, out.heavy, Some(out.detail), out.alpha, states1);
        }
    }
}

/// Values looked at, then copied, while they are in the L1 cache.
const CHUNK: usize = 4096;

/// Pixels outside the chosen tiles still pass the gate: `x + alpha * (x - x)`, which is x unless x is not
/// finite. Whole chunks of finite values are copied, which is quicker than computing them.
#[inline(always)]
fn copy_through_gate(dense: &[f32], heavy: &mut [f32], detail: &mut [f32]) {
    let outputs = heavy.chunks_mut(CHUNK).zip(detail.chunks_mut(CHUNK));
    for (dense, (heavy, detail)) in dense.chunks(CHUNK).zip(outputs) {
        if simd::all_finite(dense) {
            heavy.copy_from_slice(dense);
            detail.fill(0.0);
        } else {
            for ((heavy, detail), &x) in heavy.iter_mut().zip(detail).zip(dense) {
                *detail = simd::zero_or_nan(x);
                *heavy = x + *detail;
            }
        }
    }
}
