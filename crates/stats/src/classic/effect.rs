//! Effect sizes: how large a difference is, apart from how certain.

use super::moments;

/// Cliff's delta: how much more often a value of `a` is above one of `b` than below it, from -1 to 1; the originals'
/// library's sign, positive where `a` is larger. Absent when a side is empty.
pub fn cliffs_delta(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let sorted = crate::sorted(b);
    let balance = |value: &f64| {
        let below = sorted.partition_point(|other| other < value);
        let above = sorted.len() - sorted.partition_point(|other| other <= value);
        below as f64 - above as f64
    };
    Some(a.iter().map(balance).sum::<f64>() / (a.len() as f64 * b.len() as f64))
}

/// Hedges' g: the difference of the means over the pooled standard deviation, corrected for small counts by
/// `1 - 3/(4N - 9)`; positive where `a` is larger. Absent with fewer than two values on a side or without any spread.
pub fn hedges_g(a: &[f64], b: &[f64]) -> Option<f64> {
    let ((mean_a, variance_a), (mean_b, variance_b)) = (moments(a)?, moments(b)?);
    let (count_a, count_b) = (a.len() as f64, b.len() as f64);
    let pooled = ((count_a - 1.0) * variance_a + (count_b - 1.0) * variance_b) / (count_a + count_b - 2.0);
    let correction = 1.0 - 3.0 / (4.0 * (count_a + count_b) - 9.0);
    (pooled > 0.0).then(|| (mean_a - mean_b) / pooled.sqrt() * correction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn effect_sizes_agree_with_the_textbook() {
        let (a, b) = ([19.0, 22.0, 16.0, 29.0, 24.0], [20.0, 11.0, 17.0, 12.0]);
        assert!((cliffs_delta(&a, &b).unwrap() - 0.7).abs() < 1e-12);
        assert!((hedges_g(&a, &b).unwrap() - 1.335_281_228_211_703).abs() < 1e-12);
        let (a, b) =
            ([1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 4.0, 5.0], [2.0, 3.0, 4.0, 5.0, 5.0, 6.0, 7.0, 7.0, 8.0]);
        assert!((cliffs_delta(&a, &b).unwrap() + 0.611_111_111_111_111).abs() < 1e-12);
    }

    #[test]
    fn nothing_in_is_nothing_out() {
        assert_eq!(cliffs_delta(&[], &[1.0]), None);
        assert_eq!(hedges_g(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(hedges_g(&[1.0, 1.0], &[2.0, 2.0]), None);
    }

    proptest! {
        #[test]
        fn swapping_the_sides_turns_the_sign(
            a in prop::collection::vec(-9.0_f64..9.0, 2..20),
            b in prop::collection::vec(-9.0_f64..9.0, 2..20),
        ) {
            prop_assert_eq!(cliffs_delta(&a, &b), cliffs_delta(&b, &a).map(|d| -d));
            let (there, back) = (hedges_g(&a, &b).unwrap(), hedges_g(&b, &a).unwrap());
            prop_assert!((there + back).abs() < 1e-9);
        }
    }
}
