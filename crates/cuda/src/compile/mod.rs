//! From a kernel's source to machine code for the device found: compiled once, kept on disk.

mod cache;
mod nvrtc;
mod own;
mod sass;
mod search;
mod units;
mod usage;

pub use cache::kernels_dir;
pub use nvrtc::Nvrtc;
pub use sass::sass_sha256;
pub use search::{Found, search};
pub use units::{ARCHS, checked_units};
pub use usage::{Usage, parse_usage};

use crate::dtype::Dtype;
use crate::error::{CudaError, Unavailable};
use cache::Cache;
use holdpoint_model::FailureCause;
use std::collections::BTreeMap;
use std::path::Path;

/// The kernels' sources, by name.
pub const SOURCES: &[(&str, &str)] = &[
    ("attention", include_str!("../../kernels/attention.cu")),
    ("attention_wgmma", include_str!("../../kernels/attention_wgmma.cu")),
    ("compare", include_str!("../../kernels/compare.cu")),
    ("copy", include_str!("../../kernels/copy.cu")),
    ("draw", include_str!("../../kernels/draw.cu")),
    ("fault", include_str!("../../kernels/fault.cu")),
    ("ff_path", include_str!("../../kernels/ff_path.cu")),
    ("ff_refine", include_str!("../../kernels/ff_refine.cu")),
    ("fma", include_str!("../../kernels/fma.cu")),
    ("fused_pack_op_unpack", include_str!("../../kernels/fused_pack_op_unpack.cu")),
    ("fusion_gate", include_str!("../../kernels/fusion_gate.cu")),
    ("launch", include_str!("../../kernels/launch.cu")),
    ("mma", include_str!("../../kernels/mma.cu")),
    ("tile_pack", include_str!("../../kernels/tile_pack.cu")),
    ("tile_ssm", include_str!("../../kernels/tile_ssm.cu")),
    ("tile_ssm_stream", include_str!("../../kernels/tile_ssm_stream.cu")),
    ("tile_unpack", include_str!("../../kernels/tile_unpack.cu")),
    ("timing", include_str!("../../kernels/timing.cu")),
];

/// What the sources include besides the toolkit's own headers.
pub(crate) const HEADERS: &[(&str, &str)] = &[
    ("attention.cuh", include_str!("../../kernels/attention.cuh")),
    ("common.cuh", include_str!("../../kernels/common.cuh")),
    ("ff.cuh", include_str!("../../kernels/ff.cuh")),
    ("ff_film.cuh", include_str!("../../kernels/ff_film.cuh")),
    ("ff_product.cuh", include_str!("../../kernels/ff_product.cuh")),
    ("ff_shape.cuh", include_str!("../../kernels/ff_shape.cuh")),
    ("ssm_scan.cuh", include_str!("../../kernels/ssm_scan.cuh")),
    ("units.cuh", include_str!("../../kernels/units.cuh")),
];

/// The constants that a kernel is compiled with.
pub type Config = BTreeMap<String, i64>;

/// One compilation.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// Which of [`SOURCES`].
    pub source: &'static str,
    /// The element type.
    pub dtype: Dtype,
    /// Constants.
    pub config: Config,
}

impl Unit {
    /// A source with its own constants.
    #[must_use]
    pub fn new(source: &'static str, dtype: Dtype) -> Self {
        Self { source, dtype, config: Config::new() }
    }

    fn text(&self) -> &'static str {
        SOURCES.iter().find(|(name, _)| *name == self.source).map_or("", |(_, text)| text)
    }

    fn file(&self) -> String {
        format!("{}.cu", self.source)
    }

    /// Everything that decides what comes out, but for the compiler itself.
    fn options(&self, arch: &str) -> Vec<String> {
        let mut options = vec![
            format!("--gpu-architecture={arch}"),
            "--std=c++17".to_owned(),
            "--ptxas-options=-v".to_owned(),
            format!("-D{}", self.dtype.macro_name()),
        ];
        options.extend(self.config.iter().map(|(name, value)| format!("-D{name}={value}")));
        options
    }
}

/// Compiles, and remembers.
pub struct Compiler {
    nvrtc: Result<Nvrtc, Unavailable>,
    cache: Cache,
}

impl Compiler {
    /// The compiler of this machine, if there is one, and what was compiled here before; `driver` tells code of one driver
    /// from that of another.
    #[must_use]
    pub fn new(cache_dir: &Path, driver: &str) -> Self {
        Self { nvrtc: search().and_then(|found| Nvrtc::load(&found)), cache: Cache::new(cache_dir, driver) }
    }

    /// Version of the compiler, if there is one.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        self.nvrtc.as_ref().ok().map(|nvrtc| nvrtc.version.clone())
    }

    /// Machine code for an architecture.
    ///
    /// # Errors
    /// When it does not compile; or, with the cause [`FailureCause::NotStarted`], when it has never been compiled here and there
    /// is no compiler.
    pub fn cubin(&self, unit: &Unit, arch: &str) -> Result<Vec<u8>, CudaError> {
        let options = unit.options(arch);
        let key = self.cache.key(unit.text(), &options);
        if let Some(cubin) = self.cache.get(&key) {
            return Ok(cubin);
        }
        let nvrtc = self.nvrtc.as_ref().map_err(|error| {
            let detail = format!("{error}; and {} was never compiled for {arch} here", unit.source);
            CudaError::new(FailureCause::NotStarted, detail)
        })?;
        let compiled = nvrtc.compile(&unit.file(), unit.text(), HEADERS, &options)?;
        // What cannot be kept is compiled again next time.
        let _ = self.cache.put(&key, &compiled.cubin);
        Ok(compiled.cubin)
    }
}

/// Compiles for an architecture without a device, and tells what the code needs.
///
/// # Errors
/// When it does not compile.
pub fn compile_for(nvrtc: &Nvrtc, unit: &Unit, arch: &str) -> Result<Vec<Usage>, CudaError> {
    Ok(parse_usage(&nvrtc.compile(&unit.file(), unit.text(), HEADERS, &unit.options(arch))?.log))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_among_the_kernels_is_on_a_list() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|f| f.unwrap().file_name().into_string().unwrap())
            .collect();
        files.retain(|name| name.ends_with(".cu") || name.ends_with(".cuh"));
        files.sort();
        let sources = SOURCES.iter().map(|(name, _)| format!("{name}.cu"));
        let mut listed: Vec<String> =
            sources.chain(HEADERS.iter().map(|(name, _)| (*name).to_owned())).collect();
        listed.sort();
        assert_eq!(files, listed);
    }
}
