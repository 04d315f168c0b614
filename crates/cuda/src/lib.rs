//! The built-in ops on an NVIDIA GPU: driver, kernels compiled at run time, honest timing, the device's state.
//!
//! The only crate with unsafe code: every call of the driver is. Builds where there is no CUDA; [`Device::open`] says why there
//! is none. Must not decide anything, and must not know suites or reports.
#![allow(unsafe_code, reason = "the driver's interface is C")]

pub mod compile;
mod device;
mod dtype;
mod error;
mod evaluate;
mod gpu;
mod launch;
pub mod ops;
mod program;
mod registry;
mod timing;
mod tune;

pub use device::{Device, caps, device_count, device_name, driver_version};
pub use dtype::Dtype;
pub use error::{CudaError, Unavailable};
pub use evaluate::{Computation, Evaluation};
pub use gpu::Gpu;
pub use program::{PrepareError, Prepared, Request, Variant};
pub use registry::{Entry, Registry};
pub use timing::{Cache, Times, Timing};
pub use tune::{Tuned, tune};
