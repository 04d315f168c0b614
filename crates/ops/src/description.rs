//! An op's tensors: what it takes, how ordinary values for it are drawn, and what it gives.

use crate::precision::Tolerance;
use crate::rng::RandomState;
use crate::tensor::{Domain, Element, Tensor};
use holdpoint_cuda::Dtype;
use holdpoint_model::suite::Work;
use std::borrow::Cow;

#[derive(Clone, Debug)]
pub struct Input {
    pub name: Cow<'static, str>,
    pub dims: Vec<usize>,
    pub domain: Domain,
    pub draw: Distribution,
    /// Whether its leading dimension is the op's rows; otherwise all rows share it.
    pub by_row: bool,
}

/// How ordinary values are drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Mean 0 and variance 1, then scaled and shifted.
    Normal { scale: f32, shift: f32 },
    /// In [0, 1), then scaled and shifted.
    Uniform { scale: f32, shift: f32 },
    /// These values, read by the host: on a device they decide what is launched.
    Host(Vec<f32>),
}

impl Input {
    /// Normal values without bounds, by row.
    pub fn normal(name: impl Into<Cow<'static, str>>, dims: &[usize]) -> Self {
        let draw = Distribution::Normal { scale: 1.0, shift: 0.0 };
        Self { name: name.into(), dims: dims.to_vec(), domain: Domain::Any, draw, by_row: true }
    }

    /// Values from 0 to 1, by row.
    pub fn unit(name: impl Into<Cow<'static, str>>, dims: &[usize]) -> Self {
        let draw = Distribution::Uniform { scale: 1.0, shift: 0.0 };
        Self { name: name.into(), dims: dims.to_vec(), domain: Domain::Unit, draw, by_row: true }
    }

    pub(crate) fn with_domain(self, domain: Domain) -> Self {
        Self { domain, ..self }
    }

    pub(crate) fn with_draw(self, draw: Distribution) -> Self {
        Self { draw, ..self }
    }

    pub fn shared(self) -> Self {
        Self { by_row: false, ..self }
    }

    pub(crate) fn tensor(&self, dtype: Dtype) -> Tensor {
        Tensor::new(self.name.clone(), &self.dims, self.domain, Element::Float(dtype))
    }

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

#[derive(Clone, Debug)]
pub struct Output {
    pub name: Cow<'static, str>,
    /// Its sizes; the leading one is the op's rows, or a multiple of them.
    pub dims: Vec<usize>,
    pub element: Element,
}

impl Output {
    pub fn new(name: impl Into<Cow<'static, str>>, dims: &[usize], dtype: Dtype) -> Self {
        Self { name: name.into(), dims: dims.to_vec(), element: Element::Float(dtype) }
    }

    /// Whole numbers that follow from the inputs alone; on a device the host computes them.
    pub fn integers(name: impl Into<Cow<'static, str>>, dims: &[usize], element: Element) -> Self {
        Self { name: name.into(), dims: dims.to_vec(), element }
    }

    /// A poisoned tensor for it.
    pub(crate) fn tensor(&self) -> Tensor {
        let mut tensor = Tensor::new(self.name.clone(), &self.dims, Domain::Any, self.element);
        tensor.poison();
        tensor
    }

    pub(crate) fn is_integer(&self) -> bool {
        !matches!(self.element, Element::Float(_))
    }
}

/// Everything about an op of certain sizes but how it is computed.
pub struct Description {
    /// In the order in which every version takes them.
    pub inputs: Vec<Input>,
    /// Floats first, then whole numbers.
    pub outputs: Vec<Output>,
    /// Of one call.
    pub work: Work,
    /// How far an answer may be from the oracle's.
    pub tolerance: Tolerance,
    /// Number of independent parts, one after the other in every output.
    pub rows: usize,
}
