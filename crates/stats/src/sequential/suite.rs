//! From e-values of single workloads to a statement about the suite.

/// The workloads to call changed: e-BH (Wang and Ramdas), the Benjamini-Hochberg procedure for e-values.
///
/// Sorted from the largest, the first k are called, for the largest k whose k-th e-value is at least `count/(k·rate)`.
/// The expected share of false calls is at most `rate`, whatever the dependence between workloads, which share a machine
/// and a minute. In a suite where nothing changed every call is false, so there `rate` bounds the probability of
/// any call at all. The first call costs what Bonferroni's does; each further one is cheaper.
///
/// Gives indices in ascending order. NaN is no evidence.
pub fn e_bh(e_values: &[f64], rate: f64) -> Vec<usize> {
    let worth = |index: &usize| if e_values[*index].is_nan() { 0.0 } else { e_values[*index] };
    let mut order: Vec<usize> = (0..e_values.len()).collect();
    order.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
    let is_enough = |k: &usize| worth(&order[k - 1]) * *k as f64 * rate >= e_values.len() as f64;
    let called_count = (1..=order.len()).rev().find(is_enough).unwrap_or(0);
    order.truncate(called_count);
    order.sort_unstable();
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_alone_needs_bonferroni_and_company_is_cheaper() {
        assert_eq!(e_bh(&[79.0, 1.0, 1.0, 1.0], 0.05), [] as [usize; 0]);
        assert_eq!(e_bh(&[1.0, 80.0, 1.0, 1.0], 0.05), [1]);
        assert_eq!(e_bh(&[40.0, 1.0, 40.0, 1.0], 0.05), [0, 2]);
        assert_eq!(e_bh(&[20.0; 4], 0.05), [0, 1, 2, 3]);
    }

    #[test]
    fn nothing_and_nonsense_are_not_called() {
        assert_eq!(e_bh(&[], 0.05), [] as [usize; 0]);
        assert_eq!(e_bh(&[f64::NAN, 1e9], 0.05), [1]);
        assert_eq!(e_bh(&[1e9], 0.0), [] as [usize; 0]);
        assert_eq!(e_bh(&[1e9], f64::NAN), [] as [usize; 0]);
    }
}
