//! `attention`: softmax(q kᵀ / √D) v, causal or not.

pub mod cpu;
mod cuda;
mod oracle;

use crate::device::DeviceOracle;
use crate::prelude::*;
use cpu::{AttentionSpec, Scratch};

/// Head widths that the kernels support.
const WIDTHS: &[usize] = &[32, 64, 96, 128];
/// Of 8-bit inputs, a kernel may round its weights to 8 bits as well, as 8-bit tensor cores take them. Rounding is off by a 16th of a
/// weight at most. An answer is a mean of values by weights, so that it is off by a 16th of their mean distance from it, which is no
/// more than the largest of them; and by what sums of about 14 bits lose, which is 2^-13 in each of a few steps, and by the rounding of
/// the answer itself to 16 bits: a per cent is far more.
const FP8_TOLERANCE: Tolerance = Tolerance::new(1.0 / 16.0, 1e-2);

/// Queries that the fast CPU version handles together, and what it pads widths to, twice over.
const ROWS: u64 = 256;

params! {
    pub struct Params {
        /// Whether a query sees only keys up to its own position.
        causal: bool = false,
    }
}

#[derive(Clone)]
pub(crate) struct Attention {
    spec: AttentionSpec,
    /// Sizes of every tensor, `[B, H, S, D]`.
    dims: Vec<usize>,
}

impl Definition for Attention {
    const NAME: &'static str = "attention";
    const SIZES: &'static [&'static str] = &["batch", "heads", "steps", "head_dim"];
    const CUDA: &'static [Dtype] = ALL;
    const KERNELS: &'static [KernelFile] = cuda::KERNELS;
    // Past 1024 keys, and past any power of two that a kernel's tile of keys could be; on a device past any part of a long row, too.
    // The huge ones: 2^31 elements in no more heads than a grid has blocks along y, and as many scores.
    const CASES: Option<Cases> = Some(
        Cases::new(&[8, 32, 1500, 256])
            .with_exponentials()
            .with_rows(2, &[64, 1024, 16_384, 128])
            .with_huge(&[&[5, 13_107, 257, 128], &[2, 4, 16_411, 64]]),
    );
    const IS_REPLACEABLE: bool = true;
    type Params = Params;

    fn plan(request: &Request, Params { causal }: Params) -> Result<Self, BuildError> {
        let [batch, heads, steps, width] = *request.shape else {
            return Err(request.shape_error("q, k and v must be [B,H,S,D]"));
        };
        let spec = AttentionSpec { heads: batch * heads, steps, width, causal };
        Ok(Self { spec, dims: request.shape.to_vec() })
    }

    /// q, k, v, the answer and the oracle's; keys and values of a head once more, and a block of scores.
    fn load(shape: &[usize], _: &Params) -> Load {
        let size = |at: usize| shape.get(at).map_or(1, |size| *size as u64);
        let main = product(shape);
        let space = size(2).saturating_mul(ROWS + 2 * size(3));
        Load {
            elements: main.saturating_mul(5).saturating_add(space),
            operations: main.saturating_mul(size(2)),
        }
    }

    fn named_params(&self) -> NamedParams {
        vec![("causal", u64::from(self.spec.causal))]
    }

    fn draw_case(draw: &mut Draw<'_>) -> (Vec<usize>, Value) {
        let limits = draw.limits;
        let [batch, heads] = [1 + draw.below(4), 1 + draw.below(4)];
        let width = match (draw.backend, draw.below(4)) {
            (Some(Backend::Cuda), _) => draw.pick(WIDTHS),
            (Some(Backend::Cpu), _) => draw.size(128),
            (None, 0) => draw.size(256),
            // Mostly what kernels are written for.
            (None, _) => draw.pick(&[16, 32, 64, 96, 128]),
        };
        let longest = (limits.operations / (batch * heads * width)).isqrt();
        let steps = draw.size(longest.clamp(1, 600));
        let causal = draw.below(2) == 0;
        let mut shape = vec![batch, heads, steps, width];
        let narrowest = if draw.backend == Some(Backend::Cuda) { WIDTHS[0] } else { 1 };
        draw.stretch(&mut shape, |shape| {
            let elements = shape[..3].iter().product::<usize>() * shape[3].max(narrowest);
            elements * shape[2] > limits.operations || draw.large.is_some() && elements > limits.elements
        });
        if draw.backend == Some(Backend::Cuda) {
            shape[3] = WIDTHS.iter().copied().rev().find(|width| *width <= shape[3]).unwrap_or(32);
        }
        (shape, json!({ "causal": causal }))
    }
}

