//! `rms_norm`: y = x / √(mean(x²) + eps) · weight, the mean over the last dimension.

pub mod cpu;
mod cuda;

use crate::prelude::*;
use crate::tensor::StoredFloat;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

params! {
    pub struct Params {
        /// Added to the mean, so that a row of zeros has a norm.
        eps: f64 = 1e-6,
    }
}

#[derive(Clone)]
pub(crate) struct RmsNorm {
    /// `[rows, hidden]` or `[B, S, H]`.
    dims: Vec<usize>,
    rows: usize,
    hidden: usize,
    eps: f32,
}

impl Definition for RmsNorm {
    const NAME: &'static str = "rms_norm";
    const SIZES: &'static [&'static str] = &["rows", "hidden"];
    const CPU: &'static [Dtype] = WIDE;
    const CUDA: &'static [Dtype] = WIDE;
    const KERNELS: &'static [KernelFile] = cuda::KERNELS;
    const CASES: Option<Cases> =
        Some(Cases::new(&[4096, 20_000]).with_rows(1, &[4096, 20_000]).with_huge(&[&[262_147, 8192]]));
    const LOAD_PER_ELEMENT: [u64; 2] = [6, 2];
    const IS_REPLACEABLE: bool = true;
    type Params = Params;

    fn plan(request: &Request, Params { eps }: Params) -> Result<Self, BuildError> {
        let (rows, hidden) = match *request.shape {
            [rows, hidden] => (rows, hidden),
            [batch, steps, hidden] => (batch * steps, hidden),
            _ => return Err(request.shape_error("x must be [rows,hidden] or [B,S,H]")),
        };
        if !(eps.is_finite() && eps as f32 > 0.0) {
            return Err(request.param_error("eps", format!("must be a finite f32 > 0, not {eps}")));
        }
        Ok(Self { dims: request.shape.to_vec(), rows, hidden, eps: eps as f32 })
    }

    fn named_params(&self) -> NamedParams {
        vec![("rows", self.rows as u64), ("hidden", self.hidden as u64)]
    }

    fn draw_case(draw: &mut Draw<'_>) -> (Vec<usize>, Value) {
        let hidden = draw.size(draw.limits.elements.min(5_000));
        let rows = draw.size((draw.limits.elements / hidden).clamp(1, 300));
        let mut shape = vec![rows, hidden];
        draw.stretch_elements(&mut shape);
        (shape, json!({ "eps": draw.pick(&[1e-6, 1e-5]) }))
    }
}

impl Op for RmsNorm {
    fn describe(&self, dtype: Dtype) -> Description {
        let weight = Input::normal("weight", &[self.hidden]).with_domain(Domain::Weighed).shared();
        let elements = (self.rows * self.hidden) as u64;
        Description {
            inputs: vec![Input::normal("x", &self.dims), weight],
            outputs: vec![Output::new("y", &self.dims, dtype)],
            // Per element a square, a sum and two products; the root of each row is not counted.
            work: Work {
                bytes: dtype.bytes() as u64 * (2 * elements + self.hidden as u64),
                flops: 4 * elements,
                items: self.rows as u64,
                item: "rows".to_owned(),
            },
            tolerance: dtype.tolerance(),
            rows: self.rows,
        }
    }

    fn part(&self, rows: Range<usize>) -> Option<Box<dyn Op>> {
        let (rows, dims) = (rows.len(), vec![rows.len(), self.hidden]);
        Some(Box::new(Self { rows, dims, ..*self }))
    }

    /// Elements are stored in their type; arithmetic is in 32 bits, the oracle's in 64.
    fn cpu(&self, variant: Variant, _: Dtype) -> Box<dyn Cpu> {
        let (eps, mut row) = (self.eps, vec![0.0; self.hidden]);
        let mut weight = vec![0.0; self.hidden];
        version(move |inputs: &[Tensor], outputs: &mut [Tensor]| match inputs[0].dtype() {
            Some(Dtype::F16) => run::<f16>(variant, eps, inputs, outputs, [&mut weight, &mut row]),
            Some(Dtype::Bf16) => run::<bf16>(variant, eps, inputs, outputs, [&mut weight, &mut row]),
            _ => match variant {
                Variant::Fast => cpu::fast(eps, inputs[0].f32(), inputs[1].f32(), outputs[0].f32_mut()),
                Variant::Reference => {
                    cpu::oracle(eps, inputs[0].f32(), inputs[1].f32(), outputs[0].f32_mut())
                }
            },
        })
    }

    fn cuda(&self, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
        cuda::launches(self, build)
    }

    fn candidates(&self, _: &Request, _: Dtype) -> Vec<Config> {
        combinations(&[("THREADS", &[128, 256, 512, 1024]), ("ITEMS", &[1, 2, 4, 8])])
    }
}

/// Rows in 16 bits go through 32 bits one at a time, while they are in the first cache.
fn run<T: StoredFloat>(
    variant: Variant,
    eps: f32,
    inputs: &[Tensor],
    outputs: &mut [Tensor],
    [weight, row]: [&mut [f32]; 2],
) where
    [T]: HalfFloatSliceExt,
{
    inputs[1].floats::<T>().convert_to_f32_slice(weight);
    let (x, y) = (inputs[0].floats::<T>(), outputs[0].floats_mut::<T>());
    for (x, y) in x.chunks_exact(weight.len()).zip(y.chunks_exact_mut(weight.len())) {
        x.convert_to_f32_slice(row);
        match variant {
            Variant::Fast => cpu::fast_row(eps, row, weight),
            Variant::Reference => cpu::oracle_row(eps, row, weight),
        }
        y.convert_from_f32_slice(row);
    }
}
