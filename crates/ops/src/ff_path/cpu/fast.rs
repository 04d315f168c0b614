//! The FF path tile by tile: the map is copied once, then every chosen tile is read, refined and written back
//! while its working set is in cache. Level 1 works in place on level 0's output.

use super::path::FastPath;
use super::{FfConfig, FfInputs, FfOutputs, PathWeights, Router};
use crate::error::OpError;
use crate::shape::Nchw;
use crate::simd::{self, vectorized};

/// The quick FF module with its working space and prepacked weights.
#[derive(Clone, Debug)]
pub struct FastModule {
    dims: Nchw,
    paths: [FastPath; 2],
    /// Selection of the last call.
    pub router: Router,
    /// What the last call returned.
    pub outputs: FfOutputs,
}

impl FastModule {
    /// A module for maps of one size; weights are level 0's and level 1's.
    pub fn new(dims: Nchw, config: FfConfig, weights: &[PathWeights; 2]) -> Result<Self, OpError> {
        let grids = config.grids(&dims)?;
        let one = Nchw { batch: 1, ..dims };
        Ok(Self {
            dims,
            paths: [
                FastPath::new(one, grids[0], config.kmax_l0, &weights[0]),
                FastPath::new(one, grids[1], config.kmax_l1, &weights[1]),
            ],
            router: Router::new(config, &dims)?,
            outputs: FfOutputs::new(&dims),
        })
    }

    /// Runs both levels on every sample without allocating.
    pub fn run(&mut self, inputs: &FfInputs<'_>) -> Result<(), OpError> {
        self.router.run(inputs)?;
        self.outputs.diagnostics = self.router.diagnostics();
        for (b, route) in self.router.routes.iter().enumerate() {
            let sample = b * self.dims.sample()..(b + 1) * self.dims.sample();
            let plane = b * self.dims.plane()..(b + 1) * self.dims.plane();
            let proxies = [&inputs.boundary[plane.clone()], &inputs.uncertainty[plane]];
            let dense = &inputs.dense[sample];
            let out = self.outputs.sample(&self.dims, b);
            let (states0, states1) = out.states.split_at_mut(2 * self.dims.channels);
            vectorized(
                #[inline(always)]
                || copy_through_gate(dense, out.heavy, out.detail),
            );
            let nested = !route.l1.ordered.is_empty();
            let detail = (!nested).then_some(&mut *out.detail);
            self.paths[0].run(&route.l0.selected, proxies, out.heavy, detail, out.alpha, states0);
            if nested {
                let ids = &route.l1.ordered;
                self.paths[1].run(ids, proxies, out.heavy, Some(out.detail), out.alpha, states1);
            } else {
                states1.fill(0.0);
            }
        }
        Ok(())
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
