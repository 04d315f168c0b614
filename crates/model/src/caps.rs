//! What this machine can measure, and why not: the seeds' runtime capability snapshot with the CPU beside it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The capability snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeCaps {
    /// The CPU and its clocks.
    pub cpu: CpuCaps,
    /// CUDA through the driver.
    pub cuda: CudaCaps,
    /// The driver's management library.
    pub nvml: Cap,
    /// Triton in the Python on the path.
    pub triton: VersionCap,
    /// TensorRT in the Python on the path.
    pub tensorrt: TensorRtCaps,
    /// 8-bit floating point.
    pub fp8: Fp8Caps,
    /// CUDA together with Triton or TensorRT.
    pub any_gpu_runtime: bool,
}

/// The CPU and its clocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuCaps {
    /// Model as the kernel names it.
    pub model: String,
    /// Logical CPUs that this process may use.
    pub cpus: u32,
    /// Instruction-set features that the built-in ops use.
    pub features: Vec<String>,
    /// Smallest step of the host clock seen.
    pub timer_resolution_ns: u64,
    /// Whether the frequency can be read per round.
    pub frequency: Cap,
    /// Whether stolen time can be read per round.
    pub steal: Cap,
    /// Whether hardware counters can be read.
    pub perf_counters: Cap,
}

/// Something that is there or is not, with the reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cap {
    /// Whether it can be used.
    pub available: bool,
    /// Why not: a reason code.
    pub reason: Option<String>,
}

impl Cap {
    /// Available, or not for this reason.
    #[must_use]
    pub fn new(problem: Option<&str>) -> Self {
        Self { available: problem.is_none(), reason: problem.map(str::to_owned) }
    }
}

/// A package that is there or is not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VersionCap {
    /// Whether it can be used.
    pub available: bool,
    /// Its version.
    pub version: Option<String>,
    /// Why not: a reason code.
    pub reason: Option<String>,
}

/// CUDA through the driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CudaCaps {
    /// Whether a device can be used.
    pub available: bool,
    /// Devices found.
    pub device_count: u32,
    /// Name of the first device.
    pub device_name: Option<String>,
    /// Compute capability of the first device, `major.minor`.
    pub compute_capability: Option<String>,
    /// Why not: `cuda_unavailable`, `cuda_device_not_found`, `cuda_query_failed`.
    pub reason: Option<String>,
}

/// TensorRT in the Python on the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TensorRtCaps {
    /// Whether the package is installed.
    pub python_available: bool,
    /// Its version.
    pub python_version: Option<String>,
    /// Why not: a reason code.
    pub python_reason: Option<String>,
    /// Whether the C++ headers were found.
    pub headers_available: bool,
    /// Where.
    pub header_path: Option<String>,
    /// Whether int8 engines can be built.
    pub int8_available: bool,
    /// Why not: a reason code.
    pub int8_reason: Option<String>,
}

/// 8-bit floating point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fp8Caps {
    /// Whether it can be used.
    pub available: bool,
    /// Whether the framework has the type.
    pub dtype_available: bool,
    /// The types it has.
    pub supported_dtypes: Vec<String>,
    /// Why not: a reason code.
    pub reason: Option<String>,
}
