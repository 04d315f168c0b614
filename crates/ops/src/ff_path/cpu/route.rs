//! Chooses the tiles of each sample, and reports on the batch.

use super::{FfConfig, FfInputs};
use crate::diagnostics::{BudgetUse, Diagnostics, Histogram};
use crate::error::OpError;
use crate::order::{OrderMode, Orderer};
use crate::select::{Greedy, Split, SplitInput, TwoStage};
use crate::shape::{Grid, Nchw};

pub(crate) const SPLIT_OVERHEAD: f64 = 1.0;

/// Chooses tiles sample by sample, reusing its buffers.
#[derive(Clone, Debug)]
pub struct Router {
    config: FfConfig,
    grids: [Grid; 2],
    utilities: Vec<f64>,
    split_utilities: Vec<f64>,
    costs: Vec<f64>,
    overheads: Vec<f64>,
    orderer: Orderer,
    /// One per sample.
    pub routes: Vec<TwoStage>,
}

impl Router {
    pub fn new(config: FfConfig, dims: &Nchw) -> Result<Self, OpError> {
        let grids = config.grids(dims)?;
        let count = grids[0].count();
        // Built one by one: cloning a `Vec` drops its spare capacity, and the first call would allocate.
        let route = |_| TwoStage {
            l0: Greedy::with_capacity(count, config.kmax_l0),
            l1: Split::with_capacity(config.kmax_l0.min(count), config.kmax_l1),
        };
        Ok(Self {
            config,
            grids,
            utilities: vec![0.0; dims.batch * count],
            split_utilities: vec![0.0; count],
            costs: vec![config.delta_cost(); count],
            overheads: vec![SPLIT_OVERHEAD; count],
            orderer: Orderer::new(OrderMode::Hilbert, &grids[1], config.kmax_l1),
            routes: (0..dims.batch).map(route).collect(),
        })
    }

    pub fn run(&mut self, inputs: &FfInputs<'_>) -> Result<(), OpError> {
        let count = self.grids[0].count();
        for (wide, &narrow) in self.utilities.iter_mut().zip(inputs.utilities) {
            *wide = f64::from(narrow);
        }
        for (b, route) in self.routes.iter_mut().enumerate() {
            let utilities = &self.utilities[b * count..(b + 1) * count];
            let FfConfig { budget_b1, kmax_l0, .. } = self.config;
            route.l0.run(utilities, &self.costs, budget_b1, kmax_l0)?;
            let split = &inputs.split_utilities[b * count..(b + 1) * count];
            for (wide, &narrow) in self.split_utilities.iter_mut().zip(split) {
                *wide = f64::from(narrow);
            }
            let input = SplitInput {
                utilities: &self.split_utilities,
                overheads: &self.overheads,
                budget: self.config.budget_b2,
                kmax: self.config.kmax_l1,
            };
            Split::check(&input, &self.grids[0])?;
            let candidates = if self.config.nesting { &route.l0.selected[..] } else { &[] };
            route.l1.run(&input, candidates, &self.grids[0], &mut self.orderer);
        }
        Ok(())
    }

    /// The report; budgets are summed over the batch.
    pub fn diagnostics(&self) -> Diagnostics {
        let batch = self.routes.len() as f64;
        let counts = self.grids.map(|grid| (grid.count() * self.routes.len()) as u64);
        let sum = |f: &dyn Fn(&TwoStage) -> f64| self.routes.iter().map(f).sum::<f64>();
        let (b1, b2) = (sum(&|r| r.l0.spent), sum(&|r| r.l1.spent));
        let selected = |f: &dyn Fn(&TwoStage) -> usize| self.routes.iter().map(f).sum::<usize>() as u64;
        let use_of = |used, budget: f64| BudgetUse { used, budget: budget * batch };
        Diagnostics {
            selected_counts: [selected(&|r| r.l0.selected.len()), selected(&|r| r.l1.ordered.len()), 0],
            total_counts: [counts[0], counts[1], 0],
            utility_histogram: Histogram::new(&self.utilities),
            budgets: [use_of(b1, self.config.budget_b1), use_of(b2, self.config.budget_b2), use_of(0.0, 0.0)],
            total: use_of(b1 + b2, self.config.budget_total),
            mu_last: 0.1,
        }
    }
}
