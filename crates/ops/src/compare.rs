//! Decides whether an answer equals the oracle's. Must not round, skip or forgive: a NaN is never a match, except in a type that
//! stores it for want of an infinity.

use crate::accuracy::Roundings;
use crate::precision::{Overflow, Tolerance};
use holdpoint_model::fuzz::Accuracy;
use holdpoint_model::report::CheckedBy;

/// Leeway that the inputs make necessary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leeway {
    /// The largest input, at least 1: absolute tolerances are meant for values around one and grow with it.
    pub scale: f64,
    /// A NaN or infinity lies among the inputs: where the oracle is not finite the answer must not be either.
    pub planted: bool,
    /// The answer's norm is about that of the inputs, so the norm of its error is held against it as well: an answer that is
    /// wrong everywhere, by less than the absolute tolerance, is still wrong.
    pub ordinary: bool,
    /// A right kernel's errors are those of its roundings, so their size and bias are looked at.
    pub graded: bool,
    pub overflow: Overflow,
}

impl Leeway {
    /// For the inputs that an op draws for itself.
    pub const NONE: Self =
        Self { scale: 1.0, planted: false, ordinary: false, graded: false, overflow: Overflow::F32 };
}

/// The error's norm may be this many times what the relative tolerance allows each value.
const NORM_FACTOR: f64 = 20.0;

/// Outcome of comparing all outputs of one call with the oracle's.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Check {
    /// No mismatch, and something was compared or there was nothing to compare.
    pub passed: bool,
    pub total: u64,
    pub mismatches: u64,
    /// Largest absolute difference; infinite when a NaN or an unmatched infinity was seen.
    pub max_abs_err: f64,
    /// Mean absolute difference of the floats; infinite as above.
    pub mean_abs_err: f64,
    /// Largest difference relative to `max(|reference|, 1e-12)`; infinite as above.
    pub max_rel_err: f64,
    /// Norm of the difference over the norm of the reference, of the worst output; infinite as above.
    pub rel_norm: f64,
    /// Correlation with the reference, of the worst output; absent where one of both does not vary.
    pub correlation: Option<f64>,
    /// The first mismatch, e.g. `merged[0,2,15,15]: got NaN, want 0.56`.
    pub first_bad: Option<String>,
    /// Size and bias of the errors of all float outputs; absent where they were not looked at.
    pub accuracy: Option<Accuracy>,
    pub atol: f64,
    pub rtol: f64,
    /// The oracle, and the rows of the answer that it computed; absent where it was the only one, and computed all.
    pub checked_by: Option<CheckedBy>,
}

/// Gathers several outputs into one [`Check`].
#[derive(Debug)]
#[must_use]
pub struct Comparison {
    tolerance: Tolerance,
    leeway: Leeway,
    roundings: Option<Roundings>,
    /// Count of the floats so far, and the sum of their differences.
    floats: [f64; 2],
    check: Check,
}

impl Comparison {
    pub fn new(tolerance: Tolerance) -> Self {
        let Tolerance { atol, rtol } = tolerance;
        let check = Check {
            passed: true,
            total: 0,
            mismatches: 0,
            max_abs_err: 0.0,
            mean_abs_err: 0.0,
            max_rel_err: 0.0,
            rel_norm: 0.0,
            correlation: None,
            first_bad: None,
            accuracy: None,
            atol,
            rtol,
            checked_by: None,
        };
        Self { tolerance, leeway: Leeway::NONE, roundings: None, floats: [0.0; 2], check }
    }

    /// Applies the leeway that the inputs allow.
    pub(crate) fn with_leeway(mut self, leeway: Leeway) -> Self {
        self.tolerance.atol *= leeway.scale;
        (self.check.atol, self.leeway) = (self.tolerance.atol, leeway);
        self
    }

