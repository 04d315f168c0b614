//! NumPy's legacy `RandomState` (MT19937), so that a seed means the same image here as in the original.
//! Must not be used for anything but drawing inputs: it is neither fast nor secure.

use crate::buffer::Buffer;

const STATE_LEN: usize = 624;
const SHIFT_LEN: usize = 397;

/// Mersenne Twister with NumPy's legacy draws.
#[derive(Clone, Debug)]
pub struct RandomState {
    state: Vec<u32>,
    next: usize,
    spare_normal: Option<f64>,
}

impl RandomState {
    /// Seeds with the single-integer initialiser. NumPy stops at 32 bits; the upper half of a larger seed is
    /// folded in, so that seeds below 2^32 keep NumPy's meaning.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let folded = (seed as u32) ^ ((seed >> 32) as u32).wrapping_mul(0x9E37_79B9);
        let mut state = vec![folded; STATE_LEN];
        for i in 1..STATE_LEN {
            let previous = state[i - 1];
            state[i] = (previous ^ (previous >> 30)).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        Self { state, next: STATE_LEN, spare_normal: None }
    }

    fn refill(&mut self) {
        for i in 0..STATE_LEN {
            let joined = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % STATE_LEN] & 0x7fff_ffff);
            let twist = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + SHIFT_LEN) % STATE_LEN] ^ (joined >> 1) ^ twist;
        }
        self.next = 0;
    }

    /// The next 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.next == STATE_LEN {
            self.refill();
        }
        let mut bits = self.state[self.next];
        self.next += 1;
        bits ^= bits >> 11;
        bits ^= (bits << 7) & 0x9d2c_5680;
        bits ^= (bits << 15) & 0xefc6_0000;
        bits ^ (bits >> 18)
    }

    /// Uniform in [0, 1) with 53 bits, as `RandomState.rand`.
    pub fn uniform(&mut self) -> f64 {
        let high = f64::from(self.next_u32() >> 5);
        let low = f64::from(self.next_u32() >> 6);
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }

    /// Standard normal by the polar method, as `RandomState.randn`.
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare_normal.take() {
            return spare;
        }
        loop {
            let first = 2.0 * self.uniform() - 1.0;
            let second = 2.0 * self.uniform() - 1.0;
            let radius2 = first * first + second * second;
            if radius2 < 1.0 && radius2 != 0.0 {
                let scale = (-2.0 * radius2.ln() / radius2).sqrt();
                self.spare_normal = Some(scale * first);
                return scale * second;
            }
        }
    }

    /// `count` uniforms rounded to f32.
    pub fn uniforms(&mut self, count: usize) -> Buffer {
        (0..count).map(|_| self.uniform() as f32).collect()
    }

    /// `count` standard normals rounded to f32.
    pub fn normals(&mut self, count: usize) -> Buffer {
        (0..count).map(|_| self.normal() as f32).collect()
    }

    /// `count` values uniform in [-bound, bound), the default initialisation of a layer with fan-in 1/bound².
    pub fn symmetric(&mut self, count: usize, bound: f64) -> Vec<f32> {
        (0..count).map(|_| ((self.uniform() * 2.0 - 1.0) * bound) as f32).collect()
    }
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
    fn normals_have_mean_zero_and_variance_one() {
        let draws = RandomState::new(7).normals(20_000);
        let mean = draws.iter().map(|&x| f64::from(x)).sum::<f64>() / 20_000.0;
        let var = draws.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (var - 1.0).abs() < 0.05, "{mean} {var}");
    }
}
