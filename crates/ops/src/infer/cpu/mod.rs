//! The CPU vision model: pool, route, pack, scan, modulate, unpack. It has no learned weights.
//! Must not keep anything between calls but the hysteresis mask.

mod fast;
mod oracle;

pub use fast::fast;
pub use oracle::oracle;

use crate::buffer::Buffer;
use crate::diagnostics::{BudgetUse, Diagnostics, Histogram};
use crate::error::OpError;
use crate::op::params;
use crate::order::{OrderMode, Orderer};
use crate::select::{Greedy, Hysteresis, check_budget};
use crate::shape::{Grid, Nchw, TileSpec};
use crate::tile_pack::cpu::Packed;

/// Pooling edge of the coarse view.
pub(crate) const PV_STRIDE: usize = 16;
/// Pooling edge of the view that is tiled.
pub const FF_STRIDE: usize = 8;
pub(crate) const CHANNELS: usize = 3;

/// The fixed decay of the model's own scan, which has no gains.
const SCAN_DECAY: f32 = 0.85;
/// The value that the report gives for the dual variable.
const MU: f64 = 0.1;

params! {
    /// The op's parameters.
    #[derive(Copy)]
    pub struct InferConfig {
        /// On the pooled view.
        pub tile_size_l0: usize = 16,
        pub kmax_l0: usize = 32,
        pub budget_b1: f64 = 16.0,
        pub budget_b2: f64 = 8.0,
        pub budget_b3: f64 = 0.0,
        pub budget_total: f64 = 32.0,
        pub theta_on: f64 = 0.6,
        pub theta_off: f64 = 0.45,
        /// Select every tile whatever it costs.
        pub force_dense_routing: bool = false,
        pub disable_ssm: bool = false,
    }
}

impl InferConfig {
    fn budgets(&self) -> [f64; 3] {
        [self.budget_b1, self.budget_b2, self.budget_b3]
    }

