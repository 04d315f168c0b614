//! `fusion_gate`.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::buffer::Buffer;
use crate::compare::{Comparison, Tolerance};
use crate::error::BuildError;
use crate::fusion::{self, Gate, Maps};
use crate::rng::RandomState;
use crate::shape::Nchw;
use crate::{Check, Domain, Leeway, PreparedOp, Request, Tensor, Variant, Work};

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Params {
    boundary_log_weight: f64,
    uncertainty_log_weight: f64,
    bias: f64,
}

impl Default for Params {
    fn default() -> Self {
        let Gate { boundary_log_weight, uncertainty_log_weight, bias } = Gate::default();
        Self { boundary_log_weight, uncertainty_log_weight, bias }
    }
}

fn plan(req: &Request<'_>) -> Result<(Nchw, Gate), BuildError> {
    let Params { boundary_log_weight, uncertainty_log_weight, bias } = super::parse(req)?;
    super::finite(req, "boundary_log_weight", boundary_log_weight)?;
    super::finite(req, "uncertainty_log_weight", uncertainty_log_weight)?;
    super::finite(req, "bias", bias)?;
    Ok((super::feature_map(req)?, Gate { boundary_log_weight, uncertainty_log_weight, bias }))
}

pub(super) fn validate(req: &Request<'_>) -> Result<(), BuildError> {
    plan(req).map(drop)
}

pub(super) fn prepare(req: &Request<'_>) -> Result<FusionGate, BuildError> {
    let (dims, gate) = plan(req)?;
    let pixels = dims.batch * dims.plane();
    let mut rng = RandomState::new(req.seed);
    Ok(FusionGate {
        dims,
        gate,
        variant: req.variant,
        // The vectorised sigmoid is within 1.2e-7 of libm's; times |heavy - base| that gives 7e-7 at most.
        tolerance: req.tolerance.unwrap_or(Tolerance::new(1e-6, 1e-5)),
        base: rng.normals(dims.len()),
        heavy: rng.normals(dims.len()),
        boundary: rng.uniforms(pixels),
        uncertainty: rng.uniforms(pixels),
        got: outputs(&dims),
        want: OnceLock::new(),
    })
}

/// Fused map and alpha.
fn outputs(dims: &Nchw) -> [Buffer; 2] {
    [Buffer::nan(dims.len()), Buffer::nan(dims.batch * dims.plane())]
}

fn pixel_dims(&Nchw { batch, height, width, .. }: &Nchw) -> [usize; 4] {
    [batch, 1, height, width]
}

pub(super) struct FusionGate {
    dims: Nchw,
    gate: Gate,
    variant: Variant,
    tolerance: Tolerance,
    base: Buffer,
    heavy: Buffer,
    boundary: Buffer,
    uncertainty: Buffer,
    got: [Buffer; 2],
    want: OnceLock<[Buffer; 2]>,
}

impl FusionGate {
    fn oracle(&self) -> [Buffer; 2] {
        let Self { base, heavy, boundary, uncertainty, .. } = self;
        let maps = Maps { base, heavy, boundary, uncertainty };
        let mut want = outputs(&self.dims);
        let [fused, alpha] = &mut want;
        fusion::oracle(&self.gate, &self.dims, &maps, fused, alpha);
        want
    }
}

impl PreparedOp for FusionGate {
    fn call(&mut self) {
        let Self { base, heavy, boundary, uncertainty, .. } = self;
        let maps = Maps { base, heavy, boundary, uncertainty };
        let [fused, alpha] = &mut self.got;
        match self.variant {
            Variant::Fast => fusion::fast(&self.gate, &self.dims, &maps, fused, alpha),
            Variant::Reference => fusion::oracle(&self.gate, &self.dims, &maps, fused, alpha),
        }
    }

    fn poison(&mut self) {
        self.got.iter_mut().for_each(|buffer| buffer.fill(f32::NAN));
    }

    fn check_given(&self, leeway: Leeway) -> Check {
        let want = self.want.get_or_init(|| self.oracle());
        Comparison::new(self.tolerance)
            .given(leeway)
            .floats("fused", &self.dims.dims(), &self.got[0], &want[0])
            .floats("alpha", &pixel_dims(&self.dims), &self.got[1], &want[1])
            .finish()
    }

    fn work(&self) -> Work {
        let (elements, pixels) = (self.base.len() as u64, self.boundary.len() as u64);
        // Per pixel two multiply-adds and a sigmoid (exp, add, divide); per element subtract, multiply, add.
        Work {
            bytes: 4 * (3 * elements + 3 * pixels),
            flops: 3 * elements + 7 * pixels,
            items: elements,
            item: "elements",
        }
    }

    fn inputs(&mut self) -> Vec<Tensor<'_>> {
        self.want.take();
        let (dims, map) = (self.dims.dims(), pixel_dims(&self.dims));
        vec![
            Tensor::new("base", &dims, Domain::Any, &mut self.base),
            Tensor::new("heavy", &dims, Domain::Any, &mut self.heavy),
            Tensor::new("boundary", &map, Domain::Unit, &mut self.boundary),
            Tensor::new("uncertainty", &map, Domain::Unit, &mut self.uncertainty),
        ]
    }

    fn outputs(&mut self) -> Vec<Tensor<'_>> {
        let [fused, alpha] = &mut self.got;
        vec![
            Tensor::new("fused", &self.dims.dims(), Domain::Any, fused),
            Tensor::new("alpha", &pixel_dims(&self.dims), Domain::Any, alpha),
        ]
    }
}
