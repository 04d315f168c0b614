//! Greedy selection by utility per cost.

use super::{EPS, check_budget, check_finite, check_length, fill_kmax_buffer, ratio, sort_by_score};
use crate::error::OpError;

/// Result of a greedy selection. Keeps its buffers, so a second run does not allocate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Greedy {
    /// In the order of acceptance.
    pub selected: Vec<u32>,
    /// Cost of the accepted ids, summed in that order.
    pub spent: f64,
    /// All ids, best score first.
    pub ordered_candidates: Vec<u32>,
    /// Utility per cost of each id.
    pub scores: Vec<f64>,
    /// `selected` padded with -1.
    pub kmax_buffer: Vec<i64>,
}

impl Greedy {
    /// Room for `count` candidates and `kmax` choices: [`Greedy::run`] then never allocates.
    pub fn with_capacity(count: usize, kmax: usize) -> Self {
        Self {
            selected: Vec::with_capacity(kmax.min(count)),
            spent: 0.0,
            ordered_candidates: Vec::with_capacity(count),
            scores: Vec::with_capacity(count),
            kmax_buffer: Vec::with_capacity(kmax),
        }
    }

    pub fn valid_count(&self) -> usize {
        self.selected.len()
    }

    /// Selects anew. A candidate that does not fit is skipped, cheaper ones after it may still be taken.
    pub fn run(&mut self, utilities: &[f64], costs: &[f64], budget: f64, kmax: usize) -> Result<(), OpError> {
        check_budget("budget", budget)?;
        check_length("delta_costs", utilities.len(), costs.len())?;
        check_finite("utilities", utilities)?;
        check_finite("delta_costs", costs)?;
        self.scores.clear();
        self.scores.extend(utilities.iter().zip(costs).map(|(&u, &d)| ratio(u, d)));
        self.ordered_candidates.clear();
        self.ordered_candidates.extend(0..utilities.len() as u32);
        let scores = &self.scores;
        sort_by_score(&mut self.ordered_candidates, |id| scores[id as usize]);
        self.walk(costs, budget, kmax);
        fill_kmax_buffer(&mut self.kmax_buffer, &self.selected, kmax);
        Ok(())
    }

    fn walk(&mut self, costs: &[f64], budget: f64, kmax: usize) {
        self.selected.clear();
        self.spent = 0.0;
        for &id in &self.ordered_candidates {
            if self.selected.len() >= kmax {
                break;
            }
            let cost = costs[id as usize];
            if self.spent + cost <= budget + EPS {
                self.selected.push(id);
                self.spent += cost;
            }
        }
    }
}

pub fn greedy(utilities: &[f64], costs: &[f64], budget: f64, kmax: usize) -> Result<Greedy, OpError> {
    let mut result = Greedy::with_capacity(utilities.len(), kmax);
    result.run(utilities, costs, budget, kmax)?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vector_a_skips_what_does_not_fit_and_goes_on() {
        let r = greedy(&[0.3, 1.1, 0.9, 0.2, 0.8], &[1.0, 1.0, 2.0, 0.5, 1.5], 3.0, 3).unwrap();
        assert_eq!(r.selected, [1, 4, 3]);
        assert_eq!(r.spent, 3.0);
        assert_eq!(r.ordered_candidates, [1, 4, 2, 3, 0]);
        assert_eq!(r.scores, [0.3, 1.1, 0.45, 0.4, 0.533_333_333_333_333_3]);
        assert_eq!(r.kmax_buffer, [1, 4, 3]);
    }

    #[test]
    fn twenty_tiles_of_0_8_fit_a_budget_of_16_despite_rounding() {
        let r = greedy(&[1.0; 64], &[0.8; 64], 16.0, 32).unwrap();
        assert_eq!(r.valid_count(), 20);
        assert_eq!(r.spent, 16.000_000_000_000_004);
        assert_eq!(r.selected, (0..20).collect::<Vec<_>>());
        assert_eq!(r.kmax_buffer[20..], [-1; 12]);
    }

    #[test]
    fn zero_costs_are_scored_against_eps() {
        let r = greedy(&[1.0, 2.0], &[0.0, 1.0], 0.0, 8).unwrap();
        assert_eq!((r.selected, r.scores[0]), (vec![0], 1.0 / 1e-9));
    }

    #[test]
    fn bad_numbers_are_refused() {
        assert!(greedy(&[1.0], &[1.0], -1.0, 1).is_err());
        assert!(greedy(&[1.0], &[1.0], f64::NAN, 1).is_err());
        assert!(greedy(&[1.0, 2.0], &[1.0], 1.0, 1).is_err());
        assert!(greedy(&[f64::INFINITY], &[1.0], 1.0, 1).is_err());
    }
}
