//! Normalisation on a device: a warp per row where rows are short, a block where they are long.

use super::RmsNorm;
use crate::prelude::*;

static RMS_NORM: Source =
    Source { name: "rms_norm", text: include_str!("rms_norm.cu"), headers: &[COMMON, UNITS] };

/// Rows of 4096 elements in 32 and in 16 bits, short rows, and rows that no wide access divides.
pub(super) const KERNELS: &[KernelFile] = &[KernelFile::new(
    &RMS_NORM,
    &[
        "ITEMS=4 ROWS=1 THREADS=256 UNIT_BYTES=16",
        "ITEMS=2 ROWS=1 THREADS=256 UNIT_BYTES=16",
        "ITEMS=2 ROWS=8 THREADS=32 UNIT_BYTES=16",
        "ITEMS=8 ROWS=1 THREADS=256 UNIT_BYTES=4",
    ],
)
.in_dtypes(WIDE)];

/// Units that a thread holds in registers, at most: what is beyond is read twice.
const ITEMS_MAX: usize = 8;
/// Threads of a block of short rows, one warp each.
const SHORT_THREADS: usize = 256;

pub(super) fn launches(op: &RmsNorm, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
    let RmsNorm { rows, hidden, eps, .. } = *op;
    let unit = unit_bytes(hidden * build.dtype.bytes(), build.request.misalign, build.dtype);
    let units = hidden * build.dtype.bytes() / unit;
    // Two units a lane are enough work for a warp; longer rows get a block that holds few units a thread.
    let threads = match units {
        0..=64 => 32,
        65..=256 => 128,
        257..=2048 => 256,
        2049..=4096 => 512,
        _ => 1024,
    };
    let items = units.div_ceil(threads).next_power_of_two().min(ITEMS_MAX);
    let names = ["rms_norm_fast", "rms_norm_reference"];
    let chosen = build.choose(&RMS_NORM, names, &[("hidden", hidden), ("rows", rows)]);
    let chosen = chosen.with(&[("THREADS", threads), ("ITEMS", items), ("UNIT_BYTES", unit)]);
    let threads = chosen.constant("THREADS");
    let per_block = if threads == 32 { SHORT_THREADS / 32 } else { 1 };
    let chosen = chosen.with(&[("ROWS", per_block)]);
    let kernel = chosen.kernel(build.gpu)?;
    let arguments = build.arguments().int(rows).int(hidden).float(eps);
    let launch = match build.request.variant {
        Variant::Reference => kernel.launch(grid_x(rows.div_ceil(8)), [32, 8], arguments),
        Variant::Fast => {
            let block = [threads as u32, per_block as u32];
            kernel.launch(grid_x(rows.div_ceil(per_block)), block, arguments)
        }
    };
    Ok(Launches::new(chosen, vec![launch], Vec::new()))
}
