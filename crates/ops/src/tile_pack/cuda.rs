//! Packing on a device: the host puts the ids into their order, the kernel gathers.

use crate::prelude::*;
use crate::tiles::Tiles;

static TILE_PACK: Source =
    Source { name: "tile_pack", text: include_str!("tile_pack.cu"), headers: &[COMMON, UNITS] };

pub(super) const KERNELS: &[KernelFile] = &[KernelFile::new(
    &TILE_PACK,
    &["GROUP=1 ITEMS=4 THREADS=128 TILE=8", "GROUP=16 ITEMS=4 THREADS=128 TILE=8"],
)];

pub(super) fn launches(tiles: &Tiles, ids: &[u32], build: &mut Build<'_>) -> Result<Launches, PrepareError> {
    let Tiles { dims, count, .. } = *tiles;
    let tile = tiles.grid.tile;
    // Where many tiles are chosen, neighbours share the sectors they are read from.
    let group = if count >= 256 { 16 } else { 1 };
    let constants = [("THREADS", 128), ("ITEMS", 4), ("GROUP", group), ("TILE", tile)];
    let names = ["tile_pack_fast", "tile_pack_reference"];
    let chosen = build.choose(&TILE_PACK, names, &tiles.bucket()).with(&constants);
    let kernel = chosen.kernel(build.gpu)?;
    let indices = build.upload(ids)?;
    let arguments = Arguments::new().ptr(build.input(0)).buffer(&indices).ptr(build.output(0));
    let arguments = map_sizes(arguments, &dims).int(count).int(tile);
    let launch = match build.request.variant {
        Variant::Reference => plain_launch(&kernel, tiles.packed_len(), arguments),
        Variant::Fast => {
            let constant = |name| chosen.constant(name);
            let (threads, items, group) = (constant("THREADS"), constant("ITEMS"), constant("GROUP"));
            let bytes = tile * build.dtype.bytes();
            let units = tile * bytes / unit_bytes(bytes, build.request.misalign, build.dtype);
            let span = (threads / (group * units)).max(1) * items;
            let blocks = dims.batch * count.div_ceil(group) * dims.channels.div_ceil(span);
            kernel.launch(grid_x(blocks), threads as u32, arguments)
        }
    };
    Ok(Launches::new(chosen, vec![launch], vec![indices]))
}
