//! The scale of the noise, estimated from the units so far; the next bet is scaled by it.

use crate::NORMAL;

/// A millionth: below what any clock here resolves, so that a scale is never zero.
const SCALE_MIN: f64 = 1e-6;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    sorted: Vec<f64>,
    prior: f64,
}

impl Scale {
    /// `prior` counts as one unit's deviation, so that there is a scale before there are units.
    pub(super) fn new(prior: f64) -> Self {
        Self { sorted: Vec::new(), prior }
    }

    pub(super) fn push(&mut self, x: f64) {
        let place = self.sorted.partition_point(|other| *other < x);
        self.sorted.insert(place, x);
    }

    pub(super) fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    pub(super) fn median(&self) -> Option<f64> {
        let n = self.sorted.len();
        (n > 0).then(|| f64::midpoint(self.sorted[(n - 1) / 2], self.sorted[n / 2]))
    }

    /// Median absolute deviation from the median, as a standard deviation. A shift of all units does not change it: how
    /// noisy the units are must not depend on how slow they are.
    pub(super) fn get(&self) -> f64 {
        let Some(middle) = self.median() else { return self.prior.max(SCALE_MIN) };
        // Deviations grow from the median outwards on both sides: merging the two gives them in order.
        let values = &self.sorted;
        let mut above = values.partition_point(|v| *v < middle);
        let (mut below, mut prior) = (above, Some(self.prior));
        let mut next = || {
            let down = below.checked_sub(1).map_or(f64::INFINITY, |i| (middle - values[i]) * NORMAL);
            let up = values.get(above).map_or(f64::INFINITY, |v| (v - middle) * NORMAL);
            match prior {
                Some(p) if p <= down && p <= up => prior.take().unwrap_or(p),
                _ if down <= up => {
                    below -= 1;
                    down
                }
                _ => {
                    above += 1;
                    up
                }
            }
        };
        let count = values.len() + 1;
        let mut low = 0.0;
        for _ in 0..count.div_ceil(2) {
            low = next();
        }
        let high = if count % 2 == 1 { low } else { next() };
        f64::midpoint(low, high).max(SCALE_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_median_deviation_with_the_prior_among_them(
            values in prop::collection::vec(-1.0_f64..1.0, 0..30),
            prior in 0.0_f64..0.5,
        ) {
            let mut scale = Scale::new(prior);
            values.iter().for_each(|v| scale.push(*v));
            let want = match crate::median(&values) {
                None => prior,
                Some(middle) => {
                    let deviations = values.iter().map(|v| (v - middle).abs() * NORMAL);
                    crate::median(&deviations.chain([prior]).collect::<Vec<_>>()).unwrap()
                }
            };
            prop_assert!((scale.get() - want.max(SCALE_MIN)).abs() < 1e-12);
        }
    }
}
