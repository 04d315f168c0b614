//! What can be wrong with a request or with an op's inputs, in words that say what would be valid.
//! Must not know how anything is computed.

use thiserror::Error;

/// An op was given inputs outside its contract. The first words of each message are the contract's own.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum OpError {
    /// An order mode nobody knows.
    #[error(
        "Unsupported order mode: {0:?}; valid: hilbert, multi_direction, l2r|lr|scan_lr, r2l|rl|scan_rl, \
         u2d|ud|scan_ud, d2u|du|scan_du"
    )]
    UnsupportedOrder(String),
    /// A size that must be positive is zero.
    #[error("{0} must be > 0")]
    NotPositive(&'static str),
    /// The tile edge does not divide the map.
    #[error(
        "feature map dimensions must be divisible by tile_size: {height}x{width} by {tile_size} leaves a remainder"
    )]
    NotDivisible {
        /// Map height in pixels.
        height: usize,
        /// Map width in pixels.
        width: usize,
        /// Tile edge in pixels.
        tile_size: usize,
    },
    /// An id in an index list outside the grid.
    #[error("indices contain out-of-bounds tile ids: {index} is not in 0..{count}")]
    IndicesOutOfBounds {
        /// The first bad id.
        index: usize,
        /// Tiles in the grid.
        count: usize,
    },
    /// The fused op writes in place, so a tile may be named once only.
    #[error(
        "indices must be unique per batch for deterministic fused overwrite semantics: tile {0} is named twice"
    )]
    IndicesNotUnique(u32),
    /// Neither override nor blend.
    #[error("overlap_mode must be 'override' or 'blend', not {0:?}")]
    OverlapMode(String),
    /// Blend weight outside the unit interval.
    #[error("blend_alpha must be within [0, 1], not {0}")]
    BlendAlpha(f64),
    /// Tiles without levels and without a promise about their order.
    #[error("levels must be provided when assume_priority_sorted=False")]
    LevelsMissing,
    /// Level and position do not fit one key.
    #[error("priority key overflow for int32: levels span {span}, {tiles} tiles per row")]
    PriorityKeyOverflow {
        /// Largest level minus smallest.
        span: i64,
        /// Tiles per batch row.
        tiles: usize,
    },
    /// Unknown scan direction.
    #[error("direction must be one of: forward, backward, bidirectional; not {0:?}")]
    Direction(String),
    /// Unknown way to merge two directions.
    #[error("merge_mode must be one of: sum, avg, gated; not {0:?}")]
    MergeMode(String),
    /// A number that must be finite and not negative.
    #[error("{name} must be finite and >= 0, not {value}")]
    Budget {
        /// Which number.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// Lists that must run in step do not.
    #[error("{name} must have length {expected}, not {got}")]
    Length {
        /// Which list.
        name: &'static str,
        /// Elements needed.
        expected: usize,
        /// Elements given.
        got: usize,
    },
    /// A NaN or infinity where a finite number is needed.
    #[error("{name} must be finite, but entry {index} is not")]
    NotFinite {
        /// Which list.
        name: &'static str,
        /// Position of the first bad entry.
        index: usize,
    },
    /// Hysteresis needs a gap.
    #[error("theta_on must be > theta_off: {theta_on} is not above {theta_off}")]
    Thresholds {
        /// Switch-on threshold.
        theta_on: f64,
        /// Switch-off threshold.
        theta_off: f64,
    },
    /// A named weight is missing or has another size.
    #[error("weight {name:?}: {problem}")]
    Weight {
        /// Full parameter name.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// A request that cannot be turned into a runnable op.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No built-in op has this name.
    #[error("unknown op {op:?}; known: {known}")]
    UnknownOp {
        /// The name asked for.
        op: String,
        /// The names there are.
        known: String,
    },
    /// The op has no version in this element type.
    #[error("{op}: dtype {dtype:?} is not supported on {place}; valid: {valid}")]
    Dtype {
        /// The op.
        op: String,
        /// The dtype asked for.
        dtype: String,
        /// The CPU or a device.
        place: &'static str,
        /// The dtypes there are.
        valid: String,
    },
    /// Rank or sizes that the op cannot take.
    #[error("{op}: shape {shape:?}: {problem}")]
    Shape {
        /// The op.
        op: String,
        /// The shape asked for.
        shape: Vec<usize>,
        /// What is wrong and what would be valid.
        problem: String,
    },
    /// Parameters that do not parse: unknown name or wrong type.
    #[error("{op}: params: {problem}")]
    Params {
        /// The op.
        op: String,
        /// serde's words, which name the field and the valid ones.
        problem: String,
    },
    /// One parameter with a value outside its range.
    #[error("{op}: params.{param}: {problem}")]
    Param {
        /// The op.
        op: String,
        /// Parameter name.
        param: &'static str,
        /// What is wrong and what would be valid.
        problem: String,
    },
    /// A tolerance nothing can be compared with.
    #[error("{op}: tolerance must be finite and >= 0, not atol {atol}, rtol {rtol}")]
    Tolerance {
        /// The op.
        op: String,
        /// Absolute part.
        atol: f64,
        /// Relative part.
        rtol: f64,
    },
}
