//! Kernels and their launches.

use crate::compile::{Compiler, Unit, sass_bytes, sass_sha256};
use crate::device::{Buffer, Device};
use crate::dtype::Dtype;
use crate::error::CudaError;
use cudarc::driver::sys::{self, CUdeviceptr, CUfunction_attribute as Attribute};
use cudarc::driver::{CudaStream, result};
use std::ffi::{CString, c_void};
use std::rc::Rc;
use std::sync::Arc;

pub struct Module {
    module: sys::CUmodule,
    pub code_sha256: String,
    pub code_bytes: Option<u64>,
    // The context must outlive the module.
    _stream: Arc<CudaStream>,
}

impl Module {
    pub fn load(device: &Device, compiler: &Compiler, unit: &Unit) -> Result<Rc<Self>, CudaError> {
        Self::from_cubin(device, &compiler.cubin(unit, &device.arch)?)
    }

    /// Of machine code, several of them in one file, or PTX.
    pub fn from_cubin(device: &Device, cubin: &[u8]) -> Result<Rc<Self>, CudaError> {
        // Machine code knows its own length, but PTX is text, which goes on until a zero.
        let image = [cubin, &[0]].concat();
        // SAFETY: the image ends where its format says, and is copied.
        let module = unsafe { result::module::load_data(image.as_ptr().cast()) }?;
        let (code_sha256, code_bytes) = (sass_sha256(cubin), sass_bytes(cubin));
        Ok(Rc::new(Self { module, code_sha256, code_bytes, _stream: device.stream.clone() }))
    }

