//! What an op is: a [`Definition`] that turns a request into an [`Op`], which knows its tensors, its work, its tolerance and its
//! versions. Versions only compute; drawing, poisoning, checking and timing are done once, for all ops.

use crate::Tolerance;
use crate::cases::{Cases, Draw};
use crate::cuda::{Build, KernelFile, Launches, PrepareError};
use crate::error::BuildError;
pub use crate::request::{Backend, Request};
use crate::rng::RandomState;
use crate::tensor::{Domain, Element, Tensor};
use crate::values::Precision;
use holdpoint_cuda::Dtype;
use holdpoint_cuda::compile::Config;
use holdpoint_model::suite::{Variant, Work};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::ops::Range;

/// An input of an op.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its name.
    pub name: &'static str,
    /// Its sizes.
    pub dims: Vec<usize>,
    /// What it may hold.
    pub domain: Domain,
    /// How its ordinary values are drawn.
    pub draw: Distribution,
    /// Whether its leading dimension is the op's rows; if not, all rows share it.
    pub by_row: bool,
}

/// How ordinary values are drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Of mean 0 and variance 1, then scaled and shifted.
    Normal {
        /// Factor.
        scale: f32,
        /// Addend.
        shift: f32,
    },
    /// From 0 to 1, then scaled and shifted.
    Uniform {
        /// Factor.
        scale: f32,
        /// Addend.
        shift: f32,
    },
    /// These, which the host reads before it launches anything: on a device they decide what is launched.
    Host(Vec<f32>),
}

impl Input {
    /// Normal values of any size, one row after the other.
    #[must_use]
    pub fn normal(name: &'static str, dims: &[usize]) -> Self {
        let draw = Distribution::Normal { scale: 1.0, shift: 0.0 };
        Self { name, dims: dims.to_vec(), domain: Domain::Any, draw, by_row: true }
    }

    /// Values from 0 to 1, one row after the other.
    #[must_use]
    pub fn unit(name: &'static str, dims: &[usize]) -> Self {
        let draw = Distribution::Uniform { scale: 1.0, shift: 0.0 };
        Self { name, dims: dims.to_vec(), domain: Domain::Unit, draw, by_row: true }
    }

    /// With another domain.
    #[must_use]
    pub fn within(self, domain: Domain) -> Self {
        Self { domain, ..self }
    }

    /// Drawn in another way.
    #[must_use]
    pub fn drawn(self, draw: Distribution) -> Self {
        Self { draw, ..self }
    }

    /// The same for all rows.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { by_row: false, ..self }
    }

    /// A tensor for it.
    #[must_use]
    pub(crate) fn tensor(&self, dtype: Dtype) -> Tensor {
        Tensor::new(self.name, &self.dims, self.domain, Element::Float(dtype))
    }

    /// A tensor with ordinary values.
    pub(crate) fn drawn_tensor(&self, dtype: Dtype, random: &mut RandomState) -> Tensor {
        let len = self.dims.iter().product();
        let (mut buffer, scale, shift) = match &self.draw {
            Distribution::Normal { scale, shift } => (random.normals(len), *scale, *shift),
            Distribution::Uniform { scale, shift } => (random.uniforms(len), *scale, *shift),
            Distribution::Host(values) => {
                let mut tensor = self.tensor(dtype);
                tensor.set(values);
                return tensor;
            }
        };
        if (scale, shift) != (1.0, 0.0) {
            buffer.iter_mut().for_each(|value| *value = *value * scale + shift);
        }
        let mut tensor = self.tensor(dtype);
        match tensor.buffer_mut() {
            Some(own) => *own = buffer,
            None => tensor.set(&buffer),
        }
        tensor
    }
}

/// An output of an op.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its name.
    pub name: &'static str,
    /// Its sizes; the leading one is the op's rows, or a multiple of them.
    pub dims: Vec<usize>,
    /// Its element type.
    pub element: Element,
}

impl Output {
    /// An output of floats.
    #[must_use]
    pub fn new(name: &'static str, dims: &[usize], dtype: Dtype) -> Self {
        Self { name, dims: dims.to_vec(), element: Element::Float(dtype) }
    }

    /// An output of whole numbers that follow from the inputs alone. On a device the host computes them.
    #[must_use]
    pub fn integers(name: &'static str, dims: &[usize], element: Element) -> Self {
        Self { name, dims: dims.to_vec(), element }
    }

    /// A tensor for it that holds no answer.
    pub(crate) fn tensor(&self) -> Tensor {
        let mut tensor = Tensor::new(self.name, &self.dims, Domain::Any, self.element);
        tensor.poison();
        tensor
    }

    pub(crate) fn is_integer(&self) -> bool {
        !matches!(self.element, Element::Float(_))
    }
}

/// An op of certain sizes and parameters. What is not asked of an op without a version for a back end has a default.
pub trait Op: Send {
    /// Its inputs, in the order in which every version takes them.
    fn inputs(&self) -> Vec<Input>;

