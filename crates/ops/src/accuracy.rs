//! The error model: how large the errors of a right kernel are, whatever the tolerance allows. Must not decide about tolerances.
//!
//! A correctly rounded answer is off by at most half a unit in the last place, as often up as down. A right kernel adds a few roundings
//! of its own: attention rounds its weights, most ops sum in 32 bits. Errors several times as large, or all in one direction, have
//! another cause: a step that truncates, a constant that is slightly off, terms that are left out.

use crate::precision::Precision;
use holdpoint_cuda::Dtype;
use holdpoint_model::fuzz::Accuracy;

/// Errors this many times as large as roundings explain are named.
const SIZE_FACTOR: f64 = 4.0;
/// A bias is named from this many standard errors on: by chance, one in a billion cases.
const DEVIATIONS_MIN: f64 = 6.0;
/// Fewer values or rows say nothing about a mean.
const VALUES_MIN: u64 = 128;
const ROWS_MIN: u64 = 32;

/// The relative errors of a right kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roundings {
    /// Root mean square.
    pub rms: f64,
    /// Mean, of either sign.
    pub bias: f64,
    unit: f64,
}

impl Roundings {
    /// As many roundings to the element type, one after the other, and 32-bit sums between them.
    pub fn new(dtype: Dtype, count: u32) -> Self {
        let unit = dtype.unit();
        // Of numbers that are spread evenly, half a unit in the last place at most is 0.41 units in the root mean square.
        let narrow = 0.41 * unit * f64::from(count).sqrt();
        match dtype {
            // Sums of hundreds of terms and exponentials, in 32 bits themselves: several units.
            Dtype::F32 => Self { rms: 8.0 * unit, bias: 16.0 * unit, unit },
            _ => Self { rms: narrow, bias: 0.2 * unit, unit },
        }
    }

    /// Compares an output with the oracle's, value by value. `row` is how many values in a row may err as one; pairs for which `is_left_out`
    /// holds do not count. Absent where an answer is not finite, or all are zero.
    pub(crate) fn grade(
        self,
        row: usize,
        got: &[f32],
        want: &[f32],
        is_left_out: impl Fn(f64, f64) -> bool,
    ) -> Option<Accuracy> {
        let (mut values_count, mut rows_count) = (0, 0);
        let [mut squares, mut error_squares, mut products, mut row_products_squares] = [0.0_f64; 4];
        for (got, want) in got.chunks(row.max(1)).zip(want.chunks(row.max(1))) {
            let mut row_products = 0.0;
            for (&got, &want) in got.iter().zip(want) {
                let (got, want) = (f64::from(got), f64::from(want));
                if is_left_out(got, want) {
                    continue;
                }
                let error = got - want;
                values_count += 1;
                squares += want * want;
                error_squares += error * error;
                row_products += error * want;
            }
            rows_count += 1;
            products += row_products;
            row_products_squares += row_products * row_products;
        }
        // Sums of values divided by their root mean square.
        let mean = squares / f64::from(u32::try_from(values_count).unwrap_or(u32::MAX)).max(1.0);
        if !(mean > 0.0 && mean.is_finite() && error_squares.is_finite()) {
            return None;
        }
        Some(Accuracy {
            values_count,
            rows_count,
            error_squares: error_squares / mean,
            products: products / mean,
            row_products_squares: row_products_squares / (mean * mean),
            expected: self.rms,
            bias_expected: self.bias,
            unit: self.unit,
        })
    }
}

/// How accurate answers are below what they should be; absent where nothing is odd.
pub fn find_inaccuracy(accuracy: &Accuracy) -> Option<String> {
    let Accuracy { values_count, rows_count, expected, bias_expected, unit, .. } = *accuracy;
    if values_count < VALUES_MIN || rows_count < ROWS_MIN {
        return None;
    }
    let (bias, deviation) = (accuracy.bias(), accuracy.bias_deviation());
    if bias.abs() > bias_expected && bias.abs() > DEVIATIONS_MIN * deviation {
        let direction = if bias < 0.0 { "small" } else { "large" };
        // Truncation takes half a unit in the last place from every value, which is about 0.64 units of the type relative to it.
        let is_truncation = bias < 0.0 && (0.4..1.0).contains(&(-bias / unit));
        let hint = if is_truncation { ", as when results are truncated instead of rounded" } else { "" };
        return Some(format!(
            "answers are {} % too {direction} on average, {:.0} standard errors from none{hint}",
            percent(bias.abs()),
            (bias / deviation).abs().min(9_999.0),
        ));
    }
    let error = accuracy.error();
    (error > SIZE_FACTOR * expected).then(|| {
        format!(
            "the error is {} % of the answer, {:.1} times the {} % that roundings explain",
            percent(error),
            error / expected,
            percent(expected),
        )
    })
}

