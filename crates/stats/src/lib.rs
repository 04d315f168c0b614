//! Slices of numbers in, numbers out. Pure: no clock, no files, no global state.
//!
//! Every function returns `None` where it has no answer; `0.0` never means "no data".

pub mod changes;
pub mod classic;
pub mod random;
pub mod sequential;
mod special;

/// The median; the mean of the middle two when the count is even.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let n = sorted.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(sorted[n / 2]),
        _ => Some(f64::midpoint(sorted[n / 2 - 1], sorted[n / 2])),
    }
}

/// The originals' percentile: `sorted[floor(q(n-1))]`, without interpolation. It lies at or below the
/// interpolated one: with 20 samples its p95 is the second largest.
pub fn percentile_floor(values: &[f64], q: f64) -> Option<f64> {
    let sorted = sorted(values);
    let last = sorted.len().checked_sub(1)?;
    sorted.get((q.clamp(0.0, 1.0) * last as f64).floor() as usize).copied()
}

/// The quantile, interpolated between the two nearest values.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    quantile_of_sorted(&sorted(values), q)
}

fn quantile_of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let at = q.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (*sorted.get(at.floor() as usize)?, *sorted.get(at.ceil() as usize)?);
    Some(low + (high - low) * at.fract())
}

/// Name of the rule of [`percentile_floor`], written into every report.
pub const PERCENTILE_RULE: &str = "sorted[floor(q(n-1))]";

/// Makes the median absolute deviation of a normal its standard deviation.
pub const NORMAL: f64 = 1.482_602_218_505_602;

/// The median absolute deviation as a standard deviation: outliers hardly change it.
pub fn robust_sd(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    Some(NORMAL * median(&deviations)?)
}

pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Standard deviation (n-1) over mean; absent with fewer than two values or a mean of zero.
pub fn coefficient_of_variation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    if values.len() < 2 || mean == 0.0 {
        return None;
    }
    let sum_of_squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Some((sum_of_squares / (values.len() - 1) as f64).sqrt() / mean.abs())
}

/// How far apart the values are: `(max - min) / median`; absent with fewer than two.
pub fn spread(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let sorted = sorted(values);
    let median = median(&sorted)?;
    (median > 0.0).then(|| (sorted[sorted.len() - 1] - sorted[0]) / median)
}

/// The standard deviation (n-1); absent with fewer than two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    classic::moments(values).map(|(_, variance)| variance.sqrt())
}

/// How far one normal value may lie above another by chance: exceeded with probability `tail`. `sd` was estimated from `count` values
/// like them; `variance` is that of their difference in units of `sd`². Absent with fewer than two values or a tail that is not in
/// (0, 1/2).
pub fn normal_excess(sd: f64, count: usize, variance: f64, tail: f64) -> Option<f64> {
    let degrees = count.checked_sub(1).filter(|degrees| *degrees > 0)? as f64;
    (tail > 0.0 && tail < 0.5).then(|| special::student_upper(tail, degrees) * variance.sqrt() * sd)
}

/// The variance of the median of so many normal values, in units of that of one: π/2n, which is a little too much for a few, and exact
/// for one and two.
pub fn median_variance(count: usize) -> f64 {
    match count {
        0..=2 => 1.0 / count.max(1) as f64,
        _ => MEDIAN_VARIANCE / count as f64,
    }
}

/// The variance of the median of many normal values, over that of their mean: π/2.
const MEDIAN_VARIANCE: f64 = std::f64::consts::FRAC_PI_2;

/// Stretches of a run at most, and at least: each long enough that noise from call to call averages out, and shorter than what lasts.
const STRETCHES: [usize; 2] = [20, 10];

/// How much slower the slowest tenth of the stretches was than the middle one; absent with fewer rounds than stretches.
pub fn slow_stretches(rounds: &[Vec<f64>]) -> Option<f64> {
    let [most, least] = STRETCHES;
    if rounds.len() < least {
        return None;
    }
    let count = rounds.len().min(most);
    let stretch = |at: usize| {
        let [begin, end] = [at, at + 1].map(|at| at * rounds.len() / count);
        median(&rounds[begin..end].concat())
    };
    let medians: Vec<f64> = (0..count).filter_map(stretch).collect();
    Some(quantile(&medians, 0.9)? / median(&medians)? - 1.0)
}

/// An interval for the median of values that come in rounds, at 95 %.
///
/// Values within a round are correlated, so their number says little; the rounds are what is independent. How
/// far the share of values below the median varies from round to round gives the error of that share, and
/// the values at the median's rank plus and minus that error are the interval (Woodruff's method for cluster
/// samples). Absent with fewer than six rounds.
pub fn median_interval_of_rounds(rounds: &[Vec<f64>]) -> Option<[f64; 2]> {
    let rounds: Vec<&Vec<f64>> = rounds.iter().filter(|round| !round.is_empty()).collect();
    let rounds_count = rounds.len();
    if rounds_count < ROUNDS_MIN {
        return None;
    }
    let pooled = sorted(&rounds.iter().flat_map(|round| round.iter().copied()).collect::<Vec<_>>());
    let middle = median(&pooled)?;
    // A tie counts half: times come in steps of the clock.
    let below = |value: &f64| if *value < middle { 1.0 } else { f64::from(u8::from(*value == middle)) / 2.0 };
    let mean_size = pooled.len() as f64 / rounds_count as f64;
    let error =
        |round: &&Vec<f64>| (round.iter().map(below).sum::<f64>() - 0.5 * round.len() as f64) / mean_size;
    let sum_of_squares: f64 = rounds.iter().map(error).map(|e| e * e).sum();
    let degrees = (rounds_count - 1) as f64;
    let half_width = student_t_975(degrees) * (sum_of_squares / degrees / rounds_count as f64).sqrt();
    let last = (pooled.len() - 1) as f64;
    let at = |share: f64, round: fn(f64) -> f64| pooled[round(share.clamp(0.0, 1.0) * last) as usize];
    Some([at(0.5 - half_width, f64::floor), at(0.5 + half_width, f64::ceil)])
}

