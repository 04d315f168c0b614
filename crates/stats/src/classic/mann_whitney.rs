//! The Mann-Whitney U test: do the values of one side tend to lie above the other's?

use crate::special::normal_two_sided;

/// Up to this many pairs, and without ties, the p-value is exact; beyond it the normal approximation is good to three
/// digits, and the exact count would take long.
const PAIRS_EXACT_MAX: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannWhitney {
    /// Pairs in which the value of `a` is the larger; a tie counts half.
    pub u: f64,
    /// Two-sided.
    pub p: f64,
}

/// The two-sided test; absent when a side is empty or holds NaN.
///
/// Exact for few values without ties, else the normal approximation with corrections for ties and continuity.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<MannWhitney> {
    if a.is_empty() || b.is_empty() || a.iter().chain(b).any(|v| v.is_nan()) {
        return None;
    }
    let (rank_sum, ties) = ranks(a, b);
    let (n, m) = (a.len() as f64, b.len() as f64);
    let u = rank_sum - n * (n + 1.0) / 2.0;
    let p = if ties == 0.0 && a.len() * b.len() <= PAIRS_EXACT_MAX {
        exact(a.len(), b.len(), u)
    } else {
        approximate(n, m, u, ties)
    };
    Some(MannWhitney { u, p })
}

/// Sum of the ranks of `a` among all, and the sum of t³-t over ties of t values.
fn ranks(a: &[f64], b: &[f64]) -> (f64, f64) {
    let mut all: Vec<(f64, bool)> =
        a.iter().map(|v| (*v, true)).chain(b.iter().map(|v| (*v, false))).collect();
    all.sort_by(|x, y| x.0.total_cmp(&y.0));
    let (mut rank_sum, mut ties, mut before) = (0.0, 0.0, 0.0);
    for tied in all.chunk_by(|x, y| x.0 == y.0) {
        let t = tied.len() as f64;
        rank_sum += (before + (t + 1.0) / 2.0) * tied.iter().filter(|(_, is_a)| *is_a).count() as f64;
        ties += t.powi(3) - t;
        before += t;
    }
    (rank_sum, ties)
}

fn approximate(n: f64, m: f64, u: f64, ties: f64) -> f64 {
    let all = n + m;
    let variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0; // All values are the same.
    }
    let z = ((u - n * m / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
    normal_two_sided(z)
}

/// The number of orders that give each U is a coefficient of the Gaussian binomial, built up one value at a time: multiply by
/// `1 - q^(m+i)`, divide by `1 - q^i`. Whole numbers throughout, below 2^53 within the limit.
fn exact(n: usize, m: usize, u: f64) -> f64 {
    let mut orders = vec![0.0; n * m + 1];
    orders[0] = 1.0;
    for i in 1..=n {
        for j in (m + i..orders.len()).rev() {
            orders[j] -= orders[j - m - i];
        }
        for j in i..orders.len() {
            orders[j] += orders[j - i];
        }
    }
    let tail = u.min((n * m) as f64 - u) as usize;
    let all: f64 = orders.iter().sum();
    (2.0 * orders[..=tail].iter().sum::<f64>() / all).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_textbook_example_is_exact() {
        let got = mann_whitney(&[19.0, 22.0, 16.0, 29.0, 24.0], &[20.0, 11.0, 17.0, 12.0]).unwrap();
        assert!((got.u - 17.0).abs() < 1e-12 && (got.p - 1.0 / 9.0).abs() < 1e-12, "{got:?}");
        assert!((approximate(5.0, 4.0, 17.0, 0.0) - 0.111_346_886_533_140_41).abs() < 1e-9);
    }

    #[test]
    fn ties_are_corrected_for() {
        let a = [1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 4.0, 5.0];
        let b = [2.0, 3.0, 4.0, 5.0, 5.0, 6.0, 7.0, 7.0, 8.0];
        let got = mann_whitney(&a, &b).unwrap();
        assert!((got.u - 14.0).abs() < 1e-12 && (got.p - 0.036_200_545_964_490_79).abs() < 1e-9, "{got:?}");
    }

    #[test]
    fn no_evidence_is_a_p_of_one() {
        assert_eq!(mann_whitney(&[1.0; 5], &[1.0; 7]).unwrap().p, 1.0);
        assert_eq!(mann_whitney(&[], &[1.0]), None);
        assert_eq!(mann_whitney(&[f64::NAN], &[1.0]), None);
    }

    proptest! {
        #[test]
        fn the_sides_can_be_swapped_and_order_and_scale_do_not_matter(
            mut a in prop::collection::vec(0.1_f64..9.0, 1..30),
            b in prop::collection::vec(0.1_f64..9.0, 1..30),
        ) {
            let there = mann_whitney(&a, &b).unwrap();
            let back = mann_whitney(&b, &a).unwrap();
            prop_assert!((there.p - back.p).abs() < 1e-12);
            prop_assert!((there.u + back.u - (a.len() * b.len()) as f64).abs() < 1e-9);
            a.reverse();
            a.iter_mut().for_each(|v| *v *= 8.0);
            let scaled: Vec<f64> = b.iter().map(|v| v * 8.0).collect();
            prop_assert_eq!(mann_whitney(&a, &scaled).unwrap(), there);
        }
    }
}
