//! `fusion_gate`: mixes a heavy map into a base map by a per-pixel weight, alpha; or gives alpha alone.

pub mod cpu;
mod cuda;

use crate::prelude::*;
use crate::simd::vectorized;
use crate::tiles::{MAP_SIZES, MAP_SIZES_MAX};
use cpu::{Gate, Maps};

params! {
    pub struct Params {
        /// If false, only alpha is computed.
        apply_fusion: bool = true,
        boundary_log_weight: f64 = Gate::DEFAULT.boundary_log_weight,
        uncertainty_log_weight: f64 = Gate::DEFAULT.uncertainty_log_weight,
        bias: f64 = Gate::DEFAULT.bias,
    }
}

#[derive(Clone, Copy)]
pub struct FusionGate {
    dims: Nchw,
    gate: Gate,
    is_fused: bool,
}

impl Definition for FusionGate {
    const NAME: &'static str = "fusion_gate";
    const SIZES: &'static [&'static str] = MAP_SIZES;
    const CUDA: &'static [Dtype] = ALL;
    const KERNELS: &'static [KernelFile] = cuda::KERNELS;
    const CASES: Option<Cases> = Some(Cases::new(MAP_SIZES_MAX));
    const IS_REPLACEABLE: bool = true;
    type Params = Params;

    fn plan(request: &Request, params: Params) -> Result<Self, BuildError> {
        let Params { apply_fusion, boundary_log_weight, uncertainty_log_weight, bias } = params;
        request.check_finite("boundary_log_weight", boundary_log_weight)?;
        request.check_finite("uncertainty_log_weight", uncertainty_log_weight)?;
        request.check_finite("bias", bias)?;
        let gate = Gate { boundary_log_weight, uncertainty_log_weight, bias };
        Ok(Self { dims: request.feature_map()?, gate, is_fused: apply_fusion })
    }

    fn draw_case(draw: &mut Draw<'_>) -> (Vec<usize>, Value) {
        let [batch, height, width] = [1 + draw.below(3), draw.size(67), draw.size(67)];
        let channels = draw.size((draw.limits.elements / (batch * height * width)).clamp(1, 130));
        let params = match draw.below(2) {
            0 => json!({}),
            _ => json!({
                "boundary_log_weight": 2.0 * draw.random.uniform() - 1.0,
                "bias": 4.0 * draw.random.uniform() - 2.0,
            }),
        };
        let mut shape = vec![batch, channels, height, width];
        draw.stretch_elements(&mut shape);
        (shape, params)
    }
}

impl Op for FusionGate {
    fn describe(&self, dtype: Dtype) -> Description {
        let Nchw { batch, height, width, .. } = self.dims;
        let pixel_dims = [batch, 1, height, width];
        let maps = ["base", "heavy"].map(|name| Input::normal(name, &self.dims.dims()));
        let proxies = ["boundary", "uncertainty"].map(|name| Input::unit(name, &pixel_dims));
        let fused = Output::new("fused", &self.dims.dims(), dtype);
        let alpha = Output::new("alpha", &pixel_dims, dtype);
        let (elements, pixels) = (self.dims.len() as u64, (batch * height * width) as u64);
        let moved = if self.is_fused { 3 * elements } else { 0 };
        Description {
            inputs: maps.into_iter().filter(|_| self.is_fused).chain(proxies).collect(),
            outputs: if self.is_fused { vec![fused, alpha] } else { vec![alpha] },
            // Per pixel two multiply-adds and a sigmoid (exp, add, divide: an exponential is one operation, as everywhere here);
            // per element of a map subtract, multiply, add.
            work: Work {
                bytes: dtype.bytes() as u64 * (moved + 3 * pixels),
                flops: moved + 7 * pixels,
                items: if self.is_fused { elements } else { pixels },
                item: "elements".to_owned(),
            },
            tolerance: dtype.tolerance(),
            rows: batch,
        }
    }

    fn part(&self, rows: Range<usize>) -> Option<Box<dyn Op>> {
        Some(Box::new(Self { dims: Nchw { batch: rows.len(), ..self.dims }, ..*self }))
    }

    fn cpu(&self, variant: Variant, _: Dtype) -> Box<dyn Cpu> {
        let Self { dims, gate, is_fused } = *self;
        version(move |inputs: &[Tensor], outputs: &mut [Tensor]| match (inputs, outputs) {
            ([base, heavy, boundary, uncertainty], [fused, alpha]) if is_fused => {
                let (base, heavy) = (base.f32(), heavy.f32());
                let maps = Maps { base, heavy, boundary: boundary.f32(), uncertainty: uncertainty.f32() };
                match variant {
                    Variant::Fast => cpu::fast(&gate, &dims, &maps, fused.f32_mut(), alpha.f32_mut()),
                    Variant::Reference => cpu::oracle(&gate, &dims, &maps, fused.f32_mut(), alpha.f32_mut()),
                }
            }
            ([boundary, uncertainty], [alpha]) => {
                let (boundary, uncertainty, alpha) = (boundary.f32(), uncertainty.f32(), alpha.f32_mut());
                match variant {
                    Variant::Fast => vectorized!(cpu::alpha_fast(&gate, boundary, uncertainty, alpha)),
                    Variant::Reference => cpu::alpha_oracle(&gate, boundary, uncertainty, alpha),
                }
            }
            _ => {}
        })
    }

    fn cuda(&self, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
        cuda::launches(self, build)
    }

    fn candidates(&self, _: &Request, _: Dtype) -> Vec<Config> {
        combinations(&[("THREADS", &[128, 256, 512]), ("ITEMS", &[2, 4, 8]), ("ROUNDS", &[1, 2, 4])])
    }
}
