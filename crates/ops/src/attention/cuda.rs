//! Attention on a device: plain multiplications for f32, else tensor cores, Hopper's own where the device has them.

use super::cpu::AttentionSpec;
use super::oracle::ORACLE;
use crate::device::FULL_ARCH;
use crate::prelude::*;

const ATTENTION_HEADER: (&str, &str) = ("attention.cuh", include_str!("attention.cuh"));
const HEADERS: &[(&str, &str)] = &[COMMON, ATTENTION_HEADER];
const HOPPER_HEADERS: &[(&str, &str)] =
    &[COMMON, ATTENTION_HEADER, ("attention_hopper.cuh", include_str!("attention_hopper.cuh"))];
static ATTENTION: Source = Source { name: "attention", text: include_str!("attention.cu"), headers: HEADERS };
static WGMMA: Source =
    Source { name: "attention_wgmma", text: include_str!("attention_wgmma.cu"), headers: HOPPER_HEADERS };
static FP8: Source =
    Source { name: "attention_fp8", text: include_str!("attention_fp8.cu"), headers: HOPPER_HEADERS };

pub(super) const KERNELS: &[KernelFile] = &[
    KernelFile::new(
        &ATTENTION,
        &[
            "BLOCK_N=64 CAUSAL=0 HEAD_DIM=32 STAGES=2 WARPS=4",
            "BLOCK_N=64 CAUSAL=0 HEAD_DIM=64 STAGES=2 WARPS=4",
            "BLOCK_N=64 CAUSAL=0 HEAD_DIM=96 STAGES=2 WARPS=4",
            "BLOCK_N=64 CAUSAL=0 HEAD_DIM=128 STAGES=2 WARPS=4",
            // Shifted by one: both colours of the board have every width, causal and not.
            "BLOCK_N=64 CAUSAL=1 HEAD_DIM=128 STAGES=2 WARPS=4",
            "BLOCK_N=64 CAUSAL=1 HEAD_DIM=32 STAGES=2 WARPS=4",
            "BLOCK_N=64 CAUSAL=1 HEAD_DIM=64 STAGES=2 WARPS=4",
            "BLOCK_N=64 CAUSAL=1 HEAD_DIM=96 STAGES=2 WARPS=4",
        ],
    ),
    KernelFile {
        source: &WGMMA,
        dtypes: &[Dtype::F16, Dtype::Bf16],
        configs: &[
            "BLOCK_N=64 CAUSAL=0 HEAD_DIM=32 STAGES=4 WARPGROUPS=2",
            "BLOCK_N=64 CAUSAL=0 HEAD_DIM=64 STAGES=4 WARPGROUPS=2",
            "BLOCK_N=64 CAUSAL=0 HEAD_DIM=96 STAGES=3 WARPGROUPS=2",
            "BLOCK_N=96 CAUSAL=0 HEAD_DIM=128 STAGES=3 WARPGROUPS=3",
            "BLOCK_N=64 CAUSAL=1 HEAD_DIM=32 STAGES=4 WARPGROUPS=2",
            "BLOCK_N=64 CAUSAL=1 HEAD_DIM=64 STAGES=4 WARPGROUPS=2",
            "BLOCK_N=64 CAUSAL=1 HEAD_DIM=96 STAGES=3 WARPGROUPS=2",
            "BLOCK_N=96 CAUSAL=1 HEAD_DIM=128 STAGES=3 WARPGROUPS=3",
        ],
        archs: &[FULL_ARCH],
    },
    KernelFile {
        source: &FP8,
        dtypes: &[Dtype::E4m3],
        configs: &[
            "BLOCK_N=128 CAUSAL=0 HEAD_DIM=64 STAGES=5 WARPGROUPS=3",
            "BLOCK_N=128 CAUSAL=0 HEAD_DIM=128 STAGES=5 WARPGROUPS=3",
            "BLOCK_N=128 CAUSAL=1 HEAD_DIM=64 STAGES=5 WARPGROUPS=3",
            "BLOCK_N=128 CAUSAL=1 HEAD_DIM=128 STAGES=5 WARPGROUPS=3",
        ],
        archs: &[FULL_ARCH],
    },
    KernelFile::new(&ORACLE, &[""]),
];

