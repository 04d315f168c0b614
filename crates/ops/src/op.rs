//! The traits of an op: a [`Definition`] turns a request into an [`Op`], which knows its tensors, work, tolerance and versions.
//! Versions only compute; drawing, poisoning, checking and timing are done once, for all ops.

use crate::accuracy::Roundings;
use crate::cases::{Cases, Draw};
pub use crate::description::{Description, Distribution, Input, Output};
use crate::device::{Build, DeviceOracle, KernelFile, Launches, PrepareError};
use crate::error::BuildError;
pub use crate::request::{Backend, Request};
use crate::tensor::Tensor;
use holdpoint_cuda::Dtype;
use holdpoint_cuda::compile::Config;
use holdpoint_model::suite::Variant;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::ops::Range;

/// An op of certain sizes and parameters.
pub trait Op: Send {
    fn describe(&self, dtype: Dtype) -> Description;

    /// The errors of a right kernel; those of ops that choose by their values are not known. `dtype` is that of the inputs.
    fn roundings(&self, dtype: Dtype) -> Option<Roundings> {
        Some(Roundings::new(dtype, 2))
    }

    /// The same op on some of its rows; absent where it has one row only.
    fn part(&self, _: Range<usize>) -> Option<Box<dyn Op>> {
        None
    }

    /// Copies of all tensors that timed calls on the CPU take in turns.
    fn copies(&self) -> usize {
        1
    }

    /// A version on the CPU. The plain one is the oracle, also of what a device computes: it takes 32-bit floats, and weights as
    /// `dtype` has them.
    fn cpu(&self, variant: Variant, dtype: Dtype) -> Box<dyn Cpu>;

    /// An oracle on a device, where the one on the CPU takes long for shapes that are in use; proven against that before it is believed.
    fn device_oracle(&self) -> Option<DeviceOracle> {
        None
    }

    /// Checks that only the CUDA version needs.
    fn check_cuda(&self, _: &Request, _: Dtype) -> Result<(), BuildError> {
        Ok(())
    }

    /// The CUDA version: kernels and how they are launched.
    fn cuda(&self, _: &mut Build<'_>) -> Result<Launches, PrepareError> {
        Err(PrepareError::Skipped("no_cuda_version".to_owned()))
    }

    /// Constants worth trying in tuning, beside the op's own.
    fn candidates(&self, _: &Request, _: Dtype) -> Vec<Config> {
        Vec::new()
    }
}

/// A version of an op on the CPU with its working space.
pub trait Cpu: Send {
    /// The timed call: no allocation, no I/O.
    fn run(&mut self, inputs: &[Tensor], outputs: &mut [Tensor]);

    /// Clears the state that a call leaves for the next.
    fn reset(&mut self) {}

    /// Numbers beside the tensors from the last call; they are compared with the oracle's, too.
    fn numbers(&self) -> Vec<f64> {
        Vec::new()
    }
}

impl<F: FnMut(&[Tensor], &mut [Tensor]) + Send> Cpu for F {
    fn run(&mut self, inputs: &[Tensor], outputs: &mut [Tensor]) {
        self(inputs, outputs);
    }
}

pub(crate) fn version(run: impl FnMut(&[Tensor], &mut [Tensor]) + Send + 'static) -> Box<dyn Cpu> {
    Box::new(run)
}

/// Cost of preparing, calling and checking an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Elements of all tensors, weights, working space and the oracle's answer.
    pub elements: u64,
    /// Approximate steps of the oracle's innermost loops.
    pub operations: u64,
}

/// The product, saturating.
pub(crate) fn product(sizes: &[usize]) -> u64 {
    sizes.iter().fold(1, |all: u64, size| all.saturating_mul(*size as u64))
}

/// Declares the parameters of an op, each with its default.
macro_rules! params {
    ($(#[$attr:meta])* pub struct $name:ident {
        $($(#[$doc:meta])* $vis:vis $field:ident: $type:ty = $default:expr,)*
    }) => {
        $(#[$attr])*
        #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[$doc])* $vis $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }
    };
}
pub(crate) use params;

/// Everything known about an op before a request.
pub(crate) trait Definition: Op + Sized + 'static {
    const NAME: &'static str;
    /// Names of the sizes of a shape.
    const SIZES: &'static [&'static str];
    /// Element types on the CPU; empty where there is no version.
    const CPU: &'static [Dtype] = &[Dtype::F32];
    /// Element types on a CUDA device; empty where there is no version.
    const CUDA: &'static [Dtype] = &[];
    /// Kernel files, and the constants they are compiled with.
    const KERNELS: &'static [KernelFile] = &[];
    /// How cases for fuzzing are drawn; absent where the op is not fuzzed.
    const CASES: Option<Cases> = None;
    /// The default of [`Definition::load`] per element of the main input: elements in all, and operations.
    const LOAD_PER_ELEMENT: [u64; 2] = [8, 8];
    /// Whether the plain version is a single launch, which a user's kernel can replace.
    const IS_REPLACEABLE: bool = false;

    type Params: DeserializeOwned + Default;

    /// Checks sizes and parameters without allocating tensors.
    fn plan(request: &Request, params: Self::Params) -> Result<Self, BuildError>;

    /// Cost of preparing, calling and checking it; must not be less than what is allocated.
    fn load(shape: &[usize], _: &Self::Params) -> Load {
        let [elements, operations] = Self::LOAD_PER_ELEMENT.map(|load| product(shape).saturating_mul(load));
        Load { elements, operations }
    }

    /// Parameters that a user's kernel may use as sizes.
    fn named_params(&self) -> NamedParams {
        Vec::new()
    }

    fn draw_case(_: &mut Draw<'_>) -> (Vec<usize>, Value) {
        (Vec::new(), Value::Null)
    }
}

pub(crate) type NamedParams = Vec<(&'static str, u64)>;
