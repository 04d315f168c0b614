//! Improvements that the work does not explain: skipped work looks the same.

use holdpoint_model::{Check, Verdict};

/// So many times faster, and it is checked before it counts. Kernels that skip their work become 40 to 150 times faster; of honest changes
/// few reach ten.
pub const SPEEDUP_MAX: f64 = 10.0;

/// Advice where `ratio`, new time over old, is an improvement of `speedup_max` times or more; absent where it is not.
pub(crate) fn check_this(ratio: f64, speedup_max: Option<f64>, better: &str) -> Option<String> {
    let times = 1.0 / ratio;
    (times >= speedup_max.unwrap_or(SPEEDUP_MAX)).then(|| {
        let times = if times.is_finite() { format!("{times:.0} times") } else { "endlessly".to_owned() };
        format!(
            "check this: {times} {better}; does it still do the work? See that answers are checked (holdpoint check), that no answer is kept from \
             an earlier call, and where the time went (holdpoint profile)"
        )
    })
}

/// A verdict and its reason, where an improvement may be that large: then it is not known.
pub fn checked(
    verdict: Verdict,
    reason: String,
    ratio: f64,
    speedup_max: Option<f64>,
    better: &str,
) -> (Verdict, String) {
    match check_this(ratio, speedup_max, better).filter(|_| verdict <= Verdict::Pass) {
        Some(check) => {
            let enough = (1.5 / ratio).ceil();
            (
                Verdict::Inconclusive,
                format!("{check}; if it does, --speedup-max {enough:.0} takes it; {reason}"),
            )
        }
        None => (verdict, reason),
    }
}

/// The same for the rules of the originals, whose exit codes others rely on: the verdict stays, and its line says what to check.
pub(crate) fn remarked(check: Check) -> Check {
    let advice = check.regression_ratio.and_then(|change| check_this(1.0 + change, None, "faster"));
    match advice.filter(|_| check.verdict <= Verdict::Pass) {
        Some(advice) => Check { reason: format!("{advice}; {}", check.reason), ..check },
        None => check,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_times_faster_is_to_be_checked_and_slower_is_not_touched() {
        let of = |verdict, ratio, max| checked(verdict, "as measured".to_owned(), ratio, max, "faster").0;
        assert_eq!(of(Verdict::Improved, 0.11, None), Verdict::Improved);
        for verdict in [Verdict::Improved, Verdict::Pass] {
            for ratio in [0.1, 0.007, 0.0] {
                assert_eq!(of(verdict, ratio, None), Verdict::Inconclusive, "{ratio}");
            }
        }
        assert_eq!(of(Verdict::Improved, 0.007, Some(200.0)), Verdict::Improved);
        assert_eq!(of(Verdict::Regressed, 0.007, None), Verdict::Regressed);
        assert_eq!(of(Verdict::Improved, f64::NAN, None), Verdict::Improved);
        let (_, reason) = checked(Verdict::Improved, "-99.3 %".to_owned(), 0.007, None, "faster");
        assert!(reason.starts_with("check this: 143 times faster; "), "{reason}");
        assert!(reason.ends_with("; -99.3 %"), "{reason}");
    }
}
