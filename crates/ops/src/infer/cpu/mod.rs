//! The CPU vision model: pool, route, pack, scan, modulate, unpack. It has no learned weights.
//! Must not keep anything between calls but the hysteresis mask.

mod fast;
mod oracle;

pub use fast::fast;
pub use oracle::oracle;

use crate::buffer::Buffer;
use crate::diagnostics::{BudgetUse, Diagnostics, Histogram};
use crate::error::OpError;
use crate::order::{OrderMode, Orderer};
use crate::select::{Greedy, Hysteresis};
use crate::shape::{Grid, Nchw};
use crate::tile_pack::cpu::{PackSpec, Packed};
use crate::tile_unpack::cpu::{Overlap, UnpackSpec};

/// Pooling edge of the coarse view.
pub const PV_STRIDE: usize = 16;
/// Pooling edge of the view that is tiled.
pub const FF_STRIDE: usize = 8;
pub const CHANNELS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InferConfig {
    /// On the pooled view.
    pub tile_size_l0: usize,
    pub kmax_l0: usize,
    pub budgets: [f64; 3],
    pub budget_total: f64,
    pub theta_on: f64,
    pub theta_off: f64,
    /// Select every tile whatever it costs.
    pub force_dense_routing: bool,
    pub disable_ssm: bool,
    /// Reported as the dual variable.
    pub mu_init: f64,
}

impl Default for InferConfig {
    fn default() -> Self {
        Self {
            tile_size_l0: 16,
            kmax_l0: 32,
            budgets: [16.0, 8.0, 0.0],
            budget_total: 32.0,
            theta_on: 0.6,
            theta_off: 0.45,
            force_dense_routing: false,
            disable_ssm: false,
            mu_init: 0.1,
        }
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
        config.budgets.iter().chain([&config.budget_total]).try_for_each(|&value| {
            let fine = value.is_finite() && value >= 0.0;
            if fine { Ok(()) } else { Err(OpError::Budget { name: "budget", value }) }
        })?;
        let rule = Hysteresis { theta_on: config.theta_on, theta_off: config.theta_off, active_max: None };
        rule.check()?;
        Grid::new(height / FF_STRIDE, width / FF_STRIDE, config.tile_size_l0)
    }

