//! Hand-built values.

use holdpoint_model::caps::RuntimeCaps;
use holdpoint_model::{
    Baseline, Bisection, Check, CheckStatus, Machine, Report, Revision, Stated, ThresholdKeys, Trend, Verdict,
};
use serde_json::{Value, json};

/// Text that tries everything.
pub const HOSTILE: &str =
    "evil|`rm`<script>alert(1)</script>\u{1b}[31m\n# @all https://evil.example ![x](y)\u{202e}";

pub fn machine() -> Machine {
    Machine {
        fingerprint: "5f0c9a1be2d7".to_owned(),
        cpu_model: "AMD EPYC 7B13".to_owned(),
        cpus: 2,
        memory_gib: 8,
        arch: "x86_64".to_owned(),
        os: "linux".to_owned(),
        devices: Vec::new(),
    }
}

pub fn revision() -> Revision {
    Revision { commit: "4f2c9e1d07ab35c8e6610f9b2a7d4c3e5f6a7b8c".to_owned(), dirty: true }
}

pub fn judgement(verdict: Verdict, checks: Vec<Check>) -> Stated {
    Stated {
        schema_version: 1,
        suite: "cpu-smoke".to_owned(),
        status: if verdict <= Verdict::Pass { "pass" } else { "fail" }.to_owned(),
        verdict,
        policy: "allowed-max".to_owned(),
        timestamp_utc: Some("2025-03-01T12:00:00Z".to_owned()),
        required_status: "ok".to_owned(),
        current_status: Some("ok".to_owned()),
        machine: Some(machine()),
        revision: Some(revision()),
        notes: Vec::new(),
        ungated: Vec::new(),
        threshold: checks.iter().find_map(|check| check.threshold.clone()),
        checks,
        basis: None,
        sides: None,
    }
}

pub fn check(metric: &str, status: CheckStatus, verdict: Verdict, reason: &str) -> Check {
    Check {
        metric: metric.to_owned(),
        workload: metric.strip_suffix("_p50_ms").map(str::to_owned),
        status,
        verdict,
        reason: reason.to_owned(),
        baseline_ms: None,
        allowed_max_ms: None,
        current_ms: None,
        regression_ratio: None,
        baseline_spread: None,
        expected: None,
        current: None,
        threshold: None,
        waiver: None,
        paired: None,
        stored: None,
    }
}

/// A check with both sides measured and a tolerance of 25 %.
pub fn compared(metric: &str, verdict: Verdict, baseline_ms: f64, current_ms: f64, reason: &str) -> Check {
    let status = if verdict <= Verdict::Pass { CheckStatus::Pass } else { CheckStatus::Fail };
    Check {
        baseline_ms: Some(baseline_ms),
        allowed_max_ms: Some(baseline_ms * 1.25),
        current_ms: Some(current_ms),
        regression_ratio: Some(current_ms / baseline_ms - 1.0),
        baseline_spread: Some(0.018),
        ..check(metric, status, verdict, reason)
    }
}

pub fn pass(metric: &str, baseline_ms: f64, current_ms: f64) -> Check {
    compared(metric, Verdict::Pass, baseline_ms, current_ms, "within the tolerance")
}

pub fn improved(metric: &str, baseline_ms: f64, current_ms: f64) -> Check {
    compared(metric, Verdict::Improved, baseline_ms, current_ms, "faster by more than the tolerance")
}

pub fn regressed(metric: &str, baseline_ms: f64, current_ms: f64) -> Check {
    let reason = format!("{current_ms:.4} ms is above the allowed {:.4} ms", baseline_ms * 1.25);
    compared(metric, Verdict::Regressed, baseline_ms, current_ms, &reason)
}

pub fn missing(metric: &str) -> Check {
    let reason = "the baseline has this metric, the run does not; was the workload removed or renamed?";
    Check {
        baseline_ms: Some(0.512),
        allowed_max_ms: Some(0.64),
        ..check(metric, CheckStatus::Missing, Verdict::Regressed, reason)
    }
}