    /// Also compares the size and bias of the errors with those of a right kernel, where the inputs allow it.
    pub(crate) fn with_roundings(mut self, roundings: Option<Roundings>) -> Self {
        self.roundings = roundings.filter(|_| self.leeway.graded);
        self
    }

    /// Sets what the element type of the next output stores beyond its range.
    pub(crate) fn stored_as(mut self, overflow: Overflow) -> Self {
        self.leeway.overflow = overflow;
        self
    }

    /// Compares one float output under the tolerance.
    pub fn floats(mut self, name: &str, dims: &[usize], got: &[f32], want: &[f32]) -> Self {
        if self.lengths_differ(name, got.len(), want.len()) {
            return self;
        }
        let mut moments = Moments::default();
        for (at, (&g, &w)) in got.iter().zip(want).enumerate() {
            let (g, w) = (f64::from(g), f64::from(w));
            let is_beyond = self.leeway.overflow.accepts(g, w, self.tolerance);
            if is_beyond {
                self.check.total += 1;
                continue;
            }
            self.pair(name, dims, at, g, w, self.tolerance);
            if !self.leeway.planted || w.is_finite() {
                moments.add(g, w);
            }
        }
        self.norms(name, &moments);
        let is_beyond = |got, want| self.leeway.overflow.accepts(got, want, self.tolerance);
        let row = dims.last().copied().unwrap_or(1);
        if let Some(here) = self.roundings.and_then(|roundings| roundings.grade(row, got, want, is_beyond)) {
            self.check.accuracy = Some(self.check.accuracy.map_or(here, |before| before.join(here)));
        }
        self
    }

    /// Adds an output that was compared elsewhere, value by value, under the same tolerance and leeway.
    pub(crate) fn tally(mut self, name: &str, dims: &[usize], tally: &Tally) -> Self {
        self.check.total += tally.total;
        self.check.max_abs_err = self.check.max_abs_err.max(tally.max_abs_err);
        self.check.max_rel_err = self.check.max_rel_err.max(tally.max_rel_err);
        if let Some((at, got, want)) = tally.first {
            self.bad(|| format!("{name}[{}]: got {got}, want {want}", position(at, dims)));
            self.check.mismatches += tally.mismatches.saturating_sub(1);
        }
        self.norms(name, &tally.moments);
        self
    }

    /// The tolerance with its leeway.
    pub(crate) fn tolerance(&self) -> Tolerance {
        self.tolerance
    }

    /// Compares the whole output by its norm.
    fn norms(&mut self, name: &str, moments: &Moments) {
        let rel_norm = moments.rel_norm();
        self.floats = [self.floats[0] + moments.count, self.floats[1] + moments.error];
        let mean = self.floats[1] / self.floats[0].max(1.0);
        self.check.mean_abs_err = if mean.is_nan() { f64::INFINITY } else { mean };
        self.check.rel_norm = self.check.rel_norm.max(rel_norm);
        // Of few values or of rounding errors it says nothing.
        let rounding = 4.0 * self.tolerance.rtol;
        if let Some(correlation) =
            moments.correlation(rounding).filter(|_| self.leeway.ordinary && moments.count >= 32.0)
        {
            self.check.correlation = Some(self.check.correlation.map_or(correlation, |c| c.min(correlation)));
        }
        let most = NORM_FACTOR * self.tolerance.rtol.max(f64::from(f32::EPSILON));
        if self.leeway.ordinary && rel_norm > most && self.check.passed {
            self.bad(|| {
                format!("{name}: the error's norm is {rel_norm:.2e} of the answer's, allowed are {most:.1e}")
            });
        }
    }

