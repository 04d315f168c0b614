//! The scatter of a series around its levels, estimated without knowing the levels.

use crate::{NORMAL, median};

/// Lags of the differences. A longer lag sees slow wandering as noise, which the differences of neighbours do not show; a change of
/// level touches only as many differences as the lag is long.
const LAGS: [usize; 4] = [1, 2, 4, 8];
/// A lag is used where the series has this many times its points, so that a change or two do not fill the differences.
const POINTS_PER_LAG: usize = 16;
/// Least noise: 0.2 %. Rounded values repeat, and then no difference is left.
const NOISE_MIN: f64 = 0.002;

/// The standard deviation of a point around its level: the mean over the lags of the median difference.
pub(super) fn estimate(points: &[f64]) -> f64 {
    let lags = LAGS.iter().filter(|lag| **lag == 1 || **lag * POINTS_PER_LAG <= points.len());
    let scatters: Vec<f64> = lags.filter_map(|lag| scatter(points, *lag)).collect();
    // Of few points the estimate itself is uncertain, and too little noise makes changes out of nothing.
    let doubt = 1.0 + 1.0 / (points.len().max(1) as f64).sqrt();
    crate::mean(&scatters).map_or(NOISE_MIN, |scatter| (scatter * doubt).max(NOISE_MIN))
}

fn scatter(points: &[f64], lag: usize) -> Option<f64> {
    let differences: Vec<f64> =
        points.iter().zip(points.iter().skip(lag)).map(|(a, b)| (b - a).abs()).collect();
    median(&differences).map(|middle| middle * NORMAL * std::f64::consts::FRAC_1_SQRT_2)
}

/// By how much the correlation of neighbours raises the variance of a level's estimate, at least 1: (1 + r) / (1 - r).
pub(super) fn inflation(residuals: &[f64], noise: f64) -> f64 {
    // Bounded as in the loss, so that one bad run does not set the correlation.
    let bounded: Vec<f64> =
        residuals.iter().map(|r| (r / noise).clamp(-super::REACH, super::REACH)).collect();
    let power: f64 = bounded.iter().map(|r| r * r).sum();
    let product: f64 = bounded.windows(2).map(|pair| pair[0] * pair[1]).sum();
    if power <= 0.0 {
        return 1.0;
    }
    let r = (product / power).clamp(0.0, CORRELATION_MAX);
    (1.0 + r) / (1.0 - r)
}

/// A correlation beyond this is a level that moved, not noise.
const CORRELATION_MAX: f64 = 0.8;
