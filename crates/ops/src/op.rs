//! What an op is: a [`Definition`] that turns a request into an [`Op`], which knows its tensors, its work, its tolerance and its
//! versions. Versions only compute; drawing, poisoning, checking and timing are done once, for all ops.

use crate::Tolerance;
use crate::cases::{Cases, Draw as CaseDraw};
use crate::cuda::{Build, KernelFile, Launches, PrepareError};
use crate::error::{BuildError, OpError};
use crate::rng::RandomState;
use crate::shape::Nchw;
use crate::tensor::{Domain, Element, Tensor};
use crate::values::Precision;
use holdpoint_cuda::Dtype;
use holdpoint_cuda::compile::Config;
use holdpoint_model::suite::{KernelSpec, Variant, Work};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::ops::Range;

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
    fn elements_max(self) -> usize {
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
    pub draw: Draw,
    /// Whether its leading dimension is the op's rows; if not, all rows share it.
    pub by_row: bool,
}

/// How ordinary values are drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Draw {
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
        let draw = Draw::Normal { scale: 1.0, shift: 0.0 };
        Self { name, dims: dims.to_vec(), domain: Domain::Any, draw, by_row: true }
    }

    /// Values from 0 to 1, one row after the other.
    #[must_use]
    pub fn unit(name: &'static str, dims: &[usize]) -> Self {
        let draw = Draw::Uniform { scale: 1.0, shift: 0.0 };
        Self { name, dims: dims.to_vec(), domain: Domain::Unit, draw, by_row: true }
    }

    /// With another domain.
    #[must_use]
    pub fn within(self, domain: Domain) -> Self {
        Self { domain, ..self }
    }

    /// Drawn in another way.
    #[must_use]
    pub fn drawn(self, draw: Draw) -> Self {
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
            Draw::Normal { scale, shift } => (random.normals(len), *scale, *shift),
            Draw::Uniform { scale, shift } => (random.uniforms(len), *scale, *shift),
            Draw::Host(values) => {
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
    fn draw_case(_: &mut CaseDraw<'_>) -> (Vec<usize>, Value) {
        (Vec::new(), Value::Null)
    }
}

/// A definition in the table of all ops.
pub struct Entry {
    /// Its name in suites.
    pub name: &'static str,
    /// What the sizes of a shape are of.
    pub sizes: &'static [&'static str],
    /// Kernel files.
    pub kernels: &'static [KernelFile],
    /// How cases are drawn.
    pub cases: Option<Cases>,
    pub(crate) is_replaceable: bool,
    cpu: &'static [Dtype],
    cuda: &'static [Dtype],
    plan: fn(&Request<'_>) -> Result<Built, BuildError>,
    load: fn(&Request<'_>) -> Load,
    pub(crate) draw_case: fn(&mut CaseDraw<'_>) -> (Vec<usize>, Value),
}

/// Parameters that count as sizes, by name.
pub type NamedParams = Vec<(&'static str, u64)>;

/// An op, and its parameters that count as sizes.
type Built = (Box<dyn Op>, NamedParams);

/// An op after all checks of its request.
pub(crate) struct Planned {
    pub op: Box<dyn Op>,
    pub dtype: Dtype,
    pub entry: &'static Entry,
    pub named_params: NamedParams,
}

/// The table's entry of an op.
pub(crate) const fn entry<D: Definition>() -> Entry {
    Entry {
        name: D::NAME,
        sizes: D::SIZES,
        kernels: D::KERNELS,
        cases: D::CASES,
        is_replaceable: D::IS_REPLACEABLE,
        cpu: D::CPU,
        cuda: D::CUDA,
        plan: |request| {
            let op = D::plan(request, parse(request)?)?;
            let named_params = op.named_params();
            Ok((Box::new(op), named_params))
        },
        // Parameters that make no sense count as their defaults.
        load: |request| D::load(request.shape, &parse(request).unwrap_or_default()),
        draw_case: D::draw_case,
    }
}

/// Reads the parameters. serde names an unknown one itself; for a mistyped one each is tried alone.
fn parse<P: DeserializeOwned>(request: &Request<'_>) -> Result<P, BuildError> {
    P::deserialize(request.params).map_err(|error| {
        let culprit = request.params.iter().find_map(|(name, value)| {
            let alone = Map::from_iter([(name.clone(), value.clone())]);
            P::deserialize(&alone).err().map(|error| format!("{name}: {error}"))
        });
        BuildError::Params {
            op: request.op.to_owned(),
            problem: culprit.unwrap_or_else(|| error.to_string()),
        }
    })
}

impl Entry {
    /// The op of this name, wherever it runs.
    #[must_use]
    pub fn find(op: &str) -> Option<&'static Self> {
        crate::OPS.iter().find(|entry| entry.name == op)
    }

    /// Element types of a back end; none where it has no version there.
    #[must_use]
    pub fn dtypes(&self, backend: Backend) -> &'static [Dtype] {
        match backend {
            Backend::Cpu => self.cpu,
            Backend::Cuda => self.cuda,
        }
    }

    /// Draws shape and parameters of a case.
    #[must_use]
    pub fn draw(&self, draw: &mut CaseDraw<'_>) -> Option<(Vec<usize>, Map<String, Value>)> {
        match (self.draw_case)(draw) {
            (shape, Value::Object(params)) => Some((shape, params)),
            _ => None,
        }
    }
}

/// Names of the ops that a back end has.
pub fn names(backend: Backend) -> impl Iterator<Item = &'static str> {
    crate::OPS.iter().filter(move |entry| !entry.dtypes(backend).is_empty()).map(|entry| entry.name)
}

/// What a request takes, valid or not; nothing is allocated to find out.
#[must_use]
pub fn load(request: &Request<'_>) -> Load {
    let main = product(request.shape);
    Entry::find(request.op).map_or(Load { elements: main, operations: main }, |entry| (entry.load)(request))
}

/// The op that a request asks for, after all its checks. `backend` is absent where only the oracle is wanted: that takes every
/// element type.
pub(crate) fn plan(request: &Request<'_>, backend: Option<Backend>) -> Result<Planned, BuildError> {
    let op = || request.op.to_owned();
    let asked = backend.unwrap_or(Backend::Cpu);
    let known = || BuildError::UnknownOp { op: op(), known: names(asked).collect::<Vec<_>>().join(", ") };
    let entry = Entry::find(request.op).filter(|entry| !entry.dtypes(asked).is_empty()).ok_or_else(known)?;
    let dtype = Dtype::parse(request.dtype);
    let fits = |dtype: &Dtype| backend.is_none() || entry.dtypes(asked).contains(dtype);
    let dtype = dtype.filter(fits).ok_or_else(|| {
        let valid: Vec<String> =
            entry.dtypes(asked).iter().map(|dtype| format!("{:?}", dtype.name())).collect();
        let place = if asked == Backend::Cpu { "the CPU" } else { "a device" };
        BuildError::Dtype { op: op(), dtype: request.dtype.to_owned(), place, valid: valid.join(", ") }
    })?;
    if let Some(Tolerance { atol, rtol }) = request.tolerance {
        let is_fine = |v: f64| v.is_finite() && v >= 0.0;
        if !is_fine(atol) || !is_fine(rtol) {
            return Err(BuildError::Tolerance { op: op(), atol, rtol });
        }
    }
    if request.shape.contains(&0) {
        return Err(request.shape_error("every size must be > 0"));
    }
    let elements = request.shape.iter().try_fold(1_usize, |total, &size| total.checked_mul(size));
    if elements.is_none_or(|elements| elements > asked.elements_max()) {
        return Err(request.shape_error(format!("at most 2^{} elements", asked.elements_max().ilog2())));
    }
    if asked == Backend::Cpu {
        let (elements, most) = ((entry.load)(request).elements, Backend::Cpu.elements_max());
        if elements > most as u64 {
            let problem =
                format!("its tensors and working space have {elements} elements, at most {most} fit");
            return Err(request.shape_error(problem));
        }
    }
    let (op, named_params) = (entry.plan)(request)?;
    if backend == Some(Backend::Cuda) {
        op.check_cuda(request, dtype)?;
        if let Some(kernel) = request.kernel {
            crate::cuda::check_own(request, entry, &named_params, kernel)?;
        }
    }
    Ok(Planned { op, dtype, entry, named_params })
}

/// Checks a request without allocating tensors and without a device.
///
/// # Errors
/// With what is wrong and what would be right.
pub fn validate(request: &Request<'_>, backend: Backend) -> Result<(), BuildError> {
    plan(request, Some(backend)).map(drop)
}

/// Whether an op takes a request in any element type, as its oracle does.
///
/// # Errors
/// With what is wrong and what would be right.
pub fn validate_oracle(request: &Request<'_>) -> Result<(), BuildError> {
    plan(request, None).map(drop)
}
