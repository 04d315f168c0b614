//! An NVIDIA GPU: driver, run-time compiler, memory, launches, timing, and the device's state.
//!
//! The only crate with unsafe code: every call of the driver is. Builds where there is no CUDA; [`Device::open`] says why there
//! is none. Must not know any op, suite or report. A launch trusts its caller: arguments are not checked against the kernel.
#![allow(unsafe_code, reason = "the driver's interface is C")]

pub mod compile;
mod device;
mod dtype;
mod error;
mod launch;
mod library;
mod timing;
pub mod trace;

pub use device::{Buffer, Device, caps, device_count, device_name, driver_version};
pub use dtype::Dtype;
pub use error::{CudaError, Unavailable};
pub use launch::{Arguments, Dim, Kernel, Launch, Module, TensorMap};
pub use library::{Library, LibraryCall};
pub use timing::{CachedGraph, Call, TIMING, TimedCall, Timer, Times, Timing};
