//! `fused_pack_op_unpack`: an affine gate on the chosen tiles, everything else copied.

use super::super::{Chosen, Memory, NORMAL, grid_of, param_error, parse, plain};
use super::Tiles;
use crate::compile::Config;
use crate::gpu::Gpu;
use crate::launch::Arguments;
use crate::program::{PrepareError, Program, Request, Variant};
use holdpoint_ops::fused::{self, Affine};
use holdpoint_ops::pack::PackSpec;
use holdpoint_ops::{BuildError, Work};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Params {
    tile_size: usize,
    kmax: usize,
    indices: Option<Vec<u32>>,
    value_scale: f32,
    value_bias: f32,
    gate_scale: f32,
    gate_bias: f32,
}

impl Default for Params {
    fn default() -> Self {
        let Affine { value_scale, value_bias, gate_scale, gate_bias } = Affine::default();
        Self { tile_size: 8, kmax: 1, indices: None, value_scale, value_bias, gate_scale, gate_bias }
    }
}

fn plan(request: &Request<'_>) -> Result<(Tiles, Affine), BuildError> {
    let p: Params = parse(request)?;
    let tiles = Tiles::new(request, p.tile_size, p.kmax, p.indices.as_deref())?;
    fused::check_unique(&tiles.indices, tiles.count, tiles.grid.count())
        .map_err(|error| param_error(request, "indices", error))?;
    let Params { value_scale, value_bias, gate_scale, gate_bias, .. } = p;
    Ok((tiles, Affine { value_scale, value_bias, gate_scale, gate_bias }))
}

pub(in crate::ops) fn validate(request: &Request<'_>) -> Result<(), BuildError> {
    plan(request).map(drop)
}

pub(in crate::ops) fn candidates(_: &Request<'_>) -> Vec<Config> {
    grid_of(&[("THREADS", &[128, 256, 512]), ("ITEMS", &[2, 4, 8])])
}

pub(in crate::ops) fn build(gpu: &mut Gpu, request: &Request<'_>) -> Result<Program, PrepareError> {
    let (tiles, affine) = plan(request)?;
    let Tiles { dims, tile, count, .. } = tiles;
    let names = ["fused_pack_op_unpack_fast", "fused_pack_op_unpack_reference"];
    let chosen = Chosen::new(gpu, request, "fused_pack_op_unpack", names, &tiles.bucket()).with(&[
        ("THREADS", 256),
        ("ITEMS", 4),
        ("TILE", tile),
    ]);
    let kernel = chosen.kernel(gpu)?;
    let memory = Memory::new(gpu, request);
    let feature = memory.input(dims.len(), NORMAL)?;
    let merged = memory.output("merged", &dims.dims())?;
    let indices = memory.upload(&tiles.indices)?;
    let arguments = Arguments::new()
        .buffer(&feature.buffer)
        .buffer(&indices)
        .buffer(&merged.buffer)
        .int(dims.batch)
        .int(dims.channels)
        .int(dims.height)
        .int(dims.width)
        .int(count)
        .int(tile)
        .float(affine.value_scale)
        .float(affine.value_bias)
        .float(affine.gate_scale)
        .float(affine.gate_bias);
    let launch = match request.variant {
        Variant::Reference => plain(&kernel, dims.len(), arguments),
        Variant::Fast => {
            let sizes = [chosen.constant("THREADS"), chosen.constant("ITEMS"), 1024];
            let [grid, block] = tiles.launch(request, sizes);
            kernel.launch(grid, block, arguments)
        }
    };
    let work = Work {
        bytes: (2 * dims.len() * request.dtype.bytes() + 4 * tiles.indices.len()) as u64,
        flops: 5 * tiles.packed_len() as u64,
        items: tiles.indices.len() as u64,
        item: "tiles",
    };
    let oracle = {
        let tiles = tiles.clone();
        Box::new(move |rows: std::ops::Range<usize>, inputs: &[Vec<f32>]| {
            let tiles = tiles.rows(&rows);
            let spec = PackSpec { dims: tiles.dims, grid: tiles.grid, tiles: tiles.count, order: None };
            let mut merged = vec![0.0; tiles.dims.len()];
            fused::fast(&spec, &affine, &inputs[0], &tiles.indices, &mut merged);
            vec![merged]
        })
    };
    Ok(Program::new(
        chosen,
        vec![launch],
        (vec![feature], vec![merged], vec![indices]),
        dims.batch,
        oracle,
        work,
    ))
}
