//! Rows by their root mean square, on the CPU. Must not read a row's neighbours.

use crate::simd::{self, vectorized};

pub fn oracle(eps: f32, x: &[f32], weight: &[f32], y: &mut [f32]) {
    y.copy_from_slice(x);
    y.chunks_exact_mut(weight.len()).for_each(|row| oracle_row(eps, row, weight));
}

pub(crate) fn oracle_row(eps: f32, row: &mut [f32], weight: &[f32]) {
    let mut sum = 0.0;
    for value in row.iter() {
        sum += f64::from(*value) * f64::from(*value);
    }
    let root = (sum / row.len() as f64 + f64::from(eps)).sqrt();
    for (value, weight) in row.iter_mut().zip(weight) {
        *value = (f64::from(*value) / root * f64::from(*weight)) as f32;
    }
}

/// Two passes over each row, the second while it is in the first cache.
pub fn fast(eps: f32, x: &[f32], weight: &[f32], y: &mut [f32]) {
    vectorized!({
        for (x, y) in x.chunks_exact(weight.len()).zip(y.chunks_exact_mut(weight.len())) {
            let factor = factor(eps, x);
            for ((y, x), weight) in y.iter_mut().zip(x).zip(weight) {
                *y = x * factor * weight;
            }
        }
    });
}

pub(crate) fn fast_row(eps: f32, row: &mut [f32], weight: &[f32]) {
    vectorized!({
        let factor = factor(eps, row);
        for (value, weight) in row.iter_mut().zip(weight) {
            *value = *value * factor * weight;
        }
    });
}

#[inline(always)]
fn factor(eps: f32, row: &[f32]) -> f32 {
    1.0 / (simd::sum_squares(row, 0.0) / row.len() as f32 + eps).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_their_known_norms() {
        let x = [3.0, -4.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0];
        let weight = [1.0, 1.0, 1.0, 2.0];
        let want = [1.2, -1.6, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0];
        for run in [oracle as fn(f32, &[f32], &[f32], &mut [f32]), fast] {
            let mut y = [f32::NAN; 12];
            run(1e-12, &x, &weight, &mut y);
            assert!(y.iter().zip(want).all(|(y, want)| (y - want).abs() < 1e-6), "{y:?}");
        }
    }
}
