//! The block bootstrap of a median: draws rounds, not samples, because only rounds are independent.

use crate::quantile_of_sorted;
use crate::random::Random;

/// How the interval is drawn; the same settings on the same rounds give the same interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// 0.95 for 95 %.
    pub confidence: f64,
    pub resamples_count: usize,
    pub seed: u64,
}

impl Default for Bootstrap {
    /// The originals' settings: 95 %, 10 000 resamples, seed 42.
    fn default() -> Self {
        Self { confidence: 0.95, resamples_count: 10_000, seed: 42 }
    }
}

/// The percentile interval of the median of all values, over resampled rounds; a round of one value each is the plain
/// bootstrap. Absent with fewer than two rounds that hold anything, or when the settings make no sense.
pub fn median_interval(rounds: &[Vec<f64>], bootstrap: Bootstrap) -> Option<[f64; 2]> {
    let rounds: Vec<&Vec<f64>> = rounds.iter().filter(|round| !round.is_empty()).collect();
    let is_share = bootstrap.confidence > 0.0 && bootstrap.confidence < 1.0;
    if rounds.len() < 2 || bootstrap.resamples_count == 0 || !is_share {
        return None;
    }
    let mut random = Random::new(bootstrap.seed);
    let mut drawn = Vec::new();
    let mut medians: Vec<f64> = (0..bootstrap.resamples_count)
        .map(|_| {
            drawn.clear();
            (0..rounds.len()).for_each(|_| drawn.extend_from_slice(rounds[random.below(rounds.len())]));
            median_in_place(&mut drawn)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let tail = (1.0 - bootstrap.confidence) / 2.0;
    Some([quantile_of_sorted(&medians, tail)?, quantile_of_sorted(&medians, 1.0 - tail)?])
}

fn median_in_place(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let is_even = values.len().is_multiple_of(2);
    let (below, high, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let low = if is_even { below.iter().copied().fold(f64::NEG_INFINITY, f64::max) } else { *high };
    f64::midpoint(low, *high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_is_the_order_statistic_interval_when_rounds_are_single_values() {
        // The bootstrap's median of 1..=101 is at or below k when at least 51 of 101 draws are, so its quantiles are
        // those of a binomial: 41 and 61 at 95 %.
        let rounds: Vec<Vec<f64>> = (1..=101).map(|v| vec![f64::from(v)]).collect();
        assert_eq!(median_interval(&rounds, Bootstrap::default()), Some([41.0, 61.0]));
    }

    #[test]
    fn rounds_with_levels_of_their_own_give_a_wider_interval_than_their_samples() {
        let mut random = Random::new(3);
        let rounds: Vec<Vec<f64>> = (0..20)
            .map(|_| {
                let level = random.normal();
                (0..20).map(|_| level + 0.1 * random.normal()).collect()
            })
            .collect();
        let samples: Vec<Vec<f64>> = rounds.concat().into_iter().map(|v| vec![v]).collect();
        let width = |rounds: &[Vec<f64>]| {
            let settings = Bootstrap { resamples_count: 1000, ..Bootstrap::default() };
            let [low, high] = median_interval(rounds, settings).unwrap();
            high - low
        };
        assert!(width(&rounds) > 2.0 * width(&samples));
    }

    #[test]
    fn nothing_in_is_nothing_out() {
        let settings = Bootstrap::default();
        assert_eq!(median_interval(&[vec![1.0], vec![]], settings), None);
        let rounds = [vec![1.0], vec![2.0]];
        assert_eq!(median_interval(&rounds, Bootstrap { resamples_count: 0, ..settings }), None);
        assert_eq!(median_interval(&rounds, Bootstrap { confidence: 1.0, ..settings }), None);
    }

    proptest! {
        #[test]
        fn medians_in_place_are_medians(mut values in prop::collection::vec(-9.0_f64..9.0, 1..40)) {
            let want = crate::median(&values).unwrap();
            prop_assert_eq!(median_in_place(&mut values), want);
        }

        #[test]
        fn the_interval_scales(rounds in prop::collection::vec(prop::collection::vec(0.1_f64..9.0, 1..4), 2..9)) {
            let settings = Bootstrap { resamples_count: 200, ..Bootstrap::default() };
            let scaled: Vec<Vec<f64>> =
                rounds.iter().map(|round| round.iter().map(|v| v * 4.0).collect()).collect();
            let want = median_interval(&rounds, settings).map(|interval| interval.map(|v| v * 4.0));
            prop_assert_eq!(median_interval(&scaled, settings), want);
        }
    }
}
