//! The scan on a device: in pieces of the sequence, or streamed where there are enough blocks.

use super::cpu::{Direction, Merge, ScanSpec};
use crate::prelude::*;

const HEADERS: &[(&str, &str)] = &[COMMON, UNITS, ("ssm_scan.cuh", include_str!("ssm_scan.cuh"))];
static TILE_SSM: Source = Source { name: "tile_ssm", text: include_str!("tile_ssm.cu"), headers: HEADERS };
static STREAM: Source =
    Source { name: "tile_ssm_stream", text: include_str!("tile_ssm_stream.cu"), headers: HEADERS };

// Few tokens, many, and both ways.
pub(super) const KERNELS: &[KernelFile] = &[
    KernelFile::new(
        &TILE_SSM,
        &[
            "ACROSS=2 BLOCKS=1 CHANNELS=4 DIRECTION=0 ITEMS=2 THREADS=256",
            "ACROSS=16 BLOCKS=3 CHANNELS=4 DIRECTION=0 ITEMS=16 THREADS=256",
            "ACROSS=2 BLOCKS=1 CHANNELS=4 DIRECTION=1 ITEMS=2 THREADS=256",
            "ACROSS=16 BLOCKS=3 CHANNELS=4 DIRECTION=1 ITEMS=16 THREADS=256",
            "ACROSS=8 CHANNELS=4 DIRECTION=2 ITEMS=4 THREADS=256",
        ],
    ),
    KernelFile::new(
        &STREAM,
        &[
            "DIRECTION=0 ITEMS=16 STAGES=3 THREADS=256",
            "DIRECTION=0 ITEMS=16 STAGES=2 THREADS=256",
            "DIRECTION=0 ITEMS=8 STAGES=2 THREADS=256",
            "DIRECTION=1 ITEMS=16 STAGES=3 THREADS=256",
            "DIRECTION=1 ITEMS=16 STAGES=2 THREADS=256",
            "DIRECTION=1 ITEMS=8 STAGES=2 THREADS=256",
        ],
    ),
];

/// Scans a sample's whole sequence with one block per group of channels.
#[derive(Clone, Copy)]
struct Stream {
    channels: usize,
    items: usize,
    stages: usize,
}

impl Stream {
    /// Channels of a block.
    const WIDTH: usize = 32;

    /// Used where it is faster: one direction, rows that can be read in whole words, and blocks for at least half of the device.
    fn choose(build: &Build<'_>, spec: &ScanSpec) -> Option<Self> {
        let (device, request) = (&build.gpu.device, build.request);
        let (bytes, blocks) = (build.dtype.bytes(), spec.batch * spec.channels.div_ceil(Self::WIDTH));
        let channels = (16 / bytes).min(8);
        let is_whole = spec.channels.is_multiple_of(channels) && request.misalign.is_multiple_of(16);
        let is_wide = 2 * blocks >= device.multiprocessors as usize;
        let is_meant = request.variant == Variant::Fast && spec.direction != Direction::Bidirectional;
        if !(is_whole && is_wide && is_meant) {
            return None;
        }
        let is_long = spec.steps >= 2048 && blocks <= device.multiprocessors as usize;
        let ring = |items: usize, stages: usize| 256 * items * stages * channels * bytes;
        let fits =
            |(items, stages): &(usize, usize)| ring(*items, *stages) + (8 << 10) <= device.shared_bytes;
        let wanted: &[(usize, usize)] = match (bytes, is_long) {
            (2, true) => &[(16, 3), (16, 2), (8, 2)],
            (4, _) => &[(16, 2), (8, 2)],
            _ => &[(8, 2)],
        };
        let (items, stages) = wanted.iter().copied().find(fits)?;
        Some(Self { channels, items, stages })
    }

