//! `fma`, `mma` and `launch`: what arithmetic, tensor cores and launches can do at most.

use super::{Chosen, Memory, UNIFORM, grid_x, param_error, parse, plain, shape_error};
use crate::dtype::Dtype;
use crate::gpu::Gpu;
use crate::launch::Arguments;
use crate::program::{PrepareError, Program, Request, Variant};
use holdpoint_ops::fma::{ADDEND, FACTOR};
use holdpoint_ops::{BuildError, Tolerance, Work};
use serde::Deserialize;

/// Of one tile of `mma`, as its kernel has them: rows of either side, and bytes of a row.
const ROWS: usize = 64;
const COLUMNS: usize = 128;
const ROW_BYTES: usize = 128;

/// Why `mma` in 8 bits is not offered on Blackwell's large parts: the instruction that it uses would convert to fp16 there.
const NO_FP8_MMA: &str = "fp8_mma_unsupported";

/// What every block of `launch` writes; every element type has it.
const VALUE: f32 = 3.0;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Params {
    /// How often each value, or each tile, is multiplied.
    rounds: usize,
}

impl Default for Params {
    fn default() -> Self {
        Self { rounds: 4096 }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoParams {}

fn count(request: &Request<'_>, wanted: &str) -> Result<usize, BuildError> {
    match *request.shape {
        // Blocks are counted in 32 bits.
        [count] if u32::try_from(count).is_ok() => Ok(count),
        _ => Err(shape_error(request, wanted)),
    }
}

fn rounds(request: &Request<'_>) -> Result<usize, BuildError> {
    let Params { rounds } = parse(request)?;
    if (1..=1 << 24).contains(&rounds) {
        Ok(rounds)
    } else {
        Err(param_error(request, "rounds", "1 to 2^24 are wanted"))
    }
}

pub(super) fn validate_fma(request: &Request<'_>) -> Result<(), BuildError> {
    rounds(request)?;
    count(request, "one size is wanted, [values]")?;
    match request.dtype {
        Dtype::F32 => Ok(()),
        _ => Err(param_error(request, "dtype", "only f32; `mma` has the others")),
    }
}

pub(super) fn build_fma(gpu: &mut Gpu, request: &Request<'_>) -> Result<Program, PrepareError> {
    let (count, rounds) = (request.shape[0], rounds(request)?);
    let chosen = Chosen::new(gpu, request, "fma", ["fma_fast", "fma_reference"], &[("elements", count)])
        .with(&[("THREADS", 256), ("CHAINS", 8)]);
    let kernel = chosen.kernel(gpu)?;
    let memory = Memory::new(gpu, request);
    let (input, output) = (memory.input(count, UNIFORM)?, memory.output("out", &[count])?);
    let arguments = Arguments::new().buffer(&input.buffer).buffer(&output.buffer).int(count).int(rounds);
    let arguments = arguments.float(FACTOR).float(ADDEND);
    let launch = match request.variant {
        Variant::Reference => plain(&kernel, count, arguments),
        Variant::Fast => {
            let (threads, chains) = (chosen.constant("THREADS"), chosen.constant("CHAINS"));
            kernel.launch(grid_x(count.div_ceil(threads * chains)), threads as u32, arguments)
        }
    };
    let steps = (count * rounds) as u64;
    let work = Work { bytes: 8 * count as u64, flops: 2 * steps, items: steps, item: "steps" };
    let oracle = Box::new(move |_, inputs: &[Vec<f32>]| {
        vec![inputs[0].iter().map(|x| holdpoint_ops::fma::steps(*x, rounds)).collect()]
    });
    Ok(Program::new(chosen, vec![launch], (vec![input], vec![output], Vec::new()), count, oracle, work))
}

pub(super) fn validate_mma(request: &Request<'_>) -> Result<(), BuildError> {
    rounds(request)?;
    count(request, "one size is wanted, [tiles]").map(drop)
}

pub(super) fn build_mma(gpu: &mut Gpu, request: &Request<'_>) -> Result<Program, PrepareError> {
    let (tiles, dtype) = (request.shape[0], request.dtype);
    let (major, _) = gpu.device.capability;
    if dtype == Dtype::E4m3 && (10..12).contains(&major) && request.variant == Variant::Fast {
        return Err(PrepareError::Skipped(NO_FP8_MMA.to_owned()));
    }
    let depth = ROW_BYTES / dtype.bytes();
    let chosen = Chosen::new(gpu, request, "mma", ["mma_fast", "mma_reference"], &[("tiles", tiles)]);
    let kernel = chosen.kernel(gpu)?;
    let memory = Memory::new(gpu, request);
    // All of one sign: what is left of a difference would have few right digits, whatever tensor cores do.
    let inputs =
        vec![memory.input(tiles * ROWS * depth, UNIFORM)?, memory.input(tiles * COLUMNS * depth, UNIFORM)?];
    let sums =
        Memory { gpu, dtype: Dtype::F32, misalign: request.misalign * Dtype::F32.bytes() / dtype.bytes() };
    let output = sums.output("out", &[tiles, ROWS, COLUMNS])?;
    // The plain kernel multiplies once.
    let rounds = if request.variant == Variant::Fast { rounds(request)? } else { 1 };
    let arguments = inputs.iter().fold(Arguments::new(), |arguments, input| arguments.buffer(&input.buffer));
    let arguments = arguments.buffer(&output.buffer).int(tiles).int(rounds);
    let launch = match request.variant {
        Variant::Reference => plain(&kernel, tiles * ROWS * COLUMNS, arguments),
        Variant::Fast => {
            let threads = if gpu.device.capability == (9, 0) { 128 } else { 256 };
            kernel.launch(grid_x(tiles), threads, arguments)
        }
    };
    let products = (tiles * rounds) as u64;
    let work = Work {
        bytes: (tiles * ((ROWS + COLUMNS) * ROW_BYTES + 4 * ROWS * COLUMNS)) as u64,
        flops: 2 * products * (ROWS * COLUMNS * depth) as u64,
        items: products,
        item: "products",
    };
    let oracle = Box::new(move |rows: std::ops::Range<usize>, inputs: &[Vec<f32>]| {
        let mut out = Vec::with_capacity(rows.len() * ROWS * COLUMNS);
        for tile in 0..rows.len() {
            let (a, b) =
                (&inputs[0][tile * ROWS * depth..][..ROWS * depth], &inputs[1][tile * COLUMNS * depth..]);
            for row in a.chunks(depth) {
                out.extend(b.chunks(depth).take(COLUMNS).map(|column| dot(row, column)));
            }
        }
        vec![out]
    });
    let mut program =
        Program::new(chosen, vec![launch], (inputs, vec![output], Vec::new()), tiles, oracle, work);
    // fp32 elements lose their last 13 bits; 8-bit products are cut to 14 bits or so of the sum they join; sums are cut off, not rounded.
    program.tolerance = Some(match dtype {
        Dtype::F32 => Tolerance::new(1e-3, 4e-3),
        Dtype::F16 | Dtype::Bf16 => Tolerance::new(1e-4, 1e-4),
        Dtype::E4m3 => Tolerance::new(1e-2, 2e-2),
    });
    Ok(program)
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>() as f32
}

pub(super) fn validate_launch(request: &Request<'_>) -> Result<(), BuildError> {
    let NoParams {} = parse(request)?;
    count(request, "one size is wanted, [blocks]").map(drop)
}

pub(super) fn build_launch(gpu: &mut Gpu, request: &Request<'_>) -> Result<Program, PrepareError> {
    let blocks = request.shape[0];
    let chosen = Chosen::new(gpu, request, "launch", ["launch"; 2], &[("blocks", blocks)]);
    let kernel = chosen.kernel(gpu)?;
    let output = Memory::new(gpu, request).output("out", &[blocks])?;
    let launch = kernel.launch(grid_x(blocks), 32, Arguments::new().buffer(&output.buffer).float(VALUE));
    let work = Work { bytes: 0, flops: 0, items: 1, item: "launches" };
    let oracle = Box::new(move |rows: std::ops::Range<usize>, _: &[Vec<f32>]| vec![vec![VALUE; rows.len()]]);
    Ok(Program::new(chosen, vec![launch], (Vec::new(), vec![output], Vec::new()), blocks, oracle, work))
}
