//! Runs a loop compiled for the widest vectors this CPU has, and the float functions such loops need.
//! Must not allocate. The functions are branch-free, so that the compiler can vectorise their callers.

/// Runs an expression compiled for AVX-512 or AVX2 where the CPU has them.
macro_rules! vectorized {
    ($body:expr) => {
        $crate::simd::dispatch(
            // Inlined, or it would be compiled without them.
            #[inline(always)]
            || $body,
        )
    };
}
pub(crate) use vectorized;

/// A function of its own: without it, half of the loops lose their wide vectors (the count of `zmm` in the assembly shows it).
#[inline(always)]
pub(crate) fn dispatch<R>(body: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(body)
}

/// e^x within 2 ulp for |x| <= 87, saturating outside; NaN stays NaN.
///
/// Cody-Waite reduction by ln 2 in two parts and a degree-6 polynomial (Cephes `expf`).
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low mantissa bits.
    const ROUND: f32 = 12_582_912.0;
    // Selects, not f32::clamp: a NaN has to pass through.
    let x = if x < -87.0 { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * 0.693_359_4;
    let r = r - n * -2.121_944_4e-4;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let value = p * r * r + r + 1.0;
    let exponent = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    value * f32::from_bits((exponent.wrapping_add(127) << 23) as u32)
}

#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// max(x, 0) that lets NaN through, unlike `f32::max`.
#[inline(always)]
pub(crate) fn relu(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}

/// 0 where x is finite, NaN where it is not: the difference of x and itself.
#[inline(always)]
pub(crate) fn zero_or_nan(x: f32) -> f32 {
    #[allow(clippy::eq_op)]
    let zero = x - x;
    zero
}

#[inline(always)]
pub(crate) fn all_finite(values: &[f32]) -> bool {
    let mut lanes = Lanes::ZERO;
    lanes.add(values, zero_or_nan);
    lanes.fold() == 0.0
}

/// Sum of partial sums by halves: a tree of vector additions where a plain sum is a chain of scalar ones.
#[inline(always)]
pub fn fold<const N: usize>(mut lanes: [f32; N]) -> f32 {
    let mut len = N;
    while len > 1 {
        let half = len / 2;
        let odd = len % 2;
        let (low, high) = lanes[..len].split_at_mut(half + odd);
        for (low, high) in low.iter_mut().zip(high) {
            *low += *high;
        }
        len = half + odd;
    }
    lanes.first().copied().unwrap_or(0.0)
}

/// Sums with partial sums in lanes, which is both faster and more accurate than one: call [`Lanes::add`] for slice
/// after slice, fold once.
///
/// On cache lines of its own: where the stack begins differs from process to process, and a vector across two lines is
/// slow to load after it was stored.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Lanes([f32; 32]);

impl Lanes {
    pub const ZERO: Self = Self([0.0; 32]);

    #[inline(always)]
    pub fn add(&mut self, values: &[f32], term: impl Fn(f32) -> f32) {
        let (chunks, rest) = values.as_chunks::<32>();
        // A copy that the compiler can keep in registers, and does in this form of the loop: on the stack, where the stack
        // begins would decide how long it takes.
        let mut lanes = self.0;
        for chunk in chunks {
            #[allow(clippy::needless_range_loop)]
            for i in 0..32 {
                lanes[i] += term(chunk[i]);
            }
        }
        self.0 = lanes;
        for (lane, value) in self.0.iter_mut().zip(rest) {
            *lane += term(*value);
        }
    }

    #[inline(always)]
    pub fn fold(self) -> f32 {
        fold(self.0)
    }
}

#[inline(always)]
pub(crate) fn sum_squares(values: &[f32], centre: f32) -> f32 {
    sum_terms(values, |value| (value - centre) * (value - centre))
}

#[inline(always)]
pub fn sum(values: &[f32]) -> f32 {
    sum_terms(values, |value| value)
}

/// The same as one slice of [`Lanes`], in the form of the loop that is quickest for a slice of a few lines.
#[inline(always)]
fn sum_terms(values: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0; 32];
    let (chunks, rest) = values.as_chunks::<32>();
    for values in chunks.iter().map(<[f32; 32]>::as_slice).chain([rest]) {
        for (lane, value) in lanes.iter_mut().zip(values) {
            *lane += term(*value);
        }
    }
    fold(lanes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_two_ulp() {
        for step in -8_700..=8_700 {
            let x = step as f32 * 0.01;
            let want = f64::from(x).exp();
            let err = (f64::from(exp(x)) - want).abs() / want;
            assert!(err < 2.4e-7, "exp({x}) off by {err}");
        }
    }

    #[test]
    fn sigmoid_saturates_and_keeps_nan() {
        assert_eq!(sigmoid(0.0), 0.5);
        assert_eq!(sigmoid(f32::INFINITY), 1.0);
        assert!(sigmoid(f32::NEG_INFINITY) < 1e-37);
        assert!(sigmoid(f32::NAN).is_nan() && relu(f32::NAN).is_nan());
    }

    #[test]
    fn sums_cover_the_ragged_end() {
        let values: Vec<f32> = (0..77).map(|v| v as f32).collect();
        assert_eq!(sum(&values), 2926.0);
        assert_eq!(sum_squares(&[1.0; 70], 3.0), 280.0);
    }
}
