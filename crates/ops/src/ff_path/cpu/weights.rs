//! The weights of one heavy path, by name. Must not know how they are used.

use crate::error::OpError;
use crate::fusion_gate::cpu::Gate;
use crate::rng::RandomState;
use crate::tile_ssm::cpu::module::RawScan;
use holdpoint_cuda::Dtype;

/// All parameters of one path; matrices are row-major `[out, in]`.
#[derive(Clone, Debug, PartialEq)]
pub struct PathWeights {
    /// `scan_forward.*`: held, but the bidirectional scan is the one that runs.
    pub scan_forward: RawScan,
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
            scan_forward: RawScan::zeros(c),
            forward: RawScan::zeros(c),
            backward: RawScan::zeros(c),
            merge_gate_logit: vec![0.0; c],
            token_norm: [vec![1.0; c], vec![0.0; c]],
            mlp0: layer(c, c),
            mlp2: layer(2 * c, c),
            depthwise: layer(c, 9),
            pointwise: layer(2 * c, c),
            norm: [vec![1.0; 2 * c], vec![0.0; 2 * c]],
            gate: Gate::default(),
        }
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

    /// Takes the parameters from named tensors; `find` gets names such as `film.mlp.0.weight`.
    pub fn from_named(
        channels: usize,
        mut find: impl FnMut(&str) -> Option<Vec<f32>>,
    ) -> Result<Self, OpError> {
        let c = channels;
        let mut get = |name: &str, len: usize| {
            let weight = |problem: String| OpError::Weight { name: name.to_owned(), problem };
            let values = find(name).ok_or_else(|| weight("missing".to_owned()))?;
            if values.len() == len {
                return Ok(values);
            }
            Err(weight(format!("has {} numbers, needs {len}", values.len())))
        };
        let mut scan = |prefix: &str| -> Result<RawScan, OpError> {
            Ok(RawScan {
                decay_logit: get(&format!("{prefix}.decay_logit"), c)?,
                input_gain_raw: get(&format!("{prefix}.input_gain_raw"), c)?,
                output_gain_raw: get(&format!("{prefix}.output_gain_raw"), c)?,
                state_bias: get(&format!("{prefix}.state_bias"), c)?,
            })
        };
        let scan_forward = scan("scan_forward")?;
        let forward = scan("scan_bidirectional.forward_scan")?;
        let backward = scan("scan_bidirectional.backward_scan")?;
        let merge_gate_logit = get("scan_bidirectional.merge_gate_logit", c)?;
        let mut layer = |prefix: &str, weight: usize, bias: usize| -> Result<[Vec<f32>; 2], OpError> {
            Ok([get(&format!("{prefix}.weight"), weight)?, get(&format!("{prefix}.bias"), bias)?])
        };
        Ok(Self {
            scan_forward,
            forward,
            backward,
            merge_gate_logit,
            token_norm: layer("film.token_norm", c, c)?,
            mlp0: layer("film.mlp.0", c * c, c)?,
            mlp2: layer("film.mlp.2", 2 * c * c, 2 * c)?,
            depthwise: layer("refine.depthwise", 9 * c, c)?,
            pointwise: layer("refine.pointwise", 2 * c * c, 2 * c)?,
            norm: layer("refine.norm", 2 * c, 2 * c)?,
            gate: Gate {
                boundary_log_weight: f64::from(get("fusion_gate.boundary_log_weight", 1)?[0]),
                uncertainty_log_weight: f64::from(get("fusion_gate.uncertainty_log_weight", 1)?[0]),
                bias: f64::from(get("fusion_gate.bias", 1)?[0]),
            },
        })
    }

    /// How many numbers there are.
    pub fn count(&self) -> usize {
        let scans = [&self.scan_forward, &self.forward, &self.backward];
        let layers = [&self.token_norm, &self.mlp0, &self.mlp2, &self.depthwise, &self.pointwise, &self.norm];
        scans.iter().map(|s| 4 * s.decay_logit.len()).sum::<usize>()
            + self.merge_gate_logit.len()
            + layers.iter().flat_map(|layer| layer.iter()).map(Vec::len).sum::<usize>()
            + 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_128_channels_has_86275_parameters() {
        assert_eq!(PathWeights::draw(&mut RandomState::new(0), 128).count(), 86_275);
    }

    #[test]
    fn a_missing_weight_is_named() {
        let error = PathWeights::from_named(4, |name| {
            (name != "refine.norm.bias").then(|| vec![0.0; 4]).filter(|_| name.contains("scan"))
        });
        let text = error.unwrap_err().to_string();
        assert!(text.contains("film.token_norm.weight") && text.contains("missing"), "{text}");
    }
}
