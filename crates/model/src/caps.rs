//! Capabilities of this machine, and why some are missing: Apex-X's runtime capability snapshot, with the CPU added.

use crate::machine::Advice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "runtime_caps")]
pub struct RuntimeCaps {
    #[serde(default = "crate::schema_version")]
    pub schema_version: u32,
    /// The CPU and its clocks.
    pub cpu: CpuCaps,
    /// Variables that are set and that neither builds nor measured programs see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld_variables: Vec<String>,
    /// CUDA through the driver.
    pub cuda: CudaCaps,
    /// The driver's management library.
    pub nvml: Cap,
    /// The compiler of the built-in kernels.
    pub nvrtc: NvrtcCaps,
    /// Triton in the Python on the path.
    pub triton: VersionCap,
    /// TensorRT in the Python on the path.
    pub tensorrt: TensorRtCaps,
    /// 8-bit floating point.
    pub fp8: Fp8Caps,
    /// Nsight Compute, which counts what kernels do.
    #[serde(default)]
    pub ncu: ToolCaps,
    /// compute-sanitizer, which looks for errors in kernels.
    #[serde(default)]
    pub compute_sanitizer: ToolCaps,
    /// CUDA together with Triton or TensorRT.
    pub any_gpu_runtime: bool,
}

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
    /// Advice for steadier times on it; absent in older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cap {
    pub available: bool,
    /// Why not: a reason code.
    pub reason: Option<String>,
}

impl Cap {
    /// Available, or not for this reason.
    pub fn new(problem: Option<&str>) -> Self {
        Self { available: problem.is_none(), reason: problem.map(str::to_owned) }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VersionCap {
    pub available: bool,
    pub version: Option<String>,
    /// Why not: a reason code.
    pub reason: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCaps {
    /// Whether it can be used, as far as can be known without using it.
    pub available: bool,
    pub version: Option<String>,
    pub path: Option<String>,
    /// Why not: `ncu_not_found`, `ncu_not_usable`, `ncu_no_permission`, `sanitizer_not_found`, `sanitizer_not_usable`.
    pub reason: Option<String>,
    /// The finding, and a remedy.
    pub detail: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CudaCaps {
    /// Whether a device can be used.
    pub available: bool,
    pub device_count: u32,
    /// Name of the first device.
    pub device_name: Option<String>,
    /// Compute capability of the first device, `major.minor`.
    pub compute_capability: Option<String>,
    /// Why not: `cuda_unavailable`, `cuda_driver_too_old`, `cuda_device_not_found`, `cuda_query_failed`.
    pub reason: Option<String>,
    /// The finding, and a remedy.
    #[serde(default)]
    pub detail: Option<String>,
    /// The driver, such as `580.159.04`.
    #[serde(default)]
    pub driver_version: Option<String>,
    /// The CUDA version that the driver speaks, such as `13.0`.
    #[serde(default)]
    pub cuda_version: Option<String>,
    /// Every device, in the order of its number.
    #[serde(default)]
    pub devices: Vec<CudaDeviceCaps>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CudaDeviceCaps {
    /// The device's number on this machine.
    pub ordinal: u32,
    pub name: String,
    /// Compute capability, `major.minor`.
    pub compute_capability: String,
    /// Whether it can be opened.
    pub available: bool,
    /// Why not: a reason code.
    pub reason: Option<String>,
    /// The finding, and a remedy.
    #[serde(default)]
    pub detail: Option<String>,
    /// Whether it computes with 8-bit floats.
    pub fp8: Cap,
}

/// NVRTC, which compiles the built-in kernels, and where they are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NvrtcCaps {
    /// Whether kernels can be compiled here; those that were compiled before run without it.
    pub available: bool,
    /// For example `13.0`.
    pub version: Option<String>,
    pub library_path: Option<String>,
    /// The folder with the headers that belong to it.
    pub header_path: Option<String>,
    /// Why not: `nvrtc_not_found`, `nvrtc_not_usable`, `cuda_headers_not_found`.
    pub reason: Option<String>,
    /// The finding, and a remedy.
    pub detail: Option<String>,
    /// The folder in which compiled kernels are kept.
    pub kernels_dir: String,
    pub kernels_count: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TensorRtCaps {
    /// Whether the package is installed.
    pub python_available: bool,
    pub python_version: Option<String>,
    /// Why not: a reason code.
    pub python_reason: Option<String>,
    /// Whether the C++ headers were found.
    pub headers_available: bool,
    pub header_path: Option<String>,
    /// Whether int8 engines can be built.
    pub int8_available: bool,
    /// Why not: a reason code.
    pub int8_reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fp8Caps {
    pub available: bool,
    /// Whether the framework has the type.
    pub dtype_available: bool,
    pub supported_dtypes: Vec<String>,
    /// Why not: a reason code.
    pub reason: Option<String>,
}
