//! `tile_pack`: gathers tiles.

use super::super::{Chosen, Memory, NORMAL, grid_of, grid_x, parse, plain, unit_bytes};
use super::Tiles;
use crate::compile::Config;
use crate::gpu::Gpu;
use crate::launch::Arguments;
use crate::program::{PrepareError, Program, Request, Variant};
use holdpoint_ops::pack::{self, PackSpec, Packed};
use holdpoint_ops::{BuildError, Work};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Params {
    tile_size: usize,
    kmax: usize,
    indices: Option<Vec<u32>>,
}

impl Default for Params {
    fn default() -> Self {
        Self { tile_size: 8, kmax: 1, indices: None }
    }
}

fn plan(request: &Request<'_>) -> Result<Tiles, BuildError> {
    let Params { tile_size, kmax, indices } = parse(request)?;
    Tiles::new(request, tile_size, kmax, indices.as_deref())
}

pub(in crate::ops) fn validate(request: &Request<'_>) -> Result<(), BuildError> {
    plan(request).map(drop)
}

pub(in crate::ops) fn candidates(_: &Request<'_>) -> Vec<Config> {
    grid_of(&[("THREADS", &[128, 256]), ("ITEMS", &[2, 4, 8]), ("GROUP", &[1, 4, 16])])
}

pub(in crate::ops) fn build(gpu: &mut Gpu, request: &Request<'_>) -> Result<Program, PrepareError> {
    let tiles = plan(request)?;
    let Tiles { dims, tile, count, .. } = tiles;
    let names = ["tile_pack_fast", "tile_pack_reference"];
    // Where many tiles are chosen, neighbours share the sectors they are read from.
    let group = if count >= 256 { 16 } else { 1 };
    let chosen = Chosen::new(gpu, request, "tile_pack", names, &tiles.bucket()).with(&[
        ("THREADS", 128),
        ("ITEMS", 4),
        ("GROUP", group),
        ("TILE", tile),
    ]);
    let kernel = chosen.kernel(gpu)?;
    let memory = Memory::new(gpu, request);
    let feature = memory.input(dims.len(), NORMAL)?;
    let packed = memory.output("packed", &tiles.packed_dims())?;
    let indices = memory.upload(&tiles.indices)?;
    let arguments = Arguments::new()
        .buffer(&feature.buffer)
        .buffer(&indices)
        .buffer(&packed.buffer)
        .int(dims.batch)
        .int(dims.channels)
        .int(dims.height)
        .int(dims.width)
        .int(count)
        .int(tile);
    let launch = match request.variant {
        Variant::Reference => plain(&kernel, tiles.packed_len(), arguments),
        Variant::Fast => {
            let constant = |name| chosen.constant(name);
            let (threads, items, group) = (constant("THREADS"), constant("ITEMS"), constant("GROUP"));
            let bytes = tile * request.dtype.bytes();
            let units = tile * bytes / unit_bytes(bytes, request.misalign, request.dtype);
            let span = (threads / (group * units)).max(1) * items;
            let blocks = dims.batch * count.div_ceil(group) * dims.channels.div_ceil(span);
            kernel.launch(grid_x(blocks), threads as u32, arguments)
        }
    };
    let moved = (2 * tiles.packed_len() * request.dtype.bytes() + 4 * tiles.indices.len()) as u64;
    let work = Work { bytes: moved, flops: 0, items: tiles.indices.len() as u64, item: "tiles" };
    let oracle = {
        let tiles = tiles.clone();
        Box::new(move |rows: std::ops::Range<usize>, inputs: &[Vec<f32>]| {
            let tiles = tiles.rows(&rows);
            let spec = PackSpec { dims: tiles.dims, grid: tiles.grid, tiles: tiles.count, order: None };
            let mut packed = Packed::new(&spec);
            pack::oracle(&spec, &inputs[0], &tiles.indices, &mut packed);
            vec![packed.tiles.to_vec()]
        })
    };
    Ok(Program::new(
        chosen,
        vec![launch],
        (vec![feature], vec![packed], vec![indices]),
        dims.batch,
        oracle,
        work,
    ))
}
