//! The two-level FF path: choose tiles under a budget, refine them, gate the result into the map, then the
//! same for the children of some of them. Must not touch pixels outside the chosen tiles, except to copy
//! them.

mod fast;
mod oracle;
mod path;
mod refine;
mod route;
mod weights;

pub use route::Router;
pub use weights::PathWeights;

use crate::buffer::Buffer;
use crate::diagnostics::Diagnostics;
use crate::error::OpError;
use crate::op::params;
use crate::select::{TwoStage, check_budget, check_length};
use crate::shape::{Grid, Nchw};

const NORM_EPS: f64 = 1e-5;

params! {
    /// The op's parameters.
    #[derive(Copy)]
    pub struct FfConfig {
        pub tile_size_l0: usize = 16,
        /// Half of level 0's.
        pub tile_size_l1: usize = 8,
        pub kmax_l0: usize = 32,
        pub kmax_l1: usize = 64,
        /// Budgets are per sample.
        pub budget_b1: f64 = 16.0,
        pub budget_b2: f64 = 8.0,
        pub budget_total: f64 = 32.0,
        pub cost_heavy: f64 = 1.0,
        pub cost_cheap: f64 = 0.2,
        /// Whether level 1 runs at all.
        pub nesting: bool = true,
    }
}

impl FfConfig {
    /// Checks tile sizes and budgets against a map; gives the two grids.
    pub fn grids(&self, dims: &Nchw) -> Result<[Grid; 2], OpError> {
        for (name, value) in [
            ("budget_b1", self.budget_b1),
            ("budget_b2", self.budget_b2),
            ("budget_total", self.budget_total),
            ("cost_cheap", self.cost_cheap),
            ("cost_heavy", self.cost_heavy),
        ] {
            check_budget(name, value)?;
        }
        let l0 = Grid::new(dims.height, dims.width, self.tile_size_l0)?;
        let l1 = Grid::new(dims.height, dims.width, self.tile_size_l1)?;
        // Children are addressed on a grid of exactly twice the rows and columns.
        check_length("tile_size_l0 (twice tile_size_l1)", 2 * self.tile_size_l1, self.tile_size_l0)?;
        Ok([l0, l1])
    }

    /// Extra cost of the heavy path per tile.
    pub(crate) fn delta_cost(&self) -> f64 {
        (self.cost_heavy - self.cost_cheap).max(1e-9)
    }
}

/// Inputs of one call. Utilities are `[B, K0]`, proxies `[B, H, W]`.
#[derive(Clone, Copy, Debug)]
pub struct FfInputs<'a> {
    /// `[B, C, H, W]`.
    pub dense: &'a [f32],
    /// Worth of each level-0 tile.
    pub utilities: &'a [f32],
    /// Worth of splitting each level-0 tile.
    pub split_utilities: &'a [f32],
    pub boundary: &'a [f32],
    pub uncertainty: &'a [f32],
}

