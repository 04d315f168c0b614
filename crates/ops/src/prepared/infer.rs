//! `infer`: the CPU vision model on the image that the seed draws.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::buffer::Buffer;
use crate::compare::{Comparison, Tolerance};
use crate::error::BuildError;
use crate::infer::{self, CHANNELS, InferConfig, InferOutputs, Model};
use crate::rng::RandomState;
use crate::shape::Nchw;
use crate::{Check, Domain, Leeway, PreparedOp, Request, Tensor, Variant, Work};

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Params {
    tile_size_l0: usize,
    kmax_l0: usize,
    budget_b1: f64,
    budget_b2: f64,
    budget_b3: f64,
    budget_total: f64,
    theta_on: f64,
    theta_off: f64,
    force_dense_routing: bool,
    disable_ssm: bool,
}

impl Default for Params {
    fn default() -> Self {
        let config = InferConfig::default();
        let [budget_b1, budget_b2, budget_b3] = config.budgets;
        Self {
            tile_size_l0: config.tile_size_l0,
            kmax_l0: config.kmax_l0,
            budget_b1,
            budget_b2,
            budget_b3,
            budget_total: config.budget_total,
            theta_on: config.theta_on,
            theta_off: config.theta_off,
            force_dense_routing: false,
            disable_ssm: false,
        }
    }
}

fn plan(req: &Request<'_>) -> Result<(Nchw, InferConfig), BuildError> {
    let params: Params = super::parse(req)?;
    let image = super::feature_map(req)?;
    if image.batch != 1 {
        return Err(super::shape_error(req, "baseline supports batch size 1 for now"));
    }
    if image.channels != CHANNELS {
        return Err(super::shape_error(req, "the image must have 3 channels"));
    }
    let config = InferConfig {
        tile_size_l0: params.tile_size_l0,
        kmax_l0: params.kmax_l0,
        budgets: [params.budget_b1, params.budget_b2, params.budget_b3],
        budget_total: params.budget_total,
        theta_on: params.theta_on,
        theta_off: params.theta_off,
        force_dense_routing: params.force_dense_routing,
        disable_ssm: params.disable_ssm,
        ..InferConfig::default()
    };
    match Model::check(image.height, image.width, &config) {
        Ok(_) => Ok((image, config)),
        Err(error @ crate::OpError::Budget { .. }) => Err(super::param_error(req, "budget_*", error)),
        Err(error @ crate::OpError::Thresholds { .. }) => Err(super::param_error(req, "theta_on", error)),
        Err(error) => {
            let problem = format!("{error} (the map is the image pooled by 8)");
            Err(super::param_error(req, "tile_size_l0", problem))
        }
    }
}

pub(super) fn validate(req: &Request<'_>) -> Result<(), BuildError> {
    plan(req).map(drop)
}

pub(super) fn prepare(req: &Request<'_>) -> Result<Infer, BuildError> {
    let (dims, config) = plan(req)?;
    let image = RandomState::new(req.seed).uniforms(dims.len());
    let model = Model::new(dims.height, dims.width, config).map_err(super::at_param(req, "tile_size_l0"))?;
    Ok(Infer {
        dims,
        variant: req.variant,
        // Fast sums 64 values in f32, the oracle in f64: 1.2e-7 apart on means near one half.
        tolerance: req.tolerance.unwrap_or(Tolerance::new(1e-6, 1e-5)),
        image,
        model,
        want: OnceLock::new(),
    })
}

pub(super) struct Infer {
    dims: Nchw,
    variant: Variant,
    tolerance: Tolerance,
    image: Buffer,
    model: Model,
    want: OnceLock<InferOutputs>,
}

impl Infer {
    fn oracle(&self) -> InferOutputs {
        let mut model = self.model.clone();
        // The right answer is the one to a first frame, whatever the timed model has seen.
        model.poison();
        infer::oracle(&mut model, &self.image);
        model.outputs
    }
}

fn pv_dims(image: &Nchw) -> [usize; 4] {
    [1, CHANNELS, image.height / infer::PV_STRIDE, image.width / infer::PV_STRIDE]
}

fn mask(outputs: &InferOutputs) -> Vec<u8> {
    outputs.hysteresis_mask.iter().map(|&on| u8::from(on)).collect()
}

impl PreparedOp for Infer {
    fn call(&mut self) {
        match self.variant {
            Variant::Fast => infer::fast(&mut self.model, &self.image),
            Variant::Reference => infer::oracle(&mut self.model, &self.image),
        }
    }

    fn poison(&mut self) {
        self.model.poison();
    }

    fn check_given(&self, leeway: Leeway) -> Check {
        let (got, want) = (&self.model.outputs, self.want.get_or_init(|| self.oracle()));
        let ff = self.model.ff_dims().dims();
        let pv = pv_dims(&self.dims);
        Comparison::new(self.tolerance)
            .given(leeway)
            .floats("pv16", &pv, &got.pv16, &want.pv16)
            .floats("ff8", &ff, &got.ff8, &want.ff8)
            .floats("merged", &ff, &got.merged, &want.merged)
            .floats("ssm_state", &[1, CHANNELS], &got.ssm_state, &want.ssm_state)
            .floats("det_score", &[1], &[got.score], &[want.score])
            .exact("hysteresis_mask", &[want.hysteresis_mask.len()], &mask(got), &mask(want))
            .doubles("diagnostics", &got.diagnostics.numbers(), &want.diagnostics.numbers())
            .finish()
    }

    fn work(&self) -> Work {
        let outputs = &self.model.outputs;
        let (pixels, fine) = (self.image.len() as u64, outputs.ff8.len() as u64);
        let written = outputs.pv16.len() + outputs.ff8.len() + outputs.merged.len() + CHANNELS + 1;
        Work {
            bytes: 4 * (pixels + written as u64),
            // Pooling adds each pixel once and each 8x8 sum once more; signal 5, token 1, modulation 2,
            // maximum 1.
            flops: pixels + fine * 10,
            items: 1,
            item: "frames",
        }
    }

    fn inputs(&mut self) -> Vec<Tensor<'_>> {
        self.want.take();
        vec![Tensor::new("image", &self.dims.dims(), Domain::Unit, &mut self.image)]
    }

    fn outputs(&mut self) -> Vec<Tensor<'_>> {
        let ff = self.model.ff_dims().dims();
        let pv = pv_dims(&self.dims);
        let out = &mut self.model.outputs;
        vec![
            Tensor::new("pv16", &pv, Domain::Any, &mut out.pv16),
            Tensor::new("ff8", &ff, Domain::Any, &mut out.ff8),
            Tensor::new("merged", &ff, Domain::Any, &mut out.merged),
            Tensor::new("ssm_state", &[1, CHANNELS], Domain::Any, &mut out.ssm_state),
        ]
    }
}
