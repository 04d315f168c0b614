//! The plain version: one kernel per layer, through buffers of 32-bit floats.

use super::{FF_PATH, Parts, unit};
use crate::device::{Gpu, PLAIN_THREADS, grid_x};
use crate::shape::Nchw;
use holdpoint_cuda::{Arguments, Buffer, CudaError, Dtype, Launch};

/// The launches, and the scratch buffers between them.
pub(super) fn launches(
    gpu: &mut Gpu,
    dtype: Dtype,
    parts: &Parts<'_>,
    tokens: u64,
) -> Result<(Vec<Launch>, Vec<Buffer>), CudaError> {
    let Nchw { batch, channels, height, width } = parts.dims;
    let slots_max = batch * parts.tiles[0].max(parts.tiles[1]);
    let values_max =
        (0..2).map(|l| batch * parts.tiles[l] * channels * parts.edges[l].pow(2)).max().unwrap_or(0);
    let floats = |count: usize| Buffer::new(&gpu.device, 4 * count.max(1), 0);
    let scratch = vec![
        floats(slots_max * channels)?,
        floats(slots_max * channels)?,
        floats(slots_max * 2 * channels)?,
        floats(values_max)?,
        floats(values_max)?,
        floats(2 * values_max)?,
        floats(2 * slots_max)?,
    ];
    let [mixed, hidden, film, modulated, convolved, wide, moments] =
        [0, 1, 2, 3, 4, 5, 6].map(|at: usize| scratch[at].ptr);
    let mut launches = Vec::new();
    gpu.look_for(&[0, 1].map(|level| unit(&FF_PATH, dtype, level, &[])))?;
    let mut push = |gpu: &mut Gpu, level: usize, name: &str, count: usize, arguments: Arguments| {
        let kernel = gpu.kernel(&unit(&FF_PATH, dtype, level, &[]), name)?;
        let blocks =
            if name == "ff_moments_reference" { count } else { count.div_ceil(PLAIN_THREADS as usize) };
        launches.push(kernel.launch(grid_x(blocks), PLAIN_THREADS, arguments));
        Ok::<_, CudaError>(())
    };
    let arguments = Arguments::new().ptr(parts.dense).int(batch).int(channels).int(height).int(width);
    let count = parts.dims.len().max(4 * batch * channels);
    push(gpu, 0, "ff_begin_reference", count, parts.begin(arguments))?;
    for level in 0..2 {
        let (tiles, edge) = (parts.tiles[level], parts.edges[level]);
        if tiles == 0 {
            continue;
        }
        let (slots, values) = (batch * tiles, batch * tiles * channels * edge * edge);
        let weights = &parts.weights[level];
        let from_map = || Arguments::new().ptr(parts.level_map(level)).ptr(parts.ids[level]);
        let arguments = parts.sizes(from_map(), level).int(edge).ptr(tokens);
        push(gpu, level, "ff_tokens_reference", slots * channels, arguments)?;
        let arguments =
            Arguments::new().ptr(tokens).buffer(&parts.scans[level]).int(batch).int(tiles).int(channels);
        let arguments = arguments.ptr(mixed).ptr(parts.level_states(level)).int(4 * channels);
        push(gpu, level, "ff_scan_reference", batch * channels, arguments)?;
        let arguments = Arguments::new().ptr(mixed).buffer(weights).int(slots).int(channels).ptr(hidden);
        push(gpu, level, "ff_hidden_reference", slots * channels, arguments)?;
        let arguments = Arguments::new().ptr(hidden).buffer(weights).int(slots).int(channels).ptr(film);
        push(gpu, level, "ff_film_reference", 2 * slots * channels, arguments)?;
        let arguments = parts.sizes(from_map().ptr(film), level).int(edge).ptr(modulated);
        push(gpu, level, "ff_modulate_reference", values, arguments)?;
        let layer = |input: u64, output: u64| {
            Arguments::new().ptr(input).buffer(weights).int(slots).int(channels).int(edge).ptr(output)
        };
        push(gpu, level, "ff_depthwise_reference", values, layer(modulated, convolved))?;
        push(gpu, level, "ff_pointwise_reference", 2 * values, layer(convolved, wide))?;
        let arguments = Arguments::new().ptr(wide).int(channels).int(edge).ptr(moments);
        push(gpu, level, "ff_moments_reference", slots, arguments)?;
        let arguments = from_map().ptr(modulated).ptr(wide).ptr(moments).buffer(weights);
        let arguments = parts.proxies(parts.sizes(arguments, level).int(edge), level);
        let arguments =
            arguments.ptr(parts.heavy).ptr(parts.level_detail(level)).ptr(parts.level_unrounded(level));
        push(gpu, level, "ff_fuse_reference", values, arguments)?;
    }
    Ok((launches, scratch))
}
