//! Device memory, and a flag that both the device and the host see.

use super::Device;
use crate::error::CudaError;
use cudarc::driver::sys::{self, CUdeviceptr, CUmemPool_attribute as PoolAttribute};
use cudarc::driver::{CudaStream, result};
use holdpoint_model::FailureCause;
use std::sync::Arc;

/// Device memory, freed when dropped.
pub struct Buffer {
    /// Where it begins for kernels.
    pub ptr: CUdeviceptr,
    pub bytes: usize,
    allocated: CUdeviceptr,
    /// Bytes of guard before its beginning; `GUARD_BYTES` follow its end.
    guard: Option<usize>,
    stream: Arc<CudaStream>,
}

/// Guard on either side of an output.
const GUARD_BYTES: usize = 256;
const POISON: u8 = 0xff;

impl Buffer {
    /// Memory that begins `skip` bytes into its allocation, so that kernels meet addresses that are not aligned.
    pub fn new(device: &Device, bytes: usize, skip: usize) -> Result<Self, CudaError> {
        let stream = device.stream.clone();
        // SAFETY: the stream is alive; the memory is freed on the same stream when the buffer is dropped.
        let allocated = unsafe { result::malloc_async(stream.cu_stream(), (bytes + skip).max(1)) };
        let allocated = allocated.map_err(|error| {
            let error = CudaError::from(error);
            let detail = format!("{}: {} MiB were requested", error.detail, bytes >> 20);
            CudaError { detail, ..error }
        })?;
        Ok(Self { ptr: allocated + skip as u64, bytes, allocated, guard: None, stream })
    }

    /// The same, with a guard on either side.
    pub fn guarded(device: &Device, bytes: usize, skip: usize) -> Result<Self, CudaError> {
        let mut whole = Self::new(device, bytes + skip + 2 * GUARD_BYTES, 0)?;
        whole.poison()?;
        whole.ptr += (GUARD_BYTES + skip) as u64;
        whole.bytes = bytes;
        whole.guard = Some(skip + GUARD_BYTES);
        Ok(whole)
    }

    /// Whether nothing was written to the guards.
    pub fn is_guard_whole(&self) -> Result<bool, CudaError> {
        let Some(before) = self.guard else { return Ok(true) };
        let total = before + self.bytes + GUARD_BYTES;
        let is_poison = |bytes: Vec<u8>| bytes.iter().all(|byte| *byte == POISON);
        Ok(is_poison(self.read(self.allocated, before)?)
            && is_poison(self.read(self.allocated + (total - GUARD_BYTES) as u64, GUARD_BYTES)?))
    }

    /// All ones: NaN in every float type, and -1 in whole numbers.
    pub fn poison(&mut self) -> Result<(), CudaError> {
        self.fill(POISON)
    }

    pub fn fill(&mut self, byte: u8) -> Result<(), CudaError> {
        // SAFETY: within the allocation, on its own stream.
        Ok(unsafe { result::memset_d8_async(self.ptr, byte, self.bytes, self.stream.cu_stream()) }?)
    }

    /// Copies values to the device and waits; they must not be longer than the buffer.
    pub fn upload<T: Copy>(&mut self, values: &[T]) -> Result<(), CudaError> {
        if size_of_val(values) > self.bytes {
            return Err(CudaError::new(FailureCause::WorkerError, "more bytes than the buffer holds"));
        }
        // SAFETY: the source outlives the copy, because the stream is waited for; the size was checked.
        unsafe { result::memcpy_htod_async(self.ptr, values, self.stream.cu_stream()) }?;
        Ok(self.stream.synchronize()?)
    }

    pub fn copy_from(&mut self, from: &Self) -> Result<(), CudaError> {
        let bytes = self.bytes.min(from.bytes);
        // SAFETY: both ranges lie inside their allocations, on the one stream that all work goes to.
        Ok(unsafe { result::memcpy_dtod_async(self.ptr, from.ptr, bytes, self.stream.cu_stream()) }?)
    }

