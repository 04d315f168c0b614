//! Unpacking on a device: the largest key on top. Tiles of one priority on an empty map are tiles by position.

use super::TileUnpack;
use super::cpu::{Overlap, levels};
use crate::prelude::*;
use crate::tiles::Tiles;

static TILE_UNPACK: Source =
    Source { name: "tile_unpack", text: include_str!("tile_unpack.cu"), headers: &[COMMON, UNITS] };

pub(super) const KERNELS: &[KernelFile] = &[KernelFile::new(
    &TILE_UNPACK,
    &["BLEND=0 ITEMS=4 SPAN=32 THREADS=256 TILE=8", "BLEND=1 ITEMS=4 SPAN=32 THREADS=256 TILE=8"],
)];

/// Cells of a row of tiles per block, at most.
const CELLS: usize = 256;

pub(super) fn launches(op: &TileUnpack, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
    let TileUnpack { tiles, overlap, keys, origins, is_shifted, .. } = op;
    let Tiles { dims, count, .. } = *tiles;
    let tile = tiles.grid.tile;
    let names = match is_shifted {
        true => ["tile_unpack_origins_fast", "tile_unpack_origins_reference"],
        false => ["tile_unpack_fast", "tile_unpack_reference"],
    };
    let is_blended = usize::from(*overlap != Overlap::Override);
    let constants = [("THREADS", 256), ("ITEMS", 4), ("SPAN", 32), ("TILE", tile), ("BLEND", is_blended)];
    let chosen = build.choose(&TILE_UNPACK, names, &tiles.bucket()).with(&constants);
    let kernel = chosen.kernel(build.gpu)?;
    let positions = || (0..dims.batch).flat_map(|_| 0..count as i32).collect();
    let keys = keys.clone().unwrap_or_else(positions);
    let held = match is_shifted {
        true => {
            let order: Vec<u32> = levels::application_order(&keys, count);
            vec![build.upload(origins.as_flattened())?, build.upload(&order)?]
        }
        false => vec![build.upload(&tiles.indices)?, build.upload(&keys)?],
    };
    let [keep, take] = match *overlap {
        Overlap::Override => [0.0, 1.0],
        Overlap::Blend { keep, take } => [keep, take],
    };
    let arguments = Arguments::new().ptr(build.input(0)).ptr(build.input(1));
    let arguments = arguments.buffer(&held[0]).buffer(&held[1]).ptr(build.output(0));
    let arguments = map_sizes(arguments, &dims).int(count).int(tile).float(keep).float(take);
    let constant = |name| chosen.constant(name);
    let (threads, items) = (constant("THREADS"), constant("ITEMS"));
    let launch = match build.request.variant {
        Variant::Reference => plain_launch(&kernel, dims.len(), arguments),
        Variant::Fast if *is_shifted => {
            let span = constant("SPAN");
            let columns = dims.width.div_ceil(32) * dims.channels.div_ceil(span);
            let blocks = dims.batch * dims.height.div_ceil(threads / 32) * columns;
            kernel.launch(grid_x(blocks), threads as u32, arguments)
        }
        Variant::Fast => {
            let [grid, block] = tiles.launch(build.dtype, build.request.misalign, [threads, items, CELLS]);
            kernel.launch(grid, block, arguments)
        }
    };
    Ok(Launches::new(chosen, vec![launch], held))
}
