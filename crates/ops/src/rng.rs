//! NumPy's legacy `RandomState` (MT19937), so that a seed means the same image here as in the original.
//! Must not be used for anything but drawing inputs: it is not secure.

use crate::buffer::Buffer;
use crate::simd::vectorized;

const STATE_LEN: usize = 624;
const SHIFT_LEN: usize = 397;
/// Every draw takes two words.
const PAIRS_LEN: usize = STATE_LEN / 2;

/// Mersenne Twister with NumPy's legacy uniforms.
#[derive(Clone, Debug)]
pub struct RandomState {
    state: [u32; STATE_LEN],
    /// Output of the state, made a block at a time.
    pairs: [[u32; 2]; PAIRS_LEN],
    next: usize,
}

impl RandomState {
    /// Seeds with the single-integer initialiser. NumPy stops at 32 bits; the upper half of a larger seed is
    /// folded in, so that seeds below 2^32 keep NumPy's meaning.
    pub fn new(seed: u64) -> Self {
        let folded = (seed as u32) ^ ((seed >> 32) as u32).wrapping_mul(0x9E37_79B9);
        let mut state = [folded; STATE_LEN];
        for i in 1..STATE_LEN {
            let previous = state[i - 1];
            state[i] = (previous ^ (previous >> 30)).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        Self { state, pairs: [[0; 2]; PAIRS_LEN], next: PAIRS_LEN }
    }

    /// The pairs not yet drawn, at least one.
    fn pairs(&mut self) -> &[[u32; 2]] {
        if self.next == PAIRS_LEN {
            vectorized!({
                advance(&mut self.state);
                for (word, &bits) in self.pairs.as_flattened_mut().iter_mut().zip(&self.state) {
                    *word = temper(bits);
                }
            });
            self.next = 0;
        }
        &self.pairs[self.next..]
    }

    /// Draws each value from the next two words.
    fn fill(&mut self, mut values: &mut [f32], draw: impl Fn([u32; 2]) -> f32) {
        while !values.is_empty() {
            let pairs = self.pairs();
            let (now, later) = values.split_at_mut(pairs.len().min(values.len()));
            vectorized!({
                for (value, &pair) in now.iter_mut().zip(pairs) {
                    *value = draw(pair);
                }
            });
            self.next += now.len();
            values = later;
        }
    }

    /// Uniform in [0, 1) with 53 bits, as `RandomState.rand`.
    pub fn uniform(&mut self) -> f64 {
        let pair = self.pairs()[0];
        self.next += 1;
        unit(pair)
    }

    /// `count` uniforms rounded to f32.
    pub fn uniforms(&mut self, count: usize) -> Buffer {
        let mut values = Buffer::zeros(count);
        self.fill(
            &mut values,
            #[inline(always)]
            |pair| unit(pair) as f32,
        );
        values
    }

    /// `count` values of mean 0 and variance 1, approximately normal: each is the sum of four uniform 16-bit
    /// numbers, centred and scaled. None is beyond 3.47 (one normal in 1900 is), the kurtosis is 2.7 instead of 3.
    /// Not `RandomState.randn`: a whole number and one rounding need no logarithm, so they are quick and the same
    /// bits everywhere.
    pub fn normals(&mut self, count: usize) -> Buffer {
        let mut values = Buffer::zeros(count);
        self.fill(&mut values, nearly_normal);
        values
    }

    /// `count` values uniform in [-bound, bound), the default initialisation of a layer with fan-in 1/bound².
    pub(crate) fn symmetric(&mut self, count: usize, bound: f64) -> Vec<f32> {
        let mut values = vec![0.0; count];
        self.fill(
            &mut values,
            #[inline(always)]
            |pair| ((unit(pair) * 2.0 - 1.0) * bound) as f32,
        );
        values
    }
}

/// The next 624 words of state. In three loops, so that no index wraps around and each becomes vectors.
#[inline(always)]
fn advance(state: &mut [u32; STATE_LEN]) {
    const WRAP: usize = STATE_LEN - SHIFT_LEN;
    for i in 0..WRAP {
        state[i] = twist(state[i], state[i + 1], state[i + SHIFT_LEN]);
    }
    for i in WRAP..STATE_LEN - 1 {
        state[i] = twist(state[i], state[i + 1], state[i - WRAP]);
    }
    state[STATE_LEN - 1] = twist(state[STATE_LEN - 1], state[0], state[SHIFT_LEN - 1]);
}

#[inline(always)]
fn twist(first: u32, second: u32, shifted: u32) -> u32 {
    let joined = (first & 0x8000_0000) | (second & 0x7fff_ffff);
    shifted ^ (joined >> 1) ^ ((joined & 1).wrapping_neg() & 0x9908_b0df)
}

#[inline(always)]
fn temper(mut bits: u32) -> u32 {
    bits ^= bits >> 11;
    bits ^= (bits << 7) & 0x9d2c_5680;
    bits ^= (bits << 15) & 0xefc6_0000;
    bits ^ (bits >> 18)
}

#[inline(always)]
fn unit([high, low]: [u32; 2]) -> f64 {
    (f64::from(high >> 5) * 67_108_864.0 + f64::from(low >> 6)) / 9_007_199_254_740_992.0
}

#[inline(always)]
fn nearly_normal([a, b]: [u32; 2]) -> f32 {
    /// Mean of the sum of four numbers in 0..65536.
    const MEAN: i32 = 2 * 65_535;
    /// One over its deviation, the root of 4 * (65536^2 - 1) / 12.
    const SCALE: f32 = 2.642_899_8e-5;
    let sum = (a & 0xffff) + (a >> 16) + (b & 0xffff) + (b >> 16);
    (sum as i32 - MEAN) as f32 * SCALE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_images_of_seed_0_and_123_are_numpys() {
        for (seed, first, last) in [
            (123, [0.696_469_2f32, 0.286_139_35, 0.226_851_45], 0.916_891_46f32),
            (0, [0.548_813_5, 0.715_189_34, 0.602_763_36], 0.922_596_9),
        ] {
            let image = RandomState::new(seed).uniforms(3 * 128 * 128);
            assert_eq!(image[..3], first);
            assert_eq!(image[3 * 128 * 128 - 1], last);
        }
    }

    #[test]
    fn draws_do_not_depend_on_how_they_are_asked_for() {
        let whole = RandomState::new(5).uniforms(2000);
        let mut rng = RandomState::new(5);
        let mut parts: Vec<f32> = (0..3).map(|_| rng.uniform() as f32).collect();
        for count in [0, 1, 308, 312, 313, 1063] {
            parts.extend_from_slice(&rng.uniforms(count));
        }
        assert_eq!(*whole, *parts);
    }

    #[test]
    fn the_normals_of_a_seed_never_change() {
        assert_eq!(*RandomState::new(7).normals(3), [0.238_045_98, 0.036_392_73, 1.419_105]);
    }

    #[test]
    fn normals_have_mean_zero_and_variance_one() {
        let draws = RandomState::new(7).normals(20_000);
        let mean = draws.iter().map(|&x| f64::from(x)).sum::<f64>() / 20_000.0;
        let var = draws.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (var - 1.0).abs() < 0.05, "{mean} {var}");
    }
}
