//! `ff_path`: two levels of the heavy path, tiles chosen on the host for every call.

use super::{Chosen, Memory, NORMAL, UNIFORM, grid_x, param_error, parse, shape_error};
use crate::compile::Unit;
use crate::device::Buffer;
use crate::dtype::Dtype;
use crate::error::CudaError;
use crate::gpu::Gpu;
use crate::launch::{Arguments, Launch};
use crate::program::{PrepareError, Program, Request, Variant};
use holdpoint_model::FailureCause;
use holdpoint_ops::ff::{self, FfConfig, FfInputs, OracleModule, PathWeights, Router};
use holdpoint_ops::order::{OrderMode, order};
use holdpoint_ops::rng::RandomState;
use holdpoint_ops::shape::{Grid, Nchw};
use holdpoint_ops::ssm::module::{RawScan, sigmoid};
use holdpoint_ops::{BuildError, Tolerance, Work};
use serde::Deserialize;

mod reference;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Params {
    tile_size_l0: usize,
    tile_size_l1: usize,
    kmax_l0: usize,
    kmax_l1: usize,
    budget_b1: f64,
    budget_b2: f64,
    budget_total: f64,
    nesting: bool,
}

impl Default for Params {
    fn default() -> Self {
        let c = FfConfig::default();
        Self {
            tile_size_l0: c.tile_size_l0,
            tile_size_l1: c.tile_size_l1,
            kmax_l0: c.kmax_l0,
            kmax_l1: c.kmax_l1,
            budget_b1: c.budget_b1,
            budget_b2: c.budget_b2,
            budget_total: c.budget_total,
            nesting: c.nesting,
        }
    }
}

/// The seeds' tolerances end to end: a path of a dozen layers is not one op.
fn tolerance(dtype: Dtype) -> Tolerance {
    match dtype {
        Dtype::F32 => Tolerance::new(2e-5, 2e-4),
        Dtype::F16 => Tolerance::new(2e-3, 2e-2),
        Dtype::Bf16 => Tolerance::new(3e-3, 3e-2),
        Dtype::E4m3 => Tolerance::new(4e-3, 4e-2),
    }
}

// What the fast kernel has shared memory for.
const CHANNELS_MAX: usize = 768;
const TILE_MAX: usize = 64;
/// Elements of one row of a tile.
const ROW_MAX: usize = 8192;

struct Plan {
    dims: Nchw,
    config: FfConfig,
    grids: [Grid; 2],
}

fn plan(request: &Request<'_>) -> Result<Plan, BuildError> {
    let p: Params = parse(request)?;
    let [batch, channels, height, width] = *request.shape else {
        return Err(shape_error(request, "feature_map must be [B,C,H,W]"));
    };
    if request.dtype == Dtype::E4m3 {
        return Err(BuildError::Dtype { op: request.op.to_owned(), dtype: request.dtype.name().to_owned() });
    }
    if request.variant == Variant::Fast && !channels.is_multiple_of(16) {
        return Err(shape_error(
            request,
            "channels must be a multiple of 16; variant \"reference\" takes any",
        ));
    }
    let tile_size = p.tile_size_l0.max(p.tile_size_l1);
    let fits = channels <= CHANNELS_MAX && tile_size <= TILE_MAX && channels * tile_size <= ROW_MAX;
    if request.variant == Variant::Fast && !fits {
        let problem = format!(
            "at most {CHANNELS_MAX} channels, tiles of {TILE_MAX}, and {ROW_MAX} for channels times the larger tile size; \
             variant \"reference\" takes any"
        );
        return Err(shape_error(request, &problem));
    }
    let dims = Nchw { batch, channels, height, width };
    let config = FfConfig {
        tile_size_l0: p.tile_size_l0,
        tile_size_l1: p.tile_size_l1,
        kmax_l0: p.kmax_l0,
        kmax_l1: p.kmax_l1,
        budget_b1: p.budget_b1,
        budget_b2: p.budget_b2,
        budget_total: p.budget_total,
        nesting: p.nesting,
        ..FfConfig::default()
    };
    let grids = config.grids(&dims).map_err(|error| param_error(request, "tile_size_l0", error))?;
    if config.kmax_l0 > grids[0].count() {
        let problem = format!("kmax={} must be <= total l0 tiles ({})", config.kmax_l0, grids[0].count());
        return Err(param_error(request, "kmax_l0", problem));
    }
    Ok(Plan { dims, config, grids })
}