/// Fewer rounds do not show how far rounds vary.
const ROUNDS_MIN: usize = 6;

/// The 97.5 % point of Student's t, by its expansion around the normal's; within 1 % from 5 degrees on.
fn student_t_975(degrees: f64) -> f64 {
    const Z: f64 = 1.959_963_984_540_054;
    let first = (Z.powi(3) + Z) / (4.0 * degrees);
    let second = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / (96.0 * degrees.powi(2));
    Z + first + second
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn p95_of_the_seeds_takes_their_index() {
        for (n, index) in [(15, 13), (20, 18), (25, 22), (30, 27), (50, 46)] {
            let values: Vec<f64> = (0..n).map(f64::from).collect();
            assert_eq!(percentile_floor(&values, 0.95), Some(f64::from(index)));
        }
    }

    #[test]
    fn nothing_in_is_nothing_out() {
        assert_eq!(median(&[]), None);
        assert_eq!(percentile_floor(&[], 0.5), None);
        assert_eq!(mean(&[]), None);
        assert_eq!(coefficient_of_variation(&[1.0]), None);
        assert_eq!(spread(&[1.0]), None);
        assert_eq!(median_interval_of_rounds(&vec![vec![1.0]; 5]), None);
    }

    #[test]
    fn students_t_agrees_with_the_tables() {
        for (degrees, expected) in [(5.0, 2.571), (9.0, 2.262), (20.0, 2.086), (1e9, 1.960)] {
            assert!((student_t_975(degrees) / expected - 1.0).abs() < 0.01, "{degrees}");
        }
    }

    #[test]
    fn the_excess_of_a_median_is_exceeded_at_its_rate() {
        // The median of three normal values has a variance of 0.449.
        let (mut random, trials, tail) = (random::Random::new(11), 40_000, 0.02);
        for count in [3, 5, 10] {
            let exceeded = (0..trials)
                .filter(|_| {
                    let values: Vec<f64> = (0..count).map(|_| random.normal()).collect();
                    let new: Vec<f64> = (0..3).map(|_| random.normal()).collect();
                    let sd = standard_deviation(&values).unwrap();
                    let excess = normal_excess(sd, count, 0.449 + median_variance(count), tail).unwrap();
                    median(&new).unwrap() - median(&values).unwrap() > excess
                })
                .count();
            let rate = exceeded as f64 / f64::from(trials);
            assert!((0.75 * tail..1.05 * tail).contains(&rate), "{count} values: {rate}");
        }
        assert_eq!(normal_excess(1.0, 1, 0.449, tail), None);
        assert_eq!(normal_excess(1.0, 2, 0.449, 0.5), None);
    }

    #[test]
    fn the_interval_covers_at_its_rate_although_rounds_are_correlated_inside() {
        // Each round has a level of its own and skewed noise around it. With a level L that is exponential
        // and noise that is exponential too, the sum is Gamma(2), whose median is 1.678347.
        let (mut random, trials) = (random::Random::new(7), 3_000);
        let mut exponential = || -random.uniform().ln();
        for rounds_count in [10, 40] {
            let covered = (0..trials)
                .filter(|_| {
                    let round = |level: f64, noise: &mut dyn FnMut() -> f64| {
                        (0..8).map(|_| level + noise()).collect()
                    };
                    let rounds: Vec<Vec<f64>> =
                        (0..rounds_count).map(|_| round(exponential(), &mut exponential)).collect();
                    let [low, high] = median_interval_of_rounds(&rounds).unwrap();
                    (low..=high).contains(&1.678_347)
                })
                .count();
            let rate = covered as f64 / f64::from(trials);
            assert!((0.93..=0.99).contains(&rate), "{rounds_count} rounds: {rate}");
        }
    }

    proptest! {
        #[test]
        fn order_does_not_matter_and_scale_scales(mut values in prop::collection::vec(1e-3_f64..1e6, 2..60)) {
            let scaled: Vec<f64> = values.iter().map(|v| v * 4.0).collect();
            let before = (median(&values), percentile_floor(&values, 0.95));
            prop_assert_eq!(median(&scaled), before.0.map(|v| v * 4.0));
            prop_assert_eq!(spread(&scaled), spread(&values));
            values.reverse();
            prop_assert_eq!((median(&values), percentile_floor(&values, 0.95)), before);
        }

        #[test]
        fn the_interval_holds_the_median(
            rounds in prop::collection::vec(prop::collection::vec(1e-3_f64..1e6, 1..9), 6..40),
        ) {
            let [low, high] = median_interval_of_rounds(&rounds).unwrap();
            let middle = median(&rounds.concat()).unwrap();
            prop_assert!(low <= middle && middle <= high);
        }
    }
}
