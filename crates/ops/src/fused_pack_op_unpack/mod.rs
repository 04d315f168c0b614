//! `fused_pack_op_unpack`: an affine gate on the chosen tiles, everything else copied.

pub mod cpu;
mod cuda;

use crate::prelude::*;
use crate::tile_pack::cpu::Packed;
use crate::tiles::{self, MAP_SIZES, MAP_SIZES_MAX, Tiles};
use cpu::Affine;

params! {
    pub struct Params {
        tile_size: usize = 16,
        /// Draws this many distinct tiles for each sample, where none are named.
        kmax: Option<usize> = None,
        indices: Option<Vec<u32>> = None,
        value_scale: f64 = 1.0,
        value_bias: f64 = 0.0,
        gate_scale: f64 = 1.0,
        gate_bias: f64 = 0.0,
    }
}

#[derive(Clone)]
pub(crate) struct FusedPackOpUnpack {
    tiles: Tiles,
    affine: Affine,
}

impl Definition for FusedPackOpUnpack {
    const NAME: &'static str = "fused_pack_op_unpack";
    const SIZES: &'static [&'static str] = MAP_SIZES;
    const CUDA: &'static [Dtype] = ALL;
    const KERNELS: &'static [KernelFile] = cuda::KERNELS;
    const CASES: Option<Cases> = Some(Cases::new(MAP_SIZES_MAX));
    const IS_REPLACEABLE: bool = true;
    type Params = Params;

    fn plan(request: &Request, params: Params) -> Result<Self, BuildError> {
        let tiles = Tiles::new(request, params.tile_size, params.kmax, params.indices)?;
        let affine = Affine {
            value_scale: request.check_finite("value_scale", params.value_scale)?,
            value_bias: request.check_finite("value_bias", params.value_bias)?,
            gate_scale: request.check_finite("gate_scale", params.gate_scale)?,
            gate_bias: request.check_finite("gate_bias", params.gate_bias)?,
        };
        cpu::check_unique(&tiles.indices, tiles.count, tiles.grid.count())
            .map_err(request.at_param("indices"))?;
        Ok(Self { tiles, affine })
    }

    fn load(shape: &[usize], params: &Params) -> Load {
        tiles::load(shape, params.tile_size, params.kmax, params.indices.as_deref())
    }

    fn named_params(&self) -> NamedParams {
        self.tiles.named_params()
    }

    fn draw_case(draw: &mut Draw<'_>) -> (Vec<usize>, Value) {
        let (shape, tile, ids) = tiles::draw(draw);
        let params = json!({
            "tile_size": tile,
            "indices": ids,
            "value_scale": draw.pick(&[1.0, -0.5, 2.0]),
            "gate_bias": draw.pick(&[0.0, 0.25]),
        });
        (shape, params)
    }
}

impl Op for FusedPackOpUnpack {
    fn describe(&self, dtype: Dtype) -> Description {
        let (dims, tiles) = (self.tiles.dims, self.tiles.indices.len() as u64);
        Description {
            inputs: vec![Input::normal("feature_map", &dims.dims())],
            outputs: vec![Output::new("merged", &dims.dims(), dtype)],
            // Per pixel of a chosen tile two multiply-adds, a maximum and a product.
            work: Work {
                bytes: 2 * (dims.len() * dtype.bytes()) as u64 + 4 * tiles,
                flops: 6 * self.tiles.packed_len() as u64,
                items: tiles,
                item: "tiles".to_owned(),
            },
            tolerance: dtype.tolerance(),
            rows: dims.batch,
        }
    }

    fn part(&self, rows: Range<usize>) -> Option<Box<dyn Op>> {
        Some(Box::new(Self { tiles: self.tiles.part(&rows), affine: self.affine }))
    }

    fn cpu(&self, variant: Variant, _: Dtype) -> Box<dyn Cpu> {
        let (spec, indices, affine) = (self.tiles.spec(), self.tiles.indices.clone(), self.affine);
        if variant == Variant::Fast {
            return version(move |inputs: &[Tensor], outputs: &mut [Tensor]| {
                cpu::fast(&spec, &affine, inputs[0].f32(), &indices, outputs[0].f32_mut());
            });
        }
        let mut packed = Packed::new(&spec);
        let keys: Vec<i32> = (0..spec.dims.batch).flat_map(|_| 0..spec.tiles as i32).collect();
        version(move |inputs: &[Tensor], outputs: &mut [Tensor]| {
            let (feature, merged) = (inputs[0].f32(), outputs[0].f32_mut());
            cpu::oracle(&spec, &affine, feature, &indices, &mut packed, &keys, merged);
        })
    }

    fn cuda(&self, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
        cuda::launches(&self.tiles, &self.affine, build)
    }

    fn candidates(&self, _: &Request, _: Dtype) -> Vec<Config> {
        combinations(&[("THREADS", &[128, 256, 512]), ("ITEMS", &[2, 4, 8])])
    }
}
