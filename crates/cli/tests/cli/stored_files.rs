//! Files kept between runs: trends, reports and baselines.

use crate::common::{Here, data};

#[test]
fn a_trend_point_is_appended_once_and_shown() {
    let here = Here::new();
    let point = data("trend-v1.json");
    here.run(&["trend", "append", &point]).ends(0).notes(&[" appended to .holdpoint/trend/"]);
    here.run(&["trend", "append", &point]).ends(0).notes(&[" already in .holdpoint/trend/"]);
    let history = here.files().into_iter().find(|name| name.ends_with(".ndjson")).unwrap();
    assert_eq!(here.read(&history).lines().count(), 1);
    here.run(&["trend", "show", &history]).ends(0).prints(&["trend: 1 run"]);
    let shown = here.run(&["--format", "json", "trend", "show", &history]);
    let points: serde_json::Value = serde_json::from_str(&shown.ends(0).stdout).unwrap();
    assert_eq!(points.as_array().unwrap().len(), 1);
}

#[test]
fn report_renders_a_saved_report() {
    let here = Here::new();
    let first = here.run(&["run", "--suite", "suite.toml"]);
    let again = here.run(&["report", "--markdown", "again.md"]);
    assert_eq!(again.ends(0).stdout, first.ends(0).stdout);
    again.notes(&["markdown: again.md"]);
    assert!(here.read("again.md").contains("pack"));
}

#[test]
fn report_shows_a_saved_comparison() {
    let here = Here::new();
    here.gate(&[]).ends(0);
    here.edit_times(1e9);
    let gated = here.gate(&[]);
    let again = here.run(&["report", "--comparison", "artifacts/comparison.json", "--markdown", "again.md"]);
    again.ends(0).prints(&["improved", &gated.stdout]);
    assert_eq!(here.read("again.md"), here.read("artifacts/report.md"));
}

#[test]
fn a_template_has_the_wide_tolerances_of_apex_x() {
    let here = Here::new();
    let report = data("apex-cpu-report.json");
    let ran = here.run(&["baseline", "template", &report, "--baseline", "base.json"]);
    ran.ends(0).prints(&["+75.0 % + 2.000 ms"]).notes(&["baseline: base.json"]);
    let metrics = &here.json("base.json")["metrics"];
    assert_eq!(metrics["infer_p95_ms"]["max_regression_ratio"], 1.0);
    assert_eq!(metrics["infer_p95_ms"]["max_regression_abs_ms"], 5.0);
    here.run(&["compare", &report, "--baseline", "base.json"]).ends(0);
}

#[test]
fn fit_refuses_a_baseline_with_too_few_runs() {
    let here = Here::new();
    let report = data("apex-cpu-report.json");
    let record = |reports: &[&str]| {
        let arguments = [&["baseline", "template"], reports, &["--baseline", "base.json"]].concat();
        here.run(&arguments).ends(0);
    };
    record(&[&report]);
    let before = here.read("base.json");
    here.run(&["baseline", "fit", "base.json"])
        .refuses(64, &["base.json: ", "at least 3", "holdpoint baseline record"]);
    assert_eq!(here.read("base.json"), before);
    record(&[report.as_str(); 3]);
    here.run(&["baseline", "fit", "base.json"]).ends(0).prints(&["+2.0 %"]);
    assert_eq!(here.json("base.json")["metrics"]["infer_p50_ms"]["max_regression_ratio"], 0.02);
    here.run(&["baseline", "show", "base.json"]).ends(0).prints(&["+2.0 %", "from 3 runs"]);
}

#[test]
fn a_baseline_is_named_after_suite_and_machine() {
    let here = Here::new();
    here.run(&["baseline", "record", "--suite", "suite.toml", "--runs", "1"]).ends(3);
    assert!(here.baseline().starts_with(".holdpoint/baselines/tiny-"));
    here.run(&["baseline", "show", "--suite", "suite.toml"]).ends(0).prints(&["pack_p50_ms"]);
    // Apex-X's reports name no machine, so the baseline has no default file name.
    let ran = here.run(&["baseline", "record", &data("apex-cpu-report.json")]);
    ran.refuses(64, &["these reports name no machine", "--baseline FILE"]);
}
