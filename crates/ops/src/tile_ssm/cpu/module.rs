//! The learned form of the scan: raw vectors turned into parameters within safe ranges.

use super::ScanParams;
use crate::fusion_gate::cpu::softplus;

/// Range of the learned decay.
pub(crate) const DECAY_MIN: f64 = 1e-3;
pub(crate) const DECAY_MAX: f64 = 0.999;
/// Tokens of the module form are clamped to this magnitude.
pub(crate) const TOKEN_CLAMP: f32 = 1e4;

#[derive(Clone, Debug, PartialEq)]
pub struct RawScan {
    /// Before the sigmoid.
    pub decay_logit: Vec<f32>,
    /// Before softplus.
    pub input_gain_raw: Vec<f32>,
    /// Before softplus.
    pub output_gain_raw: Vec<f32>,
    pub state_bias: Vec<f32>,
}

/// In f64.
pub(crate) fn sigmoid(v: f64) -> f64 {
    1.0 / (1.0 + (-v).exp())
}

impl RawScan {
    pub fn zeros(channels: usize) -> Self {
        let zeros = || vec![0.0; channels];
        Self { decay_logit: zeros(), input_gain_raw: zeros(), output_gain_raw: zeros(), state_bias: zeros() }
    }

    pub fn params(&self) -> ScanParams {
        let decay = |&v: &f32| (DECAY_MIN + (DECAY_MAX - DECAY_MIN) * sigmoid(f64::from(v))) as f32;
        let gain = |&v: &f32| (softplus(f64::from(v)) + 1e-6) as f32;
        ScanParams {
            decay: self.decay_logit.iter().map(decay).collect(),
            input_gain: self.input_gain_raw.iter().map(gain).collect(),
            output_gain: self.output_gain_raw.iter().map(gain).collect(),
            state_bias: self.state_bias.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_give_the_documented_start() {
        let params = RawScan::zeros(1).params();
        assert_eq!(params.decay, [0.5]);
        assert_eq!(params.input_gain, [0.693_148_2f32]);
    }
}
