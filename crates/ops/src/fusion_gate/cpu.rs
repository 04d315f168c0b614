//! FusionGate: mixes a heavy map into a base map by a per-pixel weight. Must not clamp the proxies.

use crate::shape::Nchw;
use crate::simd::{self, vectorized};

/// The gate's three numbers. They are called log weights, but pass through softplus.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gate {
    pub boundary_log_weight: f64,
    pub uncertainty_log_weight: f64,
    pub bias: f64,
}

/// ln(1 + e^v), without overflow.
pub(crate) fn softplus(v: f64) -> f64 {
    v.max(0.0) + (-v.abs()).exp().ln_1p()
}

/// A proxy with NaN and minus infinity as 0, infinity as 1.
#[inline(always)]
pub(crate) fn clean_proxy(value: f32) -> f32 {
    let value = if value == f32::INFINITY { 1.0 } else { value };
    // Written as a select on finiteness: NaN and minus infinity both become 0.
    if value.abs() < f32::INFINITY { value } else { 0.0 }
}

impl Gate {
    pub const DEFAULT: Self = Self { boundary_log_weight: 1.0, uncertainty_log_weight: 1.0, bias: 0.0 };

    /// Softplus weights and bias as f32, the form the arithmetic uses.
    pub fn weights(&self) -> [f32; 3] {
        [
            softplus(self.boundary_log_weight) as f32,
            softplus(self.uncertainty_log_weight) as f32,
            self.bias as f32,
        ]
    }
}

#[inline(always)]
fn logit([w_b, w_u, bias]: [f32; 3], boundary: f32, uncertainty: f32) -> f32 {
    w_b * clean_proxy(boundary) + w_u * clean_proxy(uncertainty) + bias
}

pub(crate) fn alpha_oracle(gate: &Gate, boundary: &[f32], uncertainty: &[f32], alpha: &mut [f32]) {
    for pixel in 0..alpha.len() {
        let x = logit(gate.weights(), boundary[pixel], uncertainty[pixel]);
        alpha[pixel] = 1.0 / (1.0 + (-x).exp());
    }
}

#[inline(always)]
pub(crate) fn alpha_fast(gate: &Gate, boundary: &[f32], uncertainty: &[f32], alpha: &mut [f32]) {
    let weights = gate.weights();
    for ((alpha, &boundary), &uncertainty) in alpha.iter_mut().zip(boundary).zip(uncertainty) {
        *alpha = simd::sigmoid(logit(weights, boundary, uncertainty));
    }
}

/// The four input maps; proxies are `[B, H, W]`.
#[derive(Clone, Copy, Debug)]
pub struct Maps<'a> {
    /// The map that wins where alpha is 0.
    pub base: &'a [f32],
    /// The map that wins where alpha is 1.
    pub heavy: &'a [f32],
    pub boundary: &'a [f32],
    pub uncertainty: &'a [f32],
}

pub fn oracle(gate: &Gate, dims: &Nchw, maps: &Maps<'_>, fused: &mut [f32], alpha: &mut [f32]) {
    alpha_oracle(gate, maps.boundary, maps.uncertainty, alpha);
    for b in 0..dims.batch {
        for c in 0..dims.channels {
            for pixel in 0..dims.plane() {
                let at = (b * dims.channels + c) * dims.plane() + pixel;
                let weight = alpha[b * dims.plane() + pixel];
                fused[at] = maps.base[at] + weight * (maps.heavy[at] - maps.base[at]);
            }
        }
    }
}

/// Alpha once per pixel, then one streaming pass per channel with alpha in cache.
pub fn fast(gate: &Gate, dims: &Nchw, maps: &Maps<'_>, fused: &mut [f32], alpha: &mut [f32]) {
    if dims.is_empty() {
        return;
    }
    vectorized!({
        alpha_fast(gate, maps.boundary, maps.uncertainty, alpha);
        let plane = dims.plane();
        let channels = fused.chunks_exact_mut(plane);
        let sources = maps.base.chunks_exact(plane).zip(maps.heavy.chunks_exact(plane));
        for (at, (fused, (base, heavy))) in channels.zip(sources).enumerate() {
            let b = at / dims.channels;
            mix(fused, base, heavy, &alpha[b * plane..(b + 1) * plane]);
        }
    });
}

#[inline(always)]
fn mix(fused: &mut [f32], base: &[f32], heavy: &[f32], alpha: &[f32]) {
    for (((fused, &base), &heavy), &alpha) in fused.iter_mut().zip(base).zip(heavy).zip(alpha) {
        *fused = base + alpha * (heavy - base);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softplus_and_alpha_have_the_known_values() {
        assert!((softplus(1.0) - 1.313_261_687_518_222_8).abs() < 1e-15);
        assert!((softplus(0.0) - std::f64::consts::LN_2).abs() < 1e-15);
        assert_eq!(softplus(1000.0), 1000.0);
        let (mut slow, mut quick) = ([0.0; 4], [0.0; 4]);
        let (boundary, uncertainty) = ([0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]);
        alpha_oracle(&Gate::DEFAULT, &boundary, &uncertainty, &mut slow);
        alpha_fast(&Gate::DEFAULT, &boundary, &uncertainty, &mut quick);
        let want = [0.5, 0.788_058_442_382_914_4, 0.932_549_194_133_655_2, 0.788_058_442_382_914_4];
        for i in 0..4 {
            assert!((f64::from(slow[i]) - want[i]).abs() < 1e-7 && (quick[i] - slow[i]).abs() < 2e-7);
        }
    }

    #[test]
    fn proxies_lose_nan_and_infinities_but_are_not_clamped() {
        let dirty = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 7.0, -3.0];
        assert_eq!(dirty.map(clean_proxy), [0.0, 1.0, 0.0, 7.0, -3.0]);
    }
}
