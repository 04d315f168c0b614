//! `tile_ssm`: the scan along the tokens.

use super::{Chosen, Memory, NORMAL, grid_of, grid_x, param_error, parse, shape_error};
use crate::compile::Config;
use crate::gpu::{Draw, Gpu};
use crate::launch::Arguments;
use crate::program::{PrepareError, Program, Request, Variant};
use holdpoint_ops::ssm::{self, Direction, Merge, ScanInputs, ScanParams, ScanSpec};
use holdpoint_ops::{BuildError, Work};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Params {
    direction: String,
    merge_mode: String,
    clamp_value: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { direction: "forward".to_owned(), merge_mode: "avg".to_owned(), clamp_value: 1e4 }
    }
}

fn plan(request: &Request<'_>) -> Result<ScanSpec, BuildError> {
    let params: Params = parse(request)?;
    let [batch, steps, channels] = *request.shape else {
        return Err(shape_error(request, "tokens must be [B,K,C]"));
    };
    if !params.clamp_value.is_finite() {
        return Err(param_error(request, "clamp_value", "must be finite"));
    }
    Ok(ScanSpec {
        batch,
        steps,
        channels,
        clamp: params.clamp_value.abs() as f32,
        direction: params.direction.parse().map_err(|error| param_error(request, "direction", error))?,
        merge: params.merge_mode.parse().map_err(|error| param_error(request, "merge_mode", error))?,
    })
}

pub(super) fn validate(request: &Request<'_>) -> Result<(), BuildError> {
    plan(request).map(drop)
}

pub(super) fn candidates(_: &Request<'_>) -> Vec<Config> {
    grid_of(&[("THREADS", &[128, 256, 512]), ("ACROSS", &[2, 4, 8]), ("ITEMS", &[2, 4, 8])])
}

/// The scan that walks a sample's whole sequence with one block for some channels.
#[derive(Clone, Copy)]
struct Stream {
    channels: usize,
    items: usize,
    stages: usize,
}

impl Stream {
    /// Channels of a block.
    const WIDTH: usize = 32;

    /// Where it is quicker: one way, rows that can be read in whole words, and blocks for half of the device at least.
    fn of(gpu: &Gpu, request: &Request<'_>, spec: &ScanSpec) -> Option<Self> {
        let (bytes, blocks) = (request.dtype.bytes(), spec.batch * spec.channels.div_ceil(Self::WIDTH));
        let channels = (16 / bytes).min(8);
        let is_whole = spec.channels.is_multiple_of(channels) && request.misalign.is_multiple_of(16);
        let is_wide = 2 * blocks >= gpu.device.multiprocessors as usize;
        let is_meant = request.variant == Variant::Fast && spec.direction != Direction::Bidirectional;
        if !(is_whole && is_wide && is_meant) {
            return None;
        }
        let is_long = spec.steps >= 2048 && blocks <= gpu.device.multiprocessors as usize;
        let ring = |items: usize, stages: usize| 256 * items * stages * channels * bytes;
        let fits =
            |(items, stages): &(usize, usize)| ring(*items, *stages) + (8 << 10) <= gpu.device.shared_bytes;
        let wanted: &[(usize, usize)] = match (bytes, is_long) {
            (2, true) => &[(16, 3), (16, 2), (8, 2)],
            (4, _) => &[(16, 2), (8, 2)],
            _ => &[(8, 2)],
        };
        let (items, stages) = wanted.iter().copied().find(fits)?;
        Some(Self { channels, items, stages })
    }