impl<'a> FfInputs<'a> {
    /// For choosing tiles alone.
    pub(crate) fn for_routing([utilities, split_utilities]: &'a [Vec<f32>; 2]) -> Self {
        Self { dense: &[], utilities, split_utilities, boundary: &[], uncertainty: &[] }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct FfOutputs {
    /// `[B, C, H, W]`.
    pub heavy: Buffer,
    /// Output minus input of the last path that ran, `[B, C, H, W]`.
    pub detail: Buffer,
    /// Gate of the last path that ran, `[B, H, W]`.
    pub alpha: Buffer,
    /// Final scan states of both paths, `[B, 2 paths, 2 directions, C]`; zeros for a path without tiles.
    pub states: Buffer,
    pub diagnostics: Diagnostics,
}

impl FfOutputs {
    pub(crate) fn new(dims: &Nchw) -> Self {
        Self {
            heavy: Buffer::nan(dims.len()),
            detail: Buffer::nan(dims.len()),
            alpha: Buffer::nan(dims.batch * dims.plane()),
            states: Buffer::nan(dims.batch * 4 * dims.channels),
            diagnostics: Diagnostics::empty(),
        }
    }

    /// In the order of the op's outputs.
    pub(crate) fn buffers(&mut self) -> [&mut Buffer; 4] {
        [&mut self.heavy, &mut self.detail, &mut self.alpha, &mut self.states]
    }

    pub fn poison(&mut self) {
        self.buffers().into_iter().for_each(|buffer| buffer.fill(f32::NAN));
        self.diagnostics = Diagnostics::empty();
        self.diagnostics.mu_last = f64::NAN;
    }
}

/// The output buffers of one sample; states are those of both levels.
pub struct SampleOutputs<'a> {
    heavy: &'a mut [f32],
    detail: &'a mut [f32],
    alpha: &'a mut [f32],
    states: [&'a mut [f32]; 2],
}

/// Both levels of one version, with their working space.
pub trait Levels {
    /// Each level has a grid and at most so many tiles.
    fn new(dims: Nchw, levels: [(Grid, usize); 2], weights: &[PathWeights; 2]) -> Self;
    fn run(&mut self, sample: &FfInputs<'_>, route: &TwoStage, out: SampleOutputs<'_>);
}

/// The FF module in one version.
#[derive(Clone, Debug)]
pub struct Module<L> {
    dims: Nchw,
    levels: L,
    pub router: Router,
    pub outputs: FfOutputs,
}

pub type FastModule = Module<fast::FastLevels>;
pub type OracleModule = Module<oracle::OracleLevels>;

impl<L: Levels> Module<L> {
    /// A module for maps of one size; weights are level 0's and level 1's.
    pub fn new(dims: Nchw, config: FfConfig, weights: &[PathWeights; 2]) -> Result<Self, OpError> {
        let [l0, l1] = config.grids(&dims)?;
        let levels = [(l0, config.kmax_l0), (l1, config.kmax_l1)];
        Ok(Self {
            dims,
            levels: L::new(Nchw { batch: 1, ..dims }, levels, weights),
            router: Router::new(config, &dims)?,
            outputs: FfOutputs::new(&dims),
        })
    }

    /// Runs both levels on every sample.
    pub fn run(&mut self, inputs: &FfInputs<'_>) -> Result<(), OpError> {
        self.router.run(inputs)?;
        self.outputs.diagnostics = self.router.diagnostics();
        let Nchw { channels, .. } = self.dims;
        let FfOutputs { heavy, detail, alpha, states, .. } = &mut self.outputs;
        for (b, route) in self.router.routes.iter().enumerate() {
            let sample = b * self.dims.sample()..(b + 1) * self.dims.sample();
            let plane = b * self.dims.plane()..(b + 1) * self.dims.plane();
            let (states0, states1) = states[4 * b * channels..][..4 * channels].split_at_mut(2 * channels);
            let inputs = FfInputs {
                dense: &inputs.dense[sample.clone()],
                boundary: &inputs.boundary[plane.clone()],
                uncertainty: &inputs.uncertainty[plane.clone()],
                ..*inputs
            };
            let out = SampleOutputs {
                heavy: &mut heavy[sample.clone()],
                detail: &mut detail[sample],
                alpha: &mut alpha[plane],
                states: [states0, states1],
            };
            self.levels.run(&inputs, route, out);
        }
        Ok(())
    }
}

/// Floating-point operations of one call that has `tiles` tiles on each level.
pub fn flops(dims: &Nchw, config: &FfConfig, tiles: [usize; 2]) -> u64 {
    let c = dims.channels as u64;
    let mut total = 8 * dims.plane() as u64 * dims.batch as u64;
    for (tiles, edge) in tiles.into_iter().zip([config.tile_size_l0, config.tile_size_l1]) {
        let (tiles, pixels) = (tiles as u64, (edge * edge) as u64);
        // Per token: scan both ways, LayerNorm, two linear layers.
        total += tiles * (c * 14 + c * 8 + 2 * c * c + 4 * c * c + 4 * c);
        // Per pixel: mean, modulation, 3x3, 1x1, GroupNorm, gate and residual, fusion and detail.
        total += tiles * pixels * (c + 2 * c + 18 * c + 4 * c * c + 8 * 2 * c + 3 * c + 4 * c);
    }
    total
}
