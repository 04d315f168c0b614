//! `fma`: x ← x·a + b again and again in registers, the ceiling of one thread's arithmetic.
//!
//! a is a little below 1, so that x is still on its way to b / (1 − a) at the end: a step too few or too many shows in the answer,
//! and since a multiply-add rounds once, that is the same bit for bit wherever it is computed.

use crate::simd::vectorized;

/// 1 − 2⁻¹²: after some thousands of steps a value has gone two thirds of its way.
pub const FACTOR: f32 = 1.0 - 1.0 / 4096.0;
/// 2⁻¹¹: values go to 2, away from the 0 to 1 that they begin with.
pub(crate) const ADDEND: f32 = 1.0 / 2048.0;

pub fn steps(x: f32, rounds: usize) -> f32 {
    (0..rounds).fold(x, |x, _| x.mul_add(FACTOR, ADDEND))
}

pub fn oracle(rounds: usize, input: &[f32], out: &mut [f32]) {
    for (out, x) in out.iter_mut().zip(input) {
        *out = steps(*x, rounds);
    }
}

/// Eight vectors at a time: two multiply-adds begin in each cycle, and each takes four.
pub fn fast(rounds: usize, input: &[f32], out: &mut [f32]) {
    if has_wide_vectors() {
        vectorized!(in_chunks::<128>(rounds, input, out));
    } else {
        vectorized!(in_chunks::<64>(rounds, input, out));
    }
}

#[cfg(target_arch = "x86_64")]
fn has_wide_vectors() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_wide_vectors() -> bool {
    false
}

#[inline(always)]
fn in_chunks<const VALUES: usize>(rounds: usize, input: &[f32], out: &mut [f32]) {
    let (chunks, rest) = input.as_chunks::<VALUES>();
    let (out_chunks, out_rest) = out.as_chunks_mut::<VALUES>();
    for (out, x) in out_chunks.iter_mut().zip(chunks) {
        let mut x = *x;
        for _ in 0..rounds {
            for x in &mut x {
                *x = x.mul_add(FACTOR, ADDEND);
            }
        }
        *out = x;
    }
    for (out, x) in out_rest.iter_mut().zip(rest) {
        *out = steps(*x, rounds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_agree_bit_for_bit_and_every_step_counts() {
        for len in [0, 1, 63, 64, 127, 128, 300] {
            let input: Vec<f32> = (0..len).map(|i| i as f32 / len as f32).collect();
            let (mut got, mut want) = (vec![f32::NAN; len], vec![f32::NAN; len]);
            fast(1000, &input, &mut got);
            oracle(1000, &input, &mut want);
            assert_eq!(got, want, "{len}");
        }
        let (got, want) = (steps(0.5, 4095), steps(0.5, 4096));
        assert!((got - want).abs() > 1e-5 * want, "{got} and {want} pass for the same");
    }
}
