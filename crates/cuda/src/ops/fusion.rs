//! `fusion_gate`: alpha, and alpha with the fused map.

use super::{Chosen, Memory, NORMAL, UNIFORM, grid_of, grid_x, param_error, parse, plain, shape_error};
use crate::compile::Config;
use crate::gpu::Gpu;
use crate::launch::Arguments;
use crate::program::{PrepareError, Program, Request, Variant};
use holdpoint_ops::fusion::{self, Gate, Maps};
use holdpoint_ops::shape::Nchw;
use holdpoint_ops::{BuildError, Work};
use serde::Deserialize;

#[derive(Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Params {
    apply_fusion: bool,
    boundary_log_weight: f64,
    uncertainty_log_weight: f64,
    bias: f64,
}

impl Default for Params {
    fn default() -> Self {
        let Gate { boundary_log_weight, uncertainty_log_weight, bias } = Gate::default();
        Self { apply_fusion: true, boundary_log_weight, uncertainty_log_weight, bias }
    }
}

fn plan(request: &Request<'_>) -> Result<(Nchw, Gate, bool), BuildError> {
    let params: Params = parse(request)?;
    let [batch, channels, height, width] = *request.shape else {
        return Err(shape_error(request, "feature_map must be [B,C,H,W]"));
    };
    let Params { apply_fusion, boundary_log_weight, uncertainty_log_weight, bias } = params;
    if ![boundary_log_weight, uncertainty_log_weight, bias].iter().all(|number| number.is_finite()) {
        return Err(param_error(request, "bias", "weights and bias must be finite"));
    }
    let gate = Gate { boundary_log_weight, uncertainty_log_weight, bias };
    Ok((Nchw { batch, channels, height, width }, gate, apply_fusion))
}

pub(super) fn validate(request: &Request<'_>) -> Result<(), BuildError> {
    plan(request).map(drop)
}

pub(super) fn candidates(_: &Request<'_>) -> Vec<Config> {
    grid_of(&[("THREADS", &[128, 256, 512]), ("ITEMS", &[2, 4, 8]), ("ROUNDS", &[1, 2, 4])])
}

pub(super) fn build(gpu: &mut Gpu, request: &Request<'_>) -> Result<Program, PrepareError> {
    let (dims, gate, fuses) = plan(request)?;
    let names = match fuses {
        true => ["fusion_gate_fast", "fusion_gate_reference"],
        false => ["fusion_alpha_fast", "fusion_alpha_reference"],
    };
    let sizes = [
        ("batch", dims.batch),
        ("channels", dims.channels),
        ("height", dims.height),
        ("n_elements", dims.len()),
        ("width", dims.width),
    ];
    let chosen = Chosen::new(gpu, request, "fusion_gate", names, &sizes).with(&[
        ("THREADS", 256),
        ("ITEMS", 4),
        ("ROUNDS", 1),
    ]);
    let kernel = chosen.kernel(gpu)?;
    let memory = Memory::new(gpu, request);
    let (plane, pixels) = (dims.plane(), dims.batch * dims.plane());
    let mut inputs = vec![memory.input(pixels, UNIFORM)?, memory.input(pixels, UNIFORM)?];
    let mut outputs = vec![memory.output("alpha", &[dims.batch, 1, dims.height, dims.width])?];
    if fuses {
        inputs.push(memory.input(dims.len(), NORMAL)?);
        inputs.push(memory.input(dims.len(), NORMAL)?);
        outputs.push(memory.output("fused", &dims.dims())?);
    }
    let proxies = |arguments: Arguments| arguments.buffer(&inputs[0].buffer).buffer(&inputs[1].buffer);
    let arguments = match fuses {
        true => proxies(Arguments::new().buffer(&inputs[2].buffer).buffer(&inputs[3].buffer))
            .buffer(&outputs[1].buffer)
            .buffer(&outputs[0].buffer)
            .int(dims.batch)
            .int(dims.channels)
            .int(plane),
        false => proxies(Arguments::new()).buffer(&outputs[0].buffer).int(pixels),
    };
    let [w_b, w_u, bias] = gate.weights();
    let arguments = arguments.float(w_b).float(w_u).float(bias);
    let launch = match request.variant {
        Variant::Reference => plain(&kernel, if fuses { dims.len() } else { pixels }, arguments),
        Variant::Fast => {
            let constant = |name| chosen.constant(name);
            let (threads, items, rounds) = (constant("THREADS"), constant("ITEMS"), constant("ROUNDS"));
            let pack = 16 / request.dtype.bytes();
            let per_thread =
                if plane.is_multiple_of(pack) && request.misalign.is_multiple_of(16) { pack } else { 1 };
            let units = plane / per_thread;
            match fuses {
                true => {
                    let x = units.min(threads);
                    let span = threads / x * items * rounds;
                    let grid =
                        [units.div_ceil(x), dims.channels.div_ceil(span).min(65_535), dims.batch.min(65_535)];
                    kernel.launch(grid.map(grid_x), [x as u32, (threads / x) as u32], arguments)
                }
                false => {
                    kernel.launch(grid_x((dims.batch * units).div_ceil(threads)), threads as u32, arguments)
                }
            }
        }
    };
    let (elements, pixels) = (dims.len() as u64, pixels as u64);
    let maps = if fuses { 3 * elements } else { 0 };
    let work = Work {
        bytes: request.dtype.bytes() as u64 * (maps + 3 * pixels),
        flops: maps + 20 * pixels,
        items: if fuses { elements } else { pixels },
        item: "elements",
    };
    let oracle = Box::new(move |rows: std::ops::Range<usize>, inputs: &[Vec<f32>]| {
        let dims = Nchw { batch: rows.len(), ..dims };
        let mut alpha = vec![0.0; dims.batch * dims.plane()];
        if !fuses {
            fusion::alpha_oracle(&gate, &inputs[0], &inputs[1], &mut alpha);
            return vec![alpha];
        }
        let mut fused = vec![0.0; dims.len()];
        let maps =
            Maps { base: &inputs[2], heavy: &inputs[3], boundary: &inputs[0], uncertainty: &inputs[1] };
        fusion::oracle(&gate, &dims, &maps, &mut fused, &mut alpha);
        vec![alpha, fused]
    });
    Ok(Program::new(chosen, vec![launch], (inputs, outputs, Vec::new()), dims.batch, oracle, work))
}