pub(super) fn validate(request: &Request<'_>) -> Result<(), BuildError> {
    plan(request).map(drop)
}

/// Chooses tiles on the host, as a caller would before each call.
#[derive(Clone)]
struct Routing {
    router: Router,
    grids: [Grid; 2],
    utilities: Vec<f32>,
    split_utilities: Vec<f32>,
}

impl Routing {
    /// Ids of both levels, sample after sample, each in the order of the scan.
    fn run(&mut self) -> Result<[Vec<u32>; 2], CudaError> {
        let inputs = FfInputs {
            dense: &[],
            utilities: &self.utilities,
            split_utilities: &self.split_utilities,
            boundary: &[],
            uncertainty: &[],
        };
        let failed = |error: &dyn ToString| CudaError::new(FailureCause::WorkerError, error.to_string());
        self.router.run(&inputs).map_err(|error| failed(&error))?;
        let routes = &self.router.routes;
        let l0 =
            routes.iter().flat_map(|route| order(&route.l0.selected, OrderMode::Hilbert, &self.grids[0]));
        let l1 = routes.iter().flat_map(|route| order(&route.l1.ordered, OrderMode::Hilbert, &self.grids[1]));
        Ok([l0.collect(), l1.collect()])
    }

    /// Whether every sample has as many tiles as the others, which the kernels count on.
    fn is_even(&self) -> bool {
        let counts = |f: &dyn Fn(usize) -> usize| (1..self.router.routes.len()).all(|b| f(b) == f(0));
        let routes = &self.router.routes;
        counts(&|b| routes[b].l0.selected.len()) && counts(&|b| routes[b].l1.ordered.len())
    }
}

/// What launches of either variant are made of.
struct Parts<'a> {
    dims: Nchw,
    tiles: [usize; 2],
    edges: [usize; 2],
    ids: [u64; 2],
    weights: &'a [Buffer; 2],
    scans: &'a [Buffer; 2],
    gates: [[f32; 3]; 2],
    dense: u64,
    boundary: u64,
    uncertainty: u64,
    heavy: u64,
    detail: u64,
    alpha: u64,
    states: u64,
    unrounded: u64,
}

impl Parts<'_> {
    /// The last level that has tiles is the one whose detail and alpha come out.
    fn last(&self) -> usize {
        usize::from(self.tiles[1] > 0)
    }

    fn detail_of(&self, level: usize) -> u64 {
        if level == self.last() { self.detail } else { 0 }
    }

    fn unrounded_of(&self, level: usize) -> u64 {
        if level == 0 && self.tiles[1] > 0 { self.unrounded } else { 0 }
    }

    /// The states of a level: `[B, 2 paths, 2 directions, C]`.
    fn states_of(&self, level: usize) -> u64 {
        self.states + (level * 2 * self.dims.channels * size_of::<f32>()) as u64
    }

    /// The map that a level reads.
    fn map_of(&self, level: usize) -> u64 {
        if level == 0 { self.dense } else { self.unrounded }
    }

    fn sizes(&self, arguments: Arguments, level: usize) -> Arguments {
        let Nchw { batch, channels, height, width } = self.dims;
        arguments.int(batch).int(self.tiles[level]).int(channels).int(height).int(width)
    }

    fn proxies(&self, arguments: Arguments, level: usize) -> Arguments {
        let [boundary, uncertainty, bias] = self.gates[level];
        let arguments = arguments.ptr(self.boundary).ptr(self.uncertainty);
        arguments.float(boundary).float(uncertainty).float(bias)
    }

    fn begin(&self, arguments: Arguments) -> Arguments {
        let arguments = self.proxies(arguments, self.last());
        let arguments = arguments.ptr(self.heavy).ptr(self.detail).ptr(self.alpha).ptr(self.states);
        arguments.int(4 * self.dims.batch * self.dims.channels)
    }
}