pub fn elsewhere(metric: &str) -> Check {
    let reason = "baseline is from another machine (Intel Xeon 8481C, 4 CPUs, 16 GiB, x86_64; now AMD EPYC \
                  7B13, 2 CPUs, 8 GiB, x86_64); record one here with \"holdpoint baseline record\", or pass \
                  --allow machine";
    Check {
        baseline_ms: Some(1.5),
        allowed_max_ms: Some(1.875),
        current_ms: Some(2.25),
        ..check(metric, CheckStatus::Inconclusive, Verdict::Inconclusive, reason)
    }
}

pub fn status(current: &str, verdict: Verdict) -> Check {
    let reason = format!("the run's status is {current:?}, required is \"ok\"");
    Check {
        expected: Some("ok".to_owned()),
        current: Some(current.to_owned()),
        ..check("__status__", CheckStatus::Fail, verdict, &reason)
    }
}

pub fn skipped(metric: &str) -> Check {
    Check {
        baseline_ms: Some(0.25),
        allowed_max_ms: Some(0.3125),
        ..check(metric, CheckStatus::Skipped, Verdict::Skipped, "cuda_unavailable")
    }
}

pub fn by_threshold(metric: &str, verdict: Verdict, baseline_ms: f64, current_ms: f64, label: &str) -> Check {
    let improvement_pct = (baseline_ms - current_ms) / baseline_ms * 100.0;
    let reason = format!("{improvement_pct:+.2} % against a threshold of -3.00 %");
    Check {
        threshold: Some(ThresholdKeys {
            speedup: baseline_ms / current_ms,
            improvement_pct,
            is_regression: verdict == Verdict::Regressed,
            baseline_time_ms: baseline_ms,
            current_time_ms: current_ms,
            threshold: -3.0,
            label: label.to_owned(),
        }),
        ..compared(metric, verdict, baseline_ms, current_ms, &reason)
    }
}

pub fn measured(p50_ms: f64, stopped: &str) -> Value {
    let ns = (p50_ms * 1e6) as u64;
    let rounds: Vec<Value> =
        (0..24).map(|i| json!({"process": 0, "round": i, "order": 0, "elapsed_ns": vec![ns; 50]})).collect();
    json!({
        "identity": {"op": "tile_pack", "timer": "host_monotonic"}, "gated": ["p50_ms"], "status": "measured",
        "p50_ms": p50_ms, "p95_ms": p50_ms * 1.031, "p99_ms": p50_ms * 1.127, "mean_ms": p50_ms * 1.01,
        "min_ms": p50_ms * 0.98, "cv": 0.0213, "p50_interval_ms": [p50_ms * 0.996, p50_ms * 1.003],
        "throughput": {"gb_per_s": 12.4, "tiles_per_s": 64.0 / p50_ms * 1e3},
        "answer": {"passed": true, "values_count": 4096, "max_abs_err": 0.0, "max_rel_err": 0.0},
        "warmup": {"calls_count": 40, "stable": true}, "stopped": stopped,
        "samples": {"calls_per_sample": 1, "rounds": rounds},
    })
}

pub fn skip(reason: &str) -> Value {
    json!({"identity": {"op": "infer", "timer": "host_monotonic"}, "status": "skipped", "reason": reason})
}

pub fn failure(cause: &str, detail: &str, stderr_tail: &[&str]) -> Value {
    json!({
        "identity": {"op": "infer", "timer": "process_wall"}, "status": "failed",
        "cause": cause, "detail": detail, "stderr_tail": stderr_tail,
    })
}

pub fn report(status: &str, benchmarks: Value) -> Report {
    let value = json!({
        "schema_version": 1, "suite": "cpu-smoke", "timestamp_utc": "2025-03-01T12:00:00Z", "status": status,
        "environment": {"platform": "linux 6.8.0 x86_64", "device": "cpu", "cuda_available": false},
        "config": {"seed": 123, "percentile_rule": "floor", "clock_resolution_ns": 21, "elapsed_s": 8.4},
        "machine": machine(), "revision": revision(),
        "toolchain": {"holdpoint": "0.1.0", "rustc": "1.95.0", "profile": "release", "kernel": "6.8.0"},
        "metrics": {}, "benchmarks": benchmarks,
    });
    serde_json::from_value(value).expect("a report")
}

