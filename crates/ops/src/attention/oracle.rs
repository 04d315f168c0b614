//! The oracle of attention on a device.

use super::cpu::AttentionSpec;
use crate::device::DeviceOracle;
use crate::prelude::*;

pub(super) static ORACLE: Source =
    Source { name: "attention_oracle", text: include_str!("attention_oracle.cu"), headers: &[COMMON] };

/// Queries of a block and keys of a tile, as in the kernel.
const ROWS: usize = 32;
const THREADS: u32 = 256;

pub(super) fn device_oracle(spec: &AttentionSpec) -> DeviceOracle {
    let AttentionSpec { heads, steps, width, causal } = *spec;
    DeviceOracle {
        source: &ORACLE,
        kernel: "attention_oracle",
        proof,
        launch: Box::new(move |kernel, pointers| {
            let arguments = pointers.int(heads).int(steps).int(width).int(usize::from(causal));
            let shared = (2 * ROWS * (width + 1) + ROWS * (ROWS + 1) + 3 * ROWS) * size_of::<f64>();
            kernel.launch(grid_x(steps.div_ceil(ROWS) * heads), THREADS, arguments).with_shared(shared)
        }),
    }
}

/// Every width; one query, a tile and one more or less of them, primes; several heads and samples.
fn proof() -> Vec<(Vec<usize>, Value)> {
    let shapes: [&[usize]; 8] = [
        &[1, 1, 1, 32],
        &[1, 2, 17, 64],
        &[2, 1, 31, 128],
        &[1, 1, 32, 96],
        &[2, 3, 33, 64],
        &[1, 2, 65, 96],
        &[1, 1, 257, 32],
        &[1, 1, 515, 128],
    ];
    let with = |shape: &[usize]| [false, true].map(|causal| (shape.to_vec(), json!({ "causal": causal })));
    shapes.into_iter().flat_map(with).collect()
}
