//! An open device with its compiler, timer and tuned configurations.

use super::{COMPARE, DRAW, Registry};
use crate::compare::Tolerance;
use crate::op::Distribution;
use holdpoint_cuda::compile::{Compiler, Unit};
use holdpoint_cuda::{
    Arguments, Buffer, CudaError, Device, Dtype, Kernel, Launch, Library, Module, Timer, Unavailable,
};
use holdpoint_model::FailureCause;
use holdpoint_model::machine::DeviceState;
use holdpoint_model::protocol::DeviceInfo;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

const THREADS: u32 = 256;

pub struct Gpu {
    pub(crate) device: Device,
    pub(crate) compiler: Compiler,
    pub(crate) timer: Timer,
    pub(crate) registry: Registry,
    modules: HashMap<String, (Unit, Rc<Module>)>,
    /// Users' kernels by the machine code, and users' libraries by their path.
    user_modules: HashMap<Vec<u8>, Rc<Module>>,
    libraries: HashMap<PathBuf, Rc<Library>>,
}

impl Gpu {
    /// Opens a device; compiled kernels and tuned configurations are kept under `cache_dir`.
    pub fn open(ordinal: u32, cache_dir: &Path) -> Result<Self, Unavailable> {
        let mut device = Device::open(ordinal)?;
        let compiler = Compiler::new(cache_dir, &device.info.versions.driver);
        device.info.versions.nvrtc = compiler.version();
        let timer = Timer::new(&device, &compiler).map_err(|error| match error.cause {
            FailureCause::NotStarted => Unavailable::new("nvrtc_not_found", error.detail),
            FailureCause::OutOfMemory => Unavailable::new("cuda_out_of_memory", error.detail),
            _ => Unavailable::new("cuda_query_failed", error.detail),
        })?;
        let registry = Registry::open(cache_dir, &device.info);
        Ok(Self {
            device,
            compiler,
            timer,
            registry,
            modules: HashMap::new(),
            user_modules: HashMap::new(),
            libraries: HashMap::new(),
        })
    }

    pub fn info(&self) -> &DeviceInfo {
        &self.device.info
    }

    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    pub fn state(&self) -> Option<DeviceState> {
        self.device.state()
    }

    /// Millijoules since the driver was loaded.
    pub fn energy_mj(&self) -> Option<u64> {
        self.device.energy_mj()
    }

    /// Returns when all that is queued is done.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.device.synchronize()
    }

    /// The units compiled for ops so far.
    pub fn units(&self) -> impl Iterator<Item = &Unit> {
        self.modules.values().map(|(unit, _)| unit)
    }

    pub(crate) fn kernel(&mut self, unit: &Unit, name: &str) -> Result<Kernel, CudaError> {
        let key = unit.key();
        if let Some((_, module)) = self.modules.get(&key) {
            return module.kernel(name);
        }
        let module = Module::load(&self.device, &self.compiler, unit)?;
        self.modules.insert(key, (unit.clone(), module.clone()));
        module.kernel(name)
    }

    /// A kernel of the user's; its module is loaded once, as fuzzing asks for it hundreds of times.
    pub(crate) fn user_kernel(&mut self, cubin: Vec<u8>, name: &str) -> Result<Kernel, CudaError> {
        if let Some(module) = self.user_modules.get(&cubin) {
            return module.kernel(name);
        }
        let module = Module::from_cubin(&self.device, &cubin)?;
        self.user_modules.insert(cubin, module.clone());
        module.kernel(name)
    }

    /// A library of the user's, loaded once.
    pub(crate) fn library(&mut self, path: &Path) -> Result<Rc<Library>, CudaError> {
        if let Some(library) = self.libraries.get(path) {
            return Ok(library.clone());
        }
        let library = Library::open(path)?;
        self.libraries.insert(path.to_owned(), library.clone());
        Ok(library)
    }

    /// A launch over `count` elements, each thread taking several where there are very many.
    pub(crate) fn launch_over(
        &mut self,
        unit: &Unit,
        name: &str,
        count: usize,
        arguments: Arguments,
    ) -> Result<Launch, CudaError> {
        let kernel = self.kernel(unit, name)?;
        let blocks = count.div_ceil(THREADS as usize).clamp(1, 32 * self.device.multiprocessors as usize);
        Ok(kernel.launch(blocks as u32, THREADS, arguments))
    }

    pub(crate) fn draw(
        &mut self,
        buffer: &Buffer,
        dtype: Dtype,
        draw: &Distribution,
        seed: u64,
    ) -> Result<(), CudaError> {
        let (name, scale, shift) = match draw {
            Distribution::Normal { scale, shift } => ("draw_normal", *scale, *shift),
            Distribution::Uniform { scale, shift } => ("draw_uniform", *scale, *shift),
            Distribution::Host(_) => return Ok(()),
        };
        let count = buffer.bytes / dtype.bytes();
        let arguments =
            Arguments::new().buffer(buffer).int(count).int(seed as usize).float(scale).float(shift);
        self.launch_over(&Unit::new(&DRAW, dtype), name, count, arguments)?.enqueue(&self.device)
    }

    /// Compares two buffers on the device; NaN on either side differs.
    pub(crate) fn compare(
        &mut self,
        got: &Buffer,
        want: &Buffer,
        dtype: Dtype,
        Tolerance { atol, rtol }: Tolerance,
    ) -> Result<Difference, CudaError> {
        let mut out = Buffer::new(&self.device, 24, 0)?;
        out.upload(&[0_u64, u64::MAX, 0])?;
        let count = got.bytes.min(want.bytes) / dtype.bytes();
        let arguments = Arguments::new().buffer(got).buffer(want).int(count);
        let arguments = arguments.float(atol as f32).float(rtol as f32).buffer(&out);
        self.launch_over(&Unit::new(&COMPARE, dtype), "compare", count, arguments)?.enqueue(&self.device)?;
        let words: Vec<u64> =
            out.download()?.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        Ok(Difference {
            mismatches: words[0],
            first: (words[1] != u64::MAX).then_some(words[1]),
            max_abs_err: f64::from(f32::from_bits(words[2] as u32)),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Difference {
    pub mismatches: u64,
    pub first: Option<u64>,
    pub max_abs_err: f64,
}
