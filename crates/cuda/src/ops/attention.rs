//! `attention`: forward, causal or not.

use super::{Chosen, Memory, NORMAL, grid_of, grid_x, parse, shape_error};
use crate::compile::Config;
use crate::dtype::Dtype;
use crate::gpu::Gpu;
use crate::launch::Arguments;
use crate::program::{Output, PrepareError, Program, Request, Variant};
use holdpoint_workloads::attention::{self, AttentionSpec};
use holdpoint_workloads::{BuildError, Work};
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

pub(super) fn candidates(_: &Request<'_>) -> Vec<Config> {
    grid_of(&[("WARPS", &[4, 8, 12]), ("BLOCK_N", &[64, 96, 128])])
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
    let names = ["attention_fast", "attention_reference"];
    let mut chosen = Chosen::new(gpu, request, "attention", names, &sizes);
    chosen.unit.config.insert("HEAD_DIM".to_owned(), width as i64);
    chosen.unit.config.insert("CAUSAL".to_owned(), i64::from(causal));
    let kernel = chosen.kernel(gpu)?;
    let memory = Memory::new(gpu, request);
    let inputs = vec![
        memory.input(spec.len(), NORMAL)?,
        memory.input(spec.len(), NORMAL)?,
        memory.input(spec.len(), NORMAL)?,
    ];
    // 8-bit inputs, 16-bit output: a sum of many values deserves more than 3 bits.
    let out_dtype = if request.dtype == Dtype::E4m3 { Dtype::F16 } else { request.dtype };
    let out_memory = Memory { dtype: out_dtype, ..Memory::new(gpu, request) };
    let output: Output = out_memory.output("out", &[heads, steps, width])?;
    let arguments = Arguments::new()
        .buffer(&inputs[0].buffer)
        .buffer(&inputs[1].buffer)
        .buffer(&inputs[2].buffer)
        .buffer(&output.buffer)
        .int(heads)
        .int(steps)
        .float(1.0 / (width as f32).sqrt());
    let launch = match request.variant {
        Variant::Reference => kernel.launch(grid_x((heads * steps).div_ceil(4)), 128, arguments),
        Variant::Fast if request.dtype == Dtype::F32 => {
            let shared = (128 * (width + 4) + 64 * 68) * 4;
            kernel.launch(grid_x(steps.div_ceil(64) * heads), 256, arguments).shared(shared)?
        }
        Variant::Fast => {
            let is_hopper = gpu.device.capability == (9, 0);
            let warps = chosen.constant("WARPS", 8);
            let (keys, stages) =
                (chosen.constant("BLOCK_N", 64), chosen.constant("STAGES", if is_hopper { 4 } else { 3 }));
            let blocks = steps.div_ceil(16 * warps) * heads;
            let shared = stages * keys * width * 4 + 1024;
            kernel.launch(grid_x(blocks), 32 * warps as u32, arguments).shared(shared)?
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
    Ok(Program::new(chosen, vec![launch], (inputs, vec![output], Vec::new()), heads, oracle, work))
}