pub fn mixed_report() -> Report {
    let mut loose = measured(0.0871, "time_budget");
    for key in ["answer", "p50_interval_ms", "throughput", "cv"] {
        loose.as_object_mut().expect("an object").remove(key);
    }
    loose["warmup"]["stable"] = json!(false);
    report(
        "failed",
        json!({
            "tile_pack": measured(0.1234, "target_width"),
            "tile_unpack": measured(0.000_734, "target_width"),
            "fusion_gate": measured(1.842, "rounds_max"),
            "sort_merge": loose,
            "infer": crashed(),
            "infer_cuda": skip("cuda_unavailable"),
        }),
    )
}

pub fn crashed() -> Value {
    failure(
        "crashed",
        "the worker ended with signal 11 after 3 of 24 rounds",
        &["loading weights", "", "thread 'main' panicked at src/infer.rs:41:", "index out of bounds: 64"],
    )
}

pub fn hostile_report() -> Report {
    let mut r = report(
        "failed",
        json!({
            HOSTILE: measured(1.0, "target_width"),
            "größe_漢字": measured(2.0, "target_width"),
            "worker": failure("garbage", HOSTILE, &[HOSTILE, "", "</pre><b>"]),
            "skip": skip(HOSTILE),
        }),
    );
    r.suite = HOSTILE.to_owned();
    r.toolchain.rustc = HOSTILE.to_owned();
    r
}

pub fn hostile_judgement() -> Stated {
    let mut j = judgement(
        Verdict::Broken,
        vec![
            check(HOSTILE, CheckStatus::Fail, Verdict::Broken, HOSTILE),
            status(HOSTILE, Verdict::Broken),
            pass("größe_漢字_p50_ms", 2.0, 2.0),
        ],
    );
    j.suite = HOSTILE.to_owned();
    j.notes = vec![HOSTILE.to_owned()];
    j.ungated = vec![HOSTILE.to_owned()];
    j
}

pub fn baseline() -> Baseline {
    let value = json!({
        "schema_version": 1, "suite": "cpu-smoke", "baseline_notes": "after the tile kernel was rewritten",
        "machine": machine(),
        "runs": [
            {
                "timestamp_utc": "2025-02-27T09:10:00Z",
                "revision": {"commit": "0a1b2c3d4e5f6071", "dirty": false},
            },
            {"timestamp_utc": "2025-02-28T09:10:00Z"},
        ],
        "metrics": {
            "infer_p50_ms": {
                "value_ms": 1.373, "max_regression_ratio": 0.25, "runs_ms": [1.37, 1.376], "spread": 0.004,
            },
            "tile_pack_p50_ms": {
                "value_ms": 0.1234, "max_regression_abs_ms": 0.02, "runs_ms": [0.12, 0.13], "spread": 0.081,
            },
        },
    });
    serde_json::from_value(value).expect("a baseline")
}

pub fn trend_points(count: usize) -> Vec<Trend> {
    (0..count).map(trend_point).collect()
}

fn trend_point(i: usize) -> Trend {
    let slow = 1.0 + 0.04 * (i as f64) + if i % 5 == 4 { 0.2 } else { 0.0 };
    let mut infer = pass("infer_p50_ms", 1.3, 1.3 * slow);
    if slow > 1.25 {
        infer = regressed("infer_p50_ms", 1.3, 1.3 * slow);
    }
    let pack = if i == 3 {
        missing("pack_p50_ms")
    } else {
        pass("pack_p50_ms", 0.12, 0.12 + 0.001 * (i % 3) as f64)
    };
    let verdict = infer.verdict.max(pack.verdict);
    Trend::new(&judgement(verdict, vec![infer, pack]), &format!("2025-03-{:02}T12:00:00Z", i + 1))
}

