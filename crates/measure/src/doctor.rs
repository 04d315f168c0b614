//! Finds out what this machine can measure, and why not.

use crate::builds::cache_dir;
use crate::tools::{self, Permission, Tool};
use crate::{advice, clock, machine};
use holdpoint_cuda::compile::{self, Nvrtc};
use holdpoint_model::SCHEMA_VERSION;
use holdpoint_model::caps::{
    Cap, CpuCaps, CudaCaps, NvrtcCaps, RuntimeCaps, TensorRtCaps, ToolCaps, VersionCap,
};
use holdpoint_model::profile::Unavailable;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const PYTHON_TIMEOUT: Duration = Duration::from_secs(10);

pub fn runtime_caps() -> RuntimeCaps {
    let (cuda, fp8) = holdpoint_cuda::caps();
    let packages = python_packages();
    let version = packages.get("triton").cloned();
    let reason = version.is_none().then(|| "triton_not_installed".to_owned());
    let triton = VersionCap { available: version.is_some(), version, reason };
    let tensorrt = tensorrt_caps(packages.get("tensorrt").cloned(), &cuda);
    RuntimeCaps {
        schema_version: SCHEMA_VERSION,
        cpu: cpu_caps(),
        withheld_variables: holdpoint_process::withheld(),
        nvml: Cap::new(holdpoint_cuda::driver_version().err().map(|error| error.reason)),
        nvrtc: nvrtc_caps(&cache_dir()),
        any_gpu_runtime: cuda.available && (triton.available || tensorrt.python_available),
        fp8,
        ncu: tool_caps(Tool::Ncu),
        compute_sanitizer: tool_caps(Tool::Sanitizer),
        cuda,
        triton,
        tensorrt,
    }
}

fn tool_caps(tool: Tool) -> ToolCaps {
    let found = tools::find(tool);
    let is_refused = tool == Tool::Ncu && tools::counters_permission() == Permission::Refused;
    let refused = is_refused.then(tools::no_permission);
    let (tool, problem) = match found {
        Ok(tool) => (Some(tool), refused),
        Err(problem) => (None, Some(problem)),
    };
    let detail = |problem: &Unavailable| {
        let parts = [problem.detail.as_deref(), problem.remedy.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
    };
    ToolCaps {
        available: problem.is_none(),
        detail: problem.as_ref().map(detail),
        reason: problem.map(|problem| problem.reason),
        version: tool.as_ref().map(|tool| tool.version.clone()),
        path: tool.map(|tool| tool.path),
    }
}

fn cpu_caps() -> CpuCaps {
    let machine = machine::machine();
    CpuCaps {
        model: machine.cpu_model,
        cpus: machine.cpus,
        features: cpu_features(),
        timer_resolution_ns: clock::resolution_ns(),
        frequency: Cap::new(machine::cpu_mhz().is_none().then_some("cpu_frequency_not_readable")),
        steal: Cap::new((!machine::steal_is_readable()).then_some("proc_stat_not_readable")),
        perf_counters: perf_cap(),
        advice: advice::advise(),
    }
}

/// CPU features that the built-in ops use where available.
#[cfg(target_arch = "x86_64")]
pub fn cpu_features() -> Vec<String> {
    let detected = [
        ("sse4.2", is_x86_feature_detected!("sse4.2")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
    ];
    detected.into_iter().filter(|(_, has)| *has).map(|(name, _)| name.to_owned()).collect()
}

#[cfg(not(target_arch = "x86_64"))]
pub fn cpu_features() -> Vec<String> {
    Vec::new()
}

/// Hardware counters need a PMU that the kernel shows and permission to read it.
fn perf_cap() -> Cap {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let Some(level) = level.ok().and_then(|text| text.trim().parse::<i32>().ok()) else {
        return Cap::new(Some("perf_events_not_in_kernel"));
    };
    if !Path::new("/sys/bus/event_source/devices/cpu").exists() {
        return Cap::new(Some("no_hardware_counters"));
    }
    let is_root = rustix::process::geteuid().is_root();
    Cap::new((level > 2 && !is_root).then_some("perf_event_paranoid_too_high"))
}

/// Loads the compiler to make sure that it works.
fn nvrtc_caps(cache_dir: &Path) -> NvrtcCaps {
    let found = compile::search();
    let nvrtc = found.clone().and_then(|found| Nvrtc::load(&found));
    let text = |path: &Path| path.display().to_string();
    let found = found.ok();
    let kernels_dir = compile::kernels_dir(cache_dir);
    NvrtcCaps {
        available: nvrtc.is_ok(),
        version: nvrtc.as_ref().ok().map(|nvrtc| nvrtc.version.clone()),
        library_path: found.as_ref().map(|found| text(&found.library)),
        header_path: found.as_ref().map(|found| text(&found.include)),
        reason: nvrtc.as_ref().err().map(|error| error.reason.to_owned()),
        detail: nvrtc.err().map(|error| error.detail),
        kernels_count: kernels_count(&kernels_dir),
        kernels_dir: text(&kernels_dir),
    }
}

fn kernels_count(dir: &Path) -> u32 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let count = entries.filter(|entry| entry.path().extension().is_some_and(|it| it == "cubin")).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn tensorrt_caps(version: Option<String>, cuda: &CudaCaps) -> TensorRtCaps {
    let header = [
        "/usr/include/NvInfer.h",
        "/usr/include/x86_64-linux-gnu/NvInfer.h",
        "/usr/local/tensorrt/include/NvInfer.h",
    ]
    .into_iter()
    .find(|path| Path::new(path).exists());
    let int8_reason = match (&version, cuda.available) {
        (None, _) => Some("tensorrt_python_unavailable"),
        (_, false) => Some("cuda_required_for_tensorrt_int8"),
        _ => None,
    };
    TensorRtCaps {
        python_available: version.is_some(),
        python_reason: version.is_none().then(|| "tensorrt_python_not_installed".to_owned()),
        python_version: version,
        headers_available: header.is_some(),
        header_path: header.map(str::to_owned),
        int8_available: int8_reason.is_none(),
        int8_reason: int8_reason.map(str::to_owned),
    }
}

/// Versions of Python packages, read without importing them.
fn python_packages() -> BTreeMap<String, String> {
    let script = "import importlib.metadata as m\n\
                  for n in ('triton', 'tensorrt'):\n    \
                  try: print(n, m.version(n))\n    \
                  except m.PackageNotFoundError: pass";
    let command = ["python3", "-c", script].map(str::to_owned);
    let text = match tools::capture(&command, "", None, PYTHON_TIMEOUT) {
        Ok(output) if output.status.success() => output.stdout,
        _ => String::new(),
    };
    text.lines().filter_map(|line| line.split_once(' ')).map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_kernels_are_counted_and_half_written_ones_are_not() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(nvrtc_caps(dir.path()).kernels_count, 0);
        let kernels = compile::kernels_dir(dir.path());
        std::fs::create_dir_all(&kernels).unwrap();
        for name in ["a.cubin", "b.cubin", "c.1234"] {
            std::fs::write(kernels.join(name), "").unwrap();
        }
        let caps = nvrtc_caps(dir.path());
        assert_eq!((caps.kernels_count, caps.kernels_dir), (2, kernels.display().to_string()));
        assert_eq!(caps.available, caps.reason.is_none());
        assert_eq!(caps.available, caps.version.is_some());
    }
}
