//! What is asked of an op, and how a request is refused.

use crate::Tolerance;
use crate::error::{BuildError, OpError};
use crate::shape::Nchw;
use holdpoint_cuda::compile::Config;
use holdpoint_model::suite::{KernelSpec, Variant};
use serde_json::{Map, Value};

/// Where an op runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// One thread of this machine.
    Cpu,
    /// A CUDA device.
    Cuda,
}

impl Backend {
    /// Elements of one tensor, at most: 8 and 64 GiB in f32. Beyond that a typing error is likelier than a wish.
    pub(crate) fn elements_max(self) -> usize {
        match self {
            Self::Cpu => 1 << 31,
            Self::Cuda => 1 << 34,
        }
    }
}

/// What to prepare.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Name of the op.
    pub op: &'a str,
    /// Sizes of the main input.
    pub shape: &'a [usize],
    /// Name of the element type.
    pub dtype: &'a str,
    /// The quick version or the plain one.
    pub variant: Variant,
    /// The op's parameters; absent ones take their defaults.
    pub params: &'a Map<String, Value>,
    /// Inputs and weights are drawn from it.
    pub seed: u64,
    /// Overrides the op's own tolerance.
    pub tolerance: Option<Tolerance>,
    /// On a device: bytes by which every buffer is moved off its alignment; a multiple of the element's size.
    pub misalign: usize,
    /// On a device: constants to compile with, in place of the best known ones or the op's own.
    pub config: Option<Config>,
    /// On a device: the user's own kernel, in place of the op's.
    pub kernel: Option<&'a KernelSpec>,
}

impl<'a> Request<'a> {
    /// The quick version with nothing special about it.
    #[must_use]
    pub fn new(op: &'a str, shape: &'a [usize], dtype: &'a str, params: &'a Map<String, Value>) -> Self {
        Self {
            op,
            shape,
            dtype,
            variant: Variant::Fast,
            params,
            seed: 0,
            tolerance: None,
            misalign: 0,
            config: None,
            kernel: None,
        }
    }

    pub(crate) fn shape_error(&self, problem: impl Into<String>) -> BuildError {
        BuildError::Shape { op: self.op.to_owned(), shape: self.shape.to_vec(), problem: problem.into() }
    }

    pub(crate) fn param_error(&self, param: &'static str, problem: impl ToString) -> BuildError {
        BuildError::Param { op: self.op.to_owned(), param, problem: problem.to_string() }
    }

    /// Names the parameter an op's own complaint is about.
    pub(crate) fn at_param(&self, param: &'static str) -> impl Fn(OpError) -> BuildError {
        move |error| self.param_error(param, error)
    }

    pub(crate) fn check_finite(&self, param: &'static str, value: f64) -> Result<(), BuildError> {
        // Beyond f32 a finite number would turn into an infinity on its way into the op.
        if value.is_finite() && (value as f32).is_finite() {
            Ok(())
        } else {
            Err(self.param_error(param, format!("must be a finite f32, not {value}")))
        }
    }

    /// The four sizes of a feature map.
    pub(crate) fn feature_map(&self) -> Result<Nchw, BuildError> {
        match *self.shape {
            [batch, channels, height, width] => Ok(Nchw { batch, channels, height, width }),
            _ => Err(self.shape_error("feature_map must be [B,C,H,W]")),
        }
    }

    /// The one size of an op on a list.
    pub(crate) fn count(&self, name: &str) -> Result<usize, BuildError> {
        match *self.shape {
            [count] => Ok(count),
            _ => Err(self.shape_error(format!("one size is wanted, [{name}]"))),
        }
    }
}
