//! The scale on which steps are compared.

/// Ratios where all values are positive, shares of the typical size elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    Log,
    Linear { unit: f64 },
}

impl Scale {
    /// The scale of finite values; absent where all are zero or there is none.
    pub(super) fn fit(values: &[f64]) -> Option<Self> {
        if !values.is_empty() && values.iter().all(|value| *value > 0.0) {
            return Some(Self::Log);
        }
        let mut sizes: Vec<f64> = values.iter().map(|value| value.abs()).filter(|size| *size > 0.0).collect();
        sizes.sort_by(f64::total_cmp);
        // The lower of the middle two: halves of huge values do not overflow.
        let unit = *sizes.get(sizes.len().checked_sub(1)? / 2)?;
        Some(Self::Linear { unit })
    }

    pub(super) fn apply(self, value: f64) -> f64 {
        match self {
            Self::Log => value.ln(),
            Self::Linear { unit } => value / unit,
        }
    }

    pub(super) fn invert(self, point: f64) -> f64 {
        match self {
            Self::Log => point.exp(),
            Self::Linear { unit } => point * unit,
        }
    }
}
