//! The fused op on a device.

use super::cpu::Affine;
use crate::prelude::*;
use crate::tiles::Tiles;

static FUSED: Source = Source {
    name: "fused_pack_op_unpack",
    text: include_str!("fused_pack_op_unpack.cu"),
    headers: &[COMMON, UNITS],
};

pub(super) const KERNELS: &[KernelFile] = &[KernelFile::new(&FUSED, &["ITEMS=4 THREADS=256 TILE=8"])];

/// Cells of a row of tiles per block, at most.
const CELLS: usize = 1024;

pub(super) fn launches(
    tiles: &Tiles,
    affine: &Affine,
    build: &mut Build<'_>,
) -> Result<Launches, PrepareError> {
    let (dims, tile) = (tiles.dims, tiles.grid.tile);
    let names = ["fused_pack_op_unpack_fast", "fused_pack_op_unpack_reference"];
    let chosen = build.choose(&FUSED, names, &tiles.bucket());
    let chosen = chosen.with(&[("THREADS", 256), ("ITEMS", 4), ("TILE", tile)]);
    let kernel = chosen.kernel(build.gpu)?;
    let indices = build.upload(&tiles.indices)?;
    let arguments = Arguments::new().ptr(build.input(0)).buffer(&indices).ptr(build.output(0));
    let arguments = map_sizes(arguments, &dims).int(tiles.count).int(tile);
    let arguments = arguments.float(affine.value_scale).float(affine.value_bias);
    let arguments = arguments.float(affine.gate_scale).float(affine.gate_bias);
    let launch = match build.request.variant {
        Variant::Reference => plain_launch(&kernel, dims.len(), arguments),
        Variant::Fast => {
            let sizes = [chosen.constant("THREADS"), chosen.constant("ITEMS"), CELLS];
            let [grid, block] = tiles.launch(build.dtype, build.request.misalign, sizes);
            kernel.launch(grid, block, arguments)
        }
    };
    Ok(Launches::new(chosen, vec![launch], vec![indices]))
}