/// Head widths whose rows of bytes the copy engine swizzles whole.
const FP8_WIDTHS: &[usize] = &[64, 128];
/// Keys that one block of `transpose_values` takes, and of which it fills up the last row.
const TRANSPOSED_KEYS: usize = 128;
const PITCH_KEYS: usize = 16;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    /// Plain multiplications, for 32-bit floats.
    Fma,
    /// Tensor cores of any generation.
    Mma,
    /// Hopper's own, fed by its copy engine.
    Wgmma,
    /// The same for 8-bit products, after a launch that transposes the values.
    Fp8,
}

impl Kind {
    fn choose(request: &Request, dtype: Dtype, width: usize, capability: (i32, i32)) -> Self {
        let is_hopper = capability == (9, 0) && request.misalign.is_multiple_of(16);
        match (request.variant, dtype) {
            (Variant::Reference, _) => Self::Plain,
            (Variant::Fast, Dtype::F32) => Self::Fma,
            (Variant::Fast, Dtype::F16 | Dtype::Bf16) if is_hopper => Self::Wgmma,
            (Variant::Fast, Dtype::E4m3) if is_hopper && FP8_WIDTHS.contains(&width) => Self::Fp8,
            (Variant::Fast, _) => Self::Mma,
        }
    }
}

pub(super) fn candidates(spec: &AttentionSpec, request: &Request, dtype: Dtype) -> Vec<Config> {
    match Kind::choose(request, dtype, spec.width, (9, 0)) {
        Kind::Fp8 => {
            combinations(&[("WARPGROUPS", &[2, 3]), ("BLOCK_N", &[64, 96, 128]), ("STAGES", &[4, 5])])
        }
        Kind::Wgmma => {
            combinations(&[("WARPGROUPS", &[2, 3]), ("BLOCK_N", &[64, 96, 128]), ("STAGES", &[2, 3, 4])])
        }
        Kind::Mma => combinations(&[("WARPS", &[4, 8]), ("BLOCK_N", &[64, 128])]),
        Kind::Plain | Kind::Fma => Vec::new(),
    }
}

