//! `mma`: the ceiling of tensor cores, by multiplying tiles of 64 × 128 again and again. Only on a device.

use crate::fma::Params;
use crate::prelude::*;

static MMA: Source = Source { name: "mma", text: include_str!("mma.cu"), headers: &[COMMON] };

/// Of one tile, as in the kernel: rows of either side, and bytes of a row.
const ROWS: usize = 64;
const COLUMNS: usize = 128;
const ROW_BYTES: usize = 128;

/// No 8 bits on data-centre Blackwell: the instruction used here would convert to fp16 there.
const NO_FP8_MMA: &str = "fp8_mma_unsupported";

#[derive(Clone, Copy)]
pub(crate) struct Mma {
    tiles: usize,
    rounds: usize,
    depth: usize,
}

impl Definition for Mma {
    const NAME: &'static str = "mma";
    const SIZES: &'static [&'static str] = &["tiles"];
    const CPU: &'static [Dtype] = &[];
    const CUDA: &'static [Dtype] = ALL;
    const KERNELS: &'static [KernelFile] = &[KernelFile::new(&MMA, &[""])];
    const CASES: Option<Cases> = Some(Cases::new(&[]).builtin_only().without_ties());
    type Params = Params;

    fn plan(request: &Request, params: Params) -> Result<Self, BuildError> {
        let width = Dtype::parse(&request.dtype).map_or(4, Dtype::bytes);
        Ok(Self { tiles: request.count("tiles")?, rounds: params.check(request)?, depth: ROW_BYTES / width })
    }

    fn load(shape: &[usize], _: &Params) -> Load {
        let tiles = product(shape);
        let products = tiles.saturating_mul((ROWS * COLUMNS * ROW_BYTES) as u64);
        Load { elements: tiles.saturating_mul(64 << 10), operations: products }
    }

    fn draw_case(draw: &mut Draw<'_>) -> (Vec<usize>, Value) {
        let rounds = 1 + draw.below(40);
        (vec![1 + draw.below(30)], json!({ "rounds": rounds }))
    }
}

impl Op for Mma {
    fn describe(&self, dtype: Dtype) -> Description {
        let products = (self.tiles * self.rounds) as u64;
        Description {
            // All of one sign: a difference would have few right digits left, whatever tensor cores do.
            inputs: vec![
                Input::unit("a", &[self.tiles, ROWS, self.depth]),
                Input::unit("b", &[self.tiles, COLUMNS, self.depth]),
            ],
            outputs: vec![Output::new("out", &[self.tiles, ROWS, COLUMNS], Dtype::F32)],
            work: Work {
                bytes: (self.tiles * ((ROWS + COLUMNS) * ROW_BYTES + 4 * ROWS * COLUMNS)) as u64,
                flops: 2 * products * (ROWS * COLUMNS * self.depth) as u64,
                items: products,
                item: "products".to_owned(),
            },
            // fp32 elements lose their last 13 bits; 8-bit products are cut to 14 bits or so of the sum they join; sums are cut off,
            // not rounded.
            tolerance: match dtype {
                Dtype::F32 => Tolerance::new(1e-3, 4e-3),
                Dtype::F16 | Dtype::Bf16 => Tolerance::new(1e-4, 1e-4),
                Dtype::E4m3 => Tolerance::new(1e-2, 2e-2),
            },
            rows: self.tiles,
        }
    }

    fn part(&self, rows: Range<usize>) -> Option<Box<dyn Op>> {
        Some(Box::new(Self { tiles: rows.len(), ..*self }))
    }

    /// The oracle: however often it is computed, the product is the same.
    fn cpu(&self, _: Variant, _: Dtype) -> Box<dyn Cpu> {
        let depth = self.depth;
        version(move |inputs: &[Tensor], outputs: &mut [Tensor]| {
            let (a, b) = (inputs[0].f32().chunks(ROWS * depth), inputs[1].f32().chunks(COLUMNS * depth));
            for ((a, b), out) in a.zip(b).zip(outputs[0].f32_mut().chunks_mut(ROWS * COLUMNS)) {
                let pairs =
                    a.chunks(depth).flat_map(|row| b.chunks(depth).map(move |column| dot(row, column)));
                out.iter_mut().zip(pairs).for_each(|(out, value)| *out = value);
            }
        })
    }

    fn check_cuda(&self, request: &Request, _: Dtype) -> Result<(), BuildError> {
        // Blocks are counted in 32 bits.
        u32::try_from(self.tiles).map(drop).map_err(|_| request.shape_error("at most 2^32 - 1 tiles"))
    }

    fn cuda(&self, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
        let (capability, is_fast) = (build.gpu.device.capability, build.request.variant == Variant::Fast);
        if build.dtype == Dtype::E4m3 && (10..12).contains(&capability.0) && is_fast {
            return Err(PrepareError::Skipped(NO_FP8_MMA.to_owned()));
        }
        let chosen = build.choose(&MMA, ["mma_fast", "mma_reference"], &[("tiles", self.tiles)]);
        let kernel = chosen.kernel(build.gpu)?;
        // The plain kernel multiplies once.
        let rounds = if is_fast { self.rounds } else { 1 };
        let arguments = build.arguments().int(self.tiles).int(rounds);
        let launch = if is_fast {
            let threads = if capability == (9, 0) { 128 } else { 256 };
            kernel.launch(grid_x(self.tiles), threads, arguments)
        } else {
            plain_launch(&kernel, self.tiles * ROWS * COLUMNS, arguments)
        };
        Ok(Launches::new(chosen, vec![launch], Vec::new()))
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>() as f32
}