pub fn caps(has_gpu: bool) -> RuntimeCaps {
    let reason = |code: &str| if has_gpu { Value::Null } else { json!(code) };
    let devices = vec![
        json!({
            "ordinal": 0, "name": "NVIDIA H200", "compute_capability": "9.0", "available": true, "reason": null,
            "fp8": {"available": true, "reason": null},
        }),
        json!({
            "ordinal": 1, "name": "NVIDIA A100", "compute_capability": "8.0", "available": false,
            "reason": "cuda_query_failed",
            "detail": "the driver answers CUDA_ERROR_DEVICE_UNAVAILABLE: look at nvidia-smi and the kernel log",
            "fp8": {"available": false, "reason": "compute_capability_below_sm90"},
        }),
    ];
    let value = json!({
        "cpu": {
            "model": "AMD EPYC 7B13", "cpus": 2, "features": ["avx2", "fma"], "timer_resolution_ns": 21,
            "frequency": {"available": false, "reason": "cpu_frequency_not_readable"},
            "steal": {"available": true, "reason": null},
            "perf_counters": {"available": false, "reason": "perf_event_paranoid_too_high"},
        },
        "cuda": {
            "available": has_gpu, "device_count": if has_gpu { 2 } else { 0 },
            "device_name": has_gpu.then_some("NVIDIA H200"), "compute_capability": has_gpu.then_some("9.0"),
            "reason": reason("cuda_unavailable"),
            "detail": reason("there is no libcuda.so: install the NVIDIA driver"),
            "driver_version": has_gpu.then_some("580.159.04"), "cuda_version": has_gpu.then_some("13.0"),
            "devices": if has_gpu { devices } else { vec![] },
        },
        "nvrtc": {
            "available": has_gpu, "version": has_gpu.then_some("13.0"),
            "library_path": has_gpu.then_some("/usr/local/cuda/lib64/libnvrtc.so.13"),
            "header_path": has_gpu.then_some("/usr/local/cuda/include"),
            "reason": reason("nvrtc_not_found"), "detail": null,
            "kernels_dir": "/home/user/.cache/holdpoint/kernels", "kernels_count": if has_gpu { 12 } else { 0 },
        },
        "ncu": {
            "available": has_gpu, "version": has_gpu.then_some("2025.3.1.0"),
            "path": has_gpu.then_some("/usr/local/cuda/bin/ncu"), "reason": reason("ncu_not_found"),
            "detail": reason("ncu is neither on the PATH nor where CUDA puts it: install Nsight Compute"),
        },
        "compute_sanitizer": {
            "available": has_gpu, "version": has_gpu.then_some("2025.3.1.0"),
            "path": has_gpu.then_some("/usr/local/cuda/bin/compute-sanitizer"),
            "reason": reason("sanitizer_not_found"), "detail": reason("install the CUDA toolkit"),
        },
        "nvml": {"available": has_gpu, "reason": reason("nvml_library_not_found")},
        "triton": {
            "available": has_gpu, "version": has_gpu.then_some("3.2.0"),
            "reason": reason("triton_not_installed"),
        },
        "tensorrt": {
            "python_available": false, "python_version": null,
            "python_reason": "tensorrt_python_import_failed:OSError: libnvinfer",
            "headers_available": false, "header_path": null,
            "int8_available": false, "int8_reason": "tensorrt_python_unavailable",
        },
        "fp8": {
            "available": has_gpu, "dtype_available": has_gpu,
            "supported_dtypes": ["float8_e4m3fn"],
            "reason": reason("fp8_requires_cuda"),
        },
        "any_gpu_runtime": has_gpu,
    });
    serde_json::from_value(value).expect("a snapshot")
}

/// A search that found its culprit, with a commit that does not build on the way.
pub fn bisection() -> Bisection {
    let commit = |i: usize, subject: &str| {
        json!({
            "commit": format!("{i:040x}"), "date": format!("2025-03-{:02}T12:00:00Z", i + 1), "subject": subject,
        })
    };
    let step = |i: usize, outcome: &str, ratio: Option<f64>| {
        json!({
            "commit": commit(i, &format!("change {i}")), "outcome": outcome, "line": 0.09, "ratio": ratio,
            "ratio_interval": ratio.map(|ratio| [ratio - 0.02, ratio + 0.03]), "reason": "as measured", "seconds": 3.4,
        })
    };
    let value = json!({
        "schema_version": 1, "kind": "bisection", "suite": "cpu", "timestamp_utc": "2025-03-10T12:00:00Z",
        "workload": "infer", "tolerance": 0.02, "line": 0.09,
        "good": commit(0, "start"), "bad": commit(8, "change 8"),
        "steps": [
            step(8, "slower", Some(1.19)), step(4, "not_built", None), step(5, "slower", Some(1.2)),
            step(2, "not_slower", Some(1.004)), step(3, "not_slower", Some(0.998)),
        ],
        "culprits": [commit(5, "change 5")], "evidence": null, "judgement": null,
    });
    serde_json::from_value(value).expect("a search")
}
