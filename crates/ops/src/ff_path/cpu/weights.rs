//! The weights of one heavy path, by name. Must not know how they are used.

use crate::fusion_gate::cpu::Gate;
use crate::rng::RandomState;
use crate::tile_ssm::cpu::module::{RawScan, sigmoid};
use holdpoint_cuda::Dtype;

/// All parameters of one path; matrices are row-major `[out, in]`.
#[derive(Clone, Debug, PartialEq)]
pub struct PathWeights {
    /// `scan_bidirectional.forward_scan.*`.
    pub forward: RawScan,
    /// `scan_bidirectional.backward_scan.*`.
    pub backward: RawScan,
    /// `scan_bidirectional.merge_gate_logit`.
    pub merge_gate_logit: Vec<f32>,
    /// `film.token_norm`: weight, bias.
    pub token_norm: [Vec<f32>; 2],
    /// `film.mlp.0`: `[C, C]`, `[C]`.
    pub mlp0: [Vec<f32>; 2],
    /// `film.mlp.2`: `[2C, C]`, `[2C]`.
    pub mlp2: [Vec<f32>; 2],
    /// `refine.depthwise`: `[C, 1, 3, 3]`, `[C]`.
    pub depthwise: [Vec<f32>; 2],
    /// `refine.pointwise`: `[2C, C, 1, 1]`, `[2C]`.
    pub pointwise: [Vec<f32>; 2],
    /// `refine.norm`: weight, bias, `[2C]` each.
    pub norm: [Vec<f32>; 2],
    /// `fusion_gate.*`.
    pub gate: Gate,
}

impl PathWeights {
    /// Draws layers uniformly within 1/sqrt(fan-in), the usual default; scans, norms and gate at their start.
    pub fn draw(rng: &mut RandomState, channels: usize) -> Self {
        let c = channels;
        let mut layer = |outputs: usize, fan_in: usize| {
            let bound = 1.0 / (fan_in as f64).sqrt();
            [rng.symmetric(outputs * fan_in, bound), rng.symmetric(outputs, bound)]
        };
        Self {
            forward: RawScan::zeros(c),
            backward: RawScan::zeros(c),
            merge_gate_logit: vec![0.0; c],
            token_norm: [vec![1.0; c], vec![0.0; c]],
            mlp0: layer(c, c),
            mlp2: layer(2 * c, c),
            depthwise: layer(c, 9),
            pointwise: layer(2 * c, c),
            norm: [vec![1.0; 2 * c], vec![0.0; 2 * c]],
            gate: Gate::DEFAULT,
        }
    }

    /// The gate between both directions of the scan.
    pub fn merge_gate(&self) -> Vec<f32> {
        self.merge_gate_logit.iter().map(|&logit| sigmoid(f64::from(logit)) as f32).collect()
    }

    /// The layers rounded to an element type.
    pub fn rounded(mut self, dtype: Dtype) -> Self {
        let Self { token_norm, mlp0, mlp2, depthwise, pointwise, norm, .. } = &mut self;
        for numbers in [token_norm, mlp0, mlp2, depthwise, pointwise, norm].into_iter().flatten() {
            if dtype != Dtype::F32 {
                *numbers = dtype.decode(&dtype.encode(numbers));
            }
        }
        self
    }
}
