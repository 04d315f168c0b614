use super::*;
use crate::{read_baseline, read_current};
use holdpoint_model::document::read;
use holdpoint_model::report::{Failure, FailureCause, Measured, Outcome, Report, RunStatus};
use holdpoint_model::suite::metric_name;
use holdpoint_model::{Current, SCHEMA_VERSION, json};
use serde_json::{Value, json};

/// A run of the GPU suite on an H200, with two rounds of each workload kept.
fn h200() -> Report {
    let path = format!("{}/../model/tests/data/report-gpu-h200.json", env!("CARGO_MANIFEST_DIR"));
    read::<Report>(&std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))).unwrap()
}

/// The same suite where there is no device.
fn skipped() -> Report {
    let mut report = h200();
    let reason = "cuda_unavailable".to_owned();
    (report.status, report.reason) = (RunStatus::Skipped, Some(reason.clone()));
    report.environment.cuda_available = false;
    report.machine.as_mut().unwrap().devices.clear();
    for measurement in report.benchmarks.values_mut() {
        measurement.outcome = Outcome::Skipped { reason: reason.clone() };
    }
    report
}

fn measured<'a>(report: &'a mut Report, name: &str) -> &'a mut Measured {
    match &mut report.benchmarks[name].outcome {
        Outcome::Measured(measured) => measured,
        other => panic!("{name}: {other:?}"),
    }
}

/// Another workload with the measurement of one that is there.
fn copy(report: &mut Report, from: &str, to: &str) {
    let measurement = report.benchmarks[from].clone();
    report.benchmarks.insert(to.to_owned(), measurement);
}

fn written(report: &Report) -> Value {
    serde_json::to_value(ApexGpuReport::try_from(report).unwrap()).unwrap()
}

fn refusal(report: &Report) -> String {
    ApexGpuReport::try_from(report).unwrap_err().to_string()
}

