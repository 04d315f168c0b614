//! `tile_unpack`: lays tiles over a map, the largest key on top.

use super::super::{Chosen, Memory, NORMAL, grid_of, grid_x, param_error, parse, plain};
use super::Tiles;
use crate::compile::Config;
use crate::gpu::Gpu;
use crate::launch::Arguments;
use crate::program::{PrepareError, Program, Request, Variant};
use holdpoint_ops::rng::RandomState;
use holdpoint_ops::unpack::{Overlap, UnpackSpec, levels};
use holdpoint_ops::{BuildError, Work};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Params {
    tile_size: usize,
    kmax: usize,
    indices: Option<Vec<u32>>,
    /// Levels are drawn from 0 to 2; without them the later tile is on top.
    levels: bool,
    overlap_mode: String,
    blend_alpha: f64,
    /// Every second tile is moved up and left by this, so that tiles overlap.
    overlap_shift: u32,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            tile_size: 8,
            kmax: 1,
            indices: None,
            levels: true,
            overlap_mode: "override".to_owned(),
            blend_alpha: 0.5,
            overlap_shift: 0,
        }
    }
}

struct Plan {
    tiles: Tiles,
    overlap: Overlap,
    keys: Vec<i32>,
    origins: Vec<[u32; 2]>,
    is_shifted: bool,
}

fn plan(request: &Request<'_>) -> Result<Plan, BuildError> {
    let params: Params = parse(request)?;
    let tiles = Tiles::new(request, params.tile_size, params.kmax, params.indices.as_deref())?;
    let overlap = Overlap::parse(&params.overlap_mode, params.blend_alpha)
        .map_err(|error| param_error(request, "overlap_mode", error))?;
    let mut random = RandomState::new(request.seed ^ 0x1e7e1);
    let drawn: Option<Vec<i32>> =
        params.levels.then(|| tiles.indices.iter().map(|_| (random.uniform() * 3.0) as i32).collect());
    let keys = levels::keys(tiles.count, tiles.dims.batch, drawn.as_deref(), true)
        .map_err(|error| param_error(request, "levels", error))?;
    let shift = |(at, index): (usize, &u32)| {
        let moved = if at % 2 == 1 { params.overlap_shift } else { 0 };
        tiles.grid.origin(*index).map(|corner| corner.saturating_sub(moved))
    };
    let origins = tiles.indices.iter().enumerate().map(shift).collect();
    Ok(Plan { tiles, overlap, keys, origins, is_shifted: params.overlap_shift > 0 })
}

pub(in crate::ops) fn validate(request: &Request<'_>) -> Result<(), BuildError> {
    plan(request).map(drop)
}

pub(in crate::ops) fn candidates(request: &Request<'_>) -> Vec<Config> {
    match plan(request) {
        Ok(plan) if !plan.is_shifted => grid_of(&[("THREADS", &[128, 256, 512]), ("ITEMS", &[2, 4, 8])]),
        _ => Vec::new(),
    }
}

pub(in crate::ops) fn build(gpu: &mut Gpu, request: &Request<'_>) -> Result<Program, PrepareError> {
    let Plan { tiles, overlap, keys, origins, is_shifted } = plan(request)?;
    let Tiles { dims, tile, count, .. } = tiles;
    let names = match is_shifted {
        true => ["tile_unpack_origins_fast", "tile_unpack_origins_reference"],
        false => ["tile_unpack_fast", "tile_unpack_reference"],
    };
    let chosen = Chosen::new(gpu, request, "tile_unpack", names, &tiles.bucket()).with(&[
        ("THREADS", 256),
        ("ITEMS", 4),
        ("SPAN", 32),
        ("TILE", tile),
        ("BLEND", usize::from(overlap != Overlap::Override)),
    ]);
    let kernel = chosen.kernel(gpu)?;
    let memory = Memory::new(gpu, request);
    let inputs = vec![memory.input(dims.len(), NORMAL)?, memory.input(tiles.packed_len(), NORMAL)?];
    let merged = memory.output("merged", &dims.dims())?;
    let held = match is_shifted {
        true => {
            let order: Vec<u32> = levels::application_order(&keys, count);
            vec![memory.upload(origins.as_flattened())?, memory.upload(&order)?]
        }
        false => vec![memory.upload(&tiles.indices)?, memory.upload(&keys)?],
    };
    let [keep, take] = match overlap {
        Overlap::Override => [0.0, 1.0],
        Overlap::Blend { keep, take } => [keep, take],
    };
    let arguments = Arguments::new()
        .buffer(&inputs[0].buffer)
        .buffer(&inputs[1].buffer)
        .buffer(&held[0])
        .buffer(&held[1])
        .buffer(&merged.buffer)
        .int(dims.batch)
        .int(dims.channels)
        .int(dims.height)
        .int(dims.width)
        .int(count)
        .int(tile)
        .float(keep)
        .float(take);
    let constant = |name| chosen.constant(name);
    let (threads, items) = (constant("THREADS"), constant("ITEMS"));
    let launch = match request.variant {
        Variant::Reference => plain(&kernel, dims.len(), arguments),
        Variant::Fast if is_shifted => {
            let span = constant("SPAN");
            let columns = dims.width.div_ceil(32) * dims.channels.div_ceil(span);
            let blocks = dims.batch * dims.height.div_ceil(threads / 32) * columns;
            kernel.launch(grid_x(blocks), threads as u32, arguments)
        }
        Variant::Fast => {
            let [grid, block] = tiles.launch(request, [threads, items, CELLS]);
            kernel.launch(grid, block, arguments)
        }
    };
    // Every pixel is written; what lies under an opaque tile need not be read.
    let covered =
        if overlap == Overlap::Override { covered(&tiles) * dims.channels * tile * tile } else { 0 };
    let read = dims.len() - covered + tiles.packed_len();
    let work = Work {
        bytes: ((dims.len() + read) * request.dtype.bytes() + 8 * keys.len()) as u64,
        flops: if overlap == Overlap::Override { 0 } else { 3 * tiles.packed_len() as u64 },
        items: tiles.indices.len() as u64,
        item: "tiles",
    };
    let oracle = {
        let tiles = tiles.clone();
        Box::new(move |rows: std::ops::Range<usize>, inputs: &[Vec<f32>]| {
            let of = |part: usize| rows.start * part..rows.end * part;
            let tiles = tiles.rows(&rows);
            let spec = UnpackSpec { dims: tiles.dims, tile: tiles.tile, tiles: tiles.count, overlap };
            let mut merged = vec![0.0; tiles.dims.len()];
            let (origins, keys) = (&origins[of(tiles.count)], &keys[of(tiles.count)]);
            levels::oracle(&spec, &inputs[0], &inputs[1], origins, keys, &mut merged);
            vec![merged]
        })
    };
    Ok(Program::new(chosen, vec![launch], (inputs, vec![merged], held), dims.batch, oracle, work))
}

/// Cells of a row of tiles that one block looks at, at most.
const CELLS: usize = 256;

/// How many different cells the tiles cover.
fn covered(tiles: &Tiles) -> usize {
    if tiles.count == 0 {
        return 0;
    }
    let distinct = |row: &[u32]| row.iter().collect::<std::collections::HashSet<_>>().len();
    tiles.indices.chunks(tiles.count).map(distinct).sum()
}
