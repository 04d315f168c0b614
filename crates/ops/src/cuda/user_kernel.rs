//! A user's kernels in place of an op's: the arguments of the plain kernel or others, launched in their own way, once or several times.

use super::program::{HostInputs, Program};
use super::{Gpu, PrepareError};
use crate::error::BuildError;
use crate::op::{Backend, Request};
use crate::registry::{Entry, plan};
use holdpoint_cuda::{Arguments, Buffer, CudaError, Dim, Dtype, Launch, TensorMap};
use holdpoint_model::FailureCause;
use holdpoint_model::suite::{KernelArgument, KernelFileKind, KernelSpec, LaunchSpec, MapArgument, Size};
use std::path::Path;

/// Threads of a block that every device takes.
const THREADS_MAX: u64 = 1024;
/// More shared memory than any device has.
const SHARED_MAX: u64 = 1 << 20;
/// Blocks of a cluster, at most.
const CLUSTER_MAX: u64 = 16;
/// Bytes of a file of machine code, at most.
const BINARY_BYTES_MAX: u64 = 256 << 20;

/// Sizes and parameters of an op that a kernel may use by their names, in the order in which a library gets them.
type Names<'a> = Vec<(&'a str, u64)>;

struct Geometry {
    grid: Dim,
    block: Dim,
    shared_bytes: usize,
    cluster: Option<Dim>,
}

/// All that follows from the sizes alone.
struct Plan<'a> {
    names: Names<'a>,
    launches: Vec<(LaunchSpec, Geometry)>,
    workspace_bytes: Vec<u64>,
}

fn plan_launches<'a>(
    request: &'a Request,
    entry: &'a Entry,
    params: &[(&'static str, u64)],
    kernel: &KernelSpec,
) -> Result<Plan<'a>, BuildError> {
    let error = |problem: String| request.shape_error(format!("kernel {:?}: {problem}", kernel.name()));
    if !entry.is_replaceable {
        let known = crate::OPS.iter().filter(|entry| entry.is_replaceable).map(|entry| entry.name);
        let known: Vec<&str> = known.collect();
        return Err(error(format!(
            "only these ops accept a user's kernel: {}, and those that the suite declares in [ops]",
            known.join(", ")
        )));
    }
    let names = names(request, entry, params);
    for condition in &kernel.requires {
        if condition.value(&names).map_err(error)? == 0 {
            return Err(error(format!("it requires {condition}")));
        }
    }
    let mut launches = Vec::new();
    for launch in kernel.launches() {
        let geometry = geometry(&launch, &names)
            .map_err(|problem| request.shape_error(format!("kernel {:?}: {problem}", launch.entry)))?;
        launches.push((launch, geometry));
    }
    let workspace_bytes = kernel.workspace_bytes(&names).map_err(error)?;
    Ok(Plan { names, launches, workspace_bytes })
}

fn names<'a>(request: &'a Request, entry: &'a Entry, params: &[(&'static str, u64)]) -> Names<'a> {
    let sizes = request.shape.iter().map(|size| *size as u64);
    if let Some(op) = &request.declared {
        return op.sizes.iter().map(String::as_str).zip(sizes).collect();
    }
    let mut names: Names<'a> = Vec::new();
    // An op that takes shapes of several ranks names its sizes among its parameters.
    if entry.sizes.len() == request.shape.len() {
        names.extend(entry.sizes.iter().copied().zip(sizes));
    }
    let known = names.len();
    names.extend(params.iter().filter(|(name, _)| known == 0 || !entry.sizes.contains(name)));
    names
}