/// The constants of a level's programs.
fn unit(source: &'static str, dtype: Dtype, level: usize, constants: &[(&str, usize)]) -> Unit {
    let mut unit = Unit::new(source, dtype);
    unit.config.extend(constants.iter().map(|(name, value)| ((*name).to_owned(), *value as i64)));
    if level == 1 {
        unit.config.insert("SOURCE_F32".to_owned(), 1);
    }
    unit
}

const THREADS: usize = 256;

fn fast(
    gpu: &mut Gpu,
    dtype: Dtype,
    parts: &Parts<'_>,
    tokens: u64,
    misalign: usize,
) -> Result<Vec<Launch>, CudaError> {
    let mut launches = Vec::new();
    let Nchw { batch, channels, height, width } = parts.dims;
    for level in 0..2 {
        let (edge, tiles) = (parts.edges[level], parts.tiles[level]);
        let item_bytes = if level == 0 { dtype.bytes() } else { size_of::<f32>() };
        let token_blocks = (batch * tiles * channels * token_lanes(edge, item_bytes)).div_ceil(THREADS);
        let path = unit("ff_path", dtype, level, &[("TILE", edge)]);
        let arguments =
            parts.sizes(Arguments::new().ptr(parts.map_of(level)).ptr(parts.ids[level]), level).ptr(tokens);
        if level == 0 {
            let copying = 8 * gpu.device.multiprocessors as usize;
            let kernel = gpu.kernel(&path, "ff_begin_fast")?;
            let blocks = grid_x(token_blocks + copying);
            launches.push(kernel.launch(blocks, THREADS as u32, parts.begin(arguments)));
        } else if tiles > 0 {
            let kernel = gpu.kernel(&path, "ff_tokens_fast")?;
            launches.push(kernel.launch(grid_x(token_blocks), THREADS as u32, arguments));
        }
        if tiles == 0 {
            continue;
        }
        let cluster = cluster(gpu.device.capability.0, edge, channels);
        let aligned = usize::from(misalign.is_multiple_of(16));
        let constants = [("CHANNELS", channels), ("TILE", edge), ("CLUSTER", cluster), ("ALIGNED", aligned)];
        let kernel = gpu.kernel(&unit("ff_refine", dtype, level, &constants), "ff_refine_fast")?;
        let arguments = Arguments::new().ptr(parts.map_of(level)).ptr(parts.ids[level]).ptr(tokens);
        let arguments = arguments.buffer(&parts.scans[level]).buffer(&parts.weights[level]);
        let arguments = parts.proxies(arguments.int(tiles).int(height).int(width), level);
        let arguments = arguments.ptr(parts.heavy).ptr(parts.detail_of(level)).ptr(parts.unrounded_of(level));
        let arguments = arguments.ptr(parts.states_of(level)).int(4 * channels);
        launches.push(kernel.launch(grid_x(batch * tiles * cluster), THREADS as u32, arguments));
    }
    Ok(launches)
}

/// Blocks that share a tile: see ff_refine.cu. None before Hopper.
fn cluster(major: i32, edge: usize, channels: usize) -> usize {
    match () {
        () if major < 9 => 1,
        () if edge <= 8 && channels <= 256 => 2,
        () if edge <= 16 && channels <= 128 => 4,
        () => 8,
    }
}

/// Lanes of a warp that share one token: see ff_path.cu.
fn token_lanes(edge: usize, item_bytes: usize) -> usize {
    let columns = [8, 4, 2, 1].into_iter().find(|columns| edge.is_multiple_of(*columns)).unwrap_or(1);
    let loads = edge * edge / columns.min(16 / item_bytes);
    [32, 16, 8, 4, 2, 1].into_iter().find(|lanes| *lanes <= loads).unwrap_or(1)
}