pub(super) fn launches(
    spec: &AttentionSpec,
    batch: usize,
    build: &mut Build<'_>,
) -> Result<Launches, PrepareError> {
    let AttentionSpec { heads, steps, width, causal } = *spec;
    let sizes = [
        ("batch", batch),
        ("causal", usize::from(causal)),
        ("head_dim", width),
        ("heads", heads / batch),
        ("steps", steps),
    ];
    let kind = Kind::choose(build.request, build.dtype, width, build.gpu.device.capability);
    let (source, name) = match kind {
        Kind::Plain => (&ATTENTION, "attention_reference"),
        Kind::Fma | Kind::Mma => (&ATTENTION, "attention_fast"),
        Kind::Wgmma => (&WGMMA, "attention_wgmma"),
        Kind::Fp8 => (&FP8, "attention_fp8"),
    };
    let constants: &[(&str, usize)] = match kind {
        Kind::Plain | Kind::Fma => &[],
        Kind::Mma => &[("WARPS", 4), ("BLOCK_N", 64), ("STAGES", 2)],
        Kind::Wgmma if width <= 64 => &[("WARPGROUPS", 2), ("BLOCK_N", 64), ("STAGES", 4)],
        Kind::Wgmma if width == 96 => &[("WARPGROUPS", 2), ("BLOCK_N", 64), ("STAGES", 3)],
        Kind::Wgmma => &[("WARPGROUPS", 3), ("BLOCK_N", 96), ("STAGES", 3)],
        Kind::Fp8 => &[("WARPGROUPS", 3), ("BLOCK_N", 128), ("STAGES", 5)],
    };
    let chosen = build
        .choose(source, [name; 2], &sizes)
        .with(constants)
        .with(&[("HEAD_DIM", width), ("CAUSAL", usize::from(causal))]);
    let kernel = chosen.kernel(build.gpu)?;
    let scale = 1.0 / (width as f32).sqrt();
    let constant = |name| chosen.constant(name);
    let (mut launches, mut held) = (Vec::new(), Vec::new());
    let arguments = match kind {
        Kind::Fp8 => {
            let pitch = steps.next_multiple_of(PITCH_KEYS);
            let transposed = build.scratch(heads * width * pitch)?;
            let arguments = Arguments::new().ptr(build.input(2)).buffer(&transposed).int(steps).int(pitch);
            let blocks = grid_x(steps.div_ceil(TRANSPOSED_KEYS) * heads);
            let transpose = build.gpu.kernel(&chosen.unit, "transpose_values")?;
            launches.push(transpose.launch(blocks, 256, arguments));
            let keys = constant("BLOCK_N");
            let mut arguments = Arguments::new();
            for (at, rows) in [64, keys].into_iter().enumerate() {
                let Some(input) = build.input_buffer(at) else { continue };
                arguments = arguments.map(input, build.dtype, [heads, steps, width], [rows, width])?;
            }
            let columns = if keys == 96 { 32 } else { keys };
            let arguments =
                arguments.map(&transposed, build.dtype, [heads, width, pitch], [width, columns])?;
            held.push(transposed);
            arguments.ptr(build.output(0))
        }
        Kind::Wgmma => {
            let columns = if width.is_multiple_of(64) { 64 } else { 32 };
            let mut arguments = Arguments::new();
            for (at, rows) in [64, constant("BLOCK_N"), constant("BLOCK_N")].into_iter().enumerate() {
                let Some(input) = build.input_buffer(at) else { continue };
                arguments = arguments.map(input, build.dtype, [heads, steps, width], [rows, columns])?;
            }
            arguments.ptr(build.output(0))
        }
        _ => build.arguments(),
    };
    let arguments = arguments.int(heads).int(steps).float(scale);
    let launch = match kind {
        Kind::Plain => kernel.launch(grid_x((heads * steps).div_ceil(4)), 128, arguments),
        Kind::Fma => {
            let shared = (128 * (width + 4) + 64 * 68) * 4;
            kernel.launch(grid_x(steps.div_ceil(64) * heads), 256, arguments).with_shared(shared)?
        }
        Kind::Mma => {
            let warps = constant("WARPS");
            let shared = constant("STAGES") * constant("BLOCK_N") * width * 4;
            let blocks = steps.div_ceil(16 * warps) * heads;
            kernel.launch(grid_x(blocks), 32 * warps as u32, arguments).with_shared(shared)?
        }
        Kind::Wgmma => {
            let (groups, keys, stages) = (constant("WARPGROUPS"), constant("BLOCK_N"), constant("STAGES"));
            let shared = 4 * stages * keys * width + groups * 128 * width + 32 * stages + 8 * groups + 24;
            let blocks = steps.div_ceil(64 * groups) * heads;
            kernel.launch(grid_x(blocks), 128 * groups as u32, arguments).with_shared(shared)?
        }
        Kind::Fp8 => {
            let (groups, keys, stages) = (constant("WARPGROUPS"), constant("BLOCK_N"), constant("STAGES"));
            let shared = stages * (keys * (2 * width + 8) + 16) + groups * (64 * width + 8);
            let rows = 64 * groups;
            let items = steps.div_ceil(rows) * heads;
            // A block that takes several items asks for two tiles ahead: an item must have as many.
            let fewest_keys = if causal { rows.min(steps) } else { steps };
            let fits = build.gpu.device.multiprocessors as usize;
            let blocks = if fewest_keys > keys { items.min(fits) } else { items };
            kernel.launch(grid_x(blocks), 128 * groups as u32, arguments).with_shared(shared)?
        }
    };
    launches.push(launch);
    Ok(Launches::new(chosen, launches, held))
}