    /// How many threads lie side by side, and how many channels each has, follows from the element type in the source.
    fn constants(self) -> [(&'static str, usize); 3] {
        [("THREADS", 256), ("ITEMS", self.items), ("STAGES", self.stages)]
    }
}

pub(super) fn build(gpu: &mut Gpu, request: &Request<'_>) -> Result<Program, PrepareError> {
    let spec = plan(request)?;
    let ScanSpec { batch, steps, channels, direction, .. } = spec;
    let way = match direction {
        Direction::Forward => 0,
        Direction::Backward => 1,
        Direction::Bidirectional => 2,
    };
    let sizes = [("batch", batch), ("channels", channels), ("direction", way), ("steps", steps)];
    let stream = Stream::of(gpu, request, &spec);
    let (source, fast) = match stream {
        Some(_) => ("tile_ssm_stream", "tile_ssm_stream"),
        None => ("tile_ssm", "tile_ssm_fast"),
    };
    let mut chosen = Chosen::new(gpu, request, source, [fast, "tile_ssm_reference"], &sizes);
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
    let kernel = chosen.kernel(gpu)?;
    let memory = Memory::new(gpu, request);
    let gain = Draw::Uniform { scale: 1.5, shift: 0.05 };
    let inputs = vec![
        memory.input(spec.tokens_len(), NORMAL)?,
        memory.shared(channels, Draw::Uniform { scale: 0.8, shift: 0.1 })?,
        memory.shared(channels, gain)?,
        memory.shared(channels, gain)?,
        memory.shared(channels, Draw::Normal { scale: 0.1, shift: 0.0 })?,
        memory.shared(channels, Draw::Uniform { scale: 1.0, shift: 0.0 })?,
    ];
    let slots = direction.slots();
    let outputs = vec![
        memory.output("y", &[batch, steps, channels])?,
        memory.output("state", &[batch, slots, channels])?,
    ];
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
    let scratch_bytes = match request.variant {
        Variant::Reference if is_both => 4 * spec.tokens_len(),
        Variant::Fast if chunks > 1 && stream.is_none() => {
            16 + 8 * chunks * batch * channels + 4 * batch * columns
        }
        _ => 0,
    };
    let mut scratch = crate::device::Buffer::new(&gpu.device, scratch_bytes.max(16), 0)?;
    scratch.fill(0)?;
    let scratch_ptr = if scratch_bytes == 0 { 0 } else { scratch.ptr };
    let [tokens, decay, input_gain, output_gain, bias, gate] =
        [0, 1, 2, 3, 4, 5].map(|at: usize| inputs[at].buffer.ptr);
    let merge = match spec.merge {
        Merge::Sum => 0,
        Merge::Avg => 1,
        Merge::Gated => 2,
    };
    let (null, shared) = (0, 0);
    let arguments =
        Arguments::new().ptr(tokens).ptr(decay).ptr(input_gain).ptr(output_gain).ptr(bias).ptr(null);
    let arguments = match stream {
        Some(_) => arguments.buffer(&outputs[0].buffer).buffer(&outputs[1].buffer),
        None => {
            let arguments = arguments.ptr(gate).buffer(&outputs[0].buffer).buffer(&outputs[1].buffer);
            arguments.ptr(scratch_ptr)
        }
    };
    let arguments = arguments.int(batch).int(steps).int(channels).int(shared).int(1);
    let arguments = match stream {
        Some(_) => arguments.float(spec.clamp),
        None => arguments.int(shared).int(merge).float(spec.clamp),
    };
    let mut launches = Vec::new();
    match request.variant {
        Variant::Reference => {
            launches.push(kernel.launch(grid_x((batch * channels).div_ceil(128)), 128, arguments));
        }
        Variant::Fast if stream.is_some() => {
            let bytes = threads * items * constant("STAGES") * lanes * request.dtype.bytes();
            let launch = kernel.launch(grid_x(batch * columns), threads as u32, arguments);
            launches.push(launch.shared(bytes)?);
        }
        Variant::Fast => {
            let blocks = grid_x(chunks * batch * columns);
            if is_both && chunks > 1 {
                let carries = Arguments::new().ptr(tokens).ptr(decay).ptr(input_gain).ptr(bias).ptr(null);
                let carries = carries.ptr(scratch_ptr).int(batch).int(steps).int(channels);
                let carries = carries.int(shared).int(1).float(spec.clamp);
                let first = gpu.kernel(&chosen.unit, "tile_ssm_carries")?;
                launches.push(first.launch(blocks, threads as u32, carries));
            }
            launches.push(kernel.launch(blocks, threads as u32, arguments));
        }
    }
    let elements = spec.tokens_len() as u64;
    let work = Work {
        bytes: request.dtype.bytes() as u64 * (2 * elements + (5 * channels + spec.state_len()) as u64),
        flops: elements * (6 * slots as u64 + if is_both { 3 } else { 0 }),
        items: (batch * steps * channels) as u64,
        item: "tokens",
    };
    let oracle = Box::new(move |rows: std::ops::Range<usize>, inputs: &[Vec<f32>]| {
        let spec = ScanSpec { batch: rows.len(), ..spec };
        let params = ScanParams {
            decay: inputs[1].clone(),
            input_gain: inputs[2].clone(),
            output_gain: inputs[3].clone(),
            state_bias: inputs[4].clone(),
        };
        let given = ScanInputs {
            tokens: &inputs[0],
            forward: &params,
            backward: &params,
            init_state: None,
            merge_gate: Some(&inputs[5]),
        };
        let (mut y, mut state) = (vec![0.0; spec.tokens_len()], vec![0.0; spec.state_len()]);
        ssm::oracle(&spec, &given, &mut y, &mut state);
        vec![y, state]
    });
    Ok(Program::new(chosen, launches, (inputs, outputs, vec![scratch]), batch, oracle, work))
}