pub(super) fn build(gpu: &mut Gpu, request: &Request<'_>) -> Result<Program, PrepareError> {
    let Plan { dims, config, grids } = plan(request)?;
    let dtype = request.dtype;
    let mut random = RandomState::new(request.seed);
    let mut draw = || rounded(PathWeights::draw(&mut random, dims.channels), dtype);
    let weights = [draw(), draw()];
    let tiles_all = dims.batch * grids[0].count();
    let mut routing = Routing {
        router: Router::new(config, &dims).map_err(|error| param_error(request, "tile_size_l0", error))?,
        grids,
        utilities: random.uniforms(tiles_all).to_vec(),
        split_utilities: random.uniforms(tiles_all).to_vec(),
    };
    let ids = routing.run()?;
    if !routing.is_even() {
        return Err(PrepareError::Skipped("samples of the batch have different numbers of tiles".to_owned()));
    }
    let tiles = [ids[0].len() / dims.batch, ids[1].len() / dims.batch];
    let sizes = [
        ("batch", dims.batch),
        ("channels", dims.channels),
        ("height", dims.height),
        ("tiles_l0", tiles[0]),
        ("tiles_l1", tiles[1]),
        ("width", dims.width),
    ];
    let names = ["ff_refine_fast", "ff_fuse_reference"];
    let chosen = Chosen::new(gpu, request, "ff_refine", names, &sizes);

    let memory = Memory::new(gpu, request);
    let pixels = dims.batch * dims.plane();
    let inputs = vec![
        memory.input(dims.len(), NORMAL)?,
        memory.input(pixels, UNIFORM)?,
        memory.input(pixels, UNIFORM)?,
    ];
    let wide = Memory { dtype: Dtype::F32, misalign: 0, ..Memory::new(gpu, request) };
    let outputs = vec![
        memory.output("heavy_features", &dims.dims())?,
        memory.output("detail_map", &dims.dims())?,
        memory.output("alpha", &[dims.batch, 1, dims.height, dims.width])?,
        wide.output("states", &[dims.batch, 2, 2, dims.channels])?,
    ];
    let packed = [
        wide.upload(&dtype.encode(&in_order(&weights[0])))?,
        wide.upload(&dtype.encode(&in_order(&weights[1])))?,
    ];
    let scans = [wide.upload(&scan_of(&weights[0]))?, wide.upload(&scan_of(&weights[1]))?];
    let mut ids_buffer = wide.upload(&ids.concat())?;
    let unrounded = wide.elements(dims.len())?;
    let slots = dims.batch * tiles[0].max(tiles[1]);
    let tokens = wide.elements((slots * dims.channels).max(1))?;
    let parts = Parts {
        dims,
        tiles,
        edges: [config.tile_size_l0, config.tile_size_l1],
        ids: [ids_buffer.ptr, ids_buffer.ptr + (ids[0].len() * size_of::<u32>()) as u64],
        weights: &packed,
        scans: &scans,
        gates: [weights[0].gate.weights(), weights[1].gate.weights()],
        dense: inputs[0].buffer.ptr,
        boundary: inputs[1].buffer.ptr,
        uncertainty: inputs[2].buffer.ptr,
        heavy: outputs[0].buffer.ptr,
        detail: outputs[1].buffer.ptr,
        alpha: outputs[2].buffer.ptr,
        states: outputs[3].buffer.ptr,
        unrounded: unrounded.ptr,
    };
    let (launches, scratch) = match request.variant {
        Variant::Fast => (fast(gpu, dtype, &parts, tokens.ptr, request.misalign)?, Vec::new()),
        Variant::Reference => reference::launches(gpu, dtype, &parts, tokens.ptr)?,
    };
    let work = work(&dims, &config, tiles, dtype);
    let oracle = oracle(dims, config, weights, routing.clone());
    let [packed_l0, packed_l1] = packed;
    let [scan_l0, scan_l1] = scans;
    let mut held = vec![packed_l0, packed_l1, scan_l0, scan_l1, unrounded, tokens];
    held.extend(scratch);
    let mut program = Program::new(chosen, launches, (inputs, outputs, held), dims.batch, oracle, work);
    program.tolerance = Some(tolerance(dtype));
    program.host = Some(Box::new(move || {
        let ids = routing.run()?;
        ids_buffer.upload(&ids.concat())
    }));
    Ok(program)
}

