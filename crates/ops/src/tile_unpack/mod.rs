//! `tile_unpack`: lays tiles back onto a copy of a base map. Two families: `levels` in the parameters selects the one without a
//! priority map.

pub mod cpu;
mod cuda;

use crate::prelude::*;
use crate::tiles::{self, MAP_SIZES, MAP_SIZES_MAX, Tiles};
use cpu::{Overlap, Unpack, levels, priority};

params! {
    pub struct Params {
        tile_size: usize = 16,
        /// Draws this many distinct tiles for each sample, where none are named.
        kmax: Option<usize> = None,
        indices: Option<Vec<u32>> = None,
        level_priority: i8 = 1,
        overlap_mode: String = "override".to_owned(),
        blend_alpha: f64 = 0.5,
        order_mode: Option<String> = None,
        /// One level per tile of a row; a higher one is on top, and of equal ones the later tile.
        levels: Option<Vec<i32>> = None,
        /// Moves every second tile up and left by this, so that tiles overlap.
        overlap_shift: u32 = 0,
    }
}

#[derive(Clone)]
pub struct TileUnpack {
    /// With ids in their order.
    tiles: Tiles,
    overlap: Overlap,
    level: i8,
    /// Present in the family without a priority map.
    keys: Option<Vec<i32>>,
    origins: Vec<[u32; 2]>,
    is_shifted: bool,
}

impl Definition for TileUnpack {
    const NAME: &'static str = "tile_unpack";
    const SIZES: &'static [&'static str] = MAP_SIZES;
    const CUDA: &'static [Dtype] = ALL;
    const KERNELS: &'static [KernelFile] = cuda::KERNELS;
    const CASES: Option<Cases> = Some(Cases::new(MAP_SIZES_MAX));
    const IS_REPLACEABLE: bool = true;
    type Params = Params;

    fn plan(request: &Request, params: Params) -> Result<Self, BuildError> {
        let mut tiles = Tiles::new(request, params.tile_size, params.kmax, params.indices)?;
        let overlap = Overlap::parse(&params.overlap_mode, params.blend_alpha).map_err(|error| {
            let blamed = if matches!(error, OpError::BlendAlpha(_)) { "blend_alpha" } else { "overlap_mode" };
            request.param_error(blamed, error)
        })?;
        tiles.indices =
            tiles.ordered(tiles::parse_order(request, params.order_mode.as_deref(), params.kmax)?);
        let keys = match &params.levels {
            None => None,
            Some(row) => {
                let row = levels::keys(tiles.count, 1, Some(row));
                Some(row.map_err(request.at_param("levels"))?.repeat(tiles.dims.batch))
            }
        };
        let shift = params.overlap_shift;
        let origin = |(at, index): (usize, &u32)| {
            let moved = if at % 2 == 1 { shift } else { 0 };
            tiles.grid.origin(*index).map(|corner| corner.saturating_sub(moved))
        };
        let origins = tiles.indices.iter().enumerate().map(origin).collect();
        Ok(Self { overlap, level: params.level_priority, keys, origins, is_shifted: shift > 0, tiles })
    }

    fn load(shape: &[usize], params: &Params) -> Load {
        tiles::load(shape, params.tile_size, params.kmax, params.indices.as_deref())
    }

    fn named_params(&self) -> NamedParams {
        self.tiles.named_params()
    }

    fn draw_case(draw: &mut Draw<'_>) -> (Vec<usize>, Value) {
        let (shape, tile, ids) = tiles::draw(draw);
        let count = ids.len();
        let mut params = json!({
            "tile_size": tile,
            "indices": ids,
            "overlap_mode": draw.pick(&["override", "blend"]),
            "blend_alpha": draw.pick(&[0.5, 0.0, 1.0, 0.3]),
            "order_mode": draw.pick(tiles::ORDERS),
        });
        if draw.below(2) == 0 {
            params["levels"] = (0..count).map(|_| draw.below(3)).collect();
        }
        // Workers of users are given no corners: to them, tiles lie on the grid.
        if draw.backend.is_some() && draw.below(2) == 0 {
            params["overlap_shift"] = draw.below(tile).into();
        }
        (shape, params)
    }
}

