//! `ff_path`: two levels of the heavy path, tiles chosen under a budget.

pub mod cpu;
mod cuda;

use crate::prelude::*;
use crate::rng::RandomState;
use crate::tensor::swap_buffers;
use crate::tiles::MAP_SIZES;
use cpu::{FastModule, FfConfig, FfInputs, Levels, Module, OracleModule, PathWeights, Router};

/// Separates the stream of utilities from that of the weights, which begins at the seed itself; recorded answers depend on it.
const UTILITIES: u64 = 0x0711_1173;

#[derive(Clone)]
pub(crate) struct FfPath {
    dims: Nchw,
    config: FfConfig,
    seed: u64,
    /// Worth of each tile of level 0, and of splitting it.
    utilities: [Vec<f32>; 2],
    /// Tiles chosen on each level, over the batch.
    selected: [usize; 2],
}

impl FfPath {
    fn new(dims: Nchw, config: FfConfig, seed: u64, utilities: [Vec<f32>; 2]) -> Result<Self, OpError> {
        let mut router = Router::new(config, &dims)?;
        router.run(&FfInputs::for_routing(&utilities))?;
        let [l0, l1, _] = router.diagnostics().selected_counts;
        Ok(Self { dims, config, seed, utilities, selected: [l0 as usize, l1 as usize] })
    }

    /// The weights, rounded to an element type.
    fn weights(&self, dtype: Dtype) -> [PathWeights; 2] {
        let mut random = RandomState::new(self.seed);
        [(); 2].map(|()| PathWeights::draw(&mut random, self.dims.channels).rounded(dtype))
    }
}

fn check(request: &Request, config: &FfConfig, dims: &Nchw) -> Result<usize, BuildError> {
    let tiles = match config.grids(dims) {
        Ok([grid, _]) => grid.count(),
        Err(OpError::Budget { name, value }) => {
            return Err(request.param_error(name, OpError::Budget { name, value }));
        }
        Err(error) => return Err(request.param_error("tile_size_l0", error)),
    };
    if config.budget_b1 + config.budget_b2 > config.budget_total + 1e-9 {
        return Err(request.param_error("budget_total", "must be at least budget_b1 + budget_b2"));
    }
    if config.cost_heavy <= config.cost_cheap {
        return Err(request.param_error("cost_heavy", "must be > cost_cheap"));
    }
    for (name, kmax, level, tiles) in
        [("kmax_l0", config.kmax_l0, "l0", tiles), ("kmax_l1", config.kmax_l1, "l1", 4 * tiles)]
    {
        if kmax > tiles {
            let problem = format!("kmax={kmax} must be <= total {level} tiles ({tiles})");
            return Err(request.param_error(name, problem));
        }
    }
    Ok(tiles)
}

impl Definition for FfPath {
    const NAME: &'static str = "ff_path";
    const SIZES: &'static [&'static str] = MAP_SIZES;
    const CUDA: &'static [Dtype] = WIDE;
    const KERNELS: &'static [KernelFile] = cuda::KERNELS;
    const CASES: Option<Cases> = Some(Cases::new(&[]).builtin_only().without_ties());
    type Params = FfConfig;

    fn plan(request: &Request, config: FfConfig) -> Result<Self, BuildError> {
        let dims = request.feature_map()?;
        let tiles = dims.batch * check(request, &config, &dims)?;
        let mut random = RandomState::new(request.seed ^ UTILITIES);
        let utilities = [(); 2].map(|()| random.uniforms(tiles).to_vec());
        Self::new(dims, config, request.seed, utilities).map_err(request.at_param("tile_size_l0"))
    }

    /// Two paths of at most eight square matrices each, and maps of both levels.
    fn load(shape: &[usize], _: &FfConfig) -> Load {
        let (main, channels) = (product(shape), shape.get(1).map_or(1, |size| *size as u64));
        let weights = channels.saturating_mul(channels).saturating_mul(16);
        let elements = main.saturating_mul(28).saturating_add(weights);
        Load { elements, operations: main.saturating_mul(channels) }
    }

    fn draw_case(draw: &mut Draw<'_>) -> (Vec<usize>, Value) {
        let tile = draw.pick(&[2, 4, 8]);
        let [rows, columns] = [1 + draw.below(4), 1 + draw.below(4)];
        let channels = match draw.backend {
            Some(Backend::Cuda) => 16 * (1 + draw.below(4)),
            _ => draw.size(24),
        };
        let tiles = rows * columns;
        let kmax = 1 + draw.below(tiles);
        let params = json!({
            "tile_size_l0": tile,
            "tile_size_l1": tile / 2,
            "kmax_l0": kmax,
            "kmax_l1": 1 + draw.below(4 * tiles),
            "budget_b1": kmax as f64,
            "budget_b2": draw.below(8) as f64,
            "budget_total": (kmax + 8) as f64,
            "nesting": draw.below(4) > 0,
        });
        (vec![1 + draw.below(2), channels, rows * tile, columns * tile], params)
    }
}