fn work(dims: &Nchw, config: &FfConfig, tiles: [usize; 2], dtype: Dtype) -> Work {
    let (elements, pixels) = (dims.len() as u64, (dims.batch * dims.plane()) as u64);
    let c = dims.channels as u64;
    Work {
        bytes: dtype.bytes() as u64 * (3 * elements + 3 * pixels + 2 * (21 * c + 5 * c * c)),
        flops: ff::flops(dims, config, tiles.map(|tiles| tiles * dims.batch)),
        items: dims.batch as u64,
        item: "frames",
    }
}

/// The CPU's oracle on the same numbers, with the routing of the rows that are looked at.
fn oracle(
    dims: Nchw,
    config: FfConfig,
    weights: [PathWeights; 2],
    routing: Routing,
) -> crate::program::Oracle {
    Box::new(move |rows, inputs| {
        let dims = Nchw { batch: rows.len(), ..dims };
        let tiles = routing.grids[0].count();
        let of = |values: &[f32]| values[rows.start * tiles..rows.end * tiles].to_vec();
        let (utilities, split_utilities) = (of(&routing.utilities), of(&routing.split_utilities));
        let given = FfInputs {
            dense: &inputs[0],
            utilities: &utilities,
            split_utilities: &split_utilities,
            boundary: &inputs[1],
            uncertainty: &inputs[2],
        };
        // What cannot be computed matches nothing.
        let computed = OracleModule::new(dims, config, &weights).and_then(|mut module| {
            module.run(&given)?;
            Ok(module.outputs)
        });
        match computed {
            Ok(out) => vec![out.heavy.to_vec(), out.detail.to_vec(), out.alpha.to_vec(), out.states.to_vec()],
            Err(_) => vec![Vec::new(); 4],
        }
    })
}

/// The weights as the device has them.
fn rounded(mut weights: PathWeights, dtype: Dtype) -> PathWeights {
    let PathWeights { token_norm, mlp0, mlp2, depthwise, pointwise, norm, .. } = &mut weights;
    for layer in [token_norm, mlp0, mlp2, depthwise, pointwise, norm] {
        for numbers in layer {
            *numbers = dtype.decode(&dtype.encode(numbers));
        }
    }
    weights
}

/// All layers in the order of `Weights` in ff.cuh.
fn in_order(weights: &PathWeights) -> Vec<f32> {
    let PathWeights { token_norm, mlp0, mlp2, depthwise, pointwise, norm, .. } = weights;
    [token_norm, mlp0, mlp2, depthwise, pointwise, norm].iter().flat_map(|layer| layer.concat()).collect()
}

/// Both directions' numbers and the merge gate, `[9, C]`.
fn scan_of(weights: &PathWeights) -> Vec<f32> {
    let of = |scan: &RawScan| {
        let params = scan.params();
        [params.decay, params.input_gain, params.output_gain, params.state_bias].concat()
    };
    let gate = weights.merge_gate_logit.iter().map(|logit| sigmoid(f64::from(*logit)) as f32);
    of(&weights.forward).into_iter().chain(of(&weights.backward)).chain(gate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_lie_in_the_order_that_the_kernels_read() {
        let weights = PathWeights::draw(&mut RandomState::new(1), 16);
        let numbers = in_order(&weights);
        assert_eq!(numbers.len(), 21 * 16 + 5 * 16 * 16);
        // mlp2.bias after three vectors and three squares; pointwise.weight after fifteen and three.
        assert_eq!(numbers[3 * 16 + 3 * 256..][..32], weights.mlp2[1]);
        assert_eq!(numbers[15 * 16 + 3 * 256..][..512], weights.pointwise[0]);
        assert_eq!(scan_of(&weights).len(), 9 * 16);
        assert_eq!(scan_of(&weights)[8 * 16], 0.5);
    }

    #[test]
    fn lanes_of_a_token_follow_the_kernels() {
        assert_eq!(
            (token_lanes(16, 2), token_lanes(8, 2), token_lanes(8, 4), token_lanes(5, 2)),
            (32, 8, 16, 16)
        );
    }
}
