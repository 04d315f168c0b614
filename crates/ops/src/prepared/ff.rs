//! `ff_path`.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::buffer::Buffer;
use crate::compare::{Comparison, Tolerance};
use crate::error::{BuildError, OpError};
use crate::ff::{self, FastModule, FfConfig, FfInputs, FfOutputs, OracleModule, PathWeights, Router};
use crate::rng::RandomState;
use crate::shape::Nchw;
use crate::{Check, Domain, Leeway, PreparedOp, Request, Tensor, Variant, Work};

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Params {
    tile_size_l0: usize,
    tile_size_l1: usize,
    kmax_l0: usize,
    kmax_l1: usize,
    budget_b1: f64,
    budget_b2: f64,
    budget_total: f64,
    cost_heavy: f64,
    cost_cheap: f64,
    nesting: bool,
}

impl Default for Params {
    fn default() -> Self {
        let c = FfConfig::default();
        Self {
            tile_size_l0: c.tile_size_l0,
            tile_size_l1: c.tile_size_l1,
            kmax_l0: c.kmax_l0,
            kmax_l1: c.kmax_l1,
            budget_b1: c.budget_b1,
            budget_b2: c.budget_b2,
            budget_total: c.budget_total,
            cost_heavy: c.cost_heavy,
            cost_cheap: c.cost_cheap,
            nesting: c.nesting,
        }
    }
}

fn plan(req: &Request<'_>) -> Result<(Nchw, FfConfig), BuildError> {
    let p: Params = super::parse(req)?;
    let dims = super::feature_map(req)?;
    let config = FfConfig {
        tile_size_l0: p.tile_size_l0,
        tile_size_l1: p.tile_size_l1,
        kmax_l0: p.kmax_l0,
        kmax_l1: p.kmax_l1,
        budget_b1: p.budget_b1,
        budget_b2: p.budget_b2,
        budget_total: p.budget_total,
        cost_heavy: p.cost_heavy,
        cost_cheap: p.cost_cheap,
        nesting: p.nesting,
    };
    let tiles = match config.grids(&dims) {
        Ok([grid, _]) => grid.count(),
        Err(OpError::Budget { name, value }) => {
            return Err(super::param_error(req, name, OpError::Budget { name, value }));
        }
        Err(error) => return Err(super::param_error(req, "tile_size_l0", error)),
    };
    if config.budget_b1 + config.budget_b2 > config.budget_total + 1e-9 {
        return Err(super::param_error(req, "budget_total", "must be at least budget_b1 + budget_b2"));
    }
    if config.cost_heavy <= config.cost_cheap {
        return Err(super::param_error(req, "cost_heavy", "must be > cost_cheap"));
    }
    if config.kmax_l0 > tiles {
        let problem = format!("kmax={} must be <= total l0 tiles ({tiles})", config.kmax_l0);
        return Err(super::param_error(req, "kmax_l0", problem));
    }
    if config.kmax_l1 > 4 * tiles {
        let problem = format!("kmax={} must be <= total l1 tiles ({})", config.kmax_l1, 4 * tiles);
        return Err(super::param_error(req, "kmax_l1", problem));
    }
    Ok((dims, config))
}

pub(super) fn validate(req: &Request<'_>) -> Result<(), BuildError> {
    plan(req).map(drop)
}

pub(super) fn prepare(req: &Request<'_>) -> Result<FfPath, BuildError> {
    let (dims, config) = plan(req)?;
    let fail = super::at_param(req, "tile_size_l0");
    let mut rng = RandomState::new(req.seed);
    let weights = [PathWeights::draw(&mut rng, dims.channels), PathWeights::draw(&mut rng, dims.channels)];
    let tiles = dims.batch * dims.plane() / (config.tile_size_l0 * config.tile_size_l0);
    let pixels = dims.batch * dims.plane();
    let inputs = Inputs {
        dense: rng.normals(dims.len()),
        utilities: rng.uniforms(tiles),
        split_utilities: rng.uniforms(tiles),
        boundary: rng.uniforms(pixels),
        uncertainty: rng.uniforms(pixels),
    };
    let mut router = Router::new(config, &dims).map_err(&fail)?;
    router.run(&inputs.view()).map_err(&fail)?;
    let [l0, l1, _] = router.diagnostics().selected_counts;
    let module = match req.variant {
        Variant::Fast => Module::Fast(Box::new(FastModule::new(dims, config, &weights).map_err(&fail)?)),
        Variant::Reference => {
            Module::Reference(Box::new(OracleModule::new(dims, config, &weights).map_err(&fail)?))
        }
    };
    // Products of depth C in f32 against f64, then a normalisation: 6e-6 apart at C = 128 on values of up to
    // 10.
    let tolerance = req.tolerance.unwrap_or(Tolerance::new(2e-5, 1e-4));
    let selected = [l0 as usize, l1 as usize];
    Ok(FfPath { dims, config, tolerance, weights, inputs, selected, module, want: OnceLock::new() })
}

