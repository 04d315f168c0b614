//! Evidence from signs alone: how many of the units so far lie beyond a line?
//!
//! Under the null hypothesis each unit lies beyond with a probability of at most one half, given all before it. A
//! gambler who stakes on "beyond" with a fixed p in (1/2, 1] multiplies his money by 2p when right and 2(1-p) when
//! wrong; under the null that is a fair game or a losing one, so by Ville's inequality his money ever reaches 1/α
//! with a probability of at most α, however long he plays and whenever he stops. Nobody knows the best p, so the
//! money is spread evenly over all of them (Robbins' method of mixtures); the integral has a closed form:
//!
//! ```text
//! E_n(k) = 2 ∫ (2p)^k (2-2p)^(n-k) dp over (1/2, 1] = Σ_{j<=k} C(n+1, j) / ((n+1) C(n, k))
//! ```

/// Keeps the sum below the largest double: it reaches 2^(n+1).
const RESCALE: f64 = 1e250;

/// Counts units beyond a line, and what that count is worth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignProcess {
    units_count: usize,
    beyond_count: usize,
}

impl SignProcess {
    /// One more unit. On the line is not beyond it.
    pub fn push(&mut self, is_beyond: bool) {
        self.units_count += 1;
        self.beyond_count += usize::from(is_beyond);
    }

    pub fn ln_e(&self) -> f64 {
        ln_e_of_signs(self.units_count, self.beyond_count)
    }
}

impl SignProcess {
    /// A bound on [`Self::ln_e`] without its sum: no gambler of the mixture has more than the one who knew the share beyond.
    pub(super) fn ln_e_most(&self) -> f64 {
        let n = self.units_count as f64;
        let entropy = |share: f64| if share > 0.0 { share * (2.0 * share).ln() } else { 0.0 };
        // Those who bet on less than a half are not in it.
        let share = (self.beyond_count as f64 / n.max(1.0)).max(0.5);
        n * (entropy(share) + entropy(1.0 - share))
    }
}

/// ln `E_n(k)`: the worth of `beyond_count` units beyond a line out of `units_count`. 0 without units.
///
/// A count above `units_count` is taken as `units_count`.
pub fn ln_e_of_signs(units_count: usize, beyond_count: usize) -> f64 {
    let (n, k) = (units_count as f64, beyond_count.min(units_count) as f64);
    // Terms C(n+1, j) / C(n, k) from j = k downwards, each from the one before: no factorials, no cancellation.
    let mut term = (n + 1.0) / (n + 1.0 - k);
    let (mut sum, mut j, mut ln_scale) = (term, k, 0.0);
    // Once they fall they fall ever faster; what is below the last digit stays below it.
    while j > 0.0 && term > sum * f64::EPSILON / 8.0 {
        term *= j / (n + 2.0 - j);
        sum += term;
        j -= 1.0;
        if sum > RESCALE {
            (term, sum, ln_scale) = (term / RESCALE, sum / RESCALE, ln_scale + RESCALE.ln());
        }
    }
    sum.ln() + ln_scale - (n + 1.0).ln()
}

/// The smallest count beyond that is worth at least `e_min`; absent when even all units are not.
pub(crate) fn beyond_count_min(units_count: usize, e_min: f64) -> Option<usize> {
    let ln_e_min = e_min.ln();
    if ln_e_min.is_nan() || ln_e_of_signs(units_count, units_count) < ln_e_min {
        return None;
    }
    // The worth grows with the count, so halving finds the border.
    let (mut low, mut high) = (0, units_count);
    while low < high {
        let middle = low.midpoint(high);
        if ln_e_of_signs(units_count, middle) >= ln_e_min { high = middle } else { low = middle + 1 }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(n: usize, k: usize) -> f64 {
        (0..k).fold(1.0, |c, i| c * (n - i) as f64 / (i + 1) as f64)
    }

    #[test]
    fn the_closed_form_is_the_textbook_one() {
        for n in 0..=40 {
            for k in 0..=n {
                let sum: f64 = (0..=k).map(|j| choose(n + 1, j)).sum();
                let want = sum / ((n + 1) as f64 * choose(n, k));
                assert!((ln_e_of_signs(n, k) - want.ln()).abs() < 1e-10, "{n} {k}");
            }
        }
    }

    #[test]
    fn its_expectation_under_fair_signs_is_exactly_one() {
        for n in 0..=60 {
            let mean: f64 =
                (0..=n).map(|k| (ln_e_of_signs(n, k)).exp() * choose(n, k) * 0.5_f64.powi(n as i32)).sum();
            assert!((mean - 1.0).abs() < 1e-10, "{n}: {mean}");
        }
    }

    #[test]
    fn given_the_past_a_fair_sign_leaves_it_where_it_is() {
        for n in 0..60 {
            for k in 0..=n {
                let next = f64::midpoint(ln_e_of_signs(n + 1, k).exp(), ln_e_of_signs(n + 1, k + 1).exp());
                assert!((next / ln_e_of_signs(n, k).exp() - 1.0).abs() < 1e-9, "{n} {k}");
            }
        }
    }

    #[test]
    fn more_beyond_is_worth_more() {
        for n in [1, 5, 50, 500] {
            assert!((0..n).all(|k| ln_e_of_signs(n, k) < ln_e_of_signs(n, k + 1)), "{n}");
        }
    }

    #[test]
    fn long_runs_do_not_overflow() {
        let ln_e = ln_e_of_signs(5000, 5000);
        assert!((ln_e - (5001.0 * 2_f64.ln() - 5001_f64.ln())).abs() < 1e-6, "{ln_e}");
    }

    #[test]
    fn seventeen_in_a_row_are_worth_eight_thousand() {
        assert_eq!(beyond_count_min(16, 8000.0), None);
        assert_eq!(beyond_count_min(17, 8000.0), Some(17));
        for n in [20, 40, 100] {
            let k = beyond_count_min(n, 8000.0).unwrap();
            assert!(ln_e_of_signs(n, k).exp() >= 8000.0 && ln_e_of_signs(n, k - 1).exp() < 8000.0);
        }
        assert_eq!(beyond_count_min(20, f64::NAN), None);
    }
}