    pub fn new(height: usize, width: usize, config: InferConfig) -> Result<Self, OpError> {
        let grid = Self::check(height, width, &config)?;
        let ff = Nchw::new(1, CHANNELS, height / FF_STRIDE, width / FF_STRIDE);
        let count = grid.count();
        let spec = PackSpec { dims: ff, grid, tiles: count, order: Some(OrderMode::Hilbert) };
        let (active_max, kmax) = (Some(config.kmax_l0), config.kmax_l0.min(count));
        Ok(Self {
            image: Nchw::new(1, CHANNELS, height, width),
            ff,
            grid,
            rule: Hysteresis { theta_on: config.theta_on, theta_off: config.theta_off, active_max },
            utilities: vec![0.0; count],
            costs: vec![1.0; count],
            greedy: Greedy::with_capacity(count, kmax),
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

    /// Sizes of the tiled view.
    pub fn ff_dims(&self) -> Nchw {
        self.ff
    }

    /// Fills every output with NaN and forgets the previous frame.
    pub fn poison(&mut self) {
        let outputs = &mut self.outputs;
        for buffer in [&mut outputs.pv16, &mut outputs.ff8, &mut outputs.merged, &mut outputs.ssm_state] {
            buffer.fill(f32::NAN);
        }
        outputs.score = f32::NAN;
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
            match self.greedy.run(&self.utilities, &self.costs, self.config.budgets[0], kmax) {
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
        let budget = |level: usize, used| BudgetUse { used, budget: self.config.budgets[level] };
        self.outputs.diagnostics = Diagnostics {
            selected_counts: [self.selected.len() as u64, 0, 0],
            total_counts: [count, 4 * count, 0],
            utility_histogram: Histogram::of(&self.utilities),
            budgets: [budget(0, spent), budget(1, 0.0), budget(2, 0.0)],
            total: BudgetUse { used: spent, budget: self.config.budget_total },
            mu_last: self.config.mu_init,
        };
    }

    fn pack_spec(&self) -> PackSpec {
        let tiles = self.selected.len();
        PackSpec { dims: self.ff, grid: self.grid, tiles, order: Some(OrderMode::Hilbert) }
    }

    fn unpack_spec(&self) -> UnpackSpec {
        let (dims, tile, tiles) = (self.ff, self.grid.tile, self.selected.len());
        UnpackSpec { dims, tile, tiles, overlap: Overlap::Override }
    }

    /// Shrinks or grows the packed buffers within their capacity.
    fn reshape_packed(&mut self) {
        let spec = self.pack_spec();
        self.packed.tiles.resize(spec.tiles * spec.tile_len(), 0.0);
        self.packed.indices.resize(spec.tiles, 0);
        self.packed.origins.resize(spec.tiles, [0, 0]);
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
            let alpha = crate::tile_ssm::cpu::placeholder::ALPHA;
            crate::tile_ssm::cpu::placeholder::tile_ssm_scan(tokens, CHANNELS, alpha, mixed, state);
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

    struct Known {
        seed: u64,
        pv16: f64,
        ff8: f64,
        utility: f64,
        tokens: [f64; 3],
        state: [f64; 3],
        gamma: [f64; 3],
        merged_first: f64,
        merged_last: f64,
        score: f64,
    }

    const KNOWN: [Known; 2] = [
        Known {
            seed: 123,
            pv16: 0.498_066_335_015_664_66,
            ff8: 0.503_914_050_597_813_9,
            utility: 0.502_586_553_202_614_9,
            tokens: [0.500_151_708_398_071_5, 0.500_078_661_795_634_5, 0.503_629_845_692_223_5],
            state: [0.075_022_756_259_710_75, 0.075_011_799_269_345_19, 0.075_544_476_853_833_53],
            gamma: [0.074_882_319_383_185_75, 0.074_871_423_823_689_75, 0.075_401_094_186_821_28],
            merged_first: 0.616_671_059_736_065_1,
            merged_last: 0.562_458_919_635_857_4,
            score: 0.726_679_815_619_157,
        },
        Known {
            seed: 0,
            pv16: 0.491_442_275_990_266_35,
            ff8: 0.534_559_044_637_717_3,
            utility: 0.499_031_448_817_494_17,
            tokens: [0.494_357_235_484_823_13, 0.500_342_645_832_290_6, 0.498_521_223_862_826_27],
            state: [0.074_153_585_322_723_48, 0.075_051_396_874_843_6, 0.074_778_183_579_423_95],
            gamma: [0.074_017_966_162_838_66, 0.074_910_799_338_940_6, 0.074_639_113_661_131_36],
            merged_first: 0.648_279_603_238_474_8,
            merged_last: 0.628_998_147_238_444,
            score: 0.709_682_080_121_334_8,
        },
    ];

    #[test]
    fn seeds_0_and_123_give_the_known_numbers() {
        for known in &KNOWN {
            let image = RandomState::new(known.seed).uniforms(3 * 128 * 128);
            for run in [oracle as fn(&mut Model, &[f32]), fast] {
                let mut model = Model::new(128, 128, InferConfig::default()).unwrap();
                run(&mut model, &image);
                let out = &model.outputs;
                let near = |got: f32, want: f64| {
                    assert!((f64::from(got) - want).abs() < 1e-6, "seed {}: {got} vs {want}", known.seed);
                };
                near(out.pv16[0], known.pv16);
                near(out.ff8[0], known.ff8);
                near(model.utilities[0] as f32, known.utility);
                for c in 0..3 {
                    near(model.tokens[c], known.tokens[c]);
                    near(out.ssm_state[c], known.state[c]);
                    near(model.gamma[c], known.gamma[c]);
                }
                near(out.merged[0], known.merged_first);
                near(out.merged[3 * 256 - 1], known.merged_last);
                near(out.score, known.score);
            }
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
        let config = InferConfig { budgets: [0.0; 3], ..InferConfig::default() };
        let mut model = Model::new(128, 128, config).unwrap();
        fast(&mut model, &RandomState::new(1).uniforms(3 * 128 * 128));
        assert_eq!(model.outputs.diagnostics.selected_counts[0], 0);
        assert_eq!(model.selected(), [0]);
    }
}
