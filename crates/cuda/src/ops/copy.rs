//! `copy`: what memory can do at most.

use super::{Chosen, Memory, NORMAL, grid_x, param_error, parse, plain, shape_error};
use crate::gpu::Gpu;
use crate::launch::Arguments;
use crate::program::{PrepareError, Program, Request, Variant};
use holdpoint_ops::{BuildError, Work};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Params {
    /// Times that it is copied in one launch; several show what the second-level cache can do, where all of it fits.
    rounds: usize,
}

impl Default for Params {
    fn default() -> Self {
        Self { rounds: 1 }
    }
}

/// Blocks of 512 threads and 40 registers that a multiprocessor of any architecture runs at the same time.
const BLOCKS_AT_ONCE: usize = 2;

/// How many elements, and how often.
fn count(request: &Request<'_>) -> Result<(usize, usize), BuildError> {
    let Params { rounds } = parse(request)?;
    if !(1..=1 << 20).contains(&rounds) {
        return Err(param_error(request, "rounds", "1 to 2^20 are wanted"));
    }
    match *request.shape {
        [count] => Ok((count, rounds)),
        _ => Err(shape_error(request, "one size is wanted, [N]")),
    }
}

pub(super) fn validate(request: &Request<'_>) -> Result<(), BuildError> {
    count(request).map(drop)
}

pub(super) fn build(gpu: &mut Gpu, request: &Request<'_>) -> Result<Program, PrepareError> {
    let (count, rounds) = count(request)?;
    // The plain kernel copies once.
    let rounds = if request.variant == Variant::Fast { rounds } else { 1 };
    let fast = if rounds > 1 { "copy_rounds" } else { "copy_fast" };
    let chosen = Chosen::new(gpu, request, "copy", [fast, "copy_reference"], &[("elements", count)])
        .with(&[("THREADS", 512), ("ITEMS", 4)]);
    let kernel = chosen.kernel(gpu)?;
    let memory = Memory::new(gpu, request);
    let (input, output) = (memory.input(count, NORMAL)?, memory.output("out", &[count])?);
    let arguments = Arguments::new().buffer(&input.buffer).buffer(&output.buffer).int(count);
    let arguments = if rounds > 1 { arguments.int(rounds) } else { arguments };
    let launch = match request.variant {
        Variant::Reference => plain(&kernel, count, arguments),
        Variant::Fast => {
            let (threads, items) = (chosen.constant("THREADS"), chosen.constant("ITEMS"));
            let packs = count.div_ceil(16 / request.dtype.bytes());
            let blocks = packs.div_ceil(threads * items);
            let at_once = BLOCKS_AT_ONCE * gpu.device.multiprocessors as usize;
            let blocks = if rounds > 1 { blocks.min(at_once) } else { blocks };
            kernel.launch(grid_x(blocks), threads as u32, arguments)
        }
    };
    let bytes = 2 * (rounds * count * request.dtype.bytes()) as u64;
    let work = Work { bytes, flops: 0, items: count as u64, item: "elements" };
    let oracle = Box::new(|_, inputs: &[Vec<f32>]| vec![inputs[0].clone()]);
    Ok(Program::new(chosen, vec![launch], (vec![input], vec![output], Vec::new()), 1, oracle, work))
}
