//! Kinds of input values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kinds of input values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Values {
    /// Normal, mean 0, deviation 1.
    Normal,
    /// Uniform from -1 to 1.
    Uniform,
    /// All zero.
    Zero,
    /// One value everywhere: what depends on order or place shows nothing, what depends on counts does.
    Constant,
    /// As large as the element type bears with room for sums.
    Large,
    /// About the smallest normal number of the element type, so that some are denormal.
    Tiny,
    /// So small that the absolute tolerance would take zero for the answer, and still precise: held against the answer's norm.
    Small,
    /// Mostly zero, a few large.
    Spikes,
    /// Weights spread over many small values: one key stands out, all others count alike and together about as much as it.
    Spread,
    /// Normal with one NaN.
    Nan,
    /// Normal with one infinity.
    Infinite,
}

impl Values {
    pub const ALL: &'static [Self] = &[
        Self::Normal,
        Self::Uniform,
        Self::Zero,
        Self::Constant,
        Self::Large,
        Self::Tiny,
        Self::Small,
        Self::Spikes,
        Self::Nan,
        Self::Infinite,
        Self::Spread,
    ];

    /// Those that mean the same to every op.
    pub const COMMON: &'static [Self] = Self::ALL.split_at(Self::ALL.len() - 1).0;

    /// Whether it plants something that is not finite.
    pub fn is_planted(self) -> bool {
        matches!(self, Self::Nan | Self::Infinite)
    }

    /// Whether a typical answer is about as large as the inputs, so that errors can be held against its norm.
    pub fn is_ordinary(self) -> bool {
        matches!(self, Self::Normal | Self::Uniform | Self::Small)
    }

    /// Whether the errors of a right kernel are those of its roundings alone: nothing is denormal, and no sum cancels.
    pub fn is_graded(self) -> bool {
        matches!(self, Self::Normal | Self::Uniform)
    }
}
