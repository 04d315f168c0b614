//! `fault`: what goes wrong on purpose, to show that it is seen.

use super::{Chosen, Memory, NORMAL, parse, shape_error};
use crate::dtype::Dtype;
use crate::gpu::Gpu;
use crate::launch::Arguments;
use crate::program::{PrepareError, Program, Request};
use holdpoint_ops::{BuildError, Work};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// What goes wrong.
    #[serde(default)]
    kind: Kind,
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// A write to an address that is not there.
    #[default]
    Address,
    /// A kernel that does not end.
    Hang,
    /// More memory than the device has.
    Memory,
    /// Half of the output stays unwritten.
    Unwritten,
    /// One value is wrong.
    Wrong,
}

pub(super) fn validate(request: &Request<'_>) -> Result<(), BuildError> {
    parse::<Params>(request)?;
    match request.shape {
        [_] => Ok(()),
        _ => Err(shape_error(request, "one size is wanted, [N]")),
    }
}

pub(super) fn build(gpu: &mut Gpu, request: &Request<'_>) -> Result<Program, PrepareError> {
    let Params { kind } = parse(request)?;
    let count = request.shape[0];
    if kind == Kind::Memory {
        let memory = Memory { gpu, dtype: Dtype::F32, misalign: 0 };
        // Half a pebibyte: more than any device has.
        memory.elements(1 << 47)?;
    }
    let name = if kind == Kind::Hang { "fault_hang" } else { "fault_address" };
    let chosen = match kind {
        Kind::Address | Kind::Hang => Chosen::new(gpu, request, "fault", [name; 2], &[]),
        _ => Chosen::new(gpu, request, "copy", ["copy_reference"; 2], &[]),
    };
    let kernel = chosen.kernel(gpu)?;
    let memory = Memory::new(gpu, request);
    let (input, output) = (memory.input(count, NORMAL)?, memory.output("out", &[count])?);
    let launches = match kind {
        Kind::Address | Kind::Hang => vec![kernel.launch(1, 1, Arguments::new().buffer(&output.buffer))],
        _ => {
            let copied = if kind == Kind::Unwritten { count / 2 } else { count };
            let arguments = Arguments::new().buffer(&input.buffer).buffer(&output.buffer).int(copied);
            let mut launches = vec![super::plain(&kernel, count, arguments)];
            if kind == Kind::Wrong {
                // The first value once more, in place of the last.
                let last = output.buffer.ptr + ((count - 1) * request.dtype.bytes()) as u64;
                launches.push(super::plain(
                    &kernel,
                    1,
                    Arguments::new().buffer(&input.buffer).ptr(last).int(1),
                ));
            }
            launches
        }
    };
    let work = Work { bytes: 0, flops: 0, items: 1, item: "faults" };
    let oracle = Box::new(|_, inputs: &[Vec<f32>]| vec![inputs[0].clone()]);
    Ok(Program::new(chosen, launches, (vec![input], vec![output], Vec::new()), 1, oracle, work))
}
