//! The machine and the measured profile of a run, as far as our report has them.

use super::{Nulls, convert, nulls};
use holdpoint_model::report::{Measurement, Outcome, Report, RunStatus};
use holdpoint_model::suite::Identity;
use serde::Serialize;
use serde_json::Value;

/// Prefixes of Apex-X's workloads; others are no part of its profile.
const TILE_OPS: &str = "tile_ops.";
const TILE_SSM: &str = "tilessm.";
pub(super) const END_TO_END: &str = "end_to_end_infer.";

const TENSORRT_CAPS: [&str; 7] = [
    "python_available",
    "python_version",
    "python_reason",
    "headers_available",
    "header_path",
    "int8_available",
    "int8_reason",
];

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ApexEnvironment {
    /// Where workers name it.
    pub python: Option<String>,
    /// Operating system, kernel and instruction set in one line.
    pub platform: String,
    /// Where workers name it.
    pub torch: Option<String>,
    pub runtime_caps: ApexCaps,
    /// `cuda`, or `cpu` where there was no device.
    pub device: String,
    /// Element type that was measured, such as `float16`; null where none was, or several.
    pub dtype: Option<String>,
    /// Element type that was requested, such as `fp16`; null where several were.
    pub requested_dtype: Option<String>,
    /// The same as `dtype`.
    pub effective_dtype: Option<String>,
    pub fp8_requested: bool,
    /// Whether one was measured with it.
    pub fp8_enabled: bool,
    /// Why not, where it was requested.
    pub fp8_fallback_reason: Option<String>,
}

/// Apex-X's capability snapshot. A report of ours holds only what was used: most is null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ApexCaps {
    pub cuda: ApexCudaCaps,
    pub triton: ApexTritonCaps,
    pub tensorrt: Nulls,
    pub fp8: Nulls,
    /// CUDA together with Triton or TensorRT: false without CUDA, else not known.
    pub any_gpu_runtime: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ApexTritonCaps {
    /// Whether a worker had it; null where none says.
    pub available: Option<bool>,
    pub version: Option<String>,
    /// Always null: a worker that lacks it does not say why.
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ApexCudaCaps {
    pub available: bool,
    /// Null: the report names only the device that was used.
    pub device_count: Option<u32>,
    pub device_name: Option<String>,
    /// Null: not in the report.
    pub compute_capability: Option<String>,
    /// Why there was none: a reason code.
    pub reason: Option<String>,
}

/// The measured profile: values that the workloads of `tile_ops`, `tilessm` and `end_to_end_infer` agree on, else null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ApexConfig {
    pub batch: Option<u64>,
    pub channels: Option<u64>,
    pub height: Option<u64>,
    pub width: Option<u64>,
    /// Edge of a tile.
    pub tile_size: Option<u64>,
    /// Tiles in a call.
    pub kmax: Option<u64>,
    pub steps: Option<u64>,
    /// Null: warm-up ends when times are steady, not after a fixed number of calls.
    pub warmup: Option<u64>,
    /// Null: measuring ends when the interval is narrow, not after a fixed number of samples.
    pub iters: Option<u64>,
    pub seed: u64,
    pub dtype: Option<String>,
    pub budget_b1: Option<f64>,
    pub budget_b2: Option<f64>,
    pub budget_total: Option<f64>,
    /// Null: no engine was named.
    pub trt_engine_path: Option<String>,
    /// Null: no plugin library was named.
    pub trt_plugin_lib: Option<String>,
    /// None were given.
    pub trt_input_shapes: Vec<String>,
}

pub(super) fn environment(report: &Report) -> ApexEnvironment {
    let dtypes = || report.benchmarks.values().map(|m| (m.identity.dtype.as_str(), &m.outcome));
    let is_measured = |outcome: &Outcome| matches!(outcome, Outcome::Measured(_));
    let measured = || dtypes().filter(|(_, outcome)| is_measured(outcome));
    let effective = profiled(report).filter(|m| is_measured(&m.outcome));
    let effective = agreed(effective.map(|m| Some(long_name(&m.identity.dtype).to_owned())));
    let is_fp8 = |(dtype, _): &(&str, &Outcome)| short_name(dtype) == "fp8";
    let fp8_reason = dtypes().filter(is_fp8).find_map(|(_, outcome)| match outcome {
        Outcome::Skipped { reason } => Some(reason.clone()),
        _ => None,
    });
    ApexEnvironment {
        python: locked(report, "python"),
        platform: report.environment.platform.clone(),
        torch: locked(report, "torch"),
        runtime_caps: caps(report),
        device: if report.environment.cuda_available { "cuda" } else { "cpu" }.to_owned(),
        dtype: effective.clone(),
        requested_dtype: requested_dtype(report),
        effective_dtype: effective,
        fp8_requested: dtypes().any(|dtype| is_fp8(&dtype)),
        fp8_enabled: measured().any(|dtype| is_fp8(&dtype)),
        fp8_fallback_reason: fp8_reason,
    }
}