fn geometry(launch: &LaunchSpec, names: &[(&str, u64)]) -> Result<Geometry, String> {
    let dim = |what: &str, sizes: &[Size]| -> Result<Dim, String> {
        let mut dim = [1; 3];
        for (to, size) in dim.iter_mut().zip(sizes) {
            let value = size.value(names)?;
            let value_u32 = u32::try_from(value).ok().filter(|value| *value > 0);
            *to = value_u32.ok_or_else(|| format!("{what} of {value} cannot be launched"))?;
        }
        Ok(Dim(dim))
    };
    let (grid, block) = (dim("a grid", &launch.grid)?, dim("a block", &launch.block)?);
    let product = |Dim(sizes): Dim| -> u64 { sizes.iter().map(|size| u64::from(*size)).product() };
    if product(block) > THREADS_MAX {
        return Err(format!("a block of {} threads; {THREADS_MAX} is the most", product(block)));
    }
    let cluster = dim("a cluster", &launch.cluster)?;
    let cluster = (!launch.cluster.is_empty()).then_some(cluster);
    if let Some(cluster) = cluster {
        if product(cluster) > CLUSTER_MAX {
            return Err(format!("a cluster of {} blocks; {CLUSTER_MAX} is the most", product(cluster)));
        }
        if grid.0.iter().zip(cluster.0).any(|(grid, cluster)| grid % cluster != 0) {
            let ([gx, gy, gz], [cx, cy, cz]) = (grid.0, cluster.0);
            return Err(format!("a grid of {gx},{gy},{gz} is no whole number of clusters of {cx},{cy},{cz}"));
        }
    }
    let shared = launch.shared_bytes.value(names)?;
    if shared > SHARED_MAX {
        return Err(format!("{shared} bytes of shared memory are more than any device has"));
    }
    Ok(Geometry { grid, block, shared_bytes: shared as usize, cluster })
}

pub(crate) fn check_user_kernel(
    request: &Request,
    entry: &Entry,
    params: &[(&'static str, u64)],
    kernel: &KernelSpec,
) -> Result<(), BuildError> {
    kernel.check().map_err(|problem| request.shape_error(problem))?;
    if request.declared.is_none() {
        plan(&request.plain(), Some(Backend::Cuda))?;
    }
    plan_launches(request, entry, params, kernel).map(drop)
}

pub(super) fn build(
    gpu: &mut Gpu,
    request: &Request,
    (entry, params): (&Entry, &[(&'static str, u64)]),
    kernel: &KernelSpec,
    given: HostInputs<'_>,
) -> Result<Program, PrepareError> {
    let Plan { names, launches, workspace_bytes } = plan_launches(request, entry, params, kernel)?;
    let mut program = Program::new(gpu, &request.plain(), given)?;
    let plain = match &program.version.launches[..] {
        [launch] => launch.arguments().clone(),
        // A declared op has no plain kernel: all tensors, then all sizes.
        [] if request.declared.is_some() => {
            names.iter().fold(program.tensor_arguments(), |all, (_, size)| all.int(*size as usize))
        }
        launches => {
            let problem =
                format!("its plain version takes {} launches; only one can be replaced", launches.len());
            return Err(request.shape_error(problem).into());
        }
    };
    let mut workspaces = Vec::new();
    for (spec, bytes) in kernel.workspace.iter().zip(workspace_bytes) {
        let mut buffer = Buffer::new(&gpu.device, bytes as usize, 0)?;
        if spec.zero {
            buffer.fill(0)?
        } else {
            buffer.poison()?
        }
        workspaces.push((spec.name.as_str(), buffer));
    }
    program.version.launches.clear();
    if kernel.file_kind() == KernelFileKind::Library {
        let mut tensors = program.tensor_addresses();
        tensors.extend(workspaces.iter().map(|(_, buffer)| buffer.ptr));
        let sizes: Vec<u64> = names.iter().map(|(_, size)| *size).collect();
        let library = gpu.library(Path::new(&kernel.source))?;
        program.version.library = Some(library.call(&kernel.entry, tensors, &sizes, program.dtype.name())?);
    }
    for (spec, geometry) in launches {
        let cubin = machine_code(gpu, kernel, &program)?;
        let function = gpu.user_kernel(cubin, &spec.entry).map_err(|error| {
            let detail = format!(
                "{}: no kernel {:?} in it, declared extern \"C\": {error}",
                kernel.source, spec.entry
            );
            CudaError { detail, ..error }
        })?;
        let resolve = Resolve { program: &program, workspaces: &workspaces, names: &names, plain: &plain };
        let arguments = resolve.arguments(&spec).map_err(|problem| match problem {
            ArgumentError::Meaning(problem) => {
                PrepareError::from(request.shape_error(format!("kernel {:?}: {problem}", spec.entry)))
            }
            ArgumentError::Device(error) => error.into(),
        })?;
        let launch = function.launch(geometry.grid.0, geometry.block.0, arguments);
        program.version.launches.push(complete(launch, &geometry, spec.cooperative)?);
    }
    program.version.held.extend(workspaces.into_iter().map(|(_, buffer)| buffer));
    program.version.chosen.kernel_name = kernel.name();
    program.version.chosen.source = "own";
    Ok(program)
}

fn complete(launch: Launch, geometry: &Geometry, is_cooperative: bool) -> Result<Launch, CudaError> {
    let launch = match geometry.shared_bytes {
        0 => launch,
        bytes => launch.with_shared(bytes)?,
    };
    let launch = match geometry.cluster {
        Some(cluster) => launch.with_cluster(cluster)?,
        None => launch,
    };
    Ok(if is_cooperative { launch.with_cooperation() } else { launch })
}

/// Machine code: compiled, or as its file holds it.
fn machine_code(gpu: &Gpu, kernel: &KernelSpec, program: &Program) -> Result<Vec<u8>, PrepareError> {
    if kernel.file_kind() == KernelFileKind::Source {
        let config = &program.version.chosen.unit.config;
        return Ok(gpu.compiler.user_cubin(kernel, program.dtype, config, &gpu.device.arch)?);
    }
    let failed =
        |what: String| CudaError::new(FailureCause::NotStarted, format!("{}: {what}", kernel.source));
    let path = Path::new(&kernel.source);
    let len = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
    if len > BINARY_BYTES_MAX {
        return Err(failed("machine code of more than 256 MiB".to_owned()).into());
    }
    let mut bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    // The driver reads PTX up to a zero; others say how long they are.
    bytes.push(0);
    Ok(bytes)
}

/// The buffers and sizes that the arguments of a launch refer to.
struct Resolve<'a> {
    program: &'a Program,
    workspaces: &'a [(&'a str, Buffer)],
    names: &'a [(&'a str, u64)],
    plain: &'a Arguments,
}

