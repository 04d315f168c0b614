//! `tile_unpack`, both families: `levels` in the parameters selects the one without a priority map.

use std::sync::OnceLock;

use serde::Deserialize;

use super::tiles::{self, Tiles};
use crate::buffer::Buffer;
use crate::compare::{Comparison, Tolerance};
use crate::error::{BuildError, OpError};
use crate::order::{OrderMode, order};
use crate::rng::RandomState;
use crate::shape::Nchw;
use crate::unpack::{Overlap, UnpackSpec, levels, priority};
use crate::{Check, Domain, IntegerTensor, Integers, Leeway, PreparedOp, Request, Tensor, Variant, Work};

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Params {
    tile_size: usize,
    indices: Option<Vec<u32>>,
    level_priority: i8,
    overlap_mode: String,
    blend_alpha: f64,
    order_mode: String,
    levels: Option<Vec<i32>>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            tile_size: 16,
            indices: None,
            level_priority: 1,
            overlap_mode: "override".to_owned(),
            blend_alpha: 0.5,
            order_mode: "hilbert".to_owned(),
            levels: None,
        }
    }
}

struct Plan {
    spec: UnpackSpec,
    tiles: Tiles,
    order: Option<OrderMode>,
    params: Params,
    keys: Option<Vec<i32>>,
}

fn plan(req: &Request<'_>) -> Result<Plan, BuildError> {
    let mut params: Params = super::parse(req)?;
    let tiles = tiles::check(req, params.tile_size, params.indices.take())?;
    let overlap = Overlap::parse(&params.overlap_mode, params.blend_alpha).map_err(|error| {
        let blamed = if matches!(error, OpError::BlendAlpha(_)) { "blend_alpha" } else { "overlap_mode" };
        super::param_error(req, blamed, error)
    })?;
    let order = tiles::order(req, &params.order_mode)?;
    let keys = match &params.levels {
        None => None,
        Some(row) => {
            let row = levels::keys(tiles.per_row, 1, Some(row), true);
            Some(row.map_err(super::at_param(req, "levels"))?.repeat(tiles.dims.batch))
        }
    };
    let spec = UnpackSpec { dims: tiles.dims, tile: params.tile_size, tiles: tiles.per_row, overlap };
    Ok(Plan { spec, tiles, order, params, keys })
}

pub(super) fn validate(req: &Request<'_>) -> Result<(), BuildError> {
    plan(req).map(drop)
}

pub(super) fn prepare(req: &Request<'_>) -> Result<TileUnpack, BuildError> {
    let Plan { spec, tiles, order: mode, params, keys } = plan(req)?;
    let given = &tiles.indices;
    let indices = mode.map_or_else(|| given.clone(), |mode| order(given, mode, &tiles.grid));
    let origins: Vec<[u32; 2]> =
        tiles::repeat(&indices, spec.dims.batch).iter().map(|&i| tiles.grid.origin(i)).collect();
    let mut rng = RandomState::new(req.seed);
    let base = rng.normals(spec.dims.len());
    let packed = rng.normals(origins.len() * spec.tile_len());
    // Override moves bits. Blend is one multiply-add per tile, the same in both, but a target may fuse it.
    let default = match spec.overlap {
        Overlap::Override => Tolerance::EXACT,
        Overlap::Blend { .. } => Tolerance::new(1e-6, 1e-5),
    };
    Ok(TileUnpack {
        spec,
        variant: req.variant,
        tolerance: req.tolerance.unwrap_or(default),
        level: params.level_priority,
        order: vec![0; origins.len()],
        got: Merged::new(&spec),
        want: OnceLock::new(),
        base,
        packed,
        origins,
        keys,
    })
}

struct Merged {
    map: Buffer,
    priority: Vec<i8>,
}

impl Merged {
    fn new(spec: &UnpackSpec) -> Self {
        let dims = &spec.dims;
        Self { map: Buffer::nan(dims.len()), priority: vec![i8::MIN; dims.batch * dims.plane()] }
    }
}

