//! `tile_pack`.

use std::sync::OnceLock;

use serde::Deserialize;

use super::tiles::{self, Tiles};
use crate::buffer::Buffer;
use crate::compare::{Comparison, Tolerance};
use crate::error::BuildError;
use crate::order::Orderer;
use crate::pack::{self, PackSpec, Packed};
use crate::rng::RandomState;
use crate::{Check, PreparedOp, Request, Variant, Work};

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Params {
    tile_size: usize,
    indices: Option<Vec<u32>>,
    order_mode: String,
}

impl Default for Params {
    fn default() -> Self {
        Self { tile_size: 16, indices: None, order_mode: "hilbert".to_owned() }
    }
}

fn plan(req: &Request<'_>) -> Result<(PackSpec, Vec<u32>), BuildError> {
    let params: Params = super::parse(req)?;
    let Tiles { dims, grid, per_row } = tiles::check(req, params.tile_size, params.indices.as_deref())?;
    let order = tiles::order(req, &params.order_mode)?;
    let indices = params.indices.unwrap_or_default();
    Ok((PackSpec { dims, grid, tiles: per_row, order }, indices))
}

pub(super) fn validate(req: &Request<'_>) -> Result<(), BuildError> {
    plan(req).map(drop)
}

pub(super) fn prepare(req: &Request<'_>) -> Result<TilePack, BuildError> {
    let (spec, indices) = plan(req)?;
    let indices = tiles::repeat(&indices, spec.dims.batch);
    let feature = RandomState::new(req.seed).normals(spec.dims.len());
    Ok(TilePack {
        spec,
        variant: req.variant,
        // A gather moves bits: anything but equality is a bug.
        tolerance: req.tolerance.unwrap_or(Tolerance::EXACT),
        orderer: spec.order.map(|mode| Orderer::new(mode, &spec.grid, spec.tiles)),
        got: Packed::new(&spec),
        feature,
        indices,
        want: OnceLock::new(),
    })
}

pub(super) struct TilePack {
    spec: PackSpec,
    variant: Variant,
    tolerance: Tolerance,
    feature: Buffer,
    indices: Vec<u32>,
    orderer: Option<Orderer>,
    got: Packed,
    want: OnceLock<Packed>,
}

impl TilePack {
    fn oracle(&self) -> Packed {
        let mut want = Packed::new(&self.spec);
        pack::oracle(&self.spec, &self.feature, &self.indices, &mut want);
        want
    }
}

impl PreparedOp for TilePack {
    fn call(&mut self) {
        let Self { spec, feature, indices, got, .. } = self;
        match self.variant {
            Variant::Fast => pack::fast(spec, feature, indices, self.orderer.as_mut(), got),
            Variant::Reference => pack::oracle(spec, feature, indices, got),
        }
    }

    fn poison(&mut self) {
        self.got.tiles.fill(f32::NAN);
        // Whole numbers have no NaN; no valid tile has this id or corner.
        self.got.indices.fill(u32::MAX);
        self.got.origins.fill([u32::MAX; 2]);
    }

    fn check(&self) -> Check {
        let rows = [self.spec.dims.batch, self.spec.tiles];
        let (got, want) = (&self.got, self.want.get_or_init(|| self.oracle()));
        let corners = [&got.origins, &want.origins].map(|origins| origins.as_flattened());
        Comparison::new(self.tolerance)
            .floats("packed", &self.spec.packed_dims(), &got.tiles, &want.tiles)
            .exact("indices", &rows, &got.indices, &want.indices)
            .exact("origins", &[rows[0], rows[1], 2], corners[0], corners[1])
            .finish()
    }

    fn work(&self) -> Work {
        let tiles = self.indices.len() as u64;
        let moved = 2 * 4 * self.got.tiles.len() as u64;
        // Ids in (4 bytes), ids and corners out (12).
        Work { bytes: moved + 16 * tiles, flops: 0, items: tiles, item: "tiles" }
    }
}

#[cfg(test)]
impl super::Outputs for TilePack {
    fn outputs(&mut self) -> Vec<&mut [f32]> {
        vec![&mut self.got.tiles]
    }
}