    fn hysteresis(&self) -> Hysteresis {
        Hysteresis { theta_on: self.theta_on, theta_off: self.theta_off, active_max: Some(self.kmax_l0) }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct InferOutputs {
    /// 16x16 means.
    pub pv16: Buffer,
    /// 8x8 means.
    pub ff8: Buffer,
    /// `ff8` with the selected tiles modulated.
    pub merged: Buffer,
    pub ssm_state: Buffer,
    /// Largest merged value, clipped to [0, 1].
    pub score: f32,
    /// One per tile; carried to the next call.
    pub hysteresis_mask: Vec<bool>,
    pub diagnostics: Diagnostics,
}

impl InferOutputs {
    /// In the order of the op's outputs.
    pub(crate) fn buffers(&mut self) -> [&mut Buffer; 4] {
        [&mut self.pv16, &mut self.ff8, &mut self.merged, &mut self.ssm_state]
    }
}

#[derive(Clone, Debug)]
pub struct Model {
    config: InferConfig,
    image: Nchw,
    ff: Nchw,
    grid: Grid,
    rule: Hysteresis,
    pub utilities: Vec<f64>,
    costs: Vec<f64>,
    greedy: Greedy,
    active: Vec<(bool, u32)>,
    selected: Vec<u32>,
    packed: Packed,
    orderer: Orderer,
    /// Mean of each packed tile, `[K, 3]`.
    pub tokens: Vec<f32>,
    mixed: Vec<f32>,
    /// Modulation of each packed tile, `[K, 3]`.
    pub gamma: Vec<f32>,
    priority_map: Vec<i8>,
    sums: Vec<f32>,
    pub outputs: InferOutputs,
}

impl Model {
    /// Checks sizes and numbers without allocating.
    pub fn check(height: usize, width: usize, config: &InferConfig) -> Result<Grid, OpError> {
        for budget in config.budgets().into_iter().chain([config.budget_total]) {
            check_budget("budget", budget)?;
        }
        config.hysteresis().check()?;
        Grid::new(height / FF_STRIDE, width / FF_STRIDE, config.tile_size_l0)
    }

    pub fn new(height: usize, width: usize, config: InferConfig) -> Result<Self, OpError> {
        let grid = Self::check(height, width, &config)?;
        let ff = Nchw::new(1, CHANNELS, height / FF_STRIDE, width / FF_STRIDE);
        let count = grid.count();
        let spec = TileSpec { dims: ff, grid, tiles: count };
        Ok(Self {
            image: Nchw::new(1, CHANNELS, height, width),
            ff,
            grid,
            rule: config.hysteresis(),
            utilities: vec![0.0; count],
            costs: vec![1.0; count],
            greedy: Greedy::with_capacity(count, config.kmax_l0.min(count)),
            active: Vec::with_capacity(count),
            selected: Vec::with_capacity(count),
            packed: Packed::new(&spec),
            orderer: Orderer::new(OrderMode::Hilbert, &grid, count),
            tokens: vec![0.0; count * CHANNELS],
            mixed: vec![0.0; count * CHANNELS],
            gamma: vec![0.0; count * CHANNELS],
            priority_map: vec![0; ff.plane()],
            sums: vec![0.0; width],
            outputs: InferOutputs {
                pv16: Buffer::nan(CHANNELS * (height / PV_STRIDE) * (width / PV_STRIDE)),
                ff8: Buffer::nan(ff.len()),
                merged: Buffer::nan(ff.len()),
                ssm_state: Buffer::nan(CHANNELS),
                score: f32::NAN,
                hysteresis_mask: vec![false; count],
                diagnostics: Diagnostics::empty(),
            },
            config,
        })
    }

    pub fn selected(&self) -> &[u32] {
        &self.selected
    }

    /// Fills every output with NaN and forgets the previous frame.
    pub fn poison(&mut self) {
        let outputs = &mut self.outputs;
        outputs.buffers().into_iter().for_each(|buffer| buffer.fill(f32::NAN));
        outputs.score = f32::NAN;
        self.utilities.fill(f64::NAN);
        outputs.hysteresis_mask.fill(false);
        outputs.diagnostics = Diagnostics::empty();
        outputs.diagnostics.mu_last = f64::NAN;
    }

    /// Selection, hysteresis and report from the utilities; shared, since it is scalar bookkeeping.
    fn route(&mut self) {
        let count = self.grid.count();
        self.selected.clear();
        let spent = if self.config.force_dense_routing {
            self.selected.extend(0..count as u32);
            count as f64
        } else {
            let kmax = self.config.kmax_l0.min(count);
            match self.greedy.run(&self.utilities, &self.costs, self.config.budget_b1, kmax) {
                Ok(()) => self.selected.extend_from_slice(&self.greedy.selected),
                // Only utilities that are not finite get here: nothing is selected, and the check sees it.
                Err(_) => self.greedy.spent = 0.0,
            }
            self.greedy.spent
        };
        self.rule.update(&self.utilities, &mut self.outputs.hysteresis_mask, &mut self.active);
        self.report(spent);
        if self.selected.is_empty() {
            self.selected.push(0);
        }
    }

    fn report(&mut self, spent: f64) {
        let count = self.grid.count() as u64;
        let mut budgets = self.config.budgets().map(|budget| BudgetUse { used: 0.0, budget });
        budgets[0].used = spent;
        self.outputs.diagnostics = Diagnostics {
            selected_counts: [self.selected.len() as u64, 0, 0],
            total_counts: [count, 4 * count, 0],
            utility_histogram: Histogram::new(&self.utilities),
            budgets,
            total: BudgetUse { used: spent, budget: self.config.budget_total },
            mu_last: MU,
        };
    }

    fn tile_spec(&self) -> TileSpec {
        TileSpec { dims: self.ff, grid: self.grid, tiles: self.selected.len() }
    }

    /// The scan and what it means for each tile; `tokens` must be filled.
    fn scan(&mut self) {
        let used = self.selected.len() * CHANNELS;
        let (tokens, mixed) = (&self.tokens[..used], &mut self.mixed[..used]);
        let state = &mut self.outputs.ssm_state;
        if self.config.disable_ssm {
            mixed.fill(0.0);
            state.fill(0.0);
        } else {
            state.fill(0.0);
            for (tokens, mixed) in tokens.chunks_exact(CHANNELS).zip(mixed.chunks_exact_mut(CHANNELS)) {
                for c in 0..CHANNELS {
                    state[c] = SCAN_DECAY * state[c] + (1.0 - SCAN_DECAY) * tokens[c];
                    mixed[c] = state[c];
                }
            }
        }
        for (gamma, mixed) in self.gamma.iter_mut().zip(mixed) {
            *gamma = mixed.tanh();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::RandomState;

    /// Other seeds are held against the original's whole tensors (`tests/parity.rs`).
    #[test]
    fn seed_0_gives_the_known_numbers() {
        let image = RandomState::new(0).uniforms(3 * 128 * 128);
        for run in [oracle as fn(&mut Model, &[f32]), fast] {
            let mut model = Model::new(128, 128, InferConfig::default()).unwrap();
            run(&mut model, &image);
            let out = &model.outputs;
            let near = |name: &str, got: &[f32], want: &[f64]| {
                let is_near = |(got, want): (&f32, &f64)| (f64::from(*got) - want).abs() < 1e-6;
                assert!(got.iter().zip(want).all(is_near), "{name}: {got:?}, not {want:?}");
            };
            near("pv16", &out.pv16[..1], &[0.491_442_275_990_266_35]);
            near("ff8", &out.ff8[..1], &[0.534_559_044_637_717_3]);
            near("utility", &[model.utilities[0] as f32], &[0.499_031_448_817_494_17]);
            let tokens = [0.494_357_235_484_823_13, 0.500_342_645_832_290_6, 0.498_521_223_862_826_27];
            near("tokens", &model.tokens[..3], &tokens);
            let state = [0.074_153_585_322_723_48, 0.075_051_396_874_843_6, 0.074_778_183_579_423_95];
            near("state", &out.ssm_state[..3], &state);
            let gamma = [0.074_017_966_162_838_66, 0.074_910_799_338_940_6, 0.074_639_113_661_131_36];
            near("gamma", &model.gamma[..3], &gamma);
            near(
                "merged",
                &[out.merged[0], out.merged[767]],
                &[0.648_279_603_238_474_8, 0.628_998_147_238_444],
            );
            near("score", &[out.score], &[0.709_682_080_121_334_8]);
        }
    }

    #[test]
    fn the_report_of_the_suite_shape_is_the_documented_one() {
        let mut model = Model::new(128, 128, InferConfig::default()).unwrap();
        fast(&mut model, &RandomState::new(123).uniforms(3 * 128 * 128));
        let report = &model.outputs.diagnostics;
        assert_eq!(model.selected(), [0]);
        assert_eq!(model.outputs.hysteresis_mask, [false]);
        assert_eq!((report.selected_counts, report.total_counts), ([1, 0, 0], [1, 4, 0]));
        assert_eq!((report.budgets[0].used, report.budgets[0].ratio()), (1.0, 1.0 / 16.0));
        assert_eq!((report.total.budget, report.selected_ratio(0), report.mu_last), (32.0, 1.0, 0.1));
    }

    #[test]
    fn with_no_budget_tile_0_is_used_anyway() {
        let config = InferConfig { budget_b1: 0.0, ..InferConfig::default() };
        let mut model = Model::new(128, 128, config).unwrap();
        fast(&mut model, &RandomState::new(1).uniforms(3 * 128 * 128));
        assert_eq!(model.outputs.diagnostics.selected_counts[0], 0);
        assert_eq!(model.selected(), [0]);
    }
}
