//! `copy`: what memory can do at most.

use super::{Chosen, Memory, NORMAL, grid_x, parse, plain, shape_error};
use crate::gpu::Gpu;
use crate::launch::Arguments;
use crate::program::{PrepareError, Program, Request, Variant};
use holdpoint_workloads::{BuildError, Work};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {}

fn count(request: &Request<'_>) -> Result<usize, BuildError> {
    let Params {} = parse(request)?;
    match *request.shape {
        [count] => Ok(count),
        _ => Err(shape_error(request, "one size is wanted, [N]")),
    }
}

pub(super) fn validate(request: &Request<'_>) -> Result<(), BuildError> {
    count(request).map(drop)
}

pub(super) fn build(gpu: &mut Gpu, request: &Request<'_>) -> Result<Program, PrepareError> {
    let count = count(request)?;
    let chosen = Chosen::new(gpu, request, "copy", ["copy_fast", "copy_reference"], &[("elements", count)])
        .with(&[("THREADS", 512), ("ITEMS", 4)]);
    let kernel = chosen.kernel(gpu)?;
    let memory = Memory::new(gpu, request);
    let (input, output) = (memory.input(count, NORMAL)?, memory.output("out", &[count])?);
    let arguments = Arguments::new().buffer(&input.buffer).buffer(&output.buffer).int(count);
    let launch = match request.variant {
        Variant::Reference => plain(&kernel, count, arguments),
        Variant::Fast => {
            let (threads, items) = (chosen.constant("THREADS"), chosen.constant("ITEMS"));
            let packs = count.div_ceil(16 / request.dtype.bytes());
            kernel.launch(grid_x(packs.div_ceil(threads * items)), threads as u32, arguments)
        }
    };
    let bytes = 2 * (count * request.dtype.bytes()) as u64;
    let work = Work { bytes, flops: 0, items: count as u64, item: "elements" };
    let oracle = Box::new(|_, inputs: &[Vec<f32>]| vec![inputs[0].clone()]);
    Ok(Program::new(chosen, vec![launch], (vec![input], vec![output], Vec::new()), 1, oracle, work))
}
