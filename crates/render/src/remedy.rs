//! Remedies for reason codes.

/// Reason codes and remedies. Codes without an entry explain themselves.
const REMEDIES: &[(&str, &str)] = &[
    ("cuda_unavailable", "install the NVIDIA driver, or run where there is a GPU"),
    ("cuda_device_not_found", "the driver sees no GPU; look at nvidia-smi and CUDA_VISIBLE_DEVICES"),
    ("cuda_device_index_out_of_range", "choose a device that nvidia-smi lists"),
    ("cuda_driver_too_old", "update the NVIDIA driver to 570 or later"),
    ("cuda_out_of_memory", "free memory on the device; nvidia-smi names the processes that hold it"),
    (
        "nvrtc_not_found",
        "install the CUDA toolkit, or pip install nvidia-cuda-nvrtc nvidia-cuda-runtime, or set HOLDPOINT_CUDA to its folder",
    ),
    (
        "nvrtc_not_usable",
        "install NVRTC of CUDA 12 or 13 for this machine, or set HOLDPOINT_CUDA to its folder",
    ),
    (
        "cuda_headers_not_found",
        "install the CUDA toolkit's headers beside NVRTC, or pip install nvidia-cuda-runtime",
    ),
    ("cuda_query_failed", "the driver did not answer; look at nvidia-smi and the kernel log"),
    ("cuda_compute_capability_unknown", "update the NVIDIA driver"),
    ("triton_not_installed", "pip install triton, in the Python on the path"),
    ("triton_import_failed", "import triton by hand in the Python on the path and follow its message"),
    ("tensorrt_python_not_installed", "pip install tensorrt, in the Python on the path"),
    (
        "tensorrt_python_import_failed",
        "import tensorrt by hand in the Python on the path and follow its message",
    ),
    ("tensorrt_python_unavailable", "make the Python package tensorrt work first"),
    ("tensorrt_int8_builder_flag_missing", "use a TensorRT release that builds int8 engines"),
    ("cuda_required_for_tensorrt_int8", "make CUDA work first"),
    ("torch_build_missing_fp8_dtype", "use PyTorch 2.1 or later"),
    ("fp8_requires_cuda", "make CUDA work first"),
    ("compute_capability_below_sm90", "8-bit floating point needs a GPU of compute capability 9.0 or later"),
    (
        "fp8_mma_unsupported",
        "mma.sync converts 8-bit operands to fp16 on this architecture; its 8-bit peak is not measured",
    ),
    ("onnxruntime_not_installed", "pip install onnxruntime, for the Python that runs the model"),
    ("provider_unavailable", "install a build of ONNX Runtime for it, such as onnxruntime-gpu"),
    ("tensorrt_python_unavailable", "pip install tensorrt, for the Python that runs the model"),
    (
        "engine_deserialize_failed",
        "build the engine with this TensorRT on this GPU; name its plugins with --plugin",
    ),
    ("cdll_load_failed", "build the plugin library for this TensorRT, or correct its path"),
    ("missing_plugin_library", "name the plugin library with --plugin"),
    ("engine_not_found", "build the engine, or correct its path"),
    ("nvml_library_not_found", "install the NVIDIA driver with its management library"),
    ("nvml_query_failed", "the management library did not answer; look at nvidia-smi"),
    ("cpu_frequency_not_readable", "common in virtual machines; clock changes show only as spread"),
    ("proc_stat_not_readable", "mount /proc where this runs"),
    ("perf_events_not_in_kernel", "use a kernel with perf events; times do not need them"),
    ("no_hardware_counters", "common in virtual machines; times do not need them"),
    ("perf_event_paranoid_too_high", "sysctl kernel.perf_event_paranoid=2"),
];

/// The remedy for a reason, which may carry detail after a colon.
pub(crate) fn find(reason: &str) -> Option<&'static str> {
    let code = reason.split(':').next().unwrap_or(reason).trim();
    REMEDIES.iter().find(|(known, _)| *known == code).map(|(_, remedy)| *remedy)
}

/// The reason, with its remedy where one is known.
pub(crate) fn with(reason: &str) -> String {
    match find(reason) {
        Some(remedy) => format!("{reason} ({remedy})"),
        None => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_go_wrong_with_a_device_has_a_remedy() {
        for code in [
            "cuda_driver_too_old",
            "cuda_device_index_out_of_range",
            "cuda_out_of_memory",
            "cuda_headers_not_found",
            "nvrtc_not_found",
            "nvrtc_not_usable",
            "nvml_query_failed",
        ] {
            assert!(find(code).is_some(), "{code}");
        }
    }

    #[test]
    fn a_code_is_found_with_detail_behind_it() {
        assert!(find("triton_import_failed:OSError: no such file").is_some());
        assert_eq!(find("the whole run was skipped"), None);
    }
}
