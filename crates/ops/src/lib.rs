//! The built-in ops on the CPU in f32, each with a plain oracle and a fast version.
//!
//! [`validate`] looks at a request without allocating tensors, [`build`] turns it into a [`PreparedOp`] that
//! owns its inputs, its outputs and, once it was asked for, the oracle's answer. The modules below hold the ops as plain functions,
//! for tests and for other back ends that want the oracles. Must not measure time or read files.

pub mod attention;
pub mod buffer;
pub mod compare;
pub mod diagnostics;
mod error;
pub mod ff;
pub mod fma;
pub mod fused;
pub mod fusion;
pub mod infer;
pub mod order;
mod overflow;
pub mod pack;
mod prepared;
pub mod product;
pub mod rng;
pub mod select;
pub mod shape;
pub mod simd;
pub mod ssm;
pub mod unpack;
pub mod values;

pub use compare::{Check, Leeway, Tolerance};
pub use error::{BuildError, OpError};
pub use overflow::Overflow;
pub use prepared::{Load, load};
pub use values::{Domain, IntegerTensor, Integers, Range, Tensor};

use serde_json::{Map, Value};

/// Names of the built-in ops.
pub const OPS: &[&str] = &[
    "infer",
    "tile_pack",
    "tile_unpack",
    "fusion_gate",
    "tile_ssm",
    "fused_pack_op_unpack",
    "ff_path",
    "attention",
    "copy",
    "fma",
];

/// Which implementation is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The quick one.
    Fast,
    /// The plain oracle.
    Reference,
}

/// What to prepare.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// One of [`OPS`].
    pub op: &'a str,
    /// Sizes of the main input.
    pub shape: &'a [usize],
    /// Only `"f32"` on the CPU.
    pub dtype: &'a str,
    /// Which implementation [`PreparedOp::call`] runs.
    pub variant: Variant,
    /// The op's parameters; absent ones take their defaults.
    pub params: &'a Map<String, Value>,
    /// Inputs and weights are drawn from it.
    pub seed: u64,
    /// Overrides the op's default tolerance.
    pub tolerance: Option<Tolerance>,
}

/// Work of one call: each input read once, each output written once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Bytes that must move.
    pub bytes: u64,
    /// Floating-point operations.
    pub flops: u64,
    /// Things processed.
    pub items: u64,
    /// What one thing is called.
    pub item: &'static str,
}

/// An op with everything it needs, ready to be timed.
pub trait PreparedOp: Send {
    /// The timed thing: no allocation, no input or output.
    fn call(&mut self);
    /// Fills every output with NaN and resets any state that `call` carries.
    fn poison(&mut self);
    /// Compares the outputs now in the buffers with the oracle's, which the first check computes.
    fn check(&self) -> Check {
        self.check_given(Leeway::NONE)
    }
    /// The same, for inputs that were brought.
    fn check_given(&self, leeway: Leeway) -> Check;
    /// Work of one call.
    fn work(&self) -> Work;
    /// The inputs, to be written by who brings values of their own; the oracle's answer to the old ones is forgotten. Weights
    /// and the like that are drawn from the seed alone are not among them.
    fn inputs(&mut self) -> Vec<Tensor<'_>>;
    /// The outputs that are floats.
    fn outputs(&mut self) -> Vec<Tensor<'_>>;
    /// The outputs that are whole numbers and follow from the inputs alone.
    fn integer_outputs(&mut self) -> Vec<IntegerTensor<'_>> {
        Vec::new()
    }
}

/// Checks a request without allocating tensors.
pub fn validate(req: &Request<'_>) -> Result<(), BuildError> {
    prepared::entry(req)?.validate(req)
}

/// Allocates all buffers and draws the inputs from the seed. Does not run the op: workers start often.
pub fn build(req: &Request<'_>) -> Result<Box<dyn PreparedOp>, BuildError> {
    prepared::entry(req)?.build(req)
}
