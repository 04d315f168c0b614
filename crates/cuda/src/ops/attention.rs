//! `attention`: forward, causal or not.

use super::{Chosen, Memory, NORMAL, grid_of, grid_x, parse, shape_error};
use crate::compile::Config;
use crate::dtype::Dtype;
use crate::gpu::Gpu;
use crate::launch::Arguments;
use crate::program::{Output, PrepareError, Program, Request, Variant};
use holdpoint_ops::attention::{self, AttentionSpec};
use holdpoint_ops::{BuildError, Tolerance, Work};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Params {
    causal: bool,
}

/// Head widths that there are kernels for.
const WIDTHS: &[usize] = &[32, 64, 96, 128];

fn plan(request: &Request<'_>) -> Result<(AttentionSpec, usize), BuildError> {
    let Params { causal } = parse(request)?;
    let [batch, heads, steps, width] = *request.shape else {
        return Err(shape_error(request, "q, k and v must be [B,H,S,D]"));
    };
    if !WIDTHS.contains(&width) {
        return Err(shape_error(request, "D must be 32, 64, 96 or 128"));
    }
    Ok((AttentionSpec { heads: batch * heads, steps, width, causal }, batch))
}

pub(super) fn validate(request: &Request<'_>) -> Result<(), BuildError> {
    plan(request).map(drop)
}

/// Which kernel a request takes on a device.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    /// Plain multiplications, for 32-bit floats.
    Fma,
    /// Tensor cores of any generation.
    Mma,
    /// Hopper's own, fed by its copy engine.
    Wgmma,
}

impl Kind {
    fn of(request: &Request<'_>, capability: (i32, i32)) -> Self {
        let is_half = matches!(request.dtype, Dtype::F16 | Dtype::Bf16);
        match request.variant {
            Variant::Reference => Self::Plain,
            Variant::Fast if request.dtype == Dtype::F32 => Self::Fma,
            Variant::Fast if is_half && capability == (9, 0) && request.misalign.is_multiple_of(16) => {
                Self::Wgmma
            }
            Variant::Fast => Self::Mma,
        }
    }
}

pub(super) fn candidates(request: &Request<'_>) -> Vec<Config> {
    match Kind::of(request, (9, 0)) {
        Kind::Wgmma => {
            grid_of(&[("WARPGROUPS", &[2, 3]), ("BLOCK_N", &[64, 96, 128]), ("STAGES", &[2, 3, 4])])
        }
        Kind::Mma => grid_of(&[("WARPS", &[4, 8]), ("BLOCK_N", &[64, 128])]),
        Kind::Plain | Kind::Fma => Vec::new(),
    }
}