impl Op for TileUnpack {
    fn describe(&self, dtype: Dtype) -> Description {
        let Tiles { dims, grid, ref indices, .. } = self.tiles;
        let mut outputs = vec![Output::new("merged", &dims.dims(), dtype)];
        if self.keys.is_none() {
            let map = [dims.batch, dims.height, dims.width];
            outputs.push(Output::integers("priority_map", &map, Element::I8));
        }
        let (packed, is_opaque) = (self.tiles.packed_len(), self.overlap == Overlap::Override);
        let covered =
            if is_opaque { self.tiles.covered() * dims.channels * grid.tile * grid.tile } else { 0 };
        Description {
            inputs: vec![
                Input::normal("base_map", &dims.dims()),
                Input::normal("packed", &self.tiles.packed_dims()),
            ],
            outputs,
            // Every pixel is written; what lies under an opaque tile need not be read. The priority map, where there is one, is the
            // host's on a device, and a byte for each pixel of all channels elsewhere: it is not counted.
            work: Work {
                bytes: ((2 * dims.len() - covered + packed) * dtype.bytes() + 8 * indices.len()) as u64,
                flops: if is_opaque { 0 } else { 3 * packed as u64 },
                items: indices.len() as u64,
                item: "tiles".to_owned(),
            },
            // Blending is one multiply-add per tile, which some targets fuse.
            tolerance: if is_opaque { Tolerance::EXACT } else { dtype.tolerance() },
            rows: dims.batch,
        }
    }

    fn part(&self, rows: Range<usize>) -> Option<Box<dyn Op>> {
        let range = rows.start * self.tiles.count..rows.end * self.tiles.count;
        Some(Box::new(Self {
            tiles: self.tiles.part(&rows),
            keys: self.keys.as_ref().map(|keys| keys[range.clone()].to_vec()),
            origins: self.origins[range].to_vec(),
            ..*self
        }))
    }

    fn cpu(&self, variant: Variant, _: Dtype) -> Box<dyn Cpu> {
        let (spec, overlap, level) = (self.tiles.spec(), self.overlap, self.level);
        let (origins, keys) = (self.origins.clone(), self.keys.clone());
        let mut order = vec![0; origins.len()];
        version(move |inputs: &[Tensor], outputs: &mut [Tensor]| {
            let (base, packed) = (inputs[0].f32(), inputs[1].f32());
            let unpack = Unpack { spec, overlap, base, packed, origins: &origins };
            match (&keys, outputs) {
                (None, [merged, map]) => {
                    let (merged, Data::I8(map)) = (merged.f32_mut(), &mut map.data) else { return };
                    map.fill(0);
                    match variant {
                        Variant::Fast => priority::fast(&unpack, level, map, merged),
                        Variant::Reference => priority::oracle(&unpack, level, map, merged),
                    }
                }
                (Some(keys), [merged]) => match variant {
                    Variant::Fast => levels::fast(&unpack, keys, &mut order, merged.f32_mut()),
                    Variant::Reference => levels::oracle(&unpack, keys, merged.f32_mut()),
                },
                _ => {}
            }
        })
    }

    fn check_cuda(&self, request: &Request, _: Dtype) -> Result<(), BuildError> {
        match self.level >= 0 || self.keys.is_some() {
            true => Ok(()),
            false => Err(request.param_error("level_priority", "must be >= 0 on a device")),
        }
    }

    fn cuda(&self, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
        cuda::launches(self, build)
    }

    fn candidates(&self, _: &Request, _: Dtype) -> Vec<Config> {
        match self.is_shifted {
            true => Vec::new(),
            false => combinations(&[("THREADS", &[128, 256, 512]), ("ITEMS", &[2, 4, 8])]),
        }
    }
}
