//! Welch's t-test: do the means differ, when the variances may too?

use super::moments;
use crate::special::student_two_sided;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welch {
    /// The difference of the means over its standard error; positive where `a` is larger.
    pub t: f64,
    /// Welch and Satterthwaite's.
    pub degrees: f64,
    /// Two-sided.
    pub p: f64,
}

/// The two-sided test; absent with fewer than two values on a side, or without any spread.
pub fn welch(a: &[f64], b: &[f64]) -> Option<Welch> {
    let ((mean_a, variance_a), (mean_b, variance_b)) = (moments(a)?, moments(b)?);
    let (share_a, share_b) = (variance_a / a.len() as f64, variance_b / b.len() as f64);
    let error_squared = share_a + share_b;
    if error_squared <= 0.0 || error_squared.is_nan() {
        return None;
    }
    let t = (mean_a - mean_b) / error_squared.sqrt();
    let (degrees_a, degrees_b) = ((a.len() - 1) as f64, (b.len() - 1) as f64);
    let degrees = error_squared.powi(2) / (share_a.powi(2) / degrees_a + share_b.powi(2) / degrees_b);
    Some(Welch { t, degrees, p: student_two_sided(t, degrees) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_the_textbook() {
        let a = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4];
        let b = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.5, 31.1];
        let got = welch(&a, &b).unwrap();
        assert!((got.t + 2.953_340_276_794_532).abs() < 1e-9, "{got:?}");
        assert!((got.degrees - 27.387_505_752_020_818).abs() < 1e-9, "{got:?}");
        assert!((got.p - 0.006_385_392_002_532_225).abs() < 1e-9, "{got:?}");
    }

    #[test]
    fn nothing_in_is_nothing_out() {
        assert_eq!(welch(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(welch(&[1.0, 1.0], &[1.0, 1.0]), None);
    }
}