#[track_caller]
fn assert_keys(value: &Value, keys: &str) {
    let mut found: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected: Vec<&str> = keys.split_whitespace().collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn a_report_has_exactly_the_seeds_keys() {
    let file = written(&h200());
    assert_keys(
        &file,
        "schema_version suite timestamp_utc environment config status benchmarks triton_autotune",
    );
    assert_keys(
        &file["environment"],
        "python platform torch runtime_caps device dtype requested_dtype effective_dtype fp8_requested fp8_enabled \
         fp8_fallback_reason",
    );
    let caps = &file["environment"]["runtime_caps"];
    assert_keys(caps, "cuda triton tensorrt fp8 any_gpu_runtime");
    assert_keys(&caps["cuda"], "available device_count device_name compute_capability reason");
    assert_keys(&caps["triton"], "available version reason");
    assert_keys(
        &caps["tensorrt"],
        "python_available python_version python_reason headers_available header_path int8_available int8_reason",
    );
    assert_keys(&caps["fp8"], "available dtype_available supported_dtypes reason");
    assert_keys(
        &file["config"],
        "batch channels height width tile_size kmax steps warmup iters seed dtype budget_b1 budget_b2 budget_total \
         trt_engine_path trt_plugin_lib trt_input_shapes",
    );
    assert_keys(&file["triton_autotune"], "summary entries");
    assert_keys(
        &file["triton_autotune"]["summary"],
        "cache_entries launches cache_hits cache_misses cache_hit_rate",
    );
    assert_keys(
        &file["triton_autotune"]["entries"][0],
        "op_name kernel_name shape_bucket selected_config selection_source launches cache_hits cache_misses",
    );
    // `kernel_name` is ours: the kernel that ran as the dispatch.
    assert_keys(
        &file["benchmarks"]["tile_ops"]["tilepack"],
        "reference dispatch backend kernel_name fallback_reason",
    );
    assert_keys(
        &file["benchmarks"]["tile_ops"]["tilepack"]["dispatch"],
        "p50_ms p95_ms peak_memory_mb tiles_per_s",
    );
}

#[test]
fn what_the_report_holds_is_there_and_what_it_does_not_is_null() {
    let file = written(&h200());
    assert_eq!(file["schema_version"], SCHEMA_VERSION);
    assert_eq!(file["suite"], "apex_x_gpu_benchmark");
    assert_eq!(file["timestamp_utc"], "2026-11-15T09:00:25.121+00:00");
    let environment = &file["environment"];
    assert_eq!((&environment["python"], &environment["torch"]), (&Value::Null, &Value::Null));
    assert_eq!((&environment["device"], &environment["requested_dtype"]), (&json!("cuda"), &json!("fp16")));
    assert_eq!(
        (&environment["dtype"], &environment["effective_dtype"]),
        (&json!("float16"), &json!("float16"))
    );
    assert_eq!(
        environment["runtime_caps"]["cuda"],
        json!({
            "available": true, "device_count": null, "device_name": "NVIDIA H200", "compute_capability": null,
            "reason": null,
        })
    );
    assert_eq!(
        file["config"],
        json!({
            "batch": 1, "channels": 128, "height": 128, "width": 128, "tile_size": 8, "kmax": 32, "steps": 256,
            "warmup": null, "iters": null, "seed": 123, "dtype": "fp16",
            "budget_b1": null, "budget_b2": null, "budget_total": null,
            "trt_engine_path": null, "trt_plugin_lib": null, "trt_input_shapes": [],
        })
    );
    let pack = &file["benchmarks"]["tile_ops"]["tilepack"];
    assert_eq!(
        (&pack["backend"], &pack["kernel_name"], &pack["fallback_reason"]),
        (&json!("cuda"), &json!("tile_pack_fast"), &Value::Null)
    );
    let dispatch = &pack["dispatch"];
    assert_eq!(
        (&dispatch["p50_ms"], &dispatch["p95_ms"]),
        (&json!(0.0025093529411764704), &json!(0.002523764705882353))
    );
    assert_eq!(dispatch["tiles_per_s"], 12741240.397226907);
    assert_eq!(
        dispatch["peak_memory_mb"].as_f64().unwrap(),
        195_500_016.0 / 1_048_576.0,
        "Apex-X's MB are MiB"
    );
    assert_eq!(
        file["benchmarks"]["tilessm"]["tensorrt_plugin"],
        json!({"status": "skipped", "reason": "tensorrt_python_unavailable"})
    );
    assert_eq!(
        file["benchmarks"]["end_to_end_infer"],
        json!({"tensorrt_engine": {"status": "skipped", "reason": "missing_trt_engine_path"}})
    );
}

#[test]
fn a_file_is_read_back_under_the_names_and_with_the_values_of_our_own_report() {
    let mut report = h200();
    report.benchmarks["attention.dispatch"].gated.push("mean_ms".to_owned());
    let text = json::to_pretty(&ApexGpuReport::try_from(&report).unwrap()).unwrap();
    let (read, own) = (read_current(&text.as_str().into()).unwrap(), Current::from(&report));
    let values = |current: &Current| -> Vec<(String, f64)> {
        current.metrics.iter().map(|(name, metric)| (name.clone(), metric.value_ms)).collect()
    };
    assert_eq!(values(&read), values(&own));
    assert!(read.metrics.contains_key("benchmarks.tile_ops.tilepack.dispatch.p50_ms"));
    assert!(read.metrics.contains_key(&metric_name("attention.dispatch", "mean_ms")));
    assert_eq!(read.status.as_deref(), Some("ok"));
    assert_eq!(read.suite, APEX_GPU_SUITE);
    assert_eq!(read_baseline(&text.as_str().into()).unwrap().metrics.len(), own.metrics.len());
}

#[test]
fn a_skipped_run_has_its_reason_and_nothing_else() {
    let file = written(&skipped());
    assert_eq!((&file["status"], &file["reason"]), (&json!("skipped"), &json!("cuda_unavailable")));
    assert_eq!(file["benchmarks"], json!({}));
    let summary = json!({
        "cache_entries": 0, "launches": 0, "cache_hits": 0, "cache_misses": 0, "cache_hit_rate": null,
    });
    assert_eq!(file["triton_autotune"], json!({"summary": summary, "entries": []}));
    let environment = &file["environment"];
    assert_eq!(environment["device"], "cpu");
    assert_eq!(
        (&environment["requested_dtype"], &environment["effective_dtype"]),
        (&json!("fp16"), &Value::Null)
    );
    let caps = &environment["runtime_caps"];
    assert_eq!(
        (&caps["cuda"]["reason"], &caps["any_gpu_runtime"]),
        (&json!("cuda_unavailable"), &json!(false))
    );
    let read = read_current(&json::to_pretty(&file).unwrap().as_str().into()).unwrap();
    assert_eq!((read.status.as_deref(), read.metrics.len()), (Some("skipped"), 0));
}

#[test]
fn a_workload_without_times_has_a_record_and_its_dispatch_no_backend() {
    let mut report = h200();
    report.status = RunStatus::Failed;
    report.reason = Some("tilessm.triton_dispatch: wrong_answer".to_owned());
    report.benchmarks["tile_ops.tilepack.dispatch"].outcome =
        Outcome::Skipped { reason: "nvrtc_not_found".to_owned() };
    report.benchmarks["tilessm.triton_dispatch"].outcome = Outcome::Failed(Failure {
        cause: FailureCause::WrongAnswer,
        detail: "3 is not 4".to_owned(),
        stderr_tail: Vec::new(),
        samples: None,
    });
    let file = written(&report);
    assert_eq!(file["status"], "failed");
    assert_eq!(file["reason"], "tilessm.triton_dispatch: wrong_answer");
    let pack = &file["benchmarks"]["tile_ops"]["tilepack"];
    assert_eq!(pack["dispatch"], json!({"status": "skipped", "reason": "nvrtc_not_found"}));
    assert_eq!((&pack["backend"], &pack["kernel_name"]), (&Value::Null, &Value::Null));
    assert!(pack["reference"]["p50_ms"].is_number());
    let scan = &file["benchmarks"]["tilessm"]["triton_dispatch"];
    assert_eq!(*scan, json!({"status": "failed", "reason": "wrong_answer: 3 is not 4"}));
}

#[test]
fn times_that_are_not_to_be_compared_are_no_times() {
    let mut report = h200();
    (report.status, report.reason) = (RunStatus::Partial, None);
    measured(&mut report, "tile_ops.tilepack.dispatch").distrust = Some("device_throttled".to_owned());
    let file = written(&report);
    assert_eq!((&file["status"], &file["reason"]), (&json!("partial"), &json!("device_throttled")));
    let pack = &file["benchmarks"]["tile_ops"]["tilepack"];
    assert_eq!(pack["dispatch"], json!({"status": "skipped", "reason": "device_throttled"}));
    assert_eq!(
        (&pack["backend"], &pack["kernel_name"]),
        (&json!("cuda"), &json!("tile_pack_fast")),
        "it ran"
    );
    let read = read_current(&json::to_pretty(&file).unwrap().as_str().into()).unwrap();
    assert!(read.metrics.keys().eq(Current::from(&report).metrics.keys()));
}

#[test]
fn end_to_end_has_the_budgets_of_its_workloads_and_null_for_what_routing_chose() {
    let mut report = h200();
    for name in ["end_to_end_infer.torch_eager", "end_to_end_infer.torch_triton_fastpath"] {
        copy(&mut report, "tilessm.triton_dispatch", name);
        let params = &mut report.benchmarks[name].identity.params;
        params.extend([("budget_b1".to_owned(), json!(16.0)), ("budget_b2".to_owned(), json!(8))]);
    }
    let file = written(&report);
    assert_eq!((&file["config"]["budget_b1"], &file["config"]["budget_b2"]), (&json!(16.0), &json!(8.0)));
    assert_eq!(file["config"]["budget_total"], Value::Null);
    let infer = &file["benchmarks"]["end_to_end_infer"];
    assert_keys(infer, "torch_eager torch_triton_fastpath tensorrt_engine");
    for key in ["selected_l0_per_call", "selected_l1_per_call", "budget_b1_spent", "budget_b2_spent"] {
        assert_eq!(infer["torch_eager"].get(key), Some(&Value::Null), "{key}");
    }
}

#[test]
fn what_workloads_do_not_agree_on_is_null() {
    let mut report = h200();
    report.benchmarks["tile_ops.tilepack.dispatch"].identity.shape = vec![2, 128, 128, 128];
    report.benchmarks["attention.dispatch"].identity.dtype = "e4m3".to_owned();
    assert_eq!(written(&report)["config"]["dtype"], "fp16", "attention is no part of Apex-X's profile");
    report.benchmarks["tilessm.triton_dispatch"].identity.dtype = "bf16".to_owned();
    let file = written(&report);
    assert_eq!((&file["config"]["batch"], &file["config"]["channels"]), (&Value::Null, &json!(128)));
    assert_eq!((&file["config"]["dtype"], &file["environment"]["dtype"]), (&Value::Null, &Value::Null));
    let environment = &file["environment"];
    assert_eq!((&environment["fp8_requested"], &environment["fp8_enabled"]), (&json!(true), &json!(true)));
    report.benchmarks["tilessm.triton_dispatch"].identity.dtype = "f16".to_owned();
    report.benchmarks["attention.dispatch"].outcome =
        Outcome::Skipped { reason: "compute_capability_below_sm90".to_owned() };
    let environment = &written(&report)["environment"];
    assert_eq!(
        (&environment["fp8_enabled"], &environment["effective_dtype"]),
        (&json!(false), &json!("float16"))
    );
    assert_eq!(environment["fp8_fallback_reason"], "compute_capability_below_sm90");
}

#[test]
fn triton_and_the_versions_of_python_and_torch_are_named_where_a_worker_does() {
    let mut report = h200();
    let file = written(&report);
    assert_eq!(file["benchmarks"]["tile_ops"]["tilepack"]["backend"], "cuda");
    assert_eq!(file["environment"]["torch"], Value::Null);
    measured(&mut report, "tile_ops.tilepack.dispatch").kernel.as_mut().unwrap().backend =
        Some("triton".to_owned());
    let lock = [("torch.python", "cpython 3.12.3"), ("torch.torch", "2.11.0"), ("torch.triton", "3.6.0")];
    report.environment_lock = Some(lock.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    let file = written(&report);
    assert_eq!(file["benchmarks"]["tile_ops"]["tilepack"]["backend"], "triton");
    let environment = &file["environment"];
    assert_eq!((&environment["python"], &environment["torch"]), (&json!("cpython 3.12.3"), &json!("2.11.0")));
    assert_eq!(
        environment["runtime_caps"]["triton"],
        json!({"available": true, "version": "3.6.0", "reason": null})
    );
}

#[test]
fn launches_are_the_calls_of_samples_and_warm_up_times_the_launches_of_a_call() {
    let mut report = h200();
    let scan = measured(&mut report, "tilessm.triton_dispatch");
    scan.kernel.as_mut().unwrap().launches_per_call = 3;
    // Two rounds of five samples of 156 calls, and 2340 calls before them.
    let launches = 3 * (10 * 156 + 2340);
    let autotune = ApexGpuReport::try_from(&report).unwrap().triton_autotune;
    let entry = autotune.entries.iter().find(|entry| entry.kernel_name == "tile_ssm_fast").unwrap();
    assert_eq!((entry.launches, entry.cache_hits, entry.cache_misses), (launches, launches - 1, 1));
    assert_eq!(entry.selected_config, BTreeMap::from([("DIRECTION".to_owned(), 0)]));
    let summary = &autotune.summary;
    assert_eq!((summary.cache_entries, summary.cache_misses), (10, 10));
    assert_eq!(summary.launches, autotune.entries.iter().map(|entry| entry.launches).sum::<u64>());
    assert_eq!(summary.cache_hits, summary.launches - 10);
    assert_eq!(summary.cache_hit_rate, Some(summary.cache_hits as f64 / summary.launches as f64));
    let key = |entry: &AutotuneEntry| (entry.op_name.clone(), entry.shape_bucket.clone());
    assert!(autotune.entries.is_sorted_by_key(key));
}

#[test]
fn workloads_share_the_entry_of_the_same_kernel_and_the_registrys_constants_were_never_missed() {
    let mut report = h200();
    let before = ApexGpuReport::try_from(&report).unwrap().triton_autotune;
    copy(&mut report, "attention.dispatch", "attention.again.dispatch");
    for name in ["attention.dispatch", "attention.again.dispatch"] {
        measured(&mut report, name).kernel.as_mut().unwrap().selection_source = "registry_cache".to_owned();
    }
    let after = ApexGpuReport::try_from(&report).unwrap().triton_autotune;
    let attention = |autotune: &Autotune| {
        autotune.entries.iter().find(|entry| entry.op_name == "attention").unwrap().clone()
    };
    assert_eq!(after.entries.len(), before.entries.len());
    let (before, after) = (attention(&before), attention(&after));
    assert_eq!(
        (after.launches, after.cache_hits, after.cache_misses),
        (2 * before.launches, 2 * before.launches, 0)
    );
}

#[test]
fn counts_beyond_reason_do_not_wrap() {
    let mut report = h200();
    measured(&mut report, "attention.dispatch").samples.calls_per_sample = u64::MAX;
    let autotune = ApexGpuReport::try_from(&report).unwrap().triton_autotune;
    assert_eq!(autotune.summary.launches, u64::MAX);
}

#[test]
fn a_report_of_a_cpu_suite_is_refused_with_what_to_give_instead() {
    let path = format!("{}/../model/tests/data/report-v1.json", env!("CARGO_MANIFEST_DIR"));
    let report = read::<Report>(&std::fs::read_to_string(path).unwrap()).unwrap();
    let error = refusal(&report);
    assert!(error.contains("no workload of suite \"mixed\" is for a CUDA device"), "{error}");
    assert!(error.contains("holdpoint run --suite gpu"), "{error}");
}

#[test]
fn a_name_without_a_place_is_refused_by_name_and_cause() {
    for (name, expected) in [
        ("tile_pack", "places have a dot"),
        ("tile_ops.tilepack.dispatch.warm", "another workload is there, or above it"),
        ("tile_ops.tilepack", "another workload is there, or above it"),
        ("tile_ops.backend.dispatch", "keys of the report itself"),
        ("a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q", "more than 16 parts"),
    ] {
        let mut report = h200();
        copy(&mut report, "attention.dispatch", name);
        let error = refusal(&report);
        assert!(error.contains(name) && error.contains(expected), "{error}");
    }
}

#[test]
fn a_workload_in_the_place_of_a_tensorrt_record_stays() {
    let mut report = h200();
    copy(&mut report, "tilessm.triton_dispatch", "tilessm.tensorrt_plugin");
    copy(&mut report, "tilessm.triton_dispatch", "end_to_end_infer.tensorrt_engine.metrics");
    let file = written(&report);
    assert!(file["benchmarks"]["tilessm"]["tensorrt_plugin"]["p50_ms"].is_number());
    assert!(file["benchmarks"]["end_to_end_infer"]["tensorrt_engine"]["metrics"]["p50_ms"].is_number());
}