impl Op for FfPath {
    fn roundings(&self, _: Dtype) -> Option<Roundings> {
        None
    }

    fn describe(&self, dtype: Dtype) -> Description {
        let Nchw { batch, channels, height, width } = self.dims;
        let (pixel_dims, tiles) = ([batch, 1, height, width], [batch, self.utilities[0].len() / batch]);
        let [utilities, split_utilities] = self.utilities.clone().map(Distribution::Host);
        let (elements, pixels) = (self.dims.len() as u64, (batch * height * width) as u64);
        let c = channels as u64;
        Description {
            inputs: vec![
                Input::normal("dense", &self.dims.dims()),
                Input::unit("utilities", &tiles).with_draw(utilities),
                Input::unit("split_utilities", &tiles).with_draw(split_utilities),
                Input::unit("boundary", &pixel_dims),
                Input::unit("uncertainty", &pixel_dims),
            ],
            outputs: vec![
                Output::new("heavy_features", &self.dims.dims(), dtype),
                Output::new("detail_map", &self.dims.dims(), dtype),
                Output::new("alpha", &pixel_dims, dtype),
                Output::new("states", &[batch, 2, 2, channels], Dtype::F32),
            ],
            // Three maps and three planes move, and the weights that are read: of each path 5 C² + 21 C in the element type, and 9 C
            // of the scans in 32 bits.
            work: Work {
                bytes: dtype.bytes() as u64 * (3 * elements + 3 * pixels + 2 * (5 * c * c + 21 * c))
                    + 2 * 4 * 9 * c,
                flops: cpu::flops(&self.dims, &self.config, self.selected),
                items: batch as u64,
                item: "frames".to_owned(),
            },
            // The originals' tolerances end to end: a path of a dozen layers is not one op.
            tolerance: match dtype {
                // Products of depth C in f32 against f64, then a normalisation: 6e-6 apart at C = 128 on values of up to 10.
                Dtype::F32 => Tolerance::new(2e-5, 2e-4),
                Dtype::F16 => Tolerance::new(2e-3, 2e-2),
                Dtype::Bf16 => Tolerance::new(3e-3, 3e-2),
                Dtype::E4m3 => Tolerance::new(4e-3, 4e-2),
            },
            rows: batch,
        }
    }

    fn part(&self, rows: Range<usize>) -> Option<Box<dyn Op>> {
        let tiles = self.utilities[0].len() / self.dims.batch;
        let in_rows = |values: &Vec<f32>| values[rows.start * tiles..rows.end * tiles].to_vec();
        let utilities = self.utilities.each_ref().map(in_rows);
        Some(Box::new(Self { dims: Nchw { batch: rows.len(), ..self.dims }, utilities, ..*self }))
    }

    fn cpu(&self, variant: Variant, dtype: Dtype) -> Box<dyn Cpu> {
        let weights = self.weights(dtype);
        // The same grids were laid when the request was checked.
        match variant {
            Variant::Fast => Box::new(Version(FastModule::new(self.dims, self.config, &weights).ok())),
            Variant::Reference => Box::new(Version(OracleModule::new(self.dims, self.config, &weights).ok())),
        }
    }

    fn check_cuda(&self, request: &Request, _: Dtype) -> Result<(), BuildError> {
        cuda::check(request, &self.dims, &self.config)
    }

    fn cuda(&self, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
        cuda::launches(self, build)
    }
}

/// A version on the CPU; without a module it writes nothing, and the check sees that.
struct Version<L>(Option<Module<L>>);

impl<L: Levels + Send> Cpu for Version<L> {
    fn run(&mut self, inputs: &[Tensor], outputs: &mut [Tensor]) {
        let Some(module) = &mut self.0 else { return };
        let [dense, utilities, split_utilities, boundary, uncertainty] = inputs else { return };
        let inputs = FfInputs {
            dense: dense.f32(),
            utilities: utilities.f32(),
            split_utilities: split_utilities.f32(),
            boundary: boundary.f32(),
            uncertainty: uncertainty.f32(),
        };
        swap_buffers(outputs, module.outputs.buffers());
        let done = module.run(&inputs);
        swap_buffers(outputs, module.outputs.buffers());
        // Values that are not finite cannot be routed; the check must see it.
        if done.is_err() {
            outputs.iter_mut().for_each(Tensor::poison);
        }
    }

    fn reset(&mut self) {
        if let Some(module) = &mut self.0 {
            module.outputs.poison();
        }
    }

    fn numbers(&self) -> Vec<f64> {
        self.0.as_ref().map_or(vec![f64::NAN], |module| module.outputs.diagnostics.numbers())
    }
}