impl Op for Attention {
    fn describe(&self, dtype: Dtype) -> Description {
        let AttentionSpec { heads, steps, width, causal } = self.spec;
        let input = |name, domain| Input::normal(name, &self.dims).with_domain(domain);
        // Of 8-bit inputs the output has 16 bits: a sum of many values deserves more than 3 of mantissa.
        let out = if dtype == Dtype::E4m3 { Dtype::F16 } else { dtype };
        let pairs = (heads * if causal { steps * (steps + 1) / 2 } else { steps * steps }) as u64;
        Description {
            inputs: vec![
                input("q", Domain::Exponent),
                input("k", Domain::Exponent),
                input("v", Domain::Weighed),
            ],
            outputs: vec![Output::new("out", &self.dims, out)],
            // Operations are those of the two products alone, as every benchmark of attention counts them: the softmax between
            // them is less than a tenth from D = 16 on, and rates can be held against the peak of the units that multiply.
            work: Work {
                bytes: self.spec.len() as u64 * (3 * dtype.bytes() + out.bytes()) as u64,
                flops: 4 * pairs * width as u64,
                items: (self.dims[0] * steps) as u64,
                item: "tokens".to_owned(),
            },
            tolerance: match dtype {
                Dtype::E4m3 => FP8_TOLERANCE,
                // f32 sums over D and S, and exponentials of them, against f64: 6e-7 apart at S = 512 and D = 64.
                Dtype::F32 => Tolerance::new(1e-5, 1e-4),
                _ => dtype.tolerance(),
            },
            // Heads of all samples: they are independent alike.
            rows: heads,
        }
    }

    /// Scaled queries, weights and results are each rounded once; of 8-bit inputs only the weights to 8 bits.
    fn roundings(&self, dtype: Dtype) -> Option<Roundings> {
        Some(Roundings::new(dtype, if dtype == Dtype::E4m3 { 1 } else { 3 }))
    }

    fn part(&self, rows: Range<usize>) -> Option<Box<dyn Op>> {
        let spec = AttentionSpec { heads: rows.len(), ..self.spec };
        Some(Box::new(Self { spec, dims: vec![rows.len(), 1, spec.steps, spec.width] }))
    }

    fn cpu(&self, variant: Variant, _: Dtype) -> Box<dyn Cpu> {
        let spec = self.spec;
        match variant {
            Variant::Fast => {
                let mut scratch = Scratch::new(&spec);
                version(move |inputs: &[Tensor], outputs: &mut [Tensor]| {
                    let [q, k, v] = [0, 1, 2].map(|at: usize| inputs[at].f32());
                    cpu::fast(&spec, q, k, v, &mut scratch, outputs[0].f32_mut());
                })
            }
            Variant::Reference => {
                let mut scores = vec![0.0; spec.steps];
                version(move |inputs: &[Tensor], outputs: &mut [Tensor]| {
                    let [q, k, v] = [0, 1, 2].map(|at: usize| inputs[at].f32());
                    cpu::oracle(&spec, q, k, v, &mut scores, outputs[0].f32_mut());
                })
            }
        }
    }

    fn device_oracle(&self) -> Option<DeviceOracle> {
        Some(oracle::device_oracle(&self.spec))
    }

    fn check_cuda(&self, request: &Request, _: Dtype) -> Result<(), BuildError> {
        match WIDTHS.contains(&self.spec.width) {
            true => Ok(()),
            false => Err(request.shape_error("D must be 32, 64, 96 or 128")),
        }
    }

    fn cuda(&self, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
        cuda::launches(&self.spec, self.dims[0], build)
    }

    fn candidates(&self, request: &Request, dtype: Dtype) -> Vec<Config> {
        cuda::candidates(&self.spec, request, dtype)
    }
}