/// A version that a worker has locked under its name: the lock of a run has the workers' names before the keys.
fn locked(report: &Report, key: &str) -> Option<String> {
    let lock = report.environment_lock.iter().flatten();
    lock.filter(|(name, _)| name.rsplit('.').next() == Some(key)).map(|(_, value)| value.clone()).next()
}

/// The workloads of Apex-X's profile.
fn profiled(report: &Report) -> impl Iterator<Item = &Measurement> {
    let is_profiled =
        |name: &str| [TILE_OPS, TILE_SSM, END_TO_END].iter().any(|start| name.starts_with(start));
    report.benchmarks.iter().filter(move |(name, _)| is_profiled(name)).map(|(_, measurement)| measurement)
}

pub(super) fn caps(report: &Report) -> ApexCaps {
    let available = report.environment.cuda_available;
    let triton = locked(report, "triton");
    let reason = convert::reason(report).filter(|_| report.status == RunStatus::Skipped && !available);
    ApexCaps {
        cuda: ApexCudaCaps {
            available,
            device_count: None,
            device_name: report.machine.as_ref().and_then(|machine| machine.devices.first().cloned()),
            compute_capability: None,
            reason,
        },
        triton: ApexTritonCaps { available: triton.as_ref().map(|_| true), version: triton, reason: None },
        tensorrt: nulls(TENSORRT_CAPS),
        fp8: nulls(["available", "dtype_available", "supported_dtypes", "reason"]),
        any_gpu_runtime: (!available).then_some(false),
    }
}

pub(super) fn config(report: &Report) -> ApexConfig {
    let of = |section: &'static str| {
        let workloads = report.benchmarks.iter().filter(move |(name, _)| name.starts_with(section));
        workloads.map(|(_, measurement)| &measurement.identity)
    };
    let map = |axis: usize| agreed(of(TILE_OPS).map(|identity| size(identity, 4, axis)));
    let count = |key: &str| agreed(of(TILE_OPS).map(|identity| identity.params.get(key)?.as_u64()));
    let budget =
        |key: &str| agreed(of(END_TO_END).map(|identity| identity.params.get(key).and_then(Value::as_f64)));
    ApexConfig {
        batch: map(0),
        channels: map(1),
        height: map(2),
        width: map(3),
        tile_size: count("tile_size"),
        kmax: count("kmax"),
        steps: agreed(of(TILE_SSM).map(|identity| size(identity, 3, 1))),
        warmup: None,
        iters: None,
        seed: report.config.seed,
        dtype: requested_dtype(report),
        budget_b1: budget("budget_b1"),
        budget_b2: budget("budget_b2"),
        budget_total: budget("budget_total"),
        trt_engine_path: None,
        trt_plugin_lib: None,
        trt_input_shapes: Vec::new(),
    }
}

/// One size of a shape that has so many.
fn size(identity: &Identity, axes: usize, axis: usize) -> Option<u64> {
    let shape = Some(&identity.shape).filter(|shape| shape.len() == axes)?;
    shape.get(axis).map(|size| *size as u64)
}

fn requested_dtype(report: &Report) -> Option<String> {
    agreed(profiled(report).map(|m| Some(short_name(&m.identity.dtype).to_owned())))
}

/// The one value of all that have one; none where two differ.
fn agreed<T: PartialEq>(values: impl Iterator<Item = Option<T>>) -> Option<T> {
    let mut values = values.flatten();
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

/// Apex-X's word on the command line.
fn short_name(dtype: &str) -> &str {
    match dtype {
        "f16" | "float16" => "fp16",
        "bfloat16" => "bf16",
        "f32" | "float32" => "fp32",
        "e4m3" | "float8_e4m3fn" => "fp8",
        other => other,
    }
}

/// Apex-X's word in reports.
fn long_name(dtype: &str) -> &str {
    match short_name(dtype) {
        "fp16" => "float16",
        "bf16" => "bfloat16",
        "fp32" => "float32",
        "fp8" => "float8_e4m3fn",
        other => other,
    }
}