    /// Compares one output of whole numbers, always exactly.
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
    pub(crate) fn doubles(mut self, name: &str, got: &[f64], want: &[f64]) -> Self {
        if self.lengths_differ(name, got.len(), want.len()) {
            return self;
        }
        for (at, (&g, &w)) in got.iter().zip(want).enumerate() {
            self.pair(name, &[got.len()], at, g, w, self.tolerance);
        }
        self
    }

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
        if self.leeway.planted && !want.is_finite() {
            if got.is_finite() {
                self.bad(|| format!("{name}[{}]: got {got}, want {want}", position(at, dims)));
            }
            return;
        }
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

/// An output that was compared elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub total: u64,
    pub mismatches: u64,
    /// The first mismatch: its place, and what was got and wanted there.
    pub first: Option<(usize, f64, f64)>,
    pub max_abs_err: f64,
    pub max_rel_err: f64,
    pub moments: Moments,
}

#[derive(Debug, Default)]
pub(crate) struct Moments {
    pub count: f64,
    pub got: f64,
    pub want: f64,
    pub got_squared: f64,
    pub want_squared: f64,
    pub product: f64,
    pub error: f64,
    pub error_squared: f64,
}

impl Moments {
    #[inline]
    fn add(&mut self, got: f64, want: f64) {
        self.count += 1.0;
        self.got += got;
        self.want += want;
        self.got_squared += got * got;
        self.want_squared += want * want;
        self.product += got * want;
        self.error += (got - want).abs();
        self.error_squared += (got - want) * (got - want);
    }

    fn rel_norm(&self) -> f64 {
        match (self.error_squared, self.want_squared) {
            // Where the reference is zero everywhere, each value has been held against the absolute tolerance.
            (0.0, _) | (_, 0.0) => 0.0,
            (error, want) if error.is_finite() => (error / want).sqrt(),
            _ => f64::INFINITY,
        }
    }

    /// None where the reference varies by less than this share of its norm.
    fn correlation(&self, share: f64) -> Option<f64> {
        let n = self.count;
        let spread = |sum: f64, squared: f64| squared / n - (sum / n) * (sum / n);
        let (got, want) = (spread(self.got, self.got_squared), spread(self.want, self.want_squared));
        if want <= share * share * self.want_squared / n {
            return None;
        }
        let together = self.product / n - self.got / n * (self.want / n);
        let correlation = together / (got * want).sqrt();
        correlation.is_finite().then_some(correlation.clamp(-1.0, 1.0))
    }
}

fn relative(difference: f64, want: f64) -> f64 {
    let ratio = difference / want.abs().max(1e-12);
    if ratio.is_nan() { f64::INFINITY } else { ratio }
}

