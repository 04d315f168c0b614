//! The ops: each turns a request into launches, inputs, outputs and an oracle. Must not time anything.

mod attention;
mod ceilings;
mod copy;
mod fault;
mod ff;
mod fusion;
mod own;
mod ssm;
mod tiles;

use crate::compile::{Config, Unit};
use crate::device::Buffer;
use crate::dtype::Dtype;
use crate::error::CudaError;
use crate::gpu::{Draw, Gpu};
use crate::launch::{Kernel, Launch};
use crate::program::{Input, Output, PrepareError, Program, Request, Variant};
use holdpoint_ops::BuildError;
use serde::de::DeserializeOwned;

/// Names of the ops.
pub const OPS: &[&str] = &[
    "tile_pack",
    "tile_unpack",
    "fusion_gate",
    "tile_ssm",
    "fused_pack_op_unpack",
    "ff_path",
    "attention",
    "copy",
    "fma",
    "mma",
    "launch",
    "fault",
];

type Validate = fn(&Request<'_>) -> Result<(), BuildError>;
type Build = fn(&mut Gpu, &Request<'_>) -> Result<Program, PrepareError>;
type Candidates = fn(&Request<'_>) -> Vec<Config>;

/// How one op is validated, built, and tuned.
struct Entry {
    validate: Validate,
    build: Build,
    candidates: Candidates,
}

fn entry(op: &str) -> Result<Entry, BuildError> {
    let of =
        |validate: Validate, build: Build, candidates: Candidates| Ok(Entry { validate, build, candidates });
    match op {
        "tile_pack" => of(tiles::pack::validate, tiles::pack::build, tiles::pack::candidates),
        "tile_unpack" => of(tiles::unpack::validate, tiles::unpack::build, tiles::unpack::candidates),
        "fused_pack_op_unpack" => of(tiles::fused::validate, tiles::fused::build, tiles::fused::candidates),
        "ff_path" => of(ff::validate, ff::build, |_| Vec::new()),
        "fusion_gate" => of(fusion::validate, fusion::build, fusion::candidates),
        "tile_ssm" => of(ssm::validate, ssm::build, ssm::candidates),
        "attention" => of(attention::validate, attention::build, attention::candidates),
        "copy" => of(copy::validate, copy::build, |_| Vec::new()),
        "fma" => of(ceilings::validate_fma, ceilings::build_fma, |_| Vec::new()),
        "mma" => of(ceilings::validate_mma, ceilings::build_mma, |_| Vec::new()),
        "launch" => of(ceilings::validate_launch, ceilings::build_launch, |_| Vec::new()),
        "fault" => of(fault::validate, fault::build, |_| Vec::new()),
        _ => Err(BuildError::UnknownOp { op: op.to_owned() }),
    }
}

/// Checks a request without a device.
///
/// # Errors
/// With what is wrong and what would be right.
pub fn validate(request: &Request<'_>) -> Result<(), BuildError> {
    if request.shape.contains(&0) {
        return Err(shape_error(request, "every size must be > 0"));
    }
    let elements = request.shape.iter().try_fold(1_usize, |total, size| total.checked_mul(*size));
    if elements.is_none_or(|elements| elements > ELEMENTS_MAX) {
        return Err(shape_error(request, "at most 2^34 elements"));
    }
    (entry(request.op)?.validate)(request)?;
    request.kernel.map_or(Ok(()), |kernel| own::validate(request, kernel))
}

/// 2^34 elements, 64 GiB in f32: beyond that a typing error is likelier than a wish.
const ELEMENTS_MAX: usize = 1 << 34;

/// Builds an op on a device.
pub(crate) fn build(gpu: &mut Gpu, request: &Request<'_>) -> Result<Program, PrepareError> {
    validate(request)?;
    if let Some(kernel) = request.kernel {
        return own::build(gpu, request, kernel);
    }
    (entry(request.op)?.build)(gpu, request)
}

/// Constants worth trying for a request, beside the op's own.
pub(crate) fn candidates(request: &Request<'_>) -> Vec<Config> {
    if request.kernel.is_some() {
        return Vec::new();
    }
    entry(request.op).map(|entry| (entry.candidates)(request)).unwrap_or_default()
}

/// All combinations of some values of some constants.
fn grid_of(axes: &[(&str, &[i64])]) -> Vec<Config> {
    let mut all = vec![Config::new()];
    for (name, values) in axes {
        all = all
            .iter()
            .flat_map(|config| {
                values.iter().map(|value| {
                    let mut more = config.clone();
                    more.insert((*name).to_owned(), *value);
                    more
                })
            })
            .collect();
    }
    all
}

/// A kernel with the constants that fit the request: those it brings, or the winner of a tuning, or the op's own.
pub(crate) struct Chosen {
    pub unit: Unit,
    pub kernel_name: &'static str,
    pub bucket: String,
    pub source: &'static str,
}

impl Chosen {
    fn new(
        gpu: &Gpu,
        request: &Request<'_>,
        source: &'static str,
        names: [&'static str; 2],
        bucket: &[(&str, usize)],
    ) -> Self {
        let kernel_name = match request.variant {
            Variant::Fast => names[0],
            Variant::Reference => names[1],
        };
        let bucket = bucket_of(bucket, request.dtype);
        let known = gpu.registry.get(kernel_name, &bucket).map(|entry| entry.config.clone());
        let (config, source_name) = match (&request.config, known) {
            (Some(config), _) => (config.clone(), "candidate"),
            (None, Some(config)) => (config, "registry_cache"),
            (None, None) => (Config::new(), "heuristic"),
        };
        let unit = Unit { source, dtype: request.dtype, config };
        Self { unit, kernel_name, bucket, source: source_name }
    }

    /// Fixes constants that were not chosen, so that what is launched is what was compiled.
    fn with(mut self, constants: &[(&str, usize)]) -> Self {
        for (name, value) in constants {
            self.unit.config.entry((*name).to_owned()).or_insert(*value as i64);
        }
        self
    }

    /// The value of a constant.
    fn constant(&self, name: &str) -> usize {
        self.unit.config.get(name).and_then(|value| usize::try_from(*value).ok()).unwrap_or(1)
    }

    fn kernel(&self, gpu: &mut Gpu) -> Result<Kernel, CudaError> {
        gpu.kernel(&self.unit, self.kernel_name)
    }
}

/// Sizes as the seeds write them: `key=value` by key, joined by `|`.
fn bucket_of(sizes: &[(&str, usize)], dtype: Dtype) -> String {
    let mut parts: Vec<String> = sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
    parts.push(format!("dtype={}", dtype.name()));
    parts.sort();
    parts.join("|")
}

/// Memory for an op, moved off its alignment where that was asked for.
struct Memory<'a> {
    gpu: &'a Gpu,
    dtype: Dtype,
    misalign: usize,
}

impl<'a> Memory<'a> {
    fn new(gpu: &'a Gpu, request: &Request<'_>) -> Self {
        Self { gpu, dtype: request.dtype, misalign: request.misalign }
    }

    fn elements(&self, count: usize) -> Result<Buffer, CudaError> {
        Buffer::new(&self.gpu.device, count * self.dtype.bytes(), self.misalign)
    }

    /// An input whose leading dimension is the batch.
    fn input(&self, count: usize, draw: Draw) -> Result<Input, CudaError> {
        Ok(Input { buffer: self.elements(count)?, dtype: self.dtype, draw, by_row: true })
    }

    /// An input that all rows share.
    fn shared(&self, count: usize, draw: Draw) -> Result<Input, CudaError> {
        Ok(Input { by_row: false, ..self.input(count, draw)? })
    }

    fn output(&self, name: &'static str, dims: &[usize]) -> Result<Output, CudaError> {
        let bytes = dims.iter().product::<usize>() * self.dtype.bytes();
        let buffer = Buffer::guarded(&self.gpu.device, bytes, self.misalign)?;
        Ok(Output { name, dims: dims.to_vec(), buffer, dtype: self.dtype })
    }

    fn upload<T: Copy>(&self, values: &[T]) -> Result<Buffer, CudaError> {
        let mut buffer = Buffer::new(&self.gpu.device, size_of_val(values), 0)?;
        buffer.upload(values)?;
        Ok(buffer)
    }
}

const NORMAL: Draw = Draw::Normal { scale: 1.0, shift: 0.0 };
const UNIFORM: Draw = Draw::Uniform { scale: 1.0, shift: 0.0 };

/// Threads of every plain kernel, unless it says otherwise.
const PLAIN_THREADS: u32 = 256;

/// A plain kernel's launch: one thread an element.
fn plain(kernel: &Kernel, count: usize, arguments: crate::launch::Arguments) -> Launch {
    let blocks = count.div_ceil(PLAIN_THREADS as usize).clamp(1, 1 << 20);
    kernel.launch(blocks as u32, PLAIN_THREADS, arguments)
}

/// Bytes of the widest access that divides a row and keeps all addresses aligned, at most 16.
fn unit_bytes(row_bytes: usize, misalign: usize, dtype: Dtype) -> usize {
    let mut bytes = 16;
    while bytes > dtype.bytes() && !(row_bytes.is_multiple_of(bytes) && misalign.is_multiple_of(bytes)) {
        bytes /= 2;
    }
    bytes
}

fn grid_x(blocks: usize) -> u32 {
    u32::try_from(blocks).unwrap_or(u32::MAX)
}

fn shape_error(request: &Request<'_>, problem: &str) -> BuildError {
    BuildError::Shape {
        op: request.op.to_owned(),
        shape: request.shape.to_vec(),
        problem: problem.to_owned(),
    }
}

fn param_error(request: &Request<'_>, param: &'static str, problem: impl ToString) -> BuildError {
    BuildError::Param { op: request.op.to_owned(), param, problem: problem.to_string() }
}

fn parse<P: DeserializeOwned>(request: &Request<'_>) -> Result<P, BuildError> {
    P::deserialize(request.params)
        .map_err(|error| BuildError::Params { op: request.op.to_owned(), problem: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value, json};

    fn request<'a>(op: &'a str, shape: &'a [usize], params: &'a Map<String, Value>) -> Request<'a> {
        Request {
            op,
            shape,
            dtype: Dtype::F16,
            variant: Variant::Fast,
            params,
            seed: 1,
            tolerance: None,
            misalign: 0,
            config: None,
            kernel: None,
        }
    }

    #[test]
    fn every_op_on_the_list_is_known_and_wrong_requests_are_refused_with_words() {
        let none = Map::new();
        for op in OPS {
            let error = validate(&request(op, &[0], &none)).unwrap_err();
            assert!(error.to_string().contains("> 0"), "{op}: {error}");
            let mut unknown = Map::new();
            unknown.insert("colour".to_owned(), json!(1));
            let shape: &[usize] = match *op {
                "tile_ssm" => &[1, 4, 8],
                "copy" | "fma" | "mma" | "launch" | "fault" => &[64],
                _ => &[1, 8, 32, 32],
            };
            let error = validate(&request(op, shape, &unknown)).unwrap_err();
            assert!(error.to_string().contains("colour"), "{op}: {error}");
        }
        assert!(validate(&request("nothing", &[1], &none)).is_err());
    }

    #[test]
    fn more_channels_than_the_fast_ff_path_has_room_for_are_refused_and_the_plain_one_takes_them() {
        let none = Map::new();
        let wide = request("ff_path", &[1, 784, 128, 128], &none);
        let error = validate(&wide).unwrap_err();
        assert!(error.to_string().contains("at most 768 channels"), "{error}");
        assert!(validate(&Request { variant: Variant::Reference, ..wide }).is_ok());
        assert!(validate(&request("ff_path", &[1, 256, 128, 128], &none)).is_ok());
    }

    #[test]
    fn candidates_are_all_combinations() {
        let all = grid_of(&[("A", &[1, 2]), ("B", &[3])]);
        assert_eq!(all.len(), 2);
        assert_eq!(all[1], Config::from([("A".to_owned(), 2), ("B".to_owned(), 3)]));
        assert_eq!(bucket_of(&[("width", 2), ("batch", 1)], Dtype::F16), "batch=1|dtype=f16|width=2");
    }

    #[test]
    fn accesses_are_as_wide_as_rows_and_addresses_allow() {
        assert_eq!(unit_bytes(16, 0, Dtype::F16), 16);
        assert_eq!(unit_bytes(24, 0, Dtype::F16), 8);
        assert_eq!(unit_bytes(16, 2, Dtype::F16), 2);
        assert_eq!(unit_bytes(7, 0, Dtype::E4m3), 1);
    }
}
