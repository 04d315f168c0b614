//! CUDA events: points in time on the device.

use crate::error::CudaError;
use cudarc::driver::sys::{self, CUevent_flags};
use cudarc::driver::{CudaStream, result};

pub(super) struct Event(sys::CUevent);

impl Event {
    pub(super) fn new() -> Result<Self, CudaError> {
        Ok(Self(result::event::create(CUevent_flags::CU_EVENT_DEFAULT)?))
    }

    pub(super) fn record(&self, stream: &CudaStream) -> Result<(), CudaError> {
        // SAFETY: both are alive, in the same context.
        Ok(unsafe { result::event::record(self.0, stream.cu_stream()) }?)
    }

    /// Both must have passed.
    pub(super) fn elapsed_ms(&self, stop: &Self) -> Result<f32, CudaError> {
        // SAFETY: both are alive.
        Ok(unsafe { result::event::elapsed(self.0, stop.0) }?)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}
