//! `tile_pack`: gathers tiles of a feature map.

pub mod cpu;
mod cuda;

use crate::order::{OrderMode, Orderer};
use crate::prelude::*;
use crate::tiles::{self, MAP_SIZES, MAP_SIZES_MAX, Tiles};
use cpu::PackedMut;

params! {
    pub struct Params {
        tile_size: usize = 16,
        /// Draws this many distinct tiles for each sample, where none are named.
        kmax: Option<usize> = None,
        indices: Option<Vec<u32>> = None,
        order_mode: Option<String> = None,
    }
}

#[derive(Clone)]
pub struct TilePack {
    /// With ids as given.
    tiles: Tiles,
    order: Option<OrderMode>,
}

impl Definition for TilePack {
    const NAME: &'static str = "tile_pack";
    const SIZES: &'static [&'static str] = MAP_SIZES;
    const CUDA: &'static [Dtype] = ALL;
    const KERNELS: &'static [KernelFile] = cuda::KERNELS;
    const CASES: Option<Cases> = Some(Cases::new(MAP_SIZES_MAX));
    const IS_REPLACEABLE: bool = true;
    type Params = Params;

    fn plan(request: &Request, params: Params) -> Result<Self, BuildError> {
        let order = tiles::parse_order(request, params.order_mode.as_deref(), params.kmax)?;
        Ok(Self { tiles: Tiles::new(request, params.tile_size, params.kmax, params.indices)?, order })
    }

    fn load(shape: &[usize], params: &Params) -> Load {
        tiles::load(shape, params.tile_size, params.kmax, params.indices.as_deref())
    }

    fn named_params(&self) -> NamedParams {
        self.tiles.named_params()
    }

    fn draw_case(draw: &mut Draw<'_>) -> (Vec<usize>, Value) {
        let (shape, tile, ids) = tiles::draw(draw);
        let order = draw.pick(tiles::ORDERS);
        (shape, json!({ "tile_size": tile, "indices": ids, "order_mode": order }))
    }
}

impl Op for TilePack {
    fn describe(&self, dtype: Dtype) -> Description {
        let Tiles { dims, count, .. } = self.tiles;
        let tiles = self.tiles.indices.len() as u64;
        Description {
            inputs: vec![Input::normal("feature_map", &dims.dims())],
            outputs: vec![
                Output::new("packed", &self.tiles.packed_dims(), dtype),
                Output::integers("indices", &[dims.batch, count], Element::U32),
                Output::integers("origins", &[dims.batch, count, 2], Element::U32),
            ],
            // Every packed value is read once and written once, and every id is read. Ids and corners in their new order are the
            // host's on a device, and nothing beside the tiles elsewhere.
            work: Work {
                bytes: 2 * (self.tiles.packed_len() * dtype.bytes()) as u64 + 4 * tiles,
                flops: 0,
                items: tiles,
                item: "tiles".to_owned(),
            },
            // A gather moves bits: anything but equality is a bug.
            tolerance: Tolerance::EXACT,
            rows: dims.batch,
        }
    }

    fn part(&self, rows: Range<usize>) -> Option<Box<dyn Op>> {
        Some(Box::new(Self { tiles: self.tiles.part(&rows), order: self.order }))
    }

    /// A model's maps do not come from L2 either.
    fn copies(&self) -> usize {
        cpu::copies(&self.tiles.spec())
    }

    fn cpu(&self, variant: Variant, _: Dtype) -> Box<dyn Cpu> {
        let (spec, ids) = (self.tiles.spec(), self.tiles.indices.clone());
        let order = self.order;
        let mut orderer = order.map(|mode| Orderer::new(mode, &spec.grid, spec.tiles));
        version(move |inputs: &[Tensor], outputs: &mut [Tensor]| {
            let [packed, indices, origins] = outputs else { return };
            let (Data::U32(indices), Data::U32(origins)) = (&mut indices.data, &mut origins.data) else {
                return;
            };
            let out = PackedMut { tiles: packed.f32_mut(), indices, origins: origins.as_chunks_mut().0 };
            match variant {
                Variant::Fast => cpu::fast(&spec, inputs[0].f32(), &ids, orderer.as_mut(), out),
                Variant::Reference => cpu::oracle(&spec, inputs[0].f32(), &ids, order, out),
            }
        })
    }

    fn cuda(&self, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
        cuda::launches(&self.tiles, &self.tiles.ordered(self.order), build)
    }

    fn candidates(&self, _: &Request, _: Dtype) -> Vec<Config> {
        combinations(&[("THREADS", &[128, 256]), ("ITEMS", &[2, 4, 8]), ("GROUP", &[1, 4, 16])])
    }
}
