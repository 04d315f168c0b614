//! Errors of a request or of an op's inputs; each says what would be valid.
//! Must not know how anything is computed.

use thiserror::Error;

/// An op was given inputs outside its contract. The first words of each message are the contract's own.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum OpError {
    #[error(
        "Unsupported order mode: {0:?}; valid: hilbert, multi_direction, l2r|lr|scan_lr, r2l|rl|scan_rl, \
         u2d|ud|scan_ud, d2u|du|scan_du"
    )]
    UnsupportedOrder(String),
    #[error("{0} must be > 0")]
    NotPositive(&'static str),
    #[error(
        "feature map dimensions must be divisible by tile_size: {height}x{width} by {tile_size} leaves a remainder"
    )]
    NotDivisible { height: usize, width: usize, tile_size: usize },
    #[error("indices contain out-of-bounds tile ids: {index} is not in 0..{count}")]
    IndicesOutOfBounds { index: usize, count: usize },
    /// The fused op writes in place, so a tile may be named once only.
    #[error(
        "indices must be unique per batch for deterministic fused overwrite semantics: tile {0} is named twice"
    )]
    IndicesNotUnique(u32),
    #[error("overlap_mode must be 'override' or 'blend', not {0:?}")]
    OverlapMode(String),
    #[error("blend_alpha must be within [0, 1], not {0}")]
    BlendAlpha(f64),
    /// Level and position do not fit one key.
    #[error("priority key overflow for int32: levels span {span}, {tiles} tiles per row")]
    PriorityKeyOverflow { span: i64, tiles: usize },
    #[error("direction must be one of: forward, backward, bidirectional; not {0:?}")]
    Direction(String),
    #[error("merge_mode must be one of: sum, avg, gated; not {0:?}")]
    MergeMode(String),
    #[error("{name} must be finite and >= 0, not {value}")]
    Budget { name: &'static str, value: f64 },
    #[error("{name} must have length {expected}, not {got}")]
    Length { name: &'static str, expected: usize, got: usize },
    #[error("{name} must be finite, but entry {index} is not")]
    NotFinite { name: &'static str, index: usize },
    #[error("theta_on must be > theta_off: {theta_on} is not above {theta_off}")]
    Thresholds { theta_on: f64, theta_off: f64 },
}

/// A request that cannot be turned into a runnable op.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum BuildError {
    #[error("unknown op {op:?}; known: {known}")]
    UnknownOp { op: String, known: String },
    #[error("{op}: dtype {dtype:?} is not supported on {place}; valid: {valid}")]
    Dtype {
        op: String,
        dtype: String,
        /// `the CPU` or `a device`.
        place: &'static str,
        valid: String,
    },
    #[error("{op}: shape {shape:?}: {problem}")]
    Shape { op: String, shape: Vec<usize>, problem: String },
    #[error("{op}: params: {problem}")]
    Params {
        op: String,
        /// serde's message, which names the field and the valid ones.
        problem: String,
    },
    #[error("{op}: params.{param}: {problem}")]
    Param { op: String, param: &'static str, problem: String },
    #[error("{op}: tolerance must be finite and >= 0, not atol {atol}, rtol {rtol}")]
    Tolerance { op: String, atol: f64, rtol: f64 },
}
