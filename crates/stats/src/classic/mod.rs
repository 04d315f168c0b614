//! The familiar evidence, shown beside a decision and never deciding: tests, effect sizes, a bootstrap.
//!
//! All of it takes values as independent. Times taken in a row by one process are not, so these p-values are too small
//! on real data (`cargo bench -p holdpoint-stats --bench rules` shows by how much); give one value per unit, or rounds.

mod bootstrap;
mod effect;
mod mann_whitney;
mod welch;

pub use bootstrap::{Bootstrap, median_interval};
pub use effect::{cliffs_delta, hedges_g};
pub use mann_whitney::mann_whitney;
pub use welch::{Welch, welch};

use crate::special::beta_cdf;

/// The largest probability that `count` events in `trials_count` trials do not contradict at this one-sided confidence:
/// Clopper and Pearson's exact upper bound. Absent without trials or with more events than trials.
pub fn binomial_upper(count: usize, trials_count: usize, confidence: f64) -> Option<f64> {
    if trials_count == 0 || count > trials_count || !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    if count == trials_count {
        return Some(1.0);
    }
    let (a, b) = (count as f64 + 1.0, (trials_count - count) as f64);
    let (mut low, mut high) = (0.0, 1.0);
    // 60 halvings: below the last digit of a double near 1.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if beta_cdf(middle, a, b) < confidence { low = middle } else { high = middle }
    }
    Some(high)
}

/// Mean and variance (n-1); absent with fewer than two values.
pub(crate) fn moments(values: &[f64]) -> Option<(f64, f64)> {
    let mean = crate::mean(values)?;
    let degrees = values.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
    Some((mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / degrees as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binomial_bound_is_clopper_and_pearsons() {
        for (count, trials_count, want) in [
            (0, 20_000, 0.000_149_775_396_223),
            (17, 20_000, 0.001_274_690_584_674),
            (3, 10, 0.606_624_216_105_412),
        ] {
            let got = binomial_upper(count, trials_count, 0.95).unwrap();
            assert!((got / want - 1.0).abs() < 1e-8, "{count} of {trials_count}: {got}");
        }
        assert_eq!(binomial_upper(5, 5, 0.95), Some(1.0));
        assert_eq!(binomial_upper(0, 0, 0.95), None);
        assert_eq!(binomial_upper(6, 5, 0.95), None);
    }
}