struct Inputs {
    dense: Buffer,
    utilities: Buffer,
    split_utilities: Buffer,
    boundary: Buffer,
    uncertainty: Buffer,
}

impl Inputs {
    fn view(&self) -> FfInputs<'_> {
        FfInputs {
            dense: &self.dense,
            utilities: &self.utilities,
            split_utilities: &self.split_utilities,
            boundary: &self.boundary,
            uncertainty: &self.uncertainty,
        }
    }
}

enum Module {
    Fast(Box<FastModule>),
    Reference(Box<OracleModule>),
}

impl Module {
    fn outputs(&self) -> &FfOutputs {
        match self {
            Self::Fast(module) => &module.outputs,
            Self::Reference(module) => &module.outputs,
        }
    }
}

pub(super) struct FfPath {
    dims: Nchw,
    config: FfConfig,
    tolerance: Tolerance,
    weights: [PathWeights; 2],
    inputs: Inputs,
    /// Tiles chosen on each level.
    selected: [usize; 2],
    module: Module,
    want: OnceLock<FfOutputs>,
}

impl FfPath {
    fn oracle(&self) -> FfOutputs {
        let run = || {
            let mut module = OracleModule::new(self.dims, self.config, &self.weights)?;
            module.run(&self.inputs.view())?;
            Ok::<_, OpError>(module.outputs)
        };
        // The same routing succeeded while building; should it fail now, nothing matches NaN.
        run().unwrap_or_else(|_| FfOutputs::new(&self.dims))
    }
}

impl PreparedOp for FfPath {
    fn call(&mut self) {
        let inputs = self.inputs.view();
        let done = match &mut self.module {
            Module::Fast(module) => module.run(&inputs),
            Module::Reference(module) => module.run(&inputs),
        };
        // The same routing succeeded while building; should it fail now, the check must see it.
        if done.is_err() {
            self.poison();
        }
    }

    fn poison(&mut self) {
        match &mut self.module {
            Module::Fast(module) => module.outputs.poison(),
            Module::Reference(module) => module.outputs.poison(),
        }
    }

    fn check_given(&self, leeway: Leeway) -> Check {
        let (got, want) = (self.module.outputs(), self.want.get_or_init(|| self.oracle()));
        let Nchw { batch, channels, height, width } = self.dims;
        Comparison::new(self.tolerance)
            .given(leeway)
            .floats("heavy_features", &self.dims.dims(), &got.heavy, &want.heavy)
            .floats("detail_map", &self.dims.dims(), &got.detail, &want.detail)
            .floats("alpha", &[batch, 1, height, width], &got.alpha, &want.alpha)
            .floats("states", &[batch, 2, 2, channels], &got.states, &want.states)
            .doubles("diagnostics", &got.diagnostics.numbers(), &want.diagnostics.numbers())
            .finish()
    }

    fn work(&self) -> Work {
        let elements = self.dims.len() as u64;
        let pixels = (self.dims.batch * self.dims.plane()) as u64;
        let weights: usize = self.weights.iter().map(PathWeights::count).sum();
        Work {
            bytes: 4 * (3 * elements + 3 * pixels + weights as u64),
            flops: ff::flops(&self.dims, &self.config, self.selected),
            items: self.dims.batch as u64,
            item: "frames",
        }
    }

    fn inputs(&mut self) -> Vec<Tensor<'_>> {
        self.want.take();
        let Nchw { batch, height, width, .. } = self.dims;
        let map = [batch, 1, height, width];
        let tiles = [batch, self.inputs.utilities.len() / batch];
        let Inputs { dense, utilities, split_utilities, boundary, uncertainty } = &mut self.inputs;
        vec![
            Tensor::new("dense", &self.dims.dims(), Domain::Any, dense),
            Tensor::new("utilities", &tiles, Domain::Unit, utilities),
            Tensor::new("split_utilities", &tiles, Domain::Unit, split_utilities),
            Tensor::new("boundary", &map, Domain::Unit, boundary),
            Tensor::new("uncertainty", &map, Domain::Unit, uncertainty),
        ]
    }

    fn outputs(&mut self) -> Vec<Tensor<'_>> {
        let Nchw { batch, channels, height, width } = self.dims;
        let out = match &mut self.module {
            Module::Fast(module) => &mut module.outputs,
            Module::Reference(module) => &mut module.outputs,
        };
        vec![
            Tensor::new("heavy_features", &self.dims.dims(), Domain::Any, &mut out.heavy),
            Tensor::new("detail_map", &self.dims.dims(), Domain::Any, &mut out.detail),
            Tensor::new("alpha", &[batch, 1, height, width], Domain::Any, &mut out.alpha),
            Tensor::new("states", &[batch, 2, 2, channels], Domain::Any, &mut out.states),
        ]
    }
}
