//! Kernels, and launches of them with everything but the stream.

use crate::compile::{Compiler, Unit};
use crate::device::{Buffer, Device};
use crate::error::CudaError;
use cudarc::driver::sys::{self, CUdeviceptr, CUfunction_attribute as Attribute};
use cudarc::driver::{CudaStream, result};
use sha2::{Digest, Sha256};
use std::ffi::{CString, c_void};
use std::rc::Rc;
use std::sync::Arc;

/// Dynamic shared memory beyond this has to be asked for.
const SHARED_DEFAULT: u32 = 48 << 10;

/// Compiled code, loaded.
pub(crate) struct Module {
    module: sys::CUmodule,
    /// Hash of the machine code.
    pub code_sha256: String,
    // The context must outlive the module.
    _stream: Arc<CudaStream>,
}

impl Module {
    pub(crate) fn load(device: &Device, compiler: &Compiler, unit: &Unit) -> Result<Rc<Self>, CudaError> {
        let cubin = compiler.cubin(unit, &device.arch)?;
        // SAFETY: the image is machine code for this device, and is copied.
        let module = unsafe { result::module::load_data(cubin.as_ptr().cast()) }?;
        let code_sha256 = Sha256::digest(&cubin).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Rc::new(Self { module, code_sha256, _stream: device.stream.clone() }))
    }

    pub(crate) fn kernel(self: &Rc<Self>, name: &str) -> Result<Kernel, CudaError> {
        let text = CString::new(name).unwrap_or_default();
        // SAFETY: the module is alive, and the kernel keeps it so.
        let function = unsafe { result::module::get_function(self.module, text) }?;
        Ok(Kernel { function, name: name.to_owned(), module: self.clone() })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: loaded once, unloaded once; kernels hold the module.
        let _ = unsafe { result::module::unload(self.module) };
    }
}

/// One kernel.
#[derive(Clone)]
pub(crate) struct Kernel {
    function: sys::CUfunction,
    pub name: String,
    pub module: Rc<Module>,
}

impl Kernel {
    /// A launch of it.
    pub(crate) fn launch(&self, grid: impl Into<Dim>, block: impl Into<Dim>, arguments: Arguments) -> Launch {
        Launch { kernel: self.clone(), grid: grid.into(), block: block.into(), shared: 0, arguments }
    }

    /// Registers per thread.
    pub(crate) fn registers(&self) -> Option<u32> {
        self.attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)
    }

    /// Bytes of local memory per thread.
    pub(crate) fn local_bytes(&self) -> Option<u32> {
        self.attribute(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
    }

    fn attribute(&self, attribute: Attribute) -> Option<u32> {
        // SAFETY: the function is alive.
        unsafe { result::function::get_function_attribute(self.function, attribute) }
            .ok()
            .map(i32::unsigned_abs)
    }
}

/// Sizes of a grid or a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dim(pub [u32; 3]);

impl From<u32> for Dim {
    fn from(x: u32) -> Self {
        Self([x, 1, 1])
    }
}

impl From<[u32; 2]> for Dim {
    fn from([x, y]: [u32; 2]) -> Self {
        Self([x, y, 1])
    }
}

impl From<[u32; 3]> for Dim {
    fn from(sizes: [u32; 3]) -> Self {
        Self(sizes)
    }
}

/// The arguments of a launch, each in a word of its own; the driver reads as many bytes of it as the kernel's parameter has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments(Vec<u64>);

impl Arguments {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn buffer(self, buffer: &Buffer) -> Self {
        self.ptr(buffer.ptr)
    }

    pub(crate) fn ptr(mut self, ptr: CUdeviceptr) -> Self {
        self.0.push(ptr);
        self
    }

    /// For parameters of 4 and 8 bytes alike.
    pub(crate) fn int(mut self, value: usize) -> Self {
        self.0.push(value as u64);
        self
    }

    pub(crate) fn float(mut self, value: f32) -> Self {
        self.0.push(u64::from(value.to_bits()));
        self
    }
}

/// A launch.
#[derive(Clone)]
pub(crate) struct Launch {
    pub kernel: Kernel,
    grid: Dim,
    block: Dim,
    shared: u32,
    arguments: Arguments,
}

impl Launch {
    /// With dynamic shared memory.
    pub(crate) fn shared(mut self, bytes: usize) -> Result<Self, CudaError> {
        self.shared = u32::try_from(bytes).unwrap_or(u32::MAX);
        if self.shared > SHARED_DEFAULT {
            let limit = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            let value = i32::try_from(bytes).unwrap_or(i32::MAX);
            // SAFETY: the function is alive.
            unsafe { result::function::set_function_attribute(self.kernel.function, limit, value) }?;
        }
        Ok(self)
    }

    pub(crate) fn enqueue(&self, stream: &CudaStream) -> Result<(), CudaError> {
        let mut words = self.arguments.0.clone();
        let mut pointers: Vec<*mut c_void> = words.iter_mut().map(|word| (&raw mut *word).cast()).collect();
        let (Dim([gx, gy, gz]), Dim([bx, by, bz])) = (self.grid, self.block);
        if [gx, gy, gz].contains(&0) {
            return Ok(());
        }
        // SAFETY: the arguments are those of the kernel in number and kind, which its op's tests show; what they point to is held
        // by the op that holds this launch.
        let launched = unsafe {
            result::launch_kernel(
                self.kernel.function,
                (gx, gy, gz),
                (bx, by, bz),
                self.shared,
                stream.cu_stream(),
                &mut pointers,
            )
        };
        launched.map_err(|error| {
            let error = CudaError::from(error);
            CudaError { detail: format!("{}: {}", self.kernel.name, error.detail), ..error }
        })
    }
}
