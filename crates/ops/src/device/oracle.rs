//! An op's oracle on a device, and the file of those that were proven there.

use super::device_file::DeviceFile;
use holdpoint_cuda::compile::Source;
use holdpoint_cuda::{Arguments, CudaError, Kernel, Launch};
use holdpoint_model::protocol::DeviceInfo;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// An op's oracle on a device. Its kernel takes the inputs in their element type and gives 32-bit floats.
pub struct DeviceOracle {
    pub source: &'static Source,
    pub kernel: &'static str,
    /// Shapes and parameters on which it must agree with the CPU's oracle.
    pub proof: fn() -> Vec<(Vec<usize>, Value)>,
    /// The launch for the op at hand: the addresses of all inputs and outputs are given.
    pub launch: LaunchOracle,
}

pub(crate) type LaunchOracle = Box<dyn Fn(&Kernel, Arguments) -> Result<Launch, CudaError>>;

/// A proof that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Proof {
    pub(crate) op: String,
    pub(crate) dtype: String,
    pub(crate) cases_count: u64,
    pub(crate) values_count: u64,
    pub(crate) max_rel_err: f64,
}

/// Oracles proven on this device with this driver, by machine code.
pub(crate) type Proofs = DeviceFile<Proof>;

pub(crate) fn open_proofs(cache_dir: &Path, device: &DeviceInfo) -> Proofs {
    DeviceFile::open(cache_dir, "kernels/proven", &format!("{} {}", device.name, device.uuid), device)
}