    /// All bytes, once what was queued is done.
    pub fn download(&self) -> Result<Vec<u8>, CudaError> {
        self.download_part(0, self.bytes)
    }

    pub fn download_part(&self, from: usize, bytes: usize) -> Result<Vec<u8>, CudaError> {
        self.read(self.ptr + from as u64, bytes.min(self.bytes.saturating_sub(from)))
    }

    /// `source` lies within the allocation.
    fn read(&self, source: CUdeviceptr, bytes: usize) -> Result<Vec<u8>, CudaError> {
        let mut values = vec![0_u8; bytes];
        if !values.is_empty() {
            // SAFETY: the target outlives the copy, because the stream is waited for; the range lies inside.
            unsafe { result::memcpy_dtoh_async(&mut values, source, self.stream.cu_stream()) }?;
        }
        self.stream.synchronize()?;
        Ok(values)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated on this stream and freed once. After a fault the driver refuses; the process ends soon.
        let _ = unsafe { result::free_async(self.allocated, self.stream.cu_stream()) };
    }
}

impl Device {
    pub fn reset_peak(&self) {
        let mut zero = 0_u64;
        let value = (&raw mut zero).cast();
        // SAFETY: the attribute is a 64-bit number.
        let _ = self.pool().map(|pool| unsafe {
            result::mem_pool::set_attribute(pool, PoolAttribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH, value)
        });
    }

    /// Peak memory since [`Device::reset_peak`].
    pub fn peak_bytes(&self) -> Option<u64> {
        let mut bytes = 0_u64;
        let value = (&raw mut bytes).cast();
        let pool = self.pool()?;
        // SAFETY: the attribute is a 64-bit number.
        let read = unsafe {
            result::mem_pool::get_attribute(pool, PoolAttribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH, value)
        };
        read.ok().map(|()| bytes)
    }

    /// Returns unused memory to the driver, so that the next allocation is placed anew.
    pub fn trim(&self) {
        // SAFETY: the device's own pool.
        let _ = self.pool().map(|pool| unsafe { result::mem_pool::trim_to(pool, 0) });
    }

    /// Keeps so much unused memory for the next allocation, which would otherwise be mapped anew after every wait for the device.
    pub fn keep_unused(&self, bytes: u64) {
        let mut bytes = bytes;
        let value = (&raw mut bytes).cast();
        // SAFETY: the attribute is a 64-bit number.
        let _ = self.pool().map(|pool| unsafe {
            result::mem_pool::set_attribute(pool, PoolAttribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, value)
        });
    }

    fn pool(&self) -> Option<sys::CUmemoryPool> {
        // SAFETY: the device is open.
        unsafe { result::device::get_default_mem_pool(self.stream.context().cu_device()) }.ok()
    }
}

/// A number in host memory that kernels see as well.
pub(crate) struct Flag {
    host: *mut u32,
    /// Its address for kernels.
    pub ptr: CUdeviceptr,
}

impl Flag {
    pub fn new() -> Result<Self, CudaError> {
        // SAFETY: a context is current; the memory is freed when the flag is dropped.
        let host =
            unsafe { result::malloc_host(size_of::<u32>(), sys::CU_MEMHOSTALLOC_DEVICEMAP) }?.cast::<u32>();
        let mut ptr = 0;
        // SAFETY: just allocated with the flag that maps it.
        unsafe { sys::cuMemHostGetDevicePointer_v2(&mut ptr, host.cast(), 0) }.result()?;
        let flag = Self { host, ptr };
        flag.set(0);
        Ok(flag)
    }

    pub fn set(&self, value: u32) {
        // SAFETY: alive and aligned; a kernel may read it at the same time, hence volatile.
        unsafe { self.host.write_volatile(value) };
    }

    pub fn get(&self) -> u32 {
        // SAFETY: as above.
        unsafe { self.host.read_volatile() }
    }
}

impl Drop for Flag {
    fn drop(&mut self) {
        // SAFETY: allocated by the same interface, freed once.
        let _ = unsafe { result::free_host(self.host.cast()) };
    }
}
