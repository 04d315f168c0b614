//! `fused_pack_op_unpack`.

use std::sync::OnceLock;

use serde::Deserialize;

use super::tiles::{self, Tiles};
use crate::buffer::Buffer;
use crate::compare::{Comparison, Tolerance};
use crate::error::BuildError;
use crate::fused::{self, Affine};
use crate::pack::{PackSpec, Packed};
use crate::rng::RandomState;
use crate::unpack::levels;
use crate::{Check, Domain, Leeway, PreparedOp, Request, Tensor, Variant, Work};

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Params {
    tile_size: usize,
    indices: Option<Vec<u32>>,
    value_scale: f64,
    value_bias: f64,
    gate_scale: f64,
    gate_bias: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            tile_size: 16,
            indices: None,
            value_scale: 1.0,
            value_bias: 0.0,
            gate_scale: 1.0,
            gate_bias: 0.0,
        }
    }
}

fn plan(req: &Request<'_>) -> Result<(PackSpec, Vec<u32>, Affine), BuildError> {
    let params: Params = super::parse(req)?;
    let Tiles { dims, grid, indices, per_row } = tiles::check(req, params.tile_size, params.indices)?;
    for (name, value) in [
        ("value_scale", params.value_scale),
        ("value_bias", params.value_bias),
        ("gate_scale", params.gate_scale),
        ("gate_bias", params.gate_bias),
    ] {
        super::finite(req, name, value)?;
    }
    fused::check_unique(&indices, per_row, grid.count()).map_err(super::at_param(req, "indices"))?;
    let op = Affine {
        value_scale: params.value_scale as f32,
        value_bias: params.value_bias as f32,
        gate_scale: params.gate_scale as f32,
        gate_bias: params.gate_bias as f32,
    };
    Ok((PackSpec { dims, grid, tiles: per_row, order: None }, indices, op))
}

pub(super) fn validate(req: &Request<'_>) -> Result<(), BuildError> {
    plan(req).map(drop)
}

pub(super) fn prepare(req: &Request<'_>) -> Result<Fused, BuildError> {
    let (spec, indices, affine) = plan(req)?;
    let keys = levels::keys(spec.tiles, spec.dims.batch, None, true);
    Ok(Fused {
        affine,
        // The same multiply-adds in both; the slack is for targets that fuse them.
        tolerance: req.tolerance.unwrap_or(Tolerance::new(1e-6, 1e-5)),
        feature: RandomState::new(req.seed).normals(spec.dims.len()),
        indices: tiles::repeat(&indices, spec.dims.batch),
        packed: (req.variant == Variant::Reference).then(|| Packed::new(&spec)),
        keys: keys.map_err(super::at_param(req, "indices"))?,
        got: Buffer::nan(spec.dims.len()),
        want: OnceLock::new(),
        spec,
    })
}

pub(super) struct Fused {
    spec: PackSpec,
    affine: Affine,
    tolerance: Tolerance,
    feature: Buffer,
    indices: Vec<u32>,
    /// Working space of the oracle, where that is what is timed.
    packed: Option<Packed>,
    keys: Vec<i32>,
    got: Buffer,
    want: OnceLock<Buffer>,
}

impl Fused {
    fn oracle(&self) -> Buffer {
        let Self { spec, affine, feature, indices, keys, .. } = self;
        let mut want = Buffer::nan(spec.dims.len());
        fused::oracle(spec, affine, feature, indices, &mut Packed::new(spec), keys, &mut want);
        want
    }
}

impl PreparedOp for Fused {
    fn call(&mut self) {
        let Self { spec, affine, feature, indices, packed, keys, got, .. } = self;
        match packed {
            None => fused::fast(spec, affine, feature, indices, got),
            Some(packed) => fused::oracle(spec, affine, feature, indices, packed, keys, got),
        }
    }

    fn poison(&mut self) {
        self.got.fill(f32::NAN);
    }

    fn check_given(&self, leeway: Leeway) -> Check {
        let dims = self.spec.dims.dims();
        let want = self.want.get_or_init(|| self.oracle());
        Comparison::new(self.tolerance).given(leeway).floats("merged", &dims, &self.got, want).finish()
    }

    fn work(&self) -> Work {
        let tiles = self.indices.len() as u64;
        Work {
            bytes: 2 * 4 * self.feature.len() as u64 + 4 * tiles,
            // Two multiply-adds, a maximum and a product per pixel of a chosen tile.
            flops: 6 * tiles * self.spec.tile_len() as u64,
            items: tiles,
            item: "tiles",
        }
    }

    fn inputs(&mut self) -> Vec<Tensor<'_>> {
        self.want.take();
        vec![Tensor::new("feature_map", &self.spec.dims.dims(), Domain::Any, &mut self.feature)]
    }

    fn outputs(&mut self) -> Vec<Tensor<'_>> {
        vec![Tensor::new("merged", &self.spec.dims.dims(), Domain::Any, &mut self.got)]
    }
}