enum ArgumentError {
    /// The suite asks for what there is not.
    Meaning(String),
    Device(CudaError),
}

impl From<String> for ArgumentError {
    fn from(problem: String) -> Self {
        Self::Meaning(problem)
    }
}

impl Resolve<'_> {
    fn arguments(&self, spec: &LaunchSpec) -> Result<Arguments, ArgumentError> {
        if spec.arguments.is_empty() {
            return Ok(self.plain.clone());
        }
        let mut all = Arguments::new();
        for argument in &spec.arguments {
            all = match argument {
                KernelArgument::Text(text) if text == "*" => all.extend(self.plain),
                KernelArgument::Text(text) => match self.address(text) {
                    Some((ptr, _)) => all.ptr(ptr),
                    None => all.int(self.value(&Size::Text(text.clone()))? as usize),
                },
                KernelArgument::Number(number) => all.int(*number as usize),
                KernelArgument::Float(argument) => all.float(argument.float as f32),
                KernelArgument::Rsqrt(argument) => {
                    all.float((1.0 / (self.value(&argument.rsqrt)? as f64).sqrt()) as f32)
                }
                KernelArgument::Map(map) => {
                    let (ptr, dtype, tensor_map) = self.tensor_map(map)?;
                    all.tensor_map(ptr, dtype, &tensor_map).map_err(ArgumentError::Device)?
                }
            };
        }
        Ok(all)
    }

    fn value(&self, size: &Size) -> Result<u64, String> {
        size.value(self.names).map_err(|problem| format!("{problem}; tensors: {}", self.tensor_names()))
    }

    fn tensor_names(&self) -> String {
        let inputs = self.program.inputs.iter().map(|input| &*input.spec.name);
        let outputs = self.program.outputs.iter().map(|output| &*output.spec.name);
        let workspaces = self.workspaces.iter().map(|(name, _)| *name);
        inputs.chain(outputs).chain(workspaces).collect::<Vec<_>>().join(", ")
    }

    /// Where a tensor or a workspace lies, and its element type.
    fn address(&self, name: &str) -> Option<(u64, Dtype)> {
        let Program { inputs, outputs, dtype, .. } = self.program;
        let input = inputs.iter().find(|input| input.spec.name == name);
        let output = || outputs.iter().find(|output| output.spec.name == name);
        let workspace = || self.workspaces.iter().find(|(known, _)| *known == name);
        input
            .and_then(|input| Some((input.buffer.as_ref()?.ptr, *dtype)))
            .or_else(|| output().map(|output| (output.buffer.ptr, output.dtype)))
            .or_else(|| workspace().map(|(_, buffer)| (buffer.ptr, *dtype)))
    }

    fn tensor_map(&self, map: &MapArgument) -> Result<(u64, Dtype, TensorMap), String> {
        let (ptr, dtype) = self
            .address(&map.map)
            .ok_or_else(|| format!("no tensor is called {:?}; there are {}", map.map, self.tensor_names()))?;
        let sizes = map.sizes.iter().map(|size| self.value(size)).collect::<Result<_, _>>()?;
        let tile = map.tile.iter().map(|size| {
            let value = self.value(size)?;
            u32::try_from(value).map_err(|_| format!("a tile of {value}"))
        });
        let tile = tile.collect::<Result<_, _>>()?;
        Ok((ptr, dtype, TensorMap { sizes, tile, swizzle_bytes: map.swizzle_bytes }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    fn spec(json: serde_json::Value) -> KernelSpec {
        let mut all = json!({ "source": "a.cu", "entry": "a", "grid": [1], "block": [32] });
        for (name, value) in json.as_object().unwrap() {
            all[name] = value.clone();
        }
        serde_json::from_value(all).unwrap()
    }

    fn plan_geometry(
        op: &str,
        shape: &[usize],
        params: serde_json::Value,
        kernel: &KernelSpec,
    ) -> Result<Geometry, String> {
        let params: Map<_, _> = params.as_object().cloned().unwrap();
        let request = Request { kernel: Some(kernel.clone()), ..Request::new(op, shape, "f16", &params) };
        let planned = plan(&request, Some(Backend::Cuda)).map_err(|error| error.to_string())?;
        let plan = plan_launches(&request, planned.entry, &planned.named_params, kernel);
        plan.map(|mut plan| plan.launches.remove(0).1).map_err(|error| error.to_string())
    }

    #[test]
    fn sizes_of_the_op_make_the_launch() {
        let kernel = spec(json!({
            "grid": ["ceil_div(steps, 64)", "batch * heads"], "block": [128], "shared_bytes": "64 * head_dim * 2",
            "requires": ["head_dim == 64", "causal == 0"],
        }));
        let geometry = plan_geometry("attention", &[2, 3, 65, 64], json!({}), &kernel).unwrap();
        assert_eq!((geometry.grid, geometry.block), (Dim([2, 6, 1]), Dim([128, 1, 1])));
        assert_eq!(geometry.shared_bytes, 8192);
        let pack = spec(json!({ "grid": ["kmax * channels"], "block": ["tile_size", "tile_size"] }));
        let geometry =
            plan_geometry("tile_pack", &[1, 4, 32, 32], json!({ "tile_size": 8, "kmax": 3 }), &pack).unwrap();
        assert_eq!((geometry.grid, geometry.block), (Dim([12, 1, 1]), Dim([8, 8, 1])));
    }

    #[test]
    fn impossible_launches_are_refused_with_the_reason() {
        let shape: &[usize] = &[2, 3, 65, 64];
        for (change, expected) in [
            (json!({ "requires": ["steps % 64 == 0"] }), "it requires \"steps % 64 == 0\""),
            (
                json!({ "grid": ["width"] }),
                "no size is called \"width\"; there are batch, heads, steps, head_dim, causal",
            ),
            (json!({ "grid": ["steps - 65"] }), "a grid of 0"),
            (json!({ "block": [64, 64] }), "a block of 4096 threads"),
            (json!({ "block": [] }), "one to three"),
            (json!({ "shared_bytes": 2_000_000 }), "more than any device has"),
            (json!({ "grid": ["steps * 4294967296"] }), "cannot be launched"),
        ] {
            let error = plan_geometry("attention", shape, json!({}), &spec(change)).err().unwrap();
            assert!(error.contains(expected), "{error:?} should contain {expected:?}");
        }
        let error = plan_geometry("launch", &[64], json!({}), &spec(json!({}))).err().unwrap();
        assert!(error.contains("only these ops accept"), "{error}");
    }
}
