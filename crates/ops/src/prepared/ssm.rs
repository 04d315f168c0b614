//! `tile_ssm`, the op form: one parameter set for both directions.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::buffer::Buffer;
use crate::compare::{Comparison, Tolerance};
use crate::error::BuildError;
use crate::rng::RandomState;
use crate::ssm::{self, Direction, ScanInputs, ScanParams, ScanSpec};
use crate::{Check, Domain, Leeway, PreparedOp, Request, Tensor, Variant, Work};

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Params {
    direction: String,
    merge_mode: String,
    clamp_value: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { direction: "forward".to_owned(), merge_mode: "avg".to_owned(), clamp_value: 1e4 }
    }
}

fn plan(req: &Request<'_>) -> Result<ScanSpec, BuildError> {
    let params: Params = super::parse(req)?;
    let [batch, steps, channels] = *req.shape else {
        return Err(super::shape_error(req, "tokens must be [B,K,C]"));
    };
    super::finite(req, "clamp_value", params.clamp_value)?;
    Ok(ScanSpec {
        batch,
        steps,
        channels,
        clamp: params.clamp_value.abs() as f32,
        direction: params.direction.parse().map_err(super::at_param(req, "direction"))?,
        merge: params.merge_mode.parse().map_err(super::at_param(req, "merge_mode"))?,
    })
}

pub(super) fn validate(req: &Request<'_>) -> Result<(), BuildError> {
    plan(req).map(drop)
}

pub(super) fn prepare(req: &Request<'_>) -> Result<TileSsm, BuildError> {
    let spec = plan(req)?;
    let mut rng = RandomState::new(req.seed);
    let tokens = rng.normals(spec.tokens_len());
    let mut draw = |scale: f32, shift: f32| -> Vec<f32> {
        rng.uniforms(spec.channels).iter().map(|u| u * scale + shift).collect()
    };
    let (decay, input_gain, output_gain) = (draw(0.8, 0.1), draw(1.5, 0.05), draw(1.5, 0.05));
    let state_bias = rng.normals(spec.channels).iter().map(|n| n * 0.1).collect();
    Ok(TileSsm {
        spec,
        variant: req.variant,
        // Both do the same f32 operations in the same order; the slack is for targets that fuse
        // multiply-adds.
        tolerance: req.tolerance.unwrap_or(Tolerance::new(1e-5, 1e-4)),
        tokens,
        params: ScanParams { decay, input_gain, output_gain, state_bias },
        gate: rng.uniforms(spec.channels),
        got: outputs(&spec),
        want: OnceLock::new(),
    })
}

/// Outputs and final state.
fn outputs(spec: &ScanSpec) -> [Buffer; 2] {
    [Buffer::nan(spec.tokens_len()), Buffer::nan(spec.state_len())]
}

pub(super) struct TileSsm {
    spec: ScanSpec,
    variant: Variant,
    tolerance: Tolerance,
    tokens: Buffer,
    params: ScanParams,
    gate: Buffer,
    got: [Buffer; 2],
    want: OnceLock<[Buffer; 2]>,
}

/// Both directions share their parameters.
fn inputs<'a>(tokens: &'a [f32], params: &'a ScanParams, gate: &'a [f32]) -> ScanInputs<'a> {
    ScanInputs { tokens, forward: params, backward: params, init_state: None, merge_gate: Some(gate) }
}

impl TileSsm {
    fn oracle(&self) -> [Buffer; 2] {
        let mut want = outputs(&self.spec);
        let [y, state] = &mut want;
        ssm::oracle(&self.spec, &inputs(&self.tokens, &self.params, &self.gate), y, state);
        want
    }
}

impl PreparedOp for TileSsm {
    fn call(&mut self) {
        let inputs = inputs(&self.tokens, &self.params, &self.gate);
        let [y, state] = &mut self.got;
        match self.variant {
            Variant::Fast => ssm::fast(&self.spec, &inputs, y, state),
            Variant::Reference => ssm::oracle(&self.spec, &inputs, y, state),
        }
    }

    fn poison(&mut self) {
        self.got.iter_mut().for_each(|buffer| buffer.fill(f32::NAN));
    }

    fn check_given(&self, leeway: Leeway) -> Check {
        let ScanSpec { batch, steps, channels, direction, .. } = self.spec;
        let want = self.want.get_or_init(|| self.oracle());
        Comparison::new(self.tolerance)
            .given(leeway)
            .floats("y", &[batch, steps, channels], &self.got[0], &want[0])
            .floats("state", &[batch, direction.slots(), channels], &self.got[1], &want[1])
            .finish()
    }

    fn work(&self) -> Work {
        let ScanSpec { batch, steps, channels, direction, .. } = self.spec;
        let (elements, passes) = (self.tokens.len() as u64, direction.slots() as u64);
        let vectors =
            4 * channels as u64 + if direction == Direction::Bidirectional { channels as u64 } else { 0 };
        Work {
            bytes: 4 * (2 * elements + vectors + self.spec.state_len() as u64),
            // Per token and pass: gain, bias, complement, decay, sum, output gain; merging two passes costs
            // 3.
            flops: elements * (6 * passes + if passes == 2 { 3 } else { 0 }),
            items: (batch * steps) as u64,
            item: "tokens",
        }
    }

    fn inputs(&mut self) -> Vec<Tensor<'_>> {
        self.want.take();
        let ScanSpec { batch, steps, channels, .. } = self.spec;
        let ScanParams { decay, input_gain, output_gain, state_bias } = &mut self.params;
        vec![
            Tensor::new("tokens", &[batch, steps, channels], Domain::Any, &mut self.tokens),
            Tensor::new("decay", &[channels], Domain::Unit, decay),
            Tensor::new("input_gain", &[channels], Domain::Unit, input_gain),
            Tensor::new("output_gain", &[channels], Domain::Unit, output_gain),
            Tensor::new("state_bias", &[channels], Domain::Unit, state_bias),
            Tensor::new("merge_gate", &[channels], Domain::Unit, &mut self.gate),
        ]
    }

    fn outputs(&mut self) -> Vec<Tensor<'_>> {
        let ScanSpec { batch, steps, channels, direction, .. } = self.spec;
        let [y, state] = &mut self.got;
        vec![
            Tensor::new("y", &[batch, steps, channels], Domain::Any, y),
            Tensor::new("state", &[batch, direction.slots(), channels], Domain::Any, state),
        ]
    }
}
