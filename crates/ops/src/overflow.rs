//! Values that an element type cannot hold, and what it stores instead. Must not excuse anything within its range.

use crate::compare::Tolerance;

/// Where an element type's range ends, and what is stored beyond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overflow {
    /// Magnitudes from here on round to infinity: the largest number plus half of its last bit.
    pub from: f64,
    /// For types without an infinity: the largest number, at which an answer saturates. It may be NaN instead.
    pub largest: Option<f64>,
}

impl Overflow {
    /// Of a 32-bit float: 2^128 less half of the last bit of the largest.
    pub const F32: Self = Self { from: 3.402_823_567_797_336_6e38, largest: None };

    /// Whether `got` is what is stored for a value within the tolerance of `want` that is beyond the range.
    pub fn accepts(self, got: f64, want: f64, tolerance: Tolerance) -> bool {
        let reaches = |value: f64| tolerance.atol + (1.0 + tolerance.rtol) * value.abs() >= self.from;
        let is_same_side = got.is_sign_negative() == want.is_sign_negative();
        match self.largest {
            Some(largest) => reaches(want) && (got.is_nan() || is_same_side && got.abs() == largest),
            None if got.is_infinite() => reaches(want) && is_same_side,
            // The oracle has rounded up to infinity what the answer has rounded down.
            None => want.is_infinite() && reaches(got) && is_same_side,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F16: Overflow = Overflow { from: 65_520.0, largest: None };
    const E4M3: Overflow = Overflow { from: 464.0, largest: Some(448.0) };
    const TOLERANCE: Tolerance = Tolerance::new(1e-3, 1e-2);
    const INFINITY: f64 = f64::INFINITY;

    #[test]
    fn infinity_is_right_beyond_the_range_and_within_a_tolerance_of_its_end() {
        for want in [97_656.0, 65_520.0, 65_504.0, 64_900.0, 1e300] {
            assert!(F16.accepts(INFINITY, want, TOLERANCE), "{want}");
            assert!(F16.accepts(-INFINITY, -want, TOLERANCE), "{want}");
            assert!(!F16.accepts(-INFINITY, want, TOLERANCE) && !F16.accepts(f64::NAN, want, TOLERANCE));
        }
        assert!(!F16.accepts(INFINITY, 64_000.0, TOLERANCE));
        assert!(!F16.accepts(65_504.0, 97_656.0, TOLERANCE), "a largest number where infinity must be");
        assert!(!F16.accepts(INFINITY, f64::NAN, TOLERANCE));
    }

    #[test]
    fn the_largest_number_is_right_where_the_oracle_just_passed_it() {
        let largest = f64::from(f32::MAX);
        assert!(Overflow::F32.accepts(largest, INFINITY, TOLERANCE));
        assert!(!Overflow::F32.accepts(-largest, INFINITY, TOLERANCE));
        assert!(!Overflow::F32.accepts(0.5 * largest, INFINITY, TOLERANCE));
        assert!(Overflow::F32.accepts(INFINITY, largest, Tolerance::new(0.0, 1e-5)));
    }

    #[test]
    fn a_type_without_infinity_stays_at_its_largest_or_is_nan() {
        for want in [1000.0, 470.0, INFINITY] {
            assert!(E4M3.accepts(448.0, want, TOLERANCE) && E4M3.accepts(f64::NAN, want, TOLERANCE));
            assert!(!E4M3.accepts(-448.0, want, TOLERANCE) && !E4M3.accepts(416.0, want, TOLERANCE));
        }
        assert!(!E4M3.accepts(f64::NAN, 400.0, TOLERANCE));
    }
}
