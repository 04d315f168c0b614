//! `holdpoint compare` on the originals' own files.

use crate::common::{Here, data, keys};

#[test]
fn apex_x_files_pass_against_their_own_baseline() {
    let here = Here::new();
    let arguments = ["compare", &data("apex-cpu-report.json"), "--baseline", &data("apex-cpu-baseline.json")];
    here.run(&arguments).ends(0).prints(&["pass: none of the 5 metrics is slower than allowed"]);
    here.run(&[&arguments[..], &["--policy", "threshold"]].concat()).ends(0).prints(&["PERFORMANCE SIMILAR"]);
}

#[test]
fn an_apex_x_metric_over_its_tolerance_fails_under_either_policy() {
    let here = Here::new();
    here.write("report.json", &std::fs::read_to_string(data("apex-cpu-report.json")).unwrap());
    here.edit("report.json", |report| report["metrics"]["infer_p50_ms"] = 2.5.into());
    let arguments = ["compare", "report.json", "--baseline", &data("apex-cpu-baseline.json")];
    // Ten times: what the noise of one run may be stays open, and Apex-X's rule does not ask.
    here.run(&arguments).ends(3).prints(&[
        "policy stored",
        "undecided at a tolerance of 875.1 %",
        "--policy allowed-max",
    ]);
    here.run(&[&arguments[..], &["--policy", "allowed-max"]].concat())
        .ends(1)
        .prints(&["regressed: 1 of 5 metrics is slower than allowed (infer_p50_ms +900 %)"]);
    let ran = here.run(&[&arguments[..], &["--policy", "threshold"]].concat());
    ran.ends(1).prints(&["REGRESSION DETECTED"]);
}

#[test]
fn the_second_seeds_example_is_a_slight_improvement_and_its_reverse_regresses() {
    let here = Here::new();
    let (slow, fast) = (data("dent-result.json"), data("dent-legacy-result.json"));
    let forth = ["compare", &fast, "--baseline", &slow, "--policy", "threshold"];
    here.run(&forth).ends(0).prints(&["52.40 µs", "51.80 µs", "SLIGHT IMPROVEMENT"]);
    let back = ["compare", &slow, "--baseline", &fast, "--policy", "threshold"];
    here.run(&back).ends(0).prints(&["PERFORMANCE SIMILAR"]);
    here.run(&[&back[..], &["--threshold", "-1.0"]].concat()).ends(1).prints(&["REGRESSION DETECTED"]);
    here.run(&["compare", &slow, "--baseline", &fast])
        .ends(3)
        .prints(&["policy stored", "the baseline is one run"]);
}

#[test]
fn summary_and_trend_have_the_seeds_keys() {
    let here = Here::new();
    let (slow, fast) = (data("dent-result.json"), data("dent-legacy-result.json"));
    let files = ["--output", "out/summary.json", "--trend-output", "out/trend.json"];
    let arguments = [&["compare", &fast, "--baseline", &slow, "--policy", "threshold"], &files[..]].concat();
    here.run(&arguments).ends(0);
    let summary = here.json("out/summary.json");
    for key in [
        "schema_version",
        "suite",
        "status",
        "checks",
        "speedup",
        "improvement_pct",
        "is_regression",
        "baseline_time_ms",
        "current_time_ms",
        "threshold",
    ] {
        assert!(summary.get(key).is_some(), "{key} is missing: {summary}");
    }
    assert_eq!((&summary["status"], &summary["is_regression"]), (&"pass".into(), &false.into()));
    assert_eq!((&summary["baseline_time_ms"], &summary["current_time_ms"]), (&0.0524.into(), &0.0518.into()));
    let check = &summary["checks"][0];
    for key in ["metric", "status", "baseline_ms", "allowed_max_ms", "current_ms", "regression_ratio"] {
        assert!(check.get(key).is_some(), "{key} is missing: {check}");
    }
    let trend = here.json("out/trend.json");
    assert_eq!(
        keys(&trend),
        [
            "failed_metrics",
            "metrics",
            "overall_status",
            "schema_version",
            "suite",
            "timestamp_utc",
            "total_metrics"
        ]
    );
    assert_eq!(
        keys(&trend["metrics"][0]),
        ["allowed_max_ms", "baseline_ms", "current_ms", "metric", "regression_ratio", "status"]
    );
}

#[test]
fn a_report_compares_with_itself_and_with_another_report() {
    let here = Here::new();
    here.run(&["run", "--suite", "suite.toml", "-o", "a.json"]).ends(0);
    let itself = ["compare", "a.json", "--baseline", "a.json", "--policy", "allowed-max"];
    here.run(&itself).ends(0).prints(&["pass"]);
    here.edit("a.json", |report| {
        report["benchmarks"]["pack"]["identity"]["shape"] = vec![1, 4, 16, 16].into()
    });
    here.run(&["run", "--suite", "suite.toml", "-o", "b.json"]).ends(0);
    here.run(&["compare", "b.json", "--baseline", "a.json"])
        .prints(&["shape differs: baseline [1, 4, 16, 16]"]);
}

#[test]
fn a_threshold_means_the_policy_of_that_name() {
    let here = Here::new();
    let (slow, fast) = (data("dent-result.json"), data("dent-legacy-result.json"));
    here.run(&["compare", &slow, "--baseline", &fast, "--threshold", "-1.0"])
        .ends(1)
        .prints(&["policy threshold"]);
    here.run(&["compare", &slow, "--baseline", &fast, "--threshold", "-1.0", "--policy", "allowed-max"])
        .refuses(64, &["--threshold goes with --policy threshold"]);
}
