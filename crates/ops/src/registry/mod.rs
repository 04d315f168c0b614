//! The table of all ops: finding one by name, and everything that is checked before it is prepared.

mod user_kernel;

pub(crate) use user_kernel::{Geometry, LaunchPlan, plan_launches};

use crate::cases::{Cases, Draw};
use crate::declared::Declared;
use crate::device::KernelFile;
use crate::error::BuildError;
use crate::op::{Definition, Load, NamedParams, Op, product};
use crate::precision::Tolerance;
use crate::request::{Backend, Request};
use holdpoint_cuda::Dtype;
use holdpoint_model::suite::{OpSpec, Work};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub struct Entry {
    pub name: &'static str,
    pub sizes: &'static [&'static str],
    pub kernels: &'static [KernelFile],
    pub cases: Option<Cases>,
    pub(crate) is_replaceable: bool,
    cpu: &'static [Dtype],
    cuda: &'static [Dtype],
    plan: fn(&Request) -> Result<Built, BuildError>,
    load: fn(&Request) -> Load,
    pub(crate) draw_case: fn(&mut Draw<'_>) -> (Vec<usize>, Value),
}

type Built = (Box<dyn Op>, NamedParams);

/// An op whose request has passed all checks.
pub(crate) struct PlannedOp {
    pub op: Box<dyn Op>,
    pub dtype: Dtype,
    pub entry: &'static Entry,
    pub named_params: NamedParams,
}

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
        load: |request| D::load(&request.shape, &parse(request).unwrap_or_default()),
        draw_case: D::draw_case,
    }
}

/// Parses the parameters. serde names an unknown one itself; to find a mistyped one, each is tried alone.
fn parse<P: DeserializeOwned>(request: &Request) -> Result<P, BuildError> {
    P::deserialize(&request.params).map_err(|error| {
        let culprit = request.params.iter().find_map(|(name, value)| {
            let alone = Map::from_iter([(name.clone(), value.clone())]);
            P::deserialize(&alone).err().map(|error| format!("{name}: {error}"))
        });
        BuildError::Params { op: request.op.clone(), problem: culprit.unwrap_or_else(|| error.to_string()) }
    })
}

impl Entry {
    pub fn find(op: &str) -> Option<&'static Self> {
        crate::OPS.iter().find(|entry| entry.name == op)
    }

    /// Empty where the op has no version for the backend.
    pub fn dtypes(&self, backend: Backend) -> &'static [Dtype] {
        match backend {
            Backend::Cpu => self.cpu,
            Backend::Cuda => self.cuda,
        }
    }

    /// Values of the constants that tuning a request would try; none where it is not one.
    pub fn tuned_constants(request: &Request) -> Vec<usize> {
        let Ok(PlannedOp { op, dtype, .. }) = plan(request, Some(Backend::Cuda)) else { return Vec::new() };
        let configs = op.candidates(request, dtype);
        configs
            .iter()
            .flat_map(|config| config.values())
            .filter_map(|value| usize::try_from(*value).ok())
            .collect()
    }

    pub fn draw(&self, draw: &mut Draw<'_>) -> Option<(Vec<usize>, Map<String, Value>)> {
        match (self.draw_case)(draw) {
            (shape, Value::Object(params)) => Some((shape, params)),
            _ => None,
        }
    }
}

pub fn names(backend: Backend) -> impl Iterator<Item = &'static str> {
    crate::OPS.iter().filter(move |entry| !entry.dtypes(backend).is_empty()).map(|entry| entry.name)
}

/// Cost of a request, valid or not; nothing is allocated to find out.
pub fn load(request: &Request) -> Load {
    let main = product(&request.shape);
    Entry::find(&request.op).map_or(Load { elements: main, operations: main }, |entry| (entry.load)(request))
}

/// The op that a request asks for, after all its checks. `backend` is absent where only the oracle is wanted: that takes every
/// element type.
pub(crate) fn plan(request: &Request, backend: Option<Backend>) -> Result<PlannedOp, BuildError> {
    if let Some(declared) = request.declared.as_ref().filter(|_| backend == Some(Backend::Cuda)) {
        return plan_declared(request, declared);
    }
    let op = || request.op.clone();
    let asked = backend.unwrap_or(Backend::Cpu);
    let known = || BuildError::UnknownOp { op: op(), known: names(asked).collect::<Vec<_>>().join(", ") };
    let entry = Entry::find(&request.op).filter(|entry| !entry.dtypes(asked).is_empty()).ok_or_else(known)?;
    let dtype = Dtype::parse(&request.dtype);
    let fits = |dtype: &Dtype| backend.is_none() || entry.dtypes(asked).contains(dtype);
    let dtype = dtype.filter(fits).ok_or_else(|| {
        let valid: Vec<String> =
            entry.dtypes(asked).iter().map(|dtype| format!("{:?}", dtype.name())).collect();
        let place = if asked == Backend::Cpu { "the CPU" } else { "a device" };
        BuildError::Dtype { op: op(), dtype: request.dtype.clone(), place, valid: valid.join(", ") }
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
        if let Some(kernel) = &request.kernel {
            user_kernel::check_user_kernel(request, entry, &named_params, kernel)?;
        }
    }
    Ok(PlannedOp { op, dtype, entry, named_params })
}

/// The entry of every op that a suite declares.
static DECLARED: Entry = Entry {
    name: "",
    sizes: &[],
    kernels: &[],
    cases: None,
    is_replaceable: true,
    cpu: &[],
    cuda: crate::device::ALL,
    plan: |request| Err(request.shape_error("the suite declares no such op")),
    load: |request| Load { elements: product(&request.shape), operations: product(&request.shape) },
    draw_case: |_| (Vec::new(), Value::Null),
};

fn plan_declared(request: &Request, declared: &OpSpec) -> Result<PlannedOp, BuildError> {
    let dtype = Dtype::parse(&request.dtype).ok_or_else(|| BuildError::Dtype {
        op: request.op.clone(),
        dtype: request.dtype.clone(),
        place: "a device",
        valid: crate::device::ALL
            .iter()
            .map(|dtype| format!("{:?}", dtype.name()))
            .collect::<Vec<_>>()
            .join(", "),
    })?;
    let op = Box::new(Declared::plan(request, declared)?);
    let elements_max = Backend::Cuda.elements_max();
    let tensors = op.describe(dtype);
    let dims = tensors
        .inputs
        .iter()
        .map(|input| &input.dims)
        .chain(tensors.outputs.iter().map(|output| &output.dims));
    if dims.map(|dims| product(dims)).any(|elements| elements > elements_max as u64) {
        return Err(request.shape_error(format!("at most 2^{} elements in a tensor", elements_max.ilog2())));
    }
    if let Some(kernel) = &request.kernel {
        user_kernel::check_user_kernel(request, &DECLARED, &[], kernel)?;
    }
    Ok(PlannedOp { op, dtype, entry: &DECLARED, named_params: Vec::new() })
}

/// Checks a request without allocating tensors or using a device.
pub fn validate(request: &Request, backend: Backend) -> Result<(), BuildError> {
    plan(request, Some(backend)).map(drop)
}

/// The work of one call, without allocating tensors or using a device.
pub fn work(request: &Request, backend: Backend) -> Result<Work, BuildError> {
    let PlannedOp { op, dtype, .. } = plan(request, Some(backend))?;
    Ok(op.describe(dtype).work)
}

/// Checks a request for its oracle, which takes any element type.
pub fn validate_oracle(request: &Request) -> Result<(), BuildError> {
    plan(request, None).map(drop)
}
