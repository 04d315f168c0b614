//! A user's kernels in place of an op's: the arguments of the plain kernel or others, launched in their own way, once or several times.

use super::program::{HostInputs, Program};
use crate::device::{Gpu, PrepareError};
use crate::registry::{Entry, Geometry, LaunchPlan, plan_launches};
use crate::request::Request;
use holdpoint_cuda::{Arguments, Buffer, CudaError, Dtype, Launch, TensorMap};
use holdpoint_model::FailureCause;
use holdpoint_model::suite::{KernelArgument, KernelFileKind, KernelSpec, LaunchSpec, MapArgument, Size};
use std::path::Path;

/// Bytes of a file of machine code, at most.
const BINARY_BYTES_MAX: u64 = 256 << 20;

pub(super) fn build(
    gpu: &mut Gpu,
    request: &Request,
    (entry, params): (&Entry, &[(&'static str, u64)]),
    kernel: &KernelSpec,
    given: HostInputs<'_>,
) -> Result<Program, PrepareError> {
    let LaunchPlan { names, launches, workspace_bytes } = plan_launches(request, entry, params, kernel)?;
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
