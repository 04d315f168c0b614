//! Compiles kernels for the device at hand and keeps the machine code on disk.

mod cache;
mod nvrtc;
mod sass;
mod search;
mod usage;
mod user_kernel;

pub use cache::kernels_dir;
pub use nvrtc::Nvrtc;
pub(crate) use sass::{sass_bytes, sass_sha256};
pub use search::{Toolkit, search};
pub use usage::Usage;
pub(crate) use usage::parse_usage;
pub use user_kernel::UserKernelError;

use crate::dtype::Dtype;
use crate::error::{CudaError, Unavailable};
use cache::Cache;
use holdpoint_model::FailureCause;
use nvrtc::Compiled;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A kernel file: its name without the ending, its text, and the headers it may include besides the toolkit's own.
#[derive(Debug)]
pub struct Source {
    /// `tile_pack` for `tile_pack.cu`.
    pub name: &'static str,
    pub text: &'static str,
    pub headers: &'static [(&'static str, &'static str)],
}

/// The constants that a kernel is compiled with.
pub type Config = BTreeMap<String, i64>;

#[derive(Clone, Debug)]
pub struct Unit {
    pub source: &'static Source,
    pub dtype: Dtype,
    pub config: Config,
}

impl Unit {
    /// A source with its default constants.
    pub fn new(source: &'static Source, dtype: Dtype) -> Self {
        Self { source, dtype, config: Config::new() }
    }

    /// File, element type and constants, which identify a unit.
    pub fn key(&self) -> String {
        format!("{} {} {:?}", self.source.name, self.dtype.name(), self.config)
    }

    fn compile(&self, nvrtc: &Nvrtc, options: &[String]) -> Result<Compiled, CudaError> {
        let Source { name, text, headers } = *self.source;
        nvrtc.compile(&format!("{name}.cu"), text, headers, options)
    }

    /// Everything that decides the result, but for the compiler itself.
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

/// Compiles, and keeps the results on disk.
pub struct Compiler {
    nvrtc: Result<Nvrtc, Unavailable>,
    cache: Cache,
    compiled_count: AtomicUsize,
}

impl Compiler {
    /// The compiler of this machine, if there is one, and what was compiled here before; `driver` tells code of one driver
    /// from that of another.
    pub fn new(cache_dir: &Path, driver: &str) -> Self {
        Self {
            nvrtc: search().and_then(|found| Nvrtc::load(&found)),
            cache: Cache::new(cache_dir, driver),
            compiled_count: AtomicUsize::new(0),
        }
    }

    /// Units that were not in the cache and have been compiled.
    pub fn compiled_count(&self) -> usize {
        self.compiled_count.load(Ordering::Relaxed)
    }

    /// Whether the machine code of a unit is in the cache.
    pub fn has(&self, unit: &Unit, arch: &str) -> bool {
        self.cache.get(&self.cache.key(unit.source, &unit.options(arch))).is_some()
    }

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
        let key = self.cache.key(unit.source, &options);
        if let Some(cubin) = self.cache.get(&key) {
            return Ok(cubin);
        }
        let nvrtc = self.nvrtc.as_ref().map_err(|error| {
            let detail = format!("{error}; and {} was never compiled for {arch} here", unit.source.name);
            CudaError::new(FailureCause::NotStarted, detail)
        })?;
        let compiled = unit.compile(nvrtc, &options)?;
        self.compiled_count.fetch_add(1, Ordering::Relaxed);
        // What cannot be kept is compiled again next time.
        let _ = self.cache.put(&key, &compiled.cubin);
        Ok(compiled.cubin)
    }
}

/// Compiles for an architecture without a device, and reports the resources that its kernels use.
pub fn compile_for(nvrtc: &Nvrtc, unit: &Unit, arch: &str) -> Result<Vec<Usage>, CudaError> {
    Ok(parse_usage(&unit.compile(nvrtc, &unit.options(arch))?.log))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