/// A flat position as coordinates, last dimension fastest.
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
    const ORDINARY: Leeway = Leeway { ordinary: true, ..Leeway::NONE };

    fn compare(tolerance: Tolerance, leeway: Leeway, got: &[f32], want: &[f32]) -> Check {
        Comparison::new(tolerance).with_leeway(leeway).floats("y", &[want.len()], got, want).finish()
    }

    #[test]
    fn nan_on_either_side_is_a_mismatch_under_any_tolerance() {
        for (got, want) in [(f32::NAN, 1.0), (1.0, f32::NAN), (f32::NAN, f32::NAN)] {
            let check = compare(LOOSE, Leeway::NONE, &[got], &[want]);
            assert!(!check.passed, "{got} vs {want}");
            assert_eq!(check.max_abs_err, f64::INFINITY);
        }
    }

    #[test]
    fn infinities_match_only_themselves() {
        const INFINITY: f64 = f64::INFINITY;
        assert!(LOOSE.accepts(INFINITY, INFINITY));
        for (got, want) in [(INFINITY, -INFINITY), (1.0, INFINITY), (INFINITY, 1.0)] {
            assert!(!LOOSE.accepts(got, want), "{got} vs {want}");
        }
        let check = compare(LOOSE, Leeway::NONE, &[f32::INFINITY], &[f32::INFINITY]);
        assert!(check.passed && check.max_abs_err == 0.0);
    }

    #[test]
    fn the_first_mismatch_is_named_by_coordinates() {
        let (mut got, want) = ([0.5; 24], [0.5; 24]);
        got[23] = f32::NAN;
        let check = Comparison::new(Tolerance::EXACT).floats("merged", &[2, 3, 4], &got, &want).finish();
        assert_eq!(check.first_bad.as_deref(), Some("merged[1,2,3]: got NaN, want 0.5"));
        assert_eq!((check.mismatches, check.total), (1, 24));
    }

    #[test]
    fn a_constant_within_the_absolute_tolerance_is_wrong_by_its_norm() {
        let want: Vec<f32> = (0..100).map(|i| 1e-3 * (i as f32).sin()).collect();
        let tolerance = Tolerance::new(2e-3, 1e-3);
        let by_element = compare(tolerance, Leeway::NONE, &[0.0; 100], &want);
        assert!(by_element.passed && by_element.rel_norm == 1.0, "{by_element:?}");
        let by_norm = compare(tolerance, ORDINARY, &[0.0; 100], &want);
        assert!(!by_norm.passed && by_norm.first_bad.unwrap().contains("norm"));
        let right = compare(tolerance, ORDINARY, &want, &want);
        assert!(right.passed && right.correlation.unwrap() > 0.999_999);
    }

    #[test]
    fn no_correlation_is_given_for_rounding_errors() {
        let want: Vec<f32> = (0..100).map(|i| 1.0 + 1e-3 * (i as f32).sin()).collect();
        let rounded: Vec<f32> = want.iter().map(|x| (x * 256.0).round() / 256.0).collect();
        let check = compare(Tolerance::new(1e-2, 2e-2), ORDINARY, &rounded, &want);
        assert!(check.passed && check.correlation.is_none(), "{check:?}");
        assert!(compare(Tolerance::new(1e-2, 1e-5), ORDINARY, &want, &want).correlation.unwrap() > 0.999);
    }

    #[test]
    fn the_answer_is_not_finite_exactly_where_the_oracle_is_not() {
        let planted = Leeway { planted: true, ..Leeway::NONE };
        let passes = |got: [f32; 2]| compare(LOOSE, planted, &got, &[f32::NAN, 1.0]).passed;
        assert!(passes([f32::NAN, 1.0]) && passes([f32::INFINITY, 1.0]));
        assert!(!passes([3.0, 1.0]), "a number where none can be");
        assert!(!passes([f32::NAN, f32::NAN]), "NaN where a number must be");
    }

    #[test]
    fn the_absolute_tolerance_grows_with_the_inputs() {
        let passes = |scale: f64| {
            let leeway = Leeway { scale, ..Leeway::NONE };
            compare(Tolerance::new(1e-3, 0.0), leeway, &[0.05], &[0.0]).passed
        };
        assert!(!passes(1.0) && passes(100.0));
    }

    #[test]
    fn an_output_that_was_compared_elsewhere_counts_like_one_compared_here() {
        let want: Vec<f32> = (0..100).map(|i| (i as f32).sin()).collect();
        let mut got = want.clone();
        (got[7], got[90]) = (5.0, f32::NAN);
        let here = compare(Tolerance::new(1e-3, 1e-3), ORDINARY, &got, &want);
        let mut moments = Moments::default();
        got.iter().zip(&want).for_each(|(g, w)| moments.add(f64::from(*g), f64::from(*w)));
        let tally = Tally {
            total: 100,
            mismatches: 2,
            first: Some((7, 5.0, f64::from(want[7]))),
            max_abs_err: f64::INFINITY,
            max_rel_err: f64::INFINITY,
            moments,
        };
        let start = Comparison::new(Tolerance::new(1e-3, 1e-3)).with_leeway(ORDINARY);
        assert_eq!(start.tally("y", &[100], &tally).finish(), here);
    }

    #[test]
    fn outputs_of_different_length_never_pass() {
        assert!(!compare(LOOSE, Leeway::NONE, &[1.0], &[1.0, 1.0]).passed);
    }
}
