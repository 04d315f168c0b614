//! Reports of GPU suites in Apex-X's form, and against its baseline.

use crate::common::{Here, data, keys};

const AS_APEX: [&str; 6] =
    ["--as", "apex-gpu", "--output", "out/perf_gpu.json", "--markdown", "out/perf_gpu.md"];

/// A folder with the report of a GPU suite from a machine without a device.
fn without_device() -> Here {
    let here = Here::new();
    here.write("report.json", &std::fs::read_to_string(data("report-gpu-h200.json")).unwrap());
    here.edit("report.json", |report| {
        report["status"] = "skipped".into();
        report["reason"] = "cuda_unavailable".into();
        report["environment"]["cuda_available"] = false.into();
        report["machine"]["devices"] = serde_json::json!([]);
        for measurement in report["benchmarks"].as_object_mut().unwrap().values_mut() {
            *measurement = serde_json::json!({
                "identity": measurement["identity"], "gated": measurement["gated"], "status": "skipped",
                "reason": "cuda_unavailable",
            });
        }
    });
    here
}

#[test]
fn a_gpu_report_is_written_as_apex_x_would_have() {
    let here = Here::new();
    let report = data("report-gpu-h200.json");
    let ran = here.run(&[&["report", &report], &AS_APEX[..]].concat());
    ran.ends(0).notes(&["report: out/perf_gpu.json", "markdown: out/perf_gpu.md"]);
    assert_eq!(ran.stdout, here.read("out/perf_gpu.md"));
    assert!(ran.stdout.starts_with("# Apex-X GPU Benchmark Report\n"), "{}", ran.stdout);
    let file = here.json("out/perf_gpu.json");
    assert_eq!(
        keys(&file),
        [
            "benchmarks",
            "config",
            "environment",
            "schema_version",
            "status",
            "suite",
            "timestamp_utc",
            "triton_autotune"
        ]
    );
    let printed = here.run(&["report", &report, "--as", "apex-gpu", "--format", "json"]);
    assert_eq!(printed.ends(0).stdout, here.read("out/perf_gpu.json"));
}

#[test]
fn what_was_written_compares_like_the_report_it_came_from() {
    let here = Here::new();
    let report = data("report-gpu-h200.json");
    here.run(&["report", &report, "--as", "apex-gpu", "-o", "perf_gpu.json"]).ends(0);
    here.run(&["baseline", "template", &report, "--baseline", "template.json"]).ends(0);
    assert_eq!(here.json("template.json")["metrics"].as_object().unwrap().len(), 8);
    for current in [report.as_str(), "perf_gpu.json"] {
        here.run(&["compare", current, "--baseline", "template.json"])
            .ends(0)
            .prints(&["pass: none of the 8 metrics is slower than allowed"]);
    }
}

#[test]
fn without_a_device_a_gate_with_apex_x_baseline_fails_by_status_and_twelve_missing_metrics() {
    let here = without_device();
    here.run(&[&["report", "report.json"], &AS_APEX[..]].concat())
        .ends(0)
        .prints(&["- reason: `cuda_unavailable`"]);
    let file = here.json("out/perf_gpu.json");
    assert_eq!((&file["status"], &file["benchmarks"]), (&"skipped".into(), &serde_json::json!({})));
    for current in ["report.json", "out/perf_gpu.json"] {
        let baseline = data("apex-gpu-baseline.json");
        here.run(&["compare", current, "--baseline", &baseline, "--summary", "summary.json"])
            .ends(2)
            .prints(&["skipped: 12 of 12 metrics were not measured"]);
        let summary = here.json("summary.json");
        assert_eq!((&summary["status"], &summary["current_status"]), (&"fail".into(), &"skipped".into()));
        let checks = summary["checks"].as_array().unwrap();
        let count = |status: &str| checks.iter().filter(|check| check["status"] == status).count();
        assert_eq!((checks.len(), count("fail"), count("missing")), (13, 1, 12));
        assert_eq!(checks[0]["metric"], "__status__");
    }
}

#[test]
fn what_is_no_gpu_report_is_refused_and_nothing_is_written() {
    let here = Here::new();
    here.run(&[&["report", &data("report-v1.json")], &AS_APEX[..]].concat())
        .refuses(64, &["report-v1.json: no workload of suite \"mixed\" is for a CUDA device", "--suite gpu"]);
    here.run(&[&["report", &data("ab-v1.json")], &AS_APEX[..]].concat())
        .refuses(64, &["ab-v1.json: it is a side-by-side comparison, not a report"]);
    here.run(&[&["report", &data("apex-gpu-report.json")], &AS_APEX[..]].concat())
        .refuses(64, &["not a report: its top-level keys are"]);
    assert_eq!(here.files(), ["suite.toml"]);
}

#[test]
fn flags_that_mean_nothing_together_are_refused() {
    let here = Here::new();
    let report = data("report-gpu-h200.json");
    here.run(&["report", &report, "--output", "x.json"]).ends(64).notes(&["--as <FORM>"]);
    let comparison = data("comparison-v1.json");
    here.run(&["report", &report, "--as", "apex-gpu", "--comparison", &comparison])
        .ends(64)
        .notes(&["cannot be used with"]);
    assert_eq!(here.files(), ["suite.toml"]);
}
