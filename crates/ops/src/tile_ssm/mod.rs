//! `tile_ssm`: a first-order recurrence over tile tokens, one parameter set for both directions.

pub mod cpu;
mod cuda;

use crate::prelude::*;
use cpu::{Direction, Merge, ScanInputs, ScanParams, ScanSpec};

params! {
    pub struct Params {
        direction: String = "forward".to_owned(),
        merge_mode: String = "avg".to_owned(),
        clamp_value: f64 = 1e4,
    }
}

#[derive(Clone, Copy)]
pub(crate) struct TileSsm {
    spec: ScanSpec,
}

impl Definition for TileSsm {
    const NAME: &'static str = "tile_ssm";
    const SIZES: &'static [&'static str] = &["batch", "steps", "channels"];
    const CUDA: &'static [Dtype] = ALL;
    const KERNELS: &'static [KernelFile] = cuda::KERNELS;
    const CASES: Option<Cases> = Some(Cases::new(&[8, 4096, 1024]).with_rows(1, &[8, 16_384, 1024]));
    const IS_REPLACEABLE: bool = true;
    type Params = Params;

    fn plan(request: &Request, params: Params) -> Result<Self, BuildError> {
        let [batch, steps, channels] = *request.shape else {
            return Err(request.shape_error("tokens must be [B,K,C]"));
        };
        let clamp = request.check_finite("clamp_value", params.clamp_value)?.abs();
        let spec = ScanSpec {
            batch,
            steps,
            channels,
            clamp,
            direction: params.direction.parse().map_err(request.at_param("direction"))?,
            merge: params.merge_mode.parse().map_err(request.at_param("merge_mode"))?,
        };
        Ok(Self { spec })
    }

    fn draw_case(draw: &mut Draw<'_>) -> (Vec<usize>, Value) {
        let batch = 1 + draw.below(3);
        let channels = draw.size(260);
        let steps = draw.size((draw.limits.elements / (batch * channels)).clamp(1, 1200));
        let params = json!({
            "direction": draw.pick(&["forward", "backward", "bidirectional"]),
            "merge_mode": draw.pick(&["sum", "avg", "gated"]),
            "clamp_value": draw.pick(&[1e4, 2.0]),
        });
        let mut shape = vec![batch, steps, channels];
        draw.stretch_elements(&mut shape);
        (shape, params)
    }
}

impl Op for TileSsm {
    fn describe(&self, dtype: Dtype) -> Description {
        let ScanSpec { batch, steps, channels, direction, merge, .. } = self.spec;
        let vector = |name, draw| Input::unit(name, &[channels]).with_draw(draw).shared();
        let gain = Distribution::Uniform { scale: 1.5, shift: 0.05 };
        let (elements, passes) = (self.spec.tokens_len() as u64, direction.slots() as u64);
        let is_gated = direction == Direction::Bidirectional && merge == Merge::Gated;
        let vectors = if is_gated { 5 * channels } else { 4 * channels };
        Description {
            inputs: vec![
                Input::normal("tokens", &[batch, steps, channels]),
                vector("decay", Distribution::Uniform { scale: 0.8, shift: 0.1 }),
                vector("input_gain", gain.clone()),
                vector("output_gain", gain),
                vector("state_bias", Distribution::Normal { scale: 0.1, shift: 0.0 }),
                vector("merge_gate", Distribution::Uniform { scale: 1.0, shift: 0.0 }),
            ],
            outputs: vec![
                Output::new("y", &[batch, steps, channels], dtype),
                Output::new("state", &[batch, direction.slots(), channels], dtype),
            ],
            // A token is one of the sequence's steps with all its channels, B · K of them: the unit that models count by. Per element
            // and pass: gain, bias, complement, decay, sum, output gain; merging two passes costs 3. The gate is read where it merges.
            work: Work {
                bytes: dtype.bytes() as u64 * (2 * elements + (vectors + self.spec.state_len()) as u64),
                flops: elements * (6 * passes + if passes == 2 { 3 } else { 0 }),
                items: (batch * steps) as u64,
                item: "tokens".to_owned(),
            },
            tolerance: match dtype {
                // The CPU's versions do the same operations in the same order; a device multiplies and adds at once, and in
                // pieces of the sequence.
                Dtype::F32 => Tolerance::new(1e-5, 1e-4),
                _ => dtype.tolerance(),
            },
            rows: batch,
        }
    }

    fn part(&self, rows: Range<usize>) -> Option<Box<dyn Op>> {
        Some(Box::new(Self { spec: ScanSpec { batch: rows.len(), ..self.spec } }))
    }

    fn cpu(&self, variant: Variant, _: Dtype) -> Box<dyn Cpu> {
        let spec = self.spec;
        version(move |inputs: &[Tensor], outputs: &mut [Tensor]| {
            let [tokens, decay, input_gain, output_gain, state_bias, gate] = inputs else { return };
            let [y, state] = outputs else { return };
            let params = ScanParams {
                decay: decay.f32(),
                input_gain: input_gain.f32(),
                output_gain: output_gain.f32(),
                state_bias: state_bias.f32(),
            };
            let inputs = ScanInputs {
                tokens: tokens.f32(),
                forward: params,
                backward: params,
                init_state: None,
                merge_gate: Some(gate.f32()),
            };
            match variant {
                Variant::Fast => cpu::fast(&spec, &inputs, y.f32_mut(), state.f32_mut()),
                Variant::Reference => cpu::oracle(&spec, &inputs, y.f32_mut(), state.f32_mut()),
            }
        })
    }

    fn cuda(&self, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
        cuda::launches(&self.spec, build)
    }

    fn candidates(&self, _: &Request, _: Dtype) -> Vec<Config> {
        combinations(&[("THREADS", &[128, 256, 512]), ("ACROSS", &[2, 4, 8]), ("ITEMS", &[2, 4, 8])])
    }
}
