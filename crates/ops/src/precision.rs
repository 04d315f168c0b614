//! Precision and range of element types: how far a stored answer may be off, and what is stored for values beyond the range. Must not
//! excuse anything within it.

use holdpoint_cuda::Dtype;

/// Largest difference that still counts as equal: `atol + rtol * |reference|`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    pub atol: f64,
    pub rtol: f64,
}

impl Tolerance {
    /// Bit-for-bit values (`0.0 == -0.0`).
    pub const EXACT: Self = Self { atol: 0.0, rtol: 0.0 };

    pub const fn new(atol: f64, rtol: f64) -> Self {
        Self { atol, rtol }
    }

    /// Whether `got` counts as `want`. NaN on either side never does; infinities match only themselves.
    pub fn accepts(self, got: f64, want: f64) -> bool {
        if got.is_infinite() || want.is_infinite() {
            return got == want;
        }
        // Written as "accept if <=", never "reject if >": every comparison with NaN is false.
        (got - want).abs() <= self.atol + self.rtol * want.abs()
    }
}

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

/// Precision and end of the range of an element type.
pub trait Precision {
    /// How far a stored answer may be from the oracle's: the originals' tolerances for single ops. What is stored in 8 bits is off by up
    /// to a sixteenth before the kernel has made any error, so that much is added.
    fn tolerance(self) -> Tolerance;
    /// Where its range ends, halfway to what would be the next number, and what is stored beyond.
    fn overflow(self) -> Overflow;
    /// Half of the distance from 1 to the next number: the largest relative error of a rounding.
    fn unit(self) -> f64;
}

impl Precision for Dtype {
    fn tolerance(self) -> Tolerance {
        match self {
            Self::F32 => Tolerance::new(1e-6, 1e-5),
            Self::F16 => Tolerance::new(1e-3, 1e-2),
            Self::Bf16 => Tolerance::new(2e-3, 2e-2),
            Self::E4m3 => Tolerance::new(3e-3, 3e-2 + 1.0 / 16.0),
        }
    }

    fn overflow(self) -> Overflow {
        match self {
            Self::F32 => Overflow::F32,
            Self::F16 => Overflow { from: 65_520.0, largest: None },
            Self::Bf16 => Overflow { from: 3.396_177_529_230_495_7e38, largest: None },
            Self::E4m3 => Overflow { from: 464.0, largest: Some(448.0) },
        }
    }

    fn unit(self) -> f64 {
        let bits = match self {
            Self::F32 => 24,
            Self::F16 => 11,
            Self::Bf16 => 8,
            Self::E4m3 => 4,
        };
        0.5_f64.powi(bits)
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

    #[test]
    fn ranges_end_where_rounding_leaves_them() {
        for dtype in [Dtype::F16, Dtype::Bf16, Dtype::E4m3] {
            let Overflow { from, largest } = dtype.overflow();
            let round = |value: f64| dtype.decode(&dtype.encode(&[value as f32]))[0];
            let (below, at) = (round(from * 0.999), round(from * 1.001));
            assert!(below.is_finite() && f64::from(below) < from, "{dtype:?}: {below}");
            assert_eq!(f64::from(at), largest.unwrap_or(f64::INFINITY), "{dtype:?}");
        }
        assert!(
            (Overflow::F32.from as f32).is_infinite()
                && Overflow::F32.from * 0.999_999_9 < f64::from(f32::MAX)
        );
    }
}