    /// Threads side by side and channels per thread follow from the element type in the source.
    fn constants(self) -> [(&'static str, usize); 3] {
        [("THREADS", 256), ("ITEMS", self.items), ("STAGES", self.stages)]
    }
}

pub(super) fn launches(spec: &ScanSpec, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
    let ScanSpec { batch, steps, channels, direction, .. } = *spec;
    let variant = build.request.variant;
    let way = match direction {
        Direction::Forward => 0,
        Direction::Backward => 1,
        Direction::Bidirectional => 2,
    };
    let sizes = [("batch", batch), ("channels", channels), ("direction", way), ("steps", steps)];
    let stream = Stream::choose(build, spec);
    let (source, fast) = match stream {
        Some(_) => (&STREAM, "tile_ssm_stream"),
        None => (&TILE_SSM, "tile_ssm_fast"),
    };
    let mut chosen = build.choose(source, [fast, "tile_ssm_reference"], &sizes);
    // Found by tuning on an H200: few tokens need many threads along them, many want wide rows and few blocks.
    chosen = match (stream, way, steps) {
        (Some(stream), _, _) => chosen.with(&stream.constants()),
        (None, 2, _) => chosen.with(&[("THREADS", 256), ("ACROSS", 8), ("CHANNELS", 4), ("ITEMS", 4)]),
        (None, _, ..=256) => {
            chosen.with(&[("THREADS", 256), ("ACROSS", 2), ("CHANNELS", 4), ("ITEMS", 2), ("BLOCKS", 1)])
        }
        _ => chosen.with(&[("THREADS", 256), ("ACROSS", 16), ("CHANNELS", 4), ("ITEMS", 16), ("BLOCKS", 3)]),
    };
    chosen.unit.config.insert("DIRECTION".to_owned(), way as i64);
    let kernel = chosen.kernel(build.gpu)?;
    let is_both = direction == Direction::Bidirectional;
    let constant = |name| chosen.constant(name);
    let (threads, items) = (constant("THREADS"), constant("ITEMS"));
    let lanes = stream.map_or(constant("CHANNELS"), |stream| stream.channels);
    let across = match chosen.unit.config.get("ACROSS") {
        Some(_) => constant("ACROSS"),
        None => Stream::WIDTH / lanes,
    };
    let width = across * lanes;
    let chunk = threads / across * items;
    let (chunks, columns) = (steps.div_ceil(chunk).max(1), channels.div_ceil(width));
    let scratch_bytes = match variant {
        Variant::Reference if is_both => 4 * spec.tokens_len(),
        Variant::Fast if chunks > 1 && stream.is_none() => {
            16 + 8 * chunks * batch * channels + 4 * batch * columns
        }
        _ => 0,
    };
    let mut scratch = build.scratch(scratch_bytes.max(16))?;
    scratch.fill(0)?;
    let scratch_ptr = if scratch_bytes == 0 { 0 } else { scratch.ptr };
    let [tokens, decay, input_gain, output_gain, bias, gate] =
        [0, 1, 2, 3, 4, 5].map(|at: usize| build.input(at));
    let merge = match spec.merge {
        Merge::Sum => 0,
        Merge::Avg => 1,
        Merge::Gated => 2,
    };
    let (null, shared) = (0, 0);
    let arguments =
        Arguments::new().ptr(tokens).ptr(decay).ptr(input_gain).ptr(output_gain).ptr(bias).ptr(null);
    let arguments = match stream {
        Some(_) => arguments.ptr(build.output(0)).ptr(build.output(1)),
        None => arguments.ptr(gate).ptr(build.output(0)).ptr(build.output(1)).ptr(scratch_ptr),
    };
    let arguments = arguments.int(batch).int(steps).int(channels).int(shared).int(1);
    let arguments = match stream {
        Some(_) => arguments.float(spec.clamp),
        None => arguments.int(shared).int(merge).float(spec.clamp),
    };
    let mut launches = Vec::new();
    match variant {
        Variant::Reference => {
            launches.push(kernel.launch(grid_x((batch * channels).div_ceil(128)), 128, arguments));
        }
        Variant::Fast if stream.is_some() => {
            let bytes = threads * items * constant("STAGES") * lanes * build.dtype.bytes();
            let launch = kernel.launch(grid_x(batch * columns), threads as u32, arguments);
            launches.push(launch.with_shared(bytes)?);
        }
        Variant::Fast => {
            let blocks = grid_x(chunks * batch * columns);
            if is_both && chunks > 1 {
                let carries = Arguments::new().ptr(tokens).ptr(decay).ptr(input_gain).ptr(bias).ptr(null);
                let carries = carries.ptr(scratch_ptr).int(batch).int(steps).int(channels);
                let carries = carries.int(shared).int(1).float(spec.clamp);
                let first = build.gpu.kernel(&chosen.unit, "tile_ssm_carries")?;
                launches.push(first.launch(blocks, threads as u32, carries));
            }
            launches.push(kernel.launch(blocks, threads as u32, arguments));
        }
    }
    Ok(Launches::new(chosen, launches, vec![scratch]))
}
