//! A request for an op, and the errors that refuse it.

use crate::error::{BuildError, OpError};
use crate::precision::Tolerance;
use crate::shape::Nchw;
use holdpoint_cuda::compile::Config;
use holdpoint_model::suite::{KernelSpec, OpSpec, Variant};
use serde_json::{Map, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// One thread of this machine.
    Cpu,
    Cuda,
}

impl Backend {
    /// Elements of one tensor, at most: 8 and 64 GiB in f32. More is likelier a typing error.
    pub(crate) fn elements_max(self) -> usize {
        match self {
            Self::Cpu => 1 << 31,
            Self::Cuda => 1 << 34,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Request {
    pub op: String,
    /// Sizes of the main input.
    pub shape: Vec<usize>,
    pub dtype: String,
    pub variant: Variant,
    /// Absent ones take their defaults.
    pub params: Map<String, Value>,
    pub seed: u64,
    /// Overrides the op's own tolerance.
    pub tolerance: Option<Tolerance>,
    /// On a device: offset of every buffer from its alignment, in bytes; a multiple of the element's size.
    pub misalign: usize,
    /// On a device: constants to compile with, in place of tuned or default ones.
    pub config: Option<Config>,
    /// On a device: the user's own kernel, in place of the op's.
    pub kernel: Option<KernelSpec>,
    /// On a device: the op's declaration, where a suite has declared it.
    pub declared: Option<OpSpec>,
}

impl Request {
    pub fn new(op: &str, shape: &[usize], dtype: &str, params: &Map<String, Value>) -> Self {
        Self {
            op: op.to_owned(),
            shape: shape.to_vec(),
            dtype: dtype.to_owned(),
            variant: Variant::Fast,
            params: params.clone(),
            seed: 0,
            tolerance: None,
            misalign: 0,
            config: None,
            kernel: None,
            declared: None,
        }
    }

    /// The request for the op's plain kernel.
    pub(crate) fn plain(&self) -> Self {
        Self { variant: Variant::Reference, config: None, kernel: None, ..self.clone() }
    }

    pub(crate) fn shape_error(&self, problem: impl Into<String>) -> BuildError {
        BuildError::Shape { op: self.op.clone(), shape: self.shape.clone(), problem: problem.into() }
    }

    pub(crate) fn param_error(&self, param: &'static str, problem: impl ToString) -> BuildError {
        BuildError::Param { op: self.op.clone(), param, problem: problem.to_string() }
    }

    /// Maps an op's error to the parameter it is about.
    pub(crate) fn at_param(&self, param: &'static str) -> impl Fn(OpError) -> BuildError {
        move |error| self.param_error(param, error)
    }

    pub(crate) fn check_finite(&self, param: &'static str, value: f64) -> Result<f32, BuildError> {
        // Beyond f32 a finite number would turn into an infinity on its way into the op.
        if value.is_finite() && (value as f32).is_finite() {
            Ok(value as f32)
        } else {
            Err(self.param_error(param, format!("must be a finite f32, not {value}")))
        }
    }

    pub(crate) fn feature_map(&self) -> Result<Nchw, BuildError> {
        match *self.shape {
            [batch, channels, height, width] => Ok(Nchw { batch, channels, height, width }),
            _ => Err(self.shape_error("feature_map must be [B,C,H,W]")),
        }
    }

    pub(crate) fn count(&self, name: &str) -> Result<usize, BuildError> {
        match *self.shape {
            [count] => Ok(count),
            _ => Err(self.shape_error(format!("it must have one size, [{name}]"))),
        }
    }
}
