//! `tile_pack`, on several copies of its map and its tiles in turn.
//!
//! What one call touches can just fit an L2 cache, and then the pages a process was given decide whether it does:
//! times differed by a third between processes. A model's maps do not come from L2 either, so each call takes the
//! copies that were used longest ago.

use std::sync::OnceLock;

use serde::Deserialize;

use super::tiles::{self, Tiles};
use crate::buffer::Buffer;
use crate::compare::{Comparison, Tolerance};
use crate::error::BuildError;
use crate::order::Orderer;
use crate::pack::{self, PackSpec, Packed};
use crate::rng::RandomState;
use crate::{Check, Domain, IntegerTensor, Integers, Leeway, PreparedOp, Request, Tensor, Variant, Work};

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
    let Tiles { dims, grid, indices, per_row } = tiles::check(req, params.tile_size, params.indices)?;
    let order = tiles::order(req, &params.order_mode)?;
    Ok((PackSpec { dims, grid, tiles: per_row, order }, indices))
}

pub(super) fn validate(req: &Request<'_>) -> Result<(), BuildError> {
    plan(req).map(drop)
}

pub(super) fn prepare(req: &Request<'_>) -> Result<TilePack, BuildError> {
    let (spec, indices) = plan(req)?;
    let indices = tiles::repeat(&indices, spec.dims.batch);
    let first =
        Tensors { feature: RandomState::new(req.seed).normals(spec.dims.len()), got: Packed::new(&spec) };
    Ok(TilePack {
        spec,
        variant: req.variant,
        // A gather moves bits: anything but equality is a bug.
        tolerance: req.tolerance.unwrap_or(Tolerance::EXACT),
        orderer: spec.order.map(|mode| Orderer::new(mode, &spec.grid, spec.tiles)),
        copies: vec![first; spec.copies()],
        last: 0,
        indices,
        want: OnceLock::new(),
    })
}

/// What one call reads and writes.
#[derive(Clone)]
struct Tensors {
    feature: Buffer,
    got: Packed,
}

pub(super) struct TilePack {
    spec: PackSpec,
    variant: Variant,
    tolerance: Tolerance,
    indices: Vec<u32>,
    orderer: Option<Orderer>,
    copies: Vec<Tensors>,
    /// The copy of the last call, whose answer is checked.
    last: usize,
    want: OnceLock<Packed>,
}

impl TilePack {
    fn oracle(&self) -> Packed {
        let mut want = Packed::new(&self.spec);
        pack::oracle(&self.spec, &self.copies[0].feature, &self.indices, &mut want);
        want
    }
}

impl PreparedOp for TilePack {
    fn call(&mut self) {
        self.last = (self.last + 1) % self.copies.len();
        let Self { spec, indices, .. } = self;
        let Tensors { feature, got } = &mut self.copies[self.last];
        match self.variant {
            Variant::Fast => pack::fast(spec, feature, indices, self.orderer.as_mut(), got),
            Variant::Reference => pack::oracle(spec, feature, indices, got),
        }
    }

    fn poison(&mut self) {
        for Tensors { got, .. } in &mut self.copies {
            got.tiles.fill(f32::NAN);
            // Whole numbers have no NaN; no valid tile has this id or corner.
            got.indices.fill(u32::MAX);
            got.origins.fill([u32::MAX; 2]);
        }
    }

    fn check_given(&self, leeway: Leeway) -> Check {
        let rows = [self.spec.dims.batch, self.spec.tiles];
        let (got, want) = (&self.copies[self.last].got, self.want.get_or_init(|| self.oracle()));
        let corners = [&got.origins, &want.origins].map(|origins| origins.as_flattened());
        Comparison::new(self.tolerance)
            .given(leeway)
            .floats("packed", &self.spec.packed_dims(), &got.tiles, &want.tiles)
            .exact("indices", &rows, &got.indices, &want.indices)
            .exact("origins", &[rows[0], rows[1], 2], corners[0], corners[1])
            .finish()
    }

    fn work(&self) -> Work {
        let tiles = self.indices.len() as u64;
        // Ids in (4 bytes), ids and corners out (12).
        Work { bytes: self.spec.moved_bytes() as u64 + 16 * tiles, flops: 0, items: tiles, item: "tiles" }
    }

    fn inputs(&mut self) -> Vec<Tensor<'_>> {
        self.want.take();
        // Copies are for timing alone; they would keep the old values.
        self.copies.truncate(1);
        self.last = 0;
        let dims = self.spec.dims.dims();
        vec![Tensor::new("feature_map", &dims, Domain::Any, &mut self.copies[0].feature)]
    }

    fn outputs(&mut self) -> Vec<Tensor<'_>> {
        let tiles = &mut self.copies[self.last].got.tiles;
        vec![Tensor::new("packed", &self.spec.packed_dims(), Domain::Any, tiles)]
    }

    fn integer_outputs(&mut self) -> Vec<IntegerTensor<'_>> {
        let (batch, tiles) = (self.spec.dims.batch, self.spec.tiles);
        let Packed { indices, origins, .. } = &mut self.copies[self.last].got;
        let origins = Integers::U32(origins.as_flattened_mut());
        vec![
            IntegerTensor { name: "indices", dims: vec![batch, tiles], values: Integers::U32(indices) },
            IntegerTensor { name: "origins", dims: vec![batch, tiles, 2], values: origins },
        ]
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn calls_take_every_copy_in_turn_and_poison_covers_them_all() {
        let params = json!({"tile_size": 4, "indices": [1, 0]});
        let (op, dtype, variant) = ("tile_pack", "f32", Variant::Fast);
        let params = params.as_object().unwrap();
        let request = Request { op, shape: &[1, 2, 8, 8], dtype, variant, params, seed: 9, tolerance: None };
        let mut prepared = prepare(&request).unwrap();
        let written = |prepared: &TilePack| {
            prepared.copies.iter().filter(|copy| copy.got.tiles.iter().all(|value| !value.is_nan())).count()
        };
        for calls in 1..=prepared.copies.len() {
            prepared.call();
            assert_eq!(written(&prepared), calls);
            assert!(prepared.check().passed);
        }
        prepared.poison();
        assert_eq!((prepared.copies.len(), written(&prepared)), (3, 0));
        assert!(!prepared.check().passed);
    }
}
