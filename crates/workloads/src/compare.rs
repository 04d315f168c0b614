//! Decides whether an answer equals the oracle's. Must not round, skip or forgive: a NaN is never a match.

/// Largest difference that still counts as equal: `atol + rtol * |reference|`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Absolute part.
    pub atol: f64,
    /// Part relative to the reference's magnitude.
    pub rtol: f64,
}

impl Tolerance {
    /// Bit-for-bit values (`0.0 == -0.0`).
    pub const EXACT: Self = Self { atol: 0.0, rtol: 0.0 };

    /// A tolerance from its two parts.
    #[must_use]
    pub const fn new(atol: f64, rtol: f64) -> Self {
        Self { atol, rtol }
    }

    /// Whether `got` counts as `want`. NaN on either side never does; infinities match only themselves.
    #[must_use]
    pub fn accepts(self, got: f64, want: f64) -> bool {
        if got.is_infinite() || want.is_infinite() {
            return got == want;
        }
        // Written as "accept if <=", never "reject if >": every comparison with NaN is false.
        (got - want).abs() <= self.atol + self.rtol * want.abs()
    }
}

/// Outcome of comparing all outputs of one call with the oracle's.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// No mismatch, and something was compared or there was nothing to compare.
    pub passed: bool,
    /// Elements compared.
    pub total: u64,
    /// Elements that differ by more than the tolerance.
    pub mismatches: u64,
    /// Largest absolute difference; infinite when a NaN or an unmatched infinity was seen.
    pub max_abs_err: f64,
    /// Largest difference relative to `max(|reference|, 1e-12)`; infinite as above.
    pub max_rel_err: f64,
    /// The first mismatch, e.g. `merged[0,2,15,15]: got NaN, want 0.56`.
    pub first_bad: Option<String>,
    /// Absolute tolerance used.
    pub atol: f64,
    /// Relative tolerance used.
    pub rtol: f64,
}

/// Gathers several outputs into one [`Check`].
#[derive(Debug)]
pub struct Comparison {
    tolerance: Tolerance,
    check: Check,
}

impl Comparison {
    /// Starts with nothing compared.
    #[must_use]
    pub fn new(tolerance: Tolerance) -> Self {
        let Tolerance { atol, rtol } = tolerance;
        let check = Check {
            passed: true,
            total: 0,
            mismatches: 0,
            max_abs_err: 0.0,
            max_rel_err: 0.0,
            first_bad: None,
            atol,
            rtol,
        };
        Self { tolerance, check }
    }

    /// Compares one float output under the tolerance.
    #[must_use]
    pub fn floats(mut self, name: &str, dims: &[usize], got: &[f32], want: &[f32]) -> Self {
        if self.lengths_differ(name, got.len(), want.len()) {
            return self;
        }
        for (at, (&g, &w)) in got.iter().zip(want).enumerate() {
            self.pair(name, dims, at, f64::from(g), f64::from(w), self.tolerance);
        }
        self
    }

    /// Compares one output of whole numbers, always exactly.
    #[must_use]
    pub fn exact<T: Copy + Into<f64>>(mut self, name: &str, dims: &[usize], got: &[T], want: &[T]) -> Self {
        if self.lengths_differ(name, got.len(), want.len()) {
            return self;
        }
        for (at, (&g, &w)) in got.iter().zip(want).enumerate() {
            self.pair(name, dims, at, g.into(), w.into(), Tolerance::EXACT);
        }
        self
    }

    /// Compares 64-bit numbers (budgets, histograms) under the tolerance.
    #[must_use]
    pub fn doubles(mut self, name: &str, got: &[f64], want: &[f64]) -> Self {
        if self.lengths_differ(name, got.len(), want.len()) {
            return self;
        }
        for (at, (&g, &w)) in got.iter().zip(want).enumerate() {
            self.pair(name, &[got.len()], at, g, w, self.tolerance);
        }
        self
    }

    /// The verdict on everything given so far.
    #[must_use]
    pub fn finish(self) -> Check {
        self.check
    }

    fn lengths_differ(&mut self, name: &str, got: usize, want: usize) -> bool {
        if got == want {
            return false;
        }
        self.check.total += want.max(got) as u64;
        self.bad(|| format!("{name}: got {got} elements, want {want}"));
        true
    }

    #[inline]
    fn pair(&mut self, name: &str, dims: &[usize], at: usize, got: f64, want: f64, tolerance: Tolerance) {
        self.check.total += 1;
        let difference = if got == want { 0.0 } else { (got - want).abs() };
        let difference = if difference.is_nan() { f64::INFINITY } else { difference };
        self.check.max_abs_err = self.check.max_abs_err.max(difference);
        self.check.max_rel_err = self.check.max_rel_err.max(relative(difference, want));
        if !tolerance.accepts(got, want) {
            self.bad(|| format!("{name}[{}]: got {got}, want {want}", position(at, dims)));
        }
    }

    fn bad(&mut self, describe: impl FnOnce() -> String) {
        self.check.passed = false;
        self.check.mismatches += 1;
        self.check.first_bad.get_or_insert_with(describe);
    }
}

fn relative(difference: f64, want: f64) -> f64 {
    let ratio = difference / want.abs().max(1e-12);
    if ratio.is_nan() { f64::INFINITY } else { ratio }
}

/// Spells a flat position as coordinates, last dimension fastest.
fn position(at: usize, dims: &[usize]) -> String {
    let mut rest = at;
    let mut parts: Vec<String> = Vec::with_capacity(dims.len());
    for &size in dims.iter().rev() {
        parts.push((rest % size.max(1)).to_string());
        rest /= size.max(1);
    }
    parts.reverse();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOSE: Tolerance = Tolerance::new(1.0, 1.0);

    #[test]
    fn nan_on_either_side_is_a_mismatch_under_any_tolerance() {
        for (got, want) in [(f32::NAN, 1.0), (1.0, f32::NAN), (f32::NAN, f32::NAN)] {
            let check = Comparison::new(LOOSE).floats("y", &[1], &[got], &[want]).finish();
            assert!(!check.passed, "{got} vs {want}");
            assert_eq!(check.max_abs_err, f64::INFINITY);
        }
    }

    #[test]
    fn infinities_match_only_themselves() {
        assert!(LOOSE.accepts(f64::INFINITY, f64::INFINITY));
        assert!(!LOOSE.accepts(f64::INFINITY, f64::NEG_INFINITY));
        assert!(!LOOSE.accepts(1.0, f64::INFINITY));
        assert!(!LOOSE.accepts(f64::INFINITY, 1.0));
        let check = Comparison::new(LOOSE).floats("y", &[1], &[f32::INFINITY], &[f32::INFINITY]).finish();
        assert!(check.passed && check.max_abs_err == 0.0);
    }

    #[test]
    fn the_first_mismatch_is_named_by_coordinates() {
        let (mut got, want) = (vec![0.5f32; 24], vec![0.5f32; 24]);
        got[23] = f32::NAN;
        let check = Comparison::new(Tolerance::EXACT).floats("merged", &[2, 3, 4], &got, &want).finish();
        assert_eq!(check.first_bad.as_deref(), Some("merged[1,2,3]: got NaN, want 0.5"));
        assert_eq!((check.mismatches, check.total), (1, 24));
    }

    #[test]
    fn outputs_of_different_length_never_pass() {
        assert!(!Comparison::new(LOOSE).floats("y", &[2], &[1.0], &[1.0, 1.0]).finish().passed);
    }
}