/// Two digits, whatever the size.
fn percent(share: f64) -> String {
    let value = 100.0 * share;
    if value >= 0.01 { format!("{value:.2}") } else { format!("{value:.1e}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::cpu::{AttentionSpec, oracle};
    use crate::rng::RandomState;

    const WIDTH: usize = 64;

    /// Answers of a kernel of some kind, each the sum of many terms, and the exact ones.
    fn graded(dtype: Dtype, len: usize, seed: u64, kernel: impl Fn(f32) -> f32) -> Option<String> {
        let want = RandomState::new(seed).normals(len);
        let got: Vec<f32> = want.iter().map(|want| kernel(*want)).collect();
        let roundings = Roundings::new(dtype, 1);
        find_inaccuracy(&roundings.grade(WIDTH, &got, &want, |_, _| false)?)
    }

    fn rounded(dtype: Dtype) -> impl Fn(f32) -> f32 {
        move |value| dtype.decode(&dtype.encode(&[value]))[0]
    }

    /// The next number toward zero.
    fn truncated(dtype: Dtype) -> impl Fn(f32) -> f32 {
        move |value| {
            let near = rounded(dtype)(value);
            let step = near.abs() * dtype.unit() as f32;
            if near.abs() > value.abs() { rounded(dtype)(near - near.signum() * 1.5 * step) } else { near }
        }
    }

    #[test]
    fn rounded_answers_are_as_accurate_as_they_should_be() {
        for dtype in [Dtype::F16, Dtype::Bf16, Dtype::E4m3] {
            for seed in 0..60 {
                let len = WIDTH * (32 + 3 * seed as usize);
                assert_eq!(graded(dtype, len, seed, rounded(dtype)), None, "{dtype:?} {seed}");
                // Rounded twice, to a third more bits first.
                let twice = |value: f32| {
                    rounded(dtype)(value * (1.0 + 0.3 * dtype.unit() as f32 * (value * 1e4).sin()))
                };
                assert_eq!(graded(dtype, len, seed, twice), None, "{dtype:?} {seed}");
            }
        }
    }

    #[test]
    fn truncated_answers_are_named_with_their_bias() {
        for dtype in [Dtype::F16, Dtype::Bf16, Dtype::E4m3] {
            let found = graded(dtype, WIDTH * 64, 1, truncated(dtype)).unwrap();
            assert!(found.contains("too small") && found.contains("truncated"), "{dtype:?}: {found}");
        }
    }

    #[test]
    fn a_constant_that_is_slightly_off_is_named() {
        let off = |value: f32| rounded(Dtype::F16)(1.001 * value);
        let found = graded(Dtype::F16, WIDTH * 64, 1, off).unwrap();
        assert!(found.contains("0.10 % too large on average"), "{found}");
        assert!(graded(Dtype::F32, WIDTH * 64, 1, |value| 1.000_01 * value).is_some());
    }

    #[test]
    fn errors_of_either_sign_that_are_several_times_too_large_are_named() {
        let coarse = |value: f32| rounded(Dtype::F16)(rounded(Dtype::Bf16)(value));
        let found = graded(Dtype::F16, WIDTH * 64, 1, coarse).unwrap();
        assert!(found.contains("times the 0.02 % that roundings explain"), "{found}");
    }

    #[test]
    fn few_values_and_answers_that_are_zero_or_not_finite_are_not_graded() {
        assert_eq!(graded(Dtype::F16, WIDTH * 31, 1, |value| 2.0 * value), None);
        let roundings = Roundings::new(Dtype::F16, 1);
        assert_eq!(roundings.grade(4, &[0.0; 64], &[0.0; 64], |_, _| false), None);
        assert_eq!(roundings.grade(4, &[f32::NAN; 64], &[1.0; 64], |_, _| false), None);
    }

    /// Attention as flash kernels compute it: queries scaled in the element type, weights rounded to it before they meet the values, sums
    /// in 32 bits. `scale_by` and `store` plant bugs.
    fn flash(
        spec: &AttentionSpec,
        dtype: Dtype,
        [q, k, v]: [&[f32]; 3],
        scale_by: f32,
        store: &dyn Fn(f32) -> f32,
    ) -> Vec<f32> {
        let AttentionSpec { heads, steps, width, causal } = *spec;
        let round = rounded(dtype);
        let scale = scale_by / (width as f32).sqrt();
        let row = |of: &[f32], at: usize| of[at * width..][..width].to_vec();
        let mut out = Vec::new();
        for at in 0..heads * steps {
            let first = at / steps * steps;
            let keys = if causal { at - first + 1 } else { steps };
            let query: Vec<f32> = row(q, at).iter().map(|q| round(q * scale)).collect();
            let scores: Vec<f32> = (first..first + keys)
                .map(|key| row(k, key).iter().zip(&query).map(|(k, q)| k * q).sum())
                .collect();
            let top = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let weights: Vec<f32> = scores.iter().map(|score| (score - top).exp()).collect();
            let total: f32 = weights.iter().sum();
            let mut sums = vec![0.0_f32; width];
            for (key, weight) in weights.iter().enumerate() {
                sums.iter_mut().zip(row(v, first + key)).for_each(|(sum, v)| *sum += round(*weight) * v);
            }
            out.extend(sums.iter().map(|sum| store(sum / total)));
        }
        out
    }

    fn grade_flash(
        dtype: Dtype,
        seed: u64,
        shape: [usize; 3],
        scale_by: f32,
        store: &dyn Fn(f32) -> f32,
    ) -> Option<Accuracy> {
        let [heads, steps, width] = shape;
        let spec = AttentionSpec { heads, steps, width, causal: seed.is_multiple_of(2) };
        let len = heads * steps * width;
        let mut random = RandomState::new(seed);
        let mut draw = || -> Vec<f32> {
            let drawn = if seed.is_multiple_of(3) { random.uniforms(len) } else { random.normals(len) };
            let shift = if seed.is_multiple_of(3) { 0.5 } else { 0.0 };
            drawn.iter().map(|value| rounded(dtype)(value - shift)).collect()
        };
        let (q, k, v) = (draw(), draw(), draw());
        let (mut want, mut scores) = (vec![0.0; len], vec![0.0; steps]);
        oracle(&spec, &q, &k, &v, &mut scores, &mut want);
        let got = flash(&spec, dtype, [&q, &k, &v], scale_by, store);
        Roundings::new(dtype, 3).grade(width, &got, &want, |_, _| false)
    }

    #[test]
    fn flash_attention_is_as_accurate_as_it_should_be_and_with_bugs_it_is_not() {
        for dtype in [Dtype::F16, Dtype::Bf16] {
            let mut all: Option<Accuracy> = None;
            for seed in 0..200 {
                let shape =
                    [1 + seed as usize % 4, 1 + 7 * seed as usize % 150, [16, 32, 64][seed as usize % 3]];
                let Some(right) = grade_flash(dtype, seed, shape, 1.0, &rounded(dtype)) else { continue };
                assert_eq!(find_inaccuracy(&right), None, "{dtype:?} {shape:?} {right:?}");
                let sum = all.map_or(right, |all| all.join(right));
                assert_eq!(find_inaccuracy(&sum), None, "{dtype:?} {shape:?} {sum:?}");
                all = Some(sum);
            }
            let cut = grade_flash(dtype, 1, [2, 100, 32], 1.0, &truncated(dtype)).unwrap();
            assert!(find_inaccuracy(&cut).unwrap().contains("truncated"), "{dtype:?} {cut:?}");
        }
        let off = grade_flash(Dtype::F16, 1, [2, 100, 32], 1.001, &rounded(Dtype::F16)).unwrap();
        assert!(find_inaccuracy(&off).unwrap().contains("too large"), "{off:?}");
    }
}
