//! TileSSM: a first-order recurrence over tile tokens `[B, K, C]`, channel by channel, in f32.
//! Must not mix channels, and must never let a NaN token into the state.
//!
//! [`oracle`] and [`fast`] take one parameter set per direction, which covers the op form (the same set
//! twice) and the module form ([`module`]: two learned sets and a gate).

mod fast;
pub mod module;
mod oracle;

pub use fast::fast;
pub use oracle::oracle;

use std::str::FromStr;

use crate::error::OpError;

pub(crate) const DECAY_RANGE: (f32, f32) = (1e-6, 1.0 - 1e-6);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
    Bidirectional,
}

impl Direction {
    /// States kept per sample and channel.
    pub fn slots(self) -> usize {
        if self == Self::Bidirectional { 2 } else { 1 }
    }
}

impl FromStr for Direction {
    type Err = OpError;

    fn from_str(text: &str) -> Result<Self, OpError> {
        match text {
            "forward" => Ok(Self::Forward),
            "backward" => Ok(Self::Backward),
            "bidirectional" => Ok(Self::Bidirectional),
            _ => Err(OpError::Direction(text.to_owned())),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// f + b.
    Sum,
    /// (f + b) / 2.
    Avg,
    /// g f + (1 - g) b.
    Gated,
}

impl FromStr for Merge {
    type Err = OpError;

    fn from_str(text: &str) -> Result<Self, OpError> {
        match text {
            "sum" => Ok(Self::Sum),
            "avg" => Ok(Self::Avg),
            "gated" => Ok(Self::Gated),
            _ => Err(OpError::MergeMode(text.to_owned())),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScanSpec {
    pub batch: usize,
    /// Tokens per sample, K.
    pub steps: usize,
    pub channels: usize,
    /// Tokens are clamped to plus or minus this magnitude.
    pub clamp: f32,
    pub direction: Direction,
    /// Used when bidirectional.
    pub merge: Merge,
}

impl ScanSpec {
    pub fn tokens_len(&self) -> usize {
        self.batch * self.steps * self.channels
    }

    /// Elements of the state tensor, `[B, C]` or `[B, 2, C]`.
    pub fn state_len(&self) -> usize {
        self.batch * self.direction.slots() * self.channels
    }
}

/// Per-channel parameters of one direction, owned or borrowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScanParams<V = Vec<f32>> {
    /// Share of the old state that stays.
    pub decay: V,
    pub input_gain: V,
    pub output_gain: V,
    /// Added to each input.
    pub state_bias: V,
}

pub(crate) type ScanVectors<'a> = ScanParams<&'a [f32]>;

impl ScanParams {
    pub fn view(&self) -> ScanVectors<'_> {
        ScanParams {
            decay: &self.decay,
            input_gain: &self.input_gain,
            output_gain: &self.output_gain,
            state_bias: &self.state_bias,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct ScanInputs<'a> {
    /// `[B, K, C]`.
    pub tokens: &'a [f32],
    pub forward: ScanVectors<'a>,
    pub backward: ScanVectors<'a>,
    /// `[B, C]` (both directions) or `[B, 2, C]`; zeros when absent.
    pub init_state: Option<&'a [f32]>,
    /// `[C]` or `[B, 1, C]`; 0.5 when absent.
    pub merge_gate: Option<&'a [f32]>,
}

impl ScanInputs<'_> {
    /// Where the state of sample `b` starts for one direction (0 forward, 1 backward).
    fn init_offset(&self, spec: &ScanSpec, b: usize, slot: usize) -> usize {
        let two = self.init_state.is_some_and(|s| s.len() == 2 * spec.batch * spec.channels);
        (if two { 2 * b + slot } else { b }) * spec.channels
    }

    /// Where the gate of sample `b` starts.
    fn gate_offset(&self, spec: &ScanSpec, b: usize) -> usize {
        if self.merge_gate.is_some_and(|g| g.len() > spec.channels) { b * spec.channels } else { 0 }
    }
}

/// A token with NaN as 0, clamped to `[-limit, limit]`.
#[inline(always)]
pub(crate) fn clean_token(token: f32, limit: f32) -> f32 {
    let token = if token.is_nan() { 0.0 } else { token };
    let token = if token > limit { limit } else { token };
    if token < -limit { -limit } else { token }
}

#[inline(always)]
fn merged(merge: Merge, gate: f32, forward: f32, backward: f32) -> f32 {
    match merge {
        Merge::Sum => forward + backward,
        Merge::Avg => 0.5 * (forward + backward),
        Merge::Gated => gate * forward + (1.0 - gate) * backward,
    }
}