    /// Its outputs: floats first, then whole numbers.
    fn outputs(&self, dtype: Dtype) -> Vec<Output>;

    /// Work of one call: bytes that must move, floating-point operations, items.
    fn work(&self, dtype: Dtype) -> Work;

    /// How far an answer may be from the oracle's.
    fn tolerance(&self, dtype: Dtype) -> Tolerance {
        dtype.tolerance()
    }

    /// Parts that do not depend on each other, one after the other in every output.
    fn rows(&self) -> usize;

    /// The same op on some of its rows.
    fn part(&self, rows: Range<usize>) -> Box<dyn Op>;

    /// Over how many copies of all tensors timed calls on the CPU go in turn.
    fn copies(&self) -> usize {
        1
    }

    /// A version on the CPU. The plain one is the oracle, also of what a device computes: it takes 32-bit floats, and weights as
    /// `dtype` has them.
    fn cpu(&self, variant: Variant, dtype: Dtype) -> Box<dyn Cpu>;

    /// What only the CUDA version refuses.
    ///
    /// # Errors
    /// With what is wrong and what would be right.
    fn check_cuda(&self, _: &Request<'_>, _: Dtype) -> Result<(), BuildError> {
        Ok(())
    }

    /// The version on a CUDA device: kernels and how they are launched.
    ///
    /// # Errors
    /// When the device cannot do it, or fails.
    fn cuda(&self, _: &mut Build<'_>) -> Result<Launches, PrepareError> {
        Err(PrepareError::Skipped("no_cuda_version".to_owned()))
    }

    /// Constants worth trying on a device, beside the op's own.
    fn candidates(&self, _: &Request<'_>, _: Dtype) -> Vec<Config> {
        Vec::new()
    }
}

/// A version of an op on the CPU with its working space.
pub trait Cpu: Send {
    /// The timed call: no allocation, no input or output.
    fn run(&mut self, inputs: &[Tensor], outputs: &mut [Tensor]);

    /// Forgets whatever a call leaves for the next one.
    fn reset(&mut self) {}

    /// Numbers beside the tensors that the last call gave; they are compared with the oracle's, too.
    fn numbers(&self) -> Vec<f64> {
        Vec::new()
    }
}

impl<F: FnMut(&[Tensor], &mut [Tensor]) + Send> Cpu for F {
    fn run(&mut self, inputs: &[Tensor], outputs: &mut [Tensor]) {
        self(inputs, outputs);
    }
}

/// A version that is one function.
pub(crate) fn version(run: impl FnMut(&[Tensor], &mut [Tensor]) + Send + 'static) -> Box<dyn Cpu> {
    Box::new(run)
}

/// What preparing, calling and checking an op takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Elements of all tensors, weights, working space and the oracle's answer.
    pub elements: u64,
    /// Steps of the oracle's innermost loops, about.
    pub operations: u64,
}

/// Sizes as numbers that do not overflow.
pub(crate) fn product(sizes: &[usize]) -> u64 {
    sizes.iter().fold(1, |all: u64, size| all.saturating_mul(*size as u64))
}

/// All that is known about an op before a request.
pub trait Definition: Op + Sized + 'static {
    /// Its name in suites.
    const NAME: &'static str;
    /// What the sizes of a shape are of.
    const SIZES: &'static [&'static str];
    /// Element types on the CPU; empty where there is no version.
    const CPU: &'static [Dtype] = &[Dtype::F32];
    /// Element types on a CUDA device; empty where there is no version.
    const CUDA: &'static [Dtype] = &[];
    /// Kernel files, with what they are compiled with.
    const KERNELS: &'static [KernelFile] = &[];
    /// How cases for fuzzing are drawn; absent where the op is none to be fuzzed.
    const CASES: Option<Cases> = None;
    /// Whether the plain kernel takes one launch, which a user's own kernel can replace.
    const IS_REPLACEABLE: bool = false;

    /// Parameters, each with its default.
    type Params: DeserializeOwned + Default;

    /// Checks sizes and parameters without allocating tensors.
    ///
    /// # Errors
    /// With what is wrong and what would be right.
    fn plan(request: &Request<'_>, params: Self::Params) -> Result<Self, BuildError>;

    /// What preparing, calling and checking it takes; must not say less than what is allocated.
    fn load(shape: &[usize], _: &Self::Params) -> Load {
        let main = product(shape);
        Load { elements: main.saturating_mul(8), operations: main.saturating_mul(8) }
    }

    /// Parameters that a user's kernel may use as sizes, by name.
    fn named_params(&self) -> NamedParams {
        Vec::new()
    }

    /// Shape and parameters of a case for fuzzing.
    fn draw_case(_: &mut Draw<'_>) -> (Vec<usize>, Value) {
        (Vec::new(), Value::Null)
    }
}

/// Parameters that count as sizes, by name.
pub type NamedParams = Vec<(&'static str, u64)>;
