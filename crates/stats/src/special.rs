//! Special functions for p-values and exact binomial bounds.

use std::f64::consts::PI;

/// More terms than any argument used here takes; a limit on everything.
const TERMS_MAX: usize = 10_000;

/// ln Γ(x) for x > 0, by Lanczos' approximation (g = 7, nine terms); relative error below 1e-13.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    const G: f64 = 7.0;
    const C: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let series = C.iter().enumerate().skip(1).fold(C[0], |sum, (i, c)| sum + c / (x + i as f64));
    let t = x + G + 0.5;
    0.5 * (2.0 * PI).ln() + (x + 0.5) * t.ln() - t + series.ln()
}

/// The regularised incomplete beta function: P(Beta(a, b) <= x). By its continued fraction (Lentz' method), on the
/// side of the mean where that converges fast.
pub(crate) fn beta_cdf(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let ln_front = a * x.ln() + b * (-x).ln_1p() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    if x < (a + 1.0) / (a + b + 2.0) {
        ln_front.exp() * beta_fraction(x, a, b) / a
    } else {
        1.0 - ln_front.exp() * beta_fraction(1.0 - x, b, a) / b
    }
}

fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    // Lentz' method must not divide by zero; a number this small changes nothing.
    let guard = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let (mut c, mut d) = (1.0, 1.0 / guard(1.0 - (a + b) * x / (a + 1.0)));
    let mut result = d;
    for m in 1..TERMS_MAX {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / guard(1.0 + term * d);
            c = guard(1.0 + term / c);
            change = c * d;
            result *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

/// P(|Z| >= z) of a standard normal Z, for z >= 0: a series near the middle, a continued fraction in the tail, so that
/// small p-values keep their digits.
pub(crate) fn normal_two_sided(z: f64) -> f64 {
    let density = (-0.5 * z * z).exp() / (2.0 * PI).sqrt();
    if z < 3.0 {
        let (mut term, mut sum) = (z, z);
        for i in 1..200 {
            term *= z * z / (2.0 * f64::from(i) + 1.0);
            sum += term;
        }
        return 1.0 - 2.0 * density * sum;
    }
    let fraction = (1..=100).rev().fold(z, |tail, i| z + f64::from(i) / tail);
    2.0 * density / fraction
}

/// P(|T| >= t) of Student's t with real degrees of freedom.
pub(crate) fn student_two_sided(t: f64, degrees: f64) -> f64 {
    beta_cdf(degrees / (degrees + t * t), degrees / 2.0, 0.5)
}

/// The point that Student's t exceeds with probability `tail`, for a tail below one half: halving between bounds, since
/// tails as small as a suite's error rate divided by its metrics are far from where expansions hold.
pub(crate) fn student_upper(tail: f64, degrees: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while student_two_sided(high, degrees) > 2.0 * tail && high < 1e300 {
        high *= 2.0;
    }
    // 60 halvings: below the last digit of a double.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if student_two_sided(middle, degrees) > 2.0 * tail { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64) {
        assert!((got / want - 1.0).abs() < 1e-9, "got {got}, want {want}");
    }

    #[test]
    fn gamma_of_whole_numbers_is_the_factorial() {
        close(ln_gamma(11.0), 3_628_800_f64.ln());
        close(ln_gamma(0.5), PI.sqrt().ln());
    }

    #[test]
    fn the_normal_agrees_with_the_tables() {
        close(normal_two_sided(1.959_963_984_540_054), 0.05);
        close(normal_two_sided(3.290_526_731_491_926), 0.001);
        close(normal_two_sided(10.0), 1.523_970_604_832_094e-23);
        assert!((normal_two_sided(0.0) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn students_t_agrees_with_the_tables() {
        close(student_two_sided(2.228_138_851_964_939, 10.0), 0.05);
        close(student_two_sided(1.0, 1.0), 0.5);
    }

    #[test]
    fn the_upper_points_of_students_t_agree_with_the_tables() {
        close(student_upper(0.025, 10.0), 2.228_138_851_964_939);
        // One degree is Cauchy's distribution: cot(π tail).
        close(student_upper(1e-4, 1.0), 1.0 / (PI * 1e-4).tan());
        // Two degrees: (1 - 2 tail) / sqrt(2 tail (1 - tail)).
        close(student_upper(1e-6, 2.0), (1.0 - 2e-6) / (2e-6_f64 * (1.0 - 1e-6)).sqrt());
    }
}
