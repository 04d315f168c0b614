//! `infer`: the CPU vision model on the image that the seed draws.

pub mod cpu;

use crate::prelude::*;
use crate::tensor::swap_buffers;
use crate::tiles::MAP_SIZES;
use cpu::{CHANNELS, FF_STRIDE, InferConfig, InferOutputs, Model, PV_STRIDE};

#[derive(Clone, Copy)]
pub struct Infer {
    image: Nchw,
    config: InferConfig,
}

impl Definition for Infer {
    const NAME: &'static str = "infer";
    const SIZES: &'static [&'static str] = MAP_SIZES;
    const CASES: Option<Cases> = Some(Cases::new(&[]).builtin_only().without_ties());
    type Params = InferConfig;

    fn plan(request: &Request, config: InferConfig) -> Result<Self, BuildError> {
        let image = request.feature_map()?;
        if image.batch != 1 {
            return Err(request.shape_error("baseline supports batch size 1 for now"));
        }
        if image.channels != CHANNELS {
            return Err(request.shape_error("the image must have 3 channels"));
        }
        match Model::check(image.height, image.width, &config) {
            Ok(_) => Ok(Self { image, config }),
            Err(error @ OpError::Budget { .. }) => Err(request.param_error("budget_*", error)),
            Err(error @ OpError::Thresholds { .. }) => Err(request.param_error("theta_on", error)),
            Err(error) => {
                let problem = format!("{error} (the map is the image pooled by 8)");
                Err(request.param_error("tile_size_l0", problem))
            }
        }
    }

    fn draw_case(draw: &mut Draw<'_>) -> (Vec<usize>, Value) {
        let tile = draw.pick(&[1, 2, 4]);
        let [height, width] = [(); 2].map(|()| 16 * tile * (1 + draw.below(3)));
        let params = json!({
            "tile_size_l0": tile,
            "kmax_l0": 1 + draw.below(9),
            "force_dense_routing": draw.below(4) == 0,
            "disable_ssm": draw.below(4) == 0,
        });
        (vec![1, CHANNELS, height, width], params)
    }
}

impl Op for Infer {
    fn roundings(&self, _: Dtype) -> Option<Roundings> {
        None
    }

    fn describe(&self, dtype: Dtype) -> Description {
        let pooled = |stride: usize| [1, CHANNELS, self.image.height / stride, self.image.width / stride];
        let (pv, ff) = (pooled(PV_STRIDE), pooled(FF_STRIDE));
        let (coarse, fine): (usize, usize) = (pv.iter().product(), ff.iter().product());
        let moved = self.image.len() + coarse + 2 * fine + CHANNELS + 1;
        Description {
            inputs: vec![Input::unit("image", &self.image.dims())],
            outputs: vec![
                Output::new("pv16", &pv, dtype),
                Output::new("ff8", &ff, dtype),
                Output::new("merged", &ff, dtype),
                Output::new("ssm_state", &[1, CHANNELS], dtype),
            ],
            // Pooling adds each pixel once and each 8x8 sum once more; signal 5, token 1, modulation 2, maximum 1.
            work: Work {
                bytes: (moved * dtype.bytes()) as u64,
                flops: (self.image.len() + 10 * fine) as u64,
                items: 1,
                item: "frames".to_owned(),
            },
            tolerance: dtype.tolerance(),
            rows: 1,
        }
    }

    fn cpu(&self, variant: Variant, _: Dtype) -> Box<dyn Cpu> {
        // The same sizes passed when the request was checked; without a model nothing is written, and the check sees that.
        let model = Model::new(self.image.height, self.image.width, self.config).ok();
        Box::new(Version { model, variant })
    }
}

struct Version {
    model: Option<Model>,
    variant: Variant,
}

impl Cpu for Version {
    fn run(&mut self, inputs: &[Tensor], outputs: &mut [Tensor]) {
        let Some(model) = &mut self.model else { return };
        swap_buffers(outputs, model.outputs.buffers());
        match self.variant {
            Variant::Fast => cpu::fast(model, inputs[0].f32()),
            Variant::Reference => cpu::oracle(model, inputs[0].f32()),
        }
        swap_buffers(outputs, model.outputs.buffers());
    }

    fn reset(&mut self) {
        if let Some(model) = &mut self.model {
            model.poison();
        }
    }

    fn numbers(&self) -> Vec<f64> {
        let Some(model) = &self.model else { return vec![f64::NAN] };
        let InferOutputs { score, hysteresis_mask, diagnostics, .. } = &model.outputs;
        let mask = hysteresis_mask.iter().map(|&on| f64::from(u8::from(on)));
        let utilities = model.utilities.iter().copied();
        [f64::from(*score)].into_iter().chain(mask).chain(utilities).chain(diagnostics.numbers()).collect()
    }
}
