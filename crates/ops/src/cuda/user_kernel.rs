//! A user's kernel in place of an op's: the arguments of the plain kernel, launched in its own way.

use super::program::{HostInputs, Program};
use super::{Gpu, PrepareError};
use crate::error::BuildError;
use crate::op::{Backend, Request};
use crate::registry::{Entry, plan};
use holdpoint_cuda::{CudaError, Dim};
use holdpoint_model::suite::{KernelSpec, Size};

/// Threads of a block that every device takes.
const THREADS_MAX: u64 = 1024;
/// More shared memory than any device has.
const SHARED_MAX: u64 = 1 << 20;

struct Geometry {
    grid: Dim,
    block: Dim,
    shared_bytes: usize,
}

fn geometry(
    request: &Request,
    entry: &Entry,
    params: &[(&'static str, u64)],
    kernel: &KernelSpec,
) -> Result<Geometry, BuildError> {
    let error = |problem: &str| request.shape_error(format!("kernel {:?}: {problem}", kernel.entry));
    if !entry.is_replaceable {
        let known = crate::OPS.iter().filter(|entry| entry.is_replaceable).map(|entry| entry.name);
        let known: Vec<&str> = known.collect();
        return Err(error(&format!("only these ops accept a user's kernel: {}", known.join(", "))));
    }
    let mut names: Vec<(&str, u64)> = Vec::new();
    // An op that takes shapes of several ranks names its sizes among its parameters.
    if entry.sizes.len() == request.shape.len() {
        names.extend(entry.sizes.iter().copied().zip(request.shape.iter().map(|size| *size as u64)));
    }
    let known = names.len();
    names.extend(params.iter().filter(|(name, _)| known == 0 || !entry.sizes.contains(name)));
    for condition in &kernel.requires {
        if condition.value(&names).map_err(|problem| error(&problem))? == 0 {
            return Err(error(&format!("it requires {condition}")));
        }
    }
    let dim = |what: &str, sizes: &[Size]| -> Result<Dim, BuildError> {
        let mut dim = [1; 3];
        for (to, size) in dim.iter_mut().zip(sizes) {
            let value = size.value(&names).map_err(|problem| error(&problem))?;
            *to = u32::try_from(value)
                .ok()
                .filter(|value| *value > 0)
                .ok_or_else(|| error(&format!("{what} of {value} cannot be launched")))?;
        }
        Ok(Dim(dim))
    };
    let (grid, block) = (dim("a grid", &kernel.grid)?, dim("a block", &kernel.block)?);
    let threads: u64 = block.0.iter().map(|size| u64::from(*size)).product();
    if threads > THREADS_MAX {
        return Err(error(&format!("a block of {threads} threads; {THREADS_MAX} is the most")));
    }
    let shared = kernel.shared_bytes.value(&names).map_err(|problem| error(&problem))?;
    if shared > SHARED_MAX {
        return Err(error(&format!("{shared} bytes of shared memory are more than any device has")));
    }
    Ok(Geometry { grid, block, shared_bytes: shared as usize })
}

pub(crate) fn check_user_kernel(
    request: &Request,
    entry: &Entry,
    params: &[(&'static str, u64)],
    kernel: &KernelSpec,
) -> Result<(), BuildError> {
    kernel.check().map_err(|problem| request.shape_error(problem))?;
    plan(&request.plain(), Some(Backend::Cuda))?;
    geometry(request, entry, params, kernel).map(drop)
}

pub(super) fn build(
    gpu: &mut Gpu,
    request: &Request,
    (entry, params): (&Entry, &[(&'static str, u64)]),
    kernel: &KernelSpec,
    given: HostInputs<'_>,
) -> Result<Program, PrepareError> {
    let Geometry { grid, block, shared_bytes } = geometry(request, entry, params, kernel)?;
    let mut program = Program::new(gpu, &request.plain(), given)?;
    let cubin = gpu.compiler.user_cubin(
        kernel,
        program.dtype,
        &program.version.chosen.unit.config,
        &gpu.device.arch,
    )?;
    let function = gpu.user_kernel(cubin, &kernel.entry).map_err(|error| {
        let detail =
            format!("{}: no kernel {:?} in it, declared extern \"C\": {error}", kernel.source, kernel.entry);
        CudaError { detail, ..error }
    })?;
    let launch = match <[_; 1]>::try_from(std::mem::take(&mut program.version.launches)) {
        Ok([launch]) => launch.with_kernel(function, grid, block),
        Err(launches) => {
            let problem =
                format!("its plain version takes {} launches; only one can be replaced", launches.len());
            return Err(request.shape_error(problem).into());
        }
    };
    let launch = if shared_bytes > 0 { launch.with_shared(shared_bytes)? } else { launch };
    program.version.launches = vec![launch];
    program.version.chosen.kernel_name.clone_from(&kernel.entry);
    program.version.chosen.source = "own";
    Ok(program)
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
        geometry(&request, planned.entry, &planned.named_params, kernel).map_err(|error| error.to_string())
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