    pub fn kernel(self: &Rc<Self>, name: &str) -> Result<Kernel, CudaError> {
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

#[derive(Clone)]
pub struct Kernel {
    function: sys::CUfunction,
    pub name: String,
    pub module: Rc<Module>,
}

impl Kernel {
    pub fn launch(&self, grid: impl Into<Dim>, block: impl Into<Dim>, arguments: Arguments) -> Launch {
        let (grid, block) = (grid.into(), block.into());
        Launch { kernel: self.clone(), grid, block, shared: 0, cluster: None, cooperative: false, arguments }
    }

    /// Per thread.
    pub fn registers(&self) -> Option<u32> {
        self.attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)
    }

    /// Per thread.
    pub fn local_bytes(&self) -> Option<u32> {
        self.attribute(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
    }

    /// Per block, as the kernel itself declares.
    pub fn shared_bytes(&self) -> Option<u32> {
        self.attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
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
pub struct Dim(pub [u32; 3]);

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

#[derive(Clone, Default)]
#[must_use]
pub struct Arguments(Vec<Argument>);

#[derive(Clone)]
enum Argument {
    /// The driver reads as many bytes of it as the kernel's parameter has.
    Word(u64),
    /// How the copy engine finds tiles of a tensor.
    Map(Box<sys::CUtensorMap>),
}

impl Arguments {
    pub fn new() -> Self {
        Self::default()
    }

    fn word(mut self, word: u64) -> Self {
        self.0.push(Argument::Word(word));
        self
    }

    pub fn buffer(self, buffer: &Buffer) -> Self {
        self.ptr(buffer.ptr)
    }

    pub fn ptr(self, ptr: CUdeviceptr) -> Self {
        self.word(ptr)
    }

    /// For parameters of 4 and 8 bytes alike.
    pub fn int(self, value: usize) -> Self {
        self.word(value as u64)
    }

    pub fn float(self, value: f32) -> Self {
        self.word(u64::from(value.to_bits()))
    }

    pub fn double(self, value: f64) -> Self {
        self.word(value.to_bits())
    }

    /// All of these after those that are there.
    pub fn extend(mut self, more: &Self) -> Self {
        self.0.extend(more.0.iter().cloned());
        self
    }

    /// A map of a dense tensor that is fetched in tiles.
    pub fn tensor_map(mut self, ptr: CUdeviceptr, dtype: Dtype, map: &TensorMap) -> Result<Self, CudaError> {
        self.0.push(Argument::Map(map.encode(ptr, dtype)?));
        Ok(self)
    }

    /// A map of elements `[planes, rows, columns]` of 8 or 16 bits that is fetched in tiles of `box_sizes` rows and columns, columns
    /// swizzled over 32, 64 or 128 bytes.
    pub fn map(
        mut self,
        buffer: &Buffer,
        dtype: Dtype,
        sizes: [usize; 3],
        box_sizes: [usize; 2],
    ) -> Result<Self, CudaError> {
        let [planes, rows, columns] = sizes.map(|size| size as u64);
        let [box_rows, box_columns] = box_sizes.map(|size| size as u32);
        let row_bytes = columns * dtype.bytes() as u64;
        let kind = match dtype {
            Dtype::Bf16 => sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
            Dtype::E4m3 => sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT8,
            _ => sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        };
        let swizzle = match box_columns as usize * dtype.bytes() {
            128 => sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
            64 => sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
            _ => sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B,
        };
        let mut map = Box::new(sys::CUtensorMap { opaque: [0; 16] });
        // SAFETY: three dimensions, two strides, three sizes of a box and three steps, as the arrays have.
        unsafe {
            sys::cuTensorMapEncodeTiled(
                &raw mut *map,
                kind,
                3,
                buffer.ptr as *mut c_void,
                [columns, rows, planes].as_ptr(),
                [row_bytes, rows * row_bytes].as_ptr(),
                [box_columns, box_rows, 1].as_ptr(),
                [1, 1, 1].as_ptr(),
                sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                swizzle,
                sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        }
        .result()?;
        self.0.push(Argument::Map(map));
        Ok(self)
    }
}

/// Sizes and tile of a tensor map, one to five of each, the last varies fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    pub sizes: Vec<u64>,
    pub tile: Vec<u32>,
    pub swizzle_bytes: u32,
}

impl TensorMap {
    fn encode(&self, ptr: CUdeviceptr, dtype: Dtype) -> Result<Box<sys::CUtensorMap>, CudaError> {
        use sys::{CUtensorMapDataType as Kind, CUtensorMapSwizzle as Swizzle};
        let kind = match dtype {
            Dtype::F32 => Kind::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            Dtype::F16 => Kind::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            Dtype::Bf16 => Kind::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
            Dtype::E4m3 => Kind::CU_TENSOR_MAP_DATA_TYPE_UINT8,
        };
        let swizzle = match self.swizzle_bytes {
            32 => Swizzle::CU_TENSOR_MAP_SWIZZLE_32B,
            64 => Swizzle::CU_TENSOR_MAP_SWIZZLE_64B,
            128 => Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
            _ => Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
        };
        // The driver wants the fastest size first, and strides of all but that.
        let sizes: Vec<u64> = self.sizes.iter().rev().copied().collect();
        let tile: Vec<u32> = self.tile.iter().rev().copied().collect();
        let mut stride = dtype.bytes() as u64;
        let strides: Vec<u64> = sizes[..sizes.len().saturating_sub(1)]
            .iter()
            .map(|size| {
                stride = stride.saturating_mul(*size);
                stride
            })
            .collect();
        let (steps, rank) = (vec![1_u32; sizes.len()], sizes.len().min(tile.len()) as u32);
        let mut map = Box::new(sys::CUtensorMap { opaque: [0; 16] });
        // SAFETY: all arrays have as many entries as the rank says, the strides one less; the driver checks their values.
        unsafe {
            sys::cuTensorMapEncodeTiled(
                &raw mut *map,
                kind,
                rank,
                ptr as *mut c_void,
                sizes.as_ptr(),
                strides.as_ptr(),
                tile.as_ptr(),
                steps.as_ptr(),
                sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                swizzle,
                sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        }
        .result()
        .map_err(|error| {
            let error = CudaError::from(error);
            CudaError { detail: format!("{self:?}: {}", error.detail), ..error }
        })?;
        Ok(map)
    }
}

#[derive(Clone)]
pub struct Launch {
    pub kernel: Kernel,
    grid: Dim,
    block: Dim,
    shared: u32,
    cluster: Option<Dim>,
    cooperative: bool,
    arguments: Arguments,
}

impl Launch {
    /// Adds dynamic shared memory; more than 48 KiB in all is had only on request, which is made here.
    pub fn with_shared(mut self, bytes: usize) -> Result<Self, CudaError> {
        self.shared = u32::try_from(bytes).unwrap_or(u32::MAX);
        let limit = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let value = i32::try_from(bytes).unwrap_or(i32::MAX);
        // SAFETY: the function is alive.
        unsafe { result::function::set_function_attribute(self.kernel.function, limit, value) }?;
        Ok(self)
    }

    /// Blocks of a cluster, which share their memory. More than eight of them are had only on request, which is made here.
    pub fn with_cluster(mut self, cluster: Dim) -> Result<Self, CudaError> {
        let blocks: u32 = cluster.0.iter().product();
        if blocks > 8 {
            let allowed = Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
            // SAFETY: the function is alive.
            unsafe { result::function::set_function_attribute(self.kernel.function, allowed, 1) }?;
        }
        self.cluster = Some(cluster);
        Ok(self)
    }

    /// All blocks run at the same time.
    pub fn with_cooperation(self) -> Self {
        Self { cooperative: true, ..self }
    }

    pub fn arguments(&self) -> &Arguments {
        &self.arguments
    }

    /// Per block: the kernel's own and what the launch adds.
    pub fn shared_bytes(&self) -> Option<u32> {
        self.kernel.shared_bytes().map(|bytes| bytes + self.shared)
    }

    /// Such as `copy_fast (1024,1,1)x(512,1,1)+0`: grid, block and dynamic shared memory.
    pub fn describe(&self) -> String {
        let format_dim = |Dim([x, y, z]): Dim| format!("({x},{y},{z})");
        let cluster =
            self.cluster.map_or(String::new(), |cluster| format!(" cluster {}", format_dim(cluster)));
        let cooperative = if self.cooperative { " cooperative" } else { "" };
        let (grid, block) = (format_dim(self.grid), format_dim(self.block));
        format!("{} {grid}x{block}+{}{cluster}{cooperative}", self.kernel.name, self.shared)
    }

    fn attributes(&self) -> Vec<sys::CUlaunchAttribute> {
        use sys::{CUlaunchAttributeID as Id, CUlaunchAttributeValue as Value};
        let attribute = |id, value| sys::CUlaunchAttribute { id, pad: [0; 4], value };
        let mut all = Vec::new();
        if let Some(Dim([x, y, z])) = self.cluster {
            let sizes = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
            all.push(attribute(Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, Value { clusterDim: sizes }));
        }
        if self.cooperative {
            all.push(attribute(Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, Value { cooperative: 1 }));
        }
        all
    }

    pub fn enqueue(&self, device: &Device) -> Result<(), CudaError> {
        let mut arguments = self.arguments.0.clone();
        let pointer = |argument: &mut Argument| match argument {
            Argument::Word(word) => (&raw mut *word).cast(),
            Argument::Map(map) => (&raw mut **map).cast(),
        };
        let mut pointers: Vec<*mut c_void> = arguments.iter_mut().map(pointer).collect();
        let (Dim([gx, gy, gz]), Dim([bx, by, bz])) = (self.grid, self.block);
        if [gx, gy, gz].contains(&0) {
            return Ok(());
        }
        let mut attributes = self.attributes();
        let config = sys::CUlaunchConfig {
            gridDimX: gx,
            gridDimY: gy,
            gridDimZ: gz,
            blockDimX: bx,
            blockDimY: by,
            blockDimZ: bz,
            sharedMemBytes: self.shared,
            hStream: device.stream.cu_stream(),
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        // SAFETY: the arguments are those of the kernel in number and kind, which its op's tests show; what they point to is held
        // by the op that holds this launch.
        let launched = unsafe {
            if attributes.is_empty() {
                result::launch_kernel(
                    self.kernel.function,
                    (gx, gy, gz),
                    (bx, by, bz),
                    self.shared,
                    device.stream.cu_stream(),
                    &mut pointers,
                )
            } else {
                let extra = std::ptr::null_mut();
                sys::cuLaunchKernelEx(&config, self.kernel.function, pointers.as_mut_ptr(), extra).result()
            }
        };
        launched.map_err(|error| {
            let error = CudaError::from(error);
            CudaError { detail: format!("{}: {}", self.kernel.name, error.detail), ..error }
        })
    }
}