pub(super) fn build(gpu: &mut Gpu, request: &Request<'_>) -> Result<Program, PrepareError> {
    let (spec, batch) = plan(request)?;
    let AttentionSpec { heads, steps, width, causal } = spec;
    let sizes = [
        ("batch", batch),
        ("causal", usize::from(causal)),
        ("head_dim", width),
        ("heads", heads / batch),
        ("steps", steps),
    ];
    let kind = Kind::of(request, gpu.device.capability);
    let (source, name) = match kind {
        Kind::Plain => ("attention", "attention_reference"),
        Kind::Fma | Kind::Mma => ("attention", "attention_fast"),
        Kind::Wgmma => ("attention_wgmma", "attention_wgmma"),
    };
    let constants: &[(&str, usize)] = match kind {
        Kind::Plain | Kind::Fma => &[],
        Kind::Mma => &[("WARPS", 4), ("BLOCK_N", 64), ("STAGES", 2)],
        Kind::Wgmma if width <= 64 => &[("WARPGROUPS", 2), ("BLOCK_N", 64), ("STAGES", 4)],
        Kind::Wgmma if width == 96 => &[("WARPGROUPS", 2), ("BLOCK_N", 64), ("STAGES", 3)],
        Kind::Wgmma => &[("WARPGROUPS", 3), ("BLOCK_N", 96), ("STAGES", 3)],
    };
    let chosen = Chosen::new(gpu, request, source, [name; 2], &sizes)
        .with(constants)
        .with(&[("HEAD_DIM", width), ("CAUSAL", usize::from(causal))]);
    let kernel = chosen.kernel(gpu)?;
    let memory = Memory::new(gpu, request);
    let inputs = vec![
        memory.input(spec.len(), NORMAL)?,
        memory.input(spec.len(), NORMAL)?,
        memory.input(spec.len(), NORMAL)?,
    ];
    // 8-bit inputs, 16-bit output: a sum of many values deserves more than 3 bits.
    let out_dtype = if request.dtype == Dtype::E4m3 { Dtype::F16 } else { request.dtype };
    let out_memory = Memory {
        dtype: out_dtype,
        misalign: request.misalign * out_dtype.bytes() / request.dtype.bytes(),
        gpu,
    };
    let output: Output = out_memory.output("out", &[heads, steps, width])?;
    let scale = 1.0 / (width as f32).sqrt();
    let constant = |name| chosen.constant(name);
    let arguments = match kind {
        Kind::Wgmma => {
            let columns = if width.is_multiple_of(64) { 64 } else { 32 };
            let mut arguments = Arguments::new();
            for (input, rows) in inputs.iter().zip([64, constant("BLOCK_N"), constant("BLOCK_N")]) {
                arguments =
                    arguments.map(&input.buffer, request.dtype, [heads, steps, width], [rows, columns])?;
            }
            arguments
        }
        _ => inputs.iter().fold(Arguments::new(), |arguments, input| arguments.buffer(&input.buffer)),
    };
    let arguments = arguments.buffer(&output.buffer).int(heads).int(steps).float(scale);
    let launch = match kind {
        Kind::Plain => kernel.launch(grid_x((heads * steps).div_ceil(4)), 128, arguments),
        Kind::Fma => {
            let shared = (128 * (width + 4) + 64 * 68) * 4;
            kernel.launch(grid_x(steps.div_ceil(64) * heads), 256, arguments).shared(shared)?
        }
        Kind::Mma => {
            let warps = constant("WARPS");
            let shared = constant("STAGES") * constant("BLOCK_N") * width * 4;
            let blocks = steps.div_ceil(16 * warps) * heads;
            kernel.launch(grid_x(blocks), 32 * warps as u32, arguments).shared(shared)?
        }
        Kind::Wgmma => {
            let (groups, keys, stages) = (constant("WARPGROUPS"), constant("BLOCK_N"), constant("STAGES"));
            let shared = 4 * stages * keys * width + groups * 128 * width + 32 * stages + 8 * groups + 24;
            let blocks = steps.div_ceil(64 * groups) * heads;
            kernel.launch(grid_x(blocks), 128 * groups as u32, arguments).shared(shared)?
        }
    };
    let pairs = (heads * if causal { steps * (steps + 1) / 2 } else { steps * steps }) as u64;
    let elements = spec.len() as u64;
    let work = Work {
        bytes: elements * (3 * request.dtype.bytes() + out_dtype.bytes()) as u64,
        flops: 4 * pairs * width as u64,
        items: (batch * steps) as u64,
        item: "tokens",
    };
    let oracle = Box::new(move |rows: std::ops::Range<usize>, inputs: &[Vec<f32>]| {
        let spec = AttentionSpec { heads: rows.len(), ..spec };
        let (mut scores, mut out) = (vec![0.0; spec.steps], vec![0.0; spec.len()]);
        attention::oracle(&spec, &inputs[0], &inputs[1], &inputs[2], &mut scores, &mut out);
        vec![out]
    });
    let program = Program::new(chosen, vec![launch], (inputs, vec![output], Vec::new()), heads, oracle, work);
    // f32 sums over D and S, and exponentials of them, against f64: as on the CPU.
    let tolerance = (request.dtype == Dtype::F32).then_some(Tolerance::new(1e-5, 1e-4));
    Ok(Program { tolerance, ..program })
}
