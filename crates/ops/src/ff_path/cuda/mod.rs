//! The path on a device, tiles chosen on the host for every call.

use super::FfPath;
use super::cpu::{FfConfig, FfInputs, PathWeights, Router};
use crate::order::{OrderMode, order};
use crate::prelude::*;
use crate::shape::Grid;
use crate::tile_ssm::cpu::module::RawScan;
use holdpoint_cuda::compile::Unit;
use holdpoint_cuda::{Buffer, CudaError, Launch};
use holdpoint_model::FailureCause;

mod reference;

const HEADERS: &[(&str, &str)] = &[
    COMMON,
    ("ff.cuh", include_str!("../ff.cuh")),
    ("ff_film.cuh", include_str!("../ff_film.cuh")),
    ("ff_product.cuh", include_str!("../ff_product.cuh")),
    ("ff_shape.cuh", include_str!("../ff_shape.cuh")),
];
static FF_PATH: Source = Source { name: "ff_path", text: include_str!("../ff_path.cu"), headers: HEADERS };
static FF_REFINE: Source =
    Source { name: "ff_refine", text: include_str!("../ff_refine.cu"), headers: HEADERS };

/// Level 0 reads the map, level 1 what level 0 left unrounded. The second source chooses CLUSTER by the architecture, as is done here.
pub(super) const KERNELS: &[KernelFile] = &[
    KernelFile::new(&FF_PATH, &["TILE=16", "SOURCE_F32=1 TILE=8"]).in_dtypes(WIDE),
    KernelFile::new(
        &FF_REFINE,
        &["ALIGNED=1 CHANNELS=128 TILE=16", "ALIGNED=1 CHANNELS=128 SOURCE_F32=1 TILE=8"],
    )
    .in_dtypes(WIDE),
];

// What the fast kernel has shared memory for.
const CHANNELS_MAX: usize = 768;
const TILE_MAX: usize = 64;
/// Channels times tile edge.
const ROW_MAX: usize = 8192;

/// Checks the limits of the fast kernels.
pub(super) fn check(request: &Request, dims: &Nchw, config: &FfConfig) -> Result<(), BuildError> {
    let (channels, tile_size) = (dims.channels, config.tile_size_l0.max(config.tile_size_l1));
    if request.variant == Variant::Fast && !channels.is_multiple_of(16) {
        return Err(request.shape_error("channels must be a multiple of 16; variant \"reference\" takes any"));
    }
    let fits = channels <= CHANNELS_MAX && tile_size <= TILE_MAX && channels * tile_size <= ROW_MAX;
    if request.variant == Variant::Fast && !fits {
        let problem = format!(
            "at most {CHANNELS_MAX} channels, tiles of {TILE_MAX}, and {ROW_MAX} for channels times the larger tile size; \
             variant \"reference\" takes any"
        );
        return Err(request.shape_error(problem));
    }
    Ok(())
}

/// Chooses tiles on the host before each call, as a caller would.
struct Routing {
    router: Router,
    grids: [Grid; 2],
    utilities: [Vec<f32>; 2],
}

impl Routing {
    /// Ids of both levels, sample after sample, each in the order of the scan.
    fn run(&mut self) -> Result<[Vec<u32>; 2], CudaError> {
        let failed = |error: OpError| CudaError::new(FailureCause::WorkerError, error.to_string());
        self.router.run(&FfInputs::for_routing(&self.utilities)).map_err(failed)?;
        let routes = &self.router.routes;
        let l0 =
            routes.iter().flat_map(|route| order(&route.l0.selected, OrderMode::Hilbert, &self.grids[0]));
        let l1 = routes.iter().flat_map(|route| order(&route.l1.ordered, OrderMode::Hilbert, &self.grids[1]));
        Ok([l0.collect(), l1.collect()])
    }

    /// Whether all samples have the same number of tiles, which the kernels rely on.
    fn is_even(&self) -> bool {
        let counts = |f: &dyn Fn(usize) -> usize| (1..self.router.routes.len()).all(|b| f(b) == f(0));
        let routes = &self.router.routes;
        counts(&|b| routes[b].l0.selected.len()) && counts(&|b| routes[b].l1.ordered.len())
    }
}

