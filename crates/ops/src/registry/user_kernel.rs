//! A user's kernels in place of an op's: what follows from the sizes alone, which is checked before a device is used.

use super::{Entry, plan};
use crate::error::BuildError;
use crate::request::{Backend, Request};
use holdpoint_cuda::Dim;
use holdpoint_model::suite::{KernelSpec, LaunchSpec, Size};

/// Threads of a block that every device takes.
const THREADS_MAX: u64 = 1024;
/// More shared memory than any device has.
const SHARED_MAX: u64 = 1 << 20;
/// Blocks of a cluster, at most.
const CLUSTER_MAX: u64 = 16;
/// Sizes and parameters of an op that a kernel may use by their names, in the order in which a library gets them.
pub(crate) type Names<'a> = Vec<(&'a str, u64)>;

pub(crate) struct Geometry {
    pub(crate) grid: Dim,
    pub(crate) block: Dim,
    pub(crate) shared_bytes: usize,
    pub(crate) cluster: Option<Dim>,
}

/// All that follows from the sizes alone.
pub(crate) struct LaunchPlan<'a> {
    pub(crate) names: Names<'a>,
    pub(crate) launches: Vec<(LaunchSpec, Geometry)>,
    pub(crate) workspace_bytes: Vec<u64>,
}

pub(crate) fn plan_launches<'a>(
    request: &'a Request,
    entry: &'a Entry,
    params: &[(&'static str, u64)],
    kernel: &KernelSpec,
) -> Result<LaunchPlan<'a>, BuildError> {
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
    Ok(LaunchPlan { names, launches, workspace_bytes })
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

pub(super) fn check_user_kernel(
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
