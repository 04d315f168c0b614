//! Splitting chosen tiles into their four children on the next level.

use super::{
    EPS, Greedy, check_budget, check_finite, check_length, fill_kmax_buffer, greedy, ratio, sort_by_score,
};
use crate::error::OpError;
use crate::order::{OrderMode, Orderer, child_ids};
use crate::shape::Grid;

#[derive(Clone, Copy, Debug)]
pub struct SplitInput<'a> {
    /// Gain of splitting, one per tile of the parents' grid.
    pub utilities: &'a [f64],
    /// Cost of splitting, one per tile of the parents' grid.
    pub overheads: &'a [f64],
    pub budget: f64,
    pub kmax: usize,
}

/// Result of one split step. Keeps its buffers between runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Split {
    /// Candidates, best score first.
    pub parent_order: Vec<u32>,
    pub parents: Vec<u32>,
    /// In the order of acceptance.
    pub children: Vec<u32>,
    /// The children in visiting order on their own grid.
    pub ordered: Vec<u32>,
    /// `ordered` padded with -1.
    pub kmax_buffer: Vec<i64>,
    /// Overheads of the parents that were split.
    pub spent: f64,
}

impl Split {
    pub fn with_capacity(parents_max: usize, kmax: usize) -> Self {
        Self {
            parent_order: Vec::with_capacity(parents_max),
            parents: Vec::with_capacity(parents_max),
            children: Vec::with_capacity(kmax),
            ordered: Vec::with_capacity(kmax),
            kmax_buffer: Vec::with_capacity(kmax),
            spent: 0.0,
        }
    }

    /// Checks the numbers once; [`Split::run`] relies on it.
    pub fn check(input: &SplitInput<'_>, grid: &Grid) -> Result<(), OpError> {
        check_budget("split budget", input.budget)?;
        check_length("split_utilities", grid.count(), input.utilities.len())?;
        check_length("split_overheads", grid.count(), input.overheads.len())?;
        check_finite("split_utilities", input.utilities)?;
        check_finite("split_overheads", input.overheads)
    }

    /// `grid` is the parents'; `orderer` belongs to the children's grid.
    pub fn run(&mut self, input: &SplitInput<'_>, candidates: &[u32], grid: &Grid, orderer: &mut Orderer) {
        self.parent_order.clear();
        self.parents.clear();
        self.children.clear();
        self.spent = 0.0;
        if !candidates.is_empty() && input.kmax > 0 && input.budget != 0.0 {
            self.parent_order.extend_from_slice(candidates);
            let score = |id: u32| ratio(input.utilities[id as usize], input.overheads[id as usize]);
            sort_by_score(&mut self.parent_order, score);
            self.walk(input, grid);
        }
        self.ordered.resize(self.children.len(), 0);
        orderer.order_into(&self.children, &mut self.ordered);
        fill_kmax_buffer(&mut self.kmax_buffer, &self.ordered, input.kmax);
    }

    fn walk(&mut self, input: &SplitInput<'_>, grid: &Grid) {
        for &parent in &self.parent_order {
            let overhead = input.overheads[parent as usize];
            if self.spent + overhead > input.budget + EPS || self.children.len() + 4 > input.kmax {
                continue;
            }
            self.parents.push(parent);
            self.children.extend(child_ids(parent, grid));
            self.spent += overhead;
        }
    }
}

/// Tiles chosen on two levels; level 1 splits tiles of level 0.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoStage {
    pub l0: Greedy,
    pub l1: Split,
}

/// Greedy on level 0 (`utilities`, `costs`, `budget_b1`, `kmax_l0`), then a split of what was chosen.
pub fn two_stage(
    utilities: &[f64],
    costs: &[f64],
    (budget_b1, kmax_l0): (f64, usize),
    split: &SplitInput<'_>,
    grid: &Grid,
    l1_order: OrderMode,
) -> Result<TwoStage, OpError> {
    check_length("l0_utilities", grid.count(), utilities.len())?;
    let l0 = greedy(utilities, costs, budget_b1, kmax_l0)?;
    Split::check(split, grid)?;
    let children_grid = Grid { rows: 2 * grid.rows, cols: 2 * grid.cols, tile: grid.tile / 2 };
    let mut l1 = Split::with_capacity(l0.selected.len(), split.kmax);
    l1.run(split, &l0.selected, grid, &mut Orderer::new(l1_order, &children_grid, split.kmax));
    Ok(TwoStage { l0, l1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: Grid = Grid { rows: 2, cols: 2, tile: 16 };

    #[test]
    fn vector_b_splits_the_better_parent_first() {
        let split = SplitInput {
            utilities: &[0.2, 0.8, 0.6, 0.1],
            overheads: &[0.6, 0.7, 0.5, 0.9],
            budget: 1.4,
            kmax: 8,
        };
        let (u, d) = ([1.5, 1.4, 0.9, 0.7], [0.9, 1.1, 1.0, 1.2]);
        let r = two_stage(&u, &d, (2.1, 3), &split, &GRID, OrderMode::Hilbert).unwrap();
        assert_eq!((r.l0.selected, r.l0.spent), (vec![0, 1], 2.0));
        assert_eq!(
            r.l0.scores,
            [1.666_666_666_666_666_5, 1.272_727_272_727_272_5, 0.9, 0.583_333_333_333_333_4]
        );
        assert_eq!(r.l0.kmax_buffer, [0, 1, -1]);
        assert_eq!((r.l1.parent_order, r.l1.parents), (vec![1, 0], vec![1, 0]));
        assert_eq!(r.l1.spent, 1.299_999_999_999_999_8);
        assert_eq!(r.l1.children, [2, 3, 6, 7, 0, 1, 4, 5]);
        assert_eq!(r.l1.ordered, [0, 1, 5, 4, 7, 6, 2, 3]);
        assert_eq!(r.l1.kmax_buffer, [0, 1, 5, 4, 7, 6, 2, 3]);
    }

    #[test]
    fn a_parent_whose_children_do_not_fit_is_skipped_whole() {
        let split = SplitInput { utilities: &[1.0; 4], overheads: &[1.0; 4], budget: 9.0, kmax: 6 };
        let r = two_stage(&[1.0; 4], &[1.0; 4], (4.0, 4), &split, &GRID, OrderMode::Hilbert).unwrap();
        assert_eq!(r.l1.parents, [0]);
        assert_eq!(r.l1.kmax_buffer[4..], [-1, -1]);
    }

    #[test]
    fn no_budget_means_no_children() {
        let split = SplitInput { utilities: &[1.0; 4], overheads: &[0.0; 4], budget: 0.0, kmax: 8 };
        let r = two_stage(&[1.0; 4], &[1.0; 4], (4.0, 4), &split, &GRID, OrderMode::Hilbert).unwrap();
        assert!(r.l1.children.is_empty());
        assert_eq!(r.l1.kmax_buffer, [-1; 8]);
    }
}