pub(super) struct TileUnpack {
    spec: UnpackSpec,
    variant: Variant,
    tolerance: Tolerance,
    level: i8,
    base: Buffer,
    packed: Buffer,
    origins: Vec<[u32; 2]>,
    /// Present in the family without a priority map.
    keys: Option<Vec<i32>>,
    order: Vec<u32>,
    got: Merged,
    want: OnceLock<Merged>,
}

impl TileUnpack {
    fn oracle(&self) -> Merged {
        let Self { spec, base, packed, origins, .. } = self;
        let mut want = Merged::new(spec);
        let Merged { map: merged, priority: map } = &mut want;
        map.fill(0);
        match &self.keys {
            None => priority::oracle(spec, base, packed, origins, self.level, map, merged),
            Some(keys) => levels::oracle(spec, base, packed, origins, keys, merged),
        }
        want
    }
}

impl PreparedOp for TileUnpack {
    fn call(&mut self) {
        let Self { spec, base, packed, origins, .. } = self;
        let Merged { map: merged, priority: map } = &mut self.got;
        map.fill(0);
        match (&self.keys, self.variant) {
            (None, Variant::Fast) => priority::fast(spec, base, packed, origins, self.level, map, merged),
            (None, Variant::Reference) => {
                priority::oracle(spec, base, packed, origins, self.level, map, merged);
            }
            (Some(keys), Variant::Fast) => {
                levels::fast(spec, base, packed, origins, keys, &mut self.order, merged);
            }
            (Some(keys), Variant::Reference) => levels::oracle(spec, base, packed, origins, keys, merged),
        }
    }

    fn poison(&mut self) {
        self.got.map.fill(f32::NAN);
        // Whole numbers have no NaN; the least i8 is below every priority a call can leave.
        self.got.priority.fill(i8::MIN);
    }

    fn check_given(&self, leeway: Leeway) -> Check {
        let dims = self.spec.dims;
        let (got, want) = (&self.got, self.want.get_or_init(|| self.oracle()));
        let merged =
            Comparison::new(self.tolerance).given(leeway).floats("merged", &dims.dims(), &got.map, &want.map);
        if self.keys.is_some() {
            return merged.finish();
        }
        let map_dims = [dims.batch, dims.height, dims.width];
        merged.exact("priority_map", &map_dims, &got.priority, &want.priority).finish()
    }

    fn work(&self) -> Work {
        let floats = self.base.len() + self.got.map.len() + self.packed.len();
        let map = if self.keys.is_some() { 0 } else { self.got.priority.len() };
        let bytes = 4 * floats + map + 8 * self.origins.len();
        let flops = if self.spec.overlap == Overlap::Override { 0 } else { 3 * self.packed.len() };
        let items = self.origins.len() as u64;
        Work { bytes: bytes as u64, flops: flops as u64, items, item: "tiles" }
    }

    fn inputs(&mut self) -> Vec<Tensor<'_>> {
        self.want.take();
        let UnpackSpec { dims, tile, tiles, .. } = self.spec;
        let packed = [dims.batch, tiles, dims.channels, tile, tile];
        vec![
            Tensor::new("base_map", &dims.dims(), Domain::Any, &mut self.base),
            Tensor::new("packed", &packed, Domain::Any, &mut self.packed),
        ]
    }

    fn outputs(&mut self) -> Vec<Tensor<'_>> {
        vec![Tensor::new("merged", &self.spec.dims.dims(), Domain::Any, &mut self.got.map)]
    }

    fn integer_outputs(&mut self) -> Vec<IntegerTensor<'_>> {
        if self.keys.is_some() {
            return Vec::new();
        }
        let Nchw { batch, height, width, .. } = self.spec.dims;
        let values = Integers::I8(&mut self.got.priority);
        vec![IntegerTensor { name: "priority_map", dims: vec![batch, height, width], values }]
    }
}
