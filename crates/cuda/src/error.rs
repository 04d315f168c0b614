//! Errors of a device, classified by what they mean for a measurement.

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;
use holdpoint_model::FailureCause;

/// Why nothing can be measured here; not a failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {detail}")]
pub struct Unavailable {
    /// A reason code, the originals' where they have one.
    pub reason: &'static str,
    /// The finding, and a remedy.
    pub detail: String,
}

impl Unavailable {
    pub fn new(reason: &'static str, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }
}

/// A failure on a device that is there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct CudaError {
    pub cause: FailureCause,
    pub detail: String,
    /// Whether the context is lost, so that this process can measure nothing more.
    pub fatal: bool,
}

impl CudaError {
    /// A failure that the context survives.
    pub fn new(cause: FailureCause, detail: impl Into<String>) -> Self {
        Self { cause, detail: detail.into(), fatal: false }
    }
}

/// The meaning of a driver error. After a fault every later call of the process fails with the same code.
fn classify(code: CUresult) -> (FailureCause, bool) {
    use CUresult as C;
    match code {
        C::CUDA_ERROR_OUT_OF_MEMORY => (FailureCause::OutOfMemory, false),
        C::CUDA_ERROR_ILLEGAL_ADDRESS
        | C::CUDA_ERROR_LAUNCH_FAILED
        | C::CUDA_ERROR_LAUNCH_TIMEOUT
        | C::CUDA_ERROR_ILLEGAL_INSTRUCTION
        | C::CUDA_ERROR_MISALIGNED_ADDRESS
        | C::CUDA_ERROR_INVALID_ADDRESS_SPACE
        | C::CUDA_ERROR_INVALID_PC
        | C::CUDA_ERROR_HARDWARE_STACK_ERROR
        | C::CUDA_ERROR_ASSERT => (FailureCause::DeviceFault, true),
        C::CUDA_ERROR_DEVICE_UNAVAILABLE
        | C::CUDA_ERROR_NO_DEVICE
        | C::CUDA_ERROR_INVALID_DEVICE
        | C::CUDA_ERROR_ECC_UNCORRECTABLE
        | C::CUDA_ERROR_CONTEXT_IS_DESTROYED
        | C::CUDA_ERROR_DEINITIALIZED
        | C::CUDA_ERROR_SYSTEM_NOT_READY
        | C::CUDA_ERROR_UNKNOWN => (FailureCause::DeviceLost, true),
        _ => (FailureCause::WorkerError, false),
    }
}

impl From<DriverError> for CudaError {
    fn from(error: DriverError) -> Self {
        let (cause, fatal) = classify(error.0);
        let what = match cause {
            FailureCause::OutOfMemory => "the device does not have enough free memory",
            FailureCause::DeviceFault => "a kernel faulted",
            FailureCause::DeviceLost => "the device was lost",
            _ => "the driver refused a call",
        };
        Self { cause, detail: format!("{what} ({:?})", error.0), fatal }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_driver_have_their_own_meaning() {
        let of = |code| {
            let error = CudaError::from(DriverError(code));
            (error.cause, error.fatal)
        };
        assert_eq!(of(CUresult::CUDA_ERROR_OUT_OF_MEMORY), (FailureCause::OutOfMemory, false));
        assert_eq!(of(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS), (FailureCause::DeviceFault, true));
        assert_eq!(of(CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE), (FailureCause::DeviceLost, true));
        assert_eq!(of(CUresult::CUDA_ERROR_INVALID_VALUE), (FailureCause::WorkerError, false));
    }
}
