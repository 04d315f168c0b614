//! The gate on a device: alpha, and alpha with the fused map.

use super::FusionGate;
use crate::prelude::*;

static FUSION_GATE: Source =
    Source { name: "fusion_gate", text: include_str!("fusion_gate.cu"), headers: &[COMMON, UNITS] };

pub(super) const KERNELS: &[KernelFile] = &[KernelFile::new(&FUSION_GATE, &["ITEMS=4 ROUNDS=1 THREADS=256"])];

pub(super) fn launches(op: &FusionGate, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
    let FusionGate { dims, gate, is_fused: fuses } = *op;
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
    let chosen =
        build.choose(&FUSION_GATE, names, &sizes).with(&[("THREADS", 256), ("ITEMS", 4), ("ROUNDS", 1)]);
    let kernel = chosen.kernel(build.gpu)?;
    let (plane, pixels) = (dims.plane(), dims.batch * dims.plane());
    let arguments = match fuses {
        true => build.arguments().int(dims.batch).int(dims.channels).int(plane),
        false => build.arguments().int(pixels),
    };
    let [w_b, w_u, bias] = gate.weights();
    let arguments = arguments.float(w_b).float(w_u).float(bias);
    let launch = match build.request.variant {
        Variant::Reference => plain_launch(&kernel, if fuses { dims.len() } else { pixels }, arguments),
        Variant::Fast => {
            let constant = |name| chosen.constant(name);
            let (threads, items, rounds) = (constant("THREADS"), constant("ITEMS"), constant("ROUNDS"));
            let pack = 16 / build.dtype.bytes();
            let per_thread = if plane.is_multiple_of(pack) && build.request.misalign.is_multiple_of(16) {
                pack
            } else {
                1
            };
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
    Ok(Launches::new(chosen, vec![launch], Vec::new()))
}
