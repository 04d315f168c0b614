//! A small seeded generator: the same numbers on every machine. Not for secrets.

/// SplitMix64 (Steele, Lea and Flood): one word of state, passes the usual test batteries, any seed will do.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
    /// Normals come in pairs.
    spare: Option<f64>,
}

impl Random {
    /// The same seed gives the same numbers on every machine.
    pub fn new(seed: u64) -> Self {
        Self { state: seed, spare: None }
    }

    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in the open interval (0, 1): its logarithm is always finite.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// A whole number below `count`; 0 when `count` is 0.
    pub fn below(&mut self, count: usize) -> usize {
        // The high half of a 128-bit product: the bias is below count / 2^64.
        ((u128::from(self.bits()) * count as u128) >> 64) as usize
    }

    /// All orders are equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// Standard normal, by the Box-Muller transform.
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sine);
        radius * cosine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_words_are_those_of_the_published_generator() {
        let mut random = Random::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn normals_have_mean_zero_and_variance_one() {
        let (mut random, count) = (Random::new(1), 100_000);
        let values: Vec<f64> = (0..count).map(|_| random.normal()).collect();
        let mean = values.iter().sum::<f64>() / f64::from(count);
        let variance = values.iter().map(|v| v * v).sum::<f64>() / f64::from(count);
        assert!(mean.abs() < 0.015 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }

    #[test]
    fn below_stays_below() {
        let mut random = Random::new(2);
        assert!((0..1000).all(|_| random.below(7) < 7));
        assert_eq!(random.below(0), 0);
    }
}