/// Buffers that the launches of both variants use.
struct Parts<'a> {
    dims: Nchw,
    tiles: [usize; 2],
    edges: [usize; 2],
    ids: [u64; 2],
    weights: &'a [Buffer],
    scans: &'a [Buffer],
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

    fn level_detail(&self, level: usize) -> u64 {
        if level == self.last() { self.detail } else { 0 }
    }

    fn level_unrounded(&self, level: usize) -> u64 {
        if level == 0 && self.tiles[1] > 0 { self.unrounded } else { 0 }
    }

    /// The states of a level: `[B, 2 paths, 2 directions, C]`.
    fn level_states(&self, level: usize) -> u64 {
        self.states + (level * 2 * self.dims.channels * size_of::<f32>()) as u64
    }

    /// The map that a level reads.
    fn level_map(&self, level: usize) -> u64 {
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

fn unit(source: &'static Source, dtype: Dtype, level: usize, constants: &[(&str, usize)]) -> Unit {
    let mut unit = Unit::new(source, dtype);
    unit.config.extend(constants.iter().map(|(name, value)| ((*name).to_owned(), *value as i64)));
    if level == 1 {
        unit.config.insert("SOURCE_F32".to_owned(), 1);
    }
    unit
}

const THREADS: usize = 256;

fn fast(build: &mut Build<'_>, parts: &Parts<'_>, tokens: u64) -> Result<Vec<Launch>, CudaError> {
    let (gpu, dtype, misalign) = (&mut *build.gpu, build.dtype, build.request.misalign);
    let mut launches = Vec::new();
    let Nchw { batch, channels, height, width } = parts.dims;
    let path = |level: usize| unit(&FF_PATH, dtype, level, &[("TILE", parts.edges[level])]);
    let (major, aligned) = (gpu.device.capability.0, usize::from(misalign.is_multiple_of(16)));
    let refine = |level: usize| {
        let edge = parts.edges[level];
        let cluster = ("CLUSTER", cluster(major, edge, channels));
        let constants = [("CHANNELS", channels), ("TILE", edge), cluster, ("ALIGNED", aligned)];
        unit(&FF_REFINE, dtype, level, &constants)
    };
    let has_tiles = |level: &usize| parts.tiles[*level] > 0;
    let all = [0, 1].into_iter().filter(has_tiles).flat_map(|level| [path(level), refine(level)]);
    gpu.look_for(&all.collect::<Vec<Unit>>())?;
    for level in 0..2 {
        let (edge, tiles) = (parts.edges[level], parts.tiles[level]);
        let item_bytes = if level == 0 { dtype.bytes() } else { size_of::<f32>() };
        let token_blocks = (batch * tiles * channels * token_lanes(edge, item_bytes)).div_ceil(THREADS);
        let arguments = parts
            .sizes(Arguments::new().ptr(parts.level_map(level)).ptr(parts.ids[level]), level)
            .ptr(tokens);
        if level == 0 {
            let copying = 8 * gpu.device.multiprocessors as usize;
            let kernel = gpu.kernel(&path(level), "ff_begin_fast")?;
            let blocks = grid_x(token_blocks + copying);
            launches.push(kernel.launch(blocks, THREADS as u32, parts.begin(arguments)));
        } else if tiles > 0 {
            let kernel = gpu.kernel(&path(level), "ff_tokens_fast")?;
            launches.push(kernel.launch(grid_x(token_blocks), THREADS as u32, arguments));
        }
        if tiles == 0 {
            continue;
        }
        let cluster = cluster(major, edge, channels);
        let kernel = gpu.kernel(&refine(level), "ff_refine_fast")?;
        let arguments = Arguments::new().ptr(parts.level_map(level)).ptr(parts.ids[level]).ptr(tokens);
        let arguments = arguments.buffer(&parts.scans[level]).buffer(&parts.weights[level]);
        let arguments = parts.proxies(arguments.int(tiles).int(height).int(width), level);
        let arguments =
            arguments.ptr(parts.heavy).ptr(parts.level_detail(level)).ptr(parts.level_unrounded(level));
        let arguments = arguments.ptr(parts.level_states(level)).int(4 * channels);
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

pub(super) fn launches(op: &FfPath, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
    let FfPath { dims, config, .. } = *op;
    let failed = |error: OpError| build.request.param_error("tile_size_l0", error);
    let mut routing = Routing {
        router: Router::new(config, &dims).map_err(failed)?,
        grids: config.grids(&dims).map_err(failed)?,
        utilities: [build.host(1).to_vec(), build.host(2).to_vec()],
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
    let chosen = build.choose(&FF_REFINE, ["ff_refine_fast", "ff_fuse_reference"], &sizes);
    let weights = op.weights(build.dtype);
    let mut packed = Vec::new();
    let mut scans = Vec::new();
    for weights in &weights {
        packed.push(build.upload(&build.dtype.encode(&pack_layers(weights)))?);
        scans.push(build.upload(&pack_scans(weights))?);
    }
    let mut ids_buffer = build.upload(&ids.concat())?;
    let unrounded = build.scratch(size_of::<f32>() * dims.len())?;
    let slots = dims.batch * tiles[0].max(tiles[1]);
    let tokens = build.scratch(size_of::<f32>() * slots * dims.channels)?;
    let parts = Parts {
        dims,
        tiles,
        edges: [config.tile_size_l0, config.tile_size_l1],
        ids: [ids_buffer.ptr, ids_buffer.ptr + (ids[0].len() * size_of::<u32>()) as u64],
        weights: &packed,
        scans: &scans,
        gates: [weights[0].gate.weights(), weights[1].gate.weights()],
        dense: build.input(0),
        boundary: build.input(3),
        uncertainty: build.input(4),
        heavy: build.output(0),
        detail: build.output(1),
        alpha: build.output(2),
        states: build.output(3),
        unrounded: unrounded.ptr,
    };
    let (launches, scratch) = match build.request.variant {
        Variant::Fast => (fast(build, &parts, tokens.ptr)?, Vec::new()),
        Variant::Reference => reference::launches(build.gpu, build.dtype, &parts, tokens.ptr)?,
    };
    let held = packed.into_iter().chain(scans).chain([unrounded, tokens]).chain(scratch).collect();
    let host = Box::new(move || {
        let ids = routing.run()?;
        ids_buffer.upload(&ids.concat())
    });
    Ok(Launches { host: Some(host), ..Launches::new(chosen, launches, held) })
}

/// All layers in the order of `Weights` in ff.cuh.
fn pack_layers(weights: &PathWeights) -> Vec<f32> {
    let PathWeights { token_norm, mlp0, mlp2, depthwise, pointwise, norm, .. } = weights;
    [token_norm, mlp0, mlp2, depthwise, pointwise, norm].iter().flat_map(|layer| layer.concat()).collect()
}

/// Both directions' numbers and the merge gate, `[9, C]`.
fn pack_scans(weights: &PathWeights) -> Vec<f32> {
    let pack = |scan: &RawScan| {
        let params = scan.params();
        [params.decay, params.input_gain, params.output_gain, params.state_bias].concat()
    };
    [pack(&weights.forward), pack(&weights.backward), weights.merge_gate()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::RandomState;

    #[test]
    fn weights_lie_in_the_order_that_the_kernels_read() {
        let weights = PathWeights::draw(&mut RandomState::new(1), 16);
        let numbers = pack_layers(&weights);
        assert_eq!(numbers.len(), 21 * 16 + 5 * 16 * 16);
        // mlp2.bias after three vectors and three squares; pointwise.weight after fifteen and three.
        assert_eq!(numbers[3 * 16 + 3 * 256..][..32], weights.mlp2[1]);
        assert_eq!(numbers[15 * 16 + 3 * 256..][..512], weights.pointwise[0]);
        assert_eq!(pack_scans(&weights).len(), 9 * 16);
        assert_eq!(pack_scans(&weights)[8 * 16], 0.5);
    }

    #[test]
    fn lanes_of_a_token_follow_the_kernels() {
        assert_eq!(
            (token_lanes(16, 2), token_lanes(8, 2), token_lanes(8, 4), token_lanes(5, 2)),
            (32, 8, 16, 16)
        );
    }
}
