//! `holdpoint baseline promote`: only clean, whole reports of the revision that was merged.

use crate::common::{Here, Ran};
use holdpoint_evidence::hash;

/// A repository with a report of its only commit.
fn here() -> Here {
    let here = Here::new();
    here.git(&["init", "--quiet", "--initial-branch", "main"]);
    here.git(&["add", "suite.toml"]);
    here.git(&["commit", "--quiet", "--message", "first"]);
    here.run(&["-q", "run", "--suite", "suite.toml"]).ends(0);
    here
}

fn promote(here: &Here, arguments: &[&str]) -> Ran {
    here.run(&[&["baseline", "promote", "--by", "ada"], arguments].concat())
}

#[test]
fn a_report_of_the_revision_becomes_the_baseline_with_its_origin() {
    let here = here();
    promote(&here, &[]).ends(0).prints(&["promoted", "by ada"]);
    let baseline = here.json(&here.baseline());
    let promoted = &baseline["promoted"];
    assert_eq!(promoted["commit"], here.git(&["rev-parse", "HEAD"]));
    assert_eq!(promoted["by"], "ada");
    let sha256 = hash::bytes(here.read("artifacts/report.json").as_bytes());
    assert_eq!(promoted["report_sha256"], serde_json::json!([sha256]));
    // It gates at once.
    here.gate(&["--confirm", "0", "--artifacts", "gate"]);
    assert!(here.path("gate/comparison.json").exists());
}

#[test]
fn one_report_keeps_the_tolerances_and_notes_of_the_baseline_before() {
    let here = here();
    promote(&here, &[]).ends(0);
    let name = here.baseline();
    here.edit(&name, |baseline| {
        baseline["baseline_notes"] = "kept".into();
        baseline["metrics"]["pack_p50_ms"]["max_regression_ratio"] = 0.125.into();
    });
    promote(&here, &[]).ends(0);
    let baseline = here.json(&name);
    assert_eq!(baseline["metrics"]["pack_p50_ms"]["max_regression_ratio"], 0.125);
    assert_eq!(baseline["baseline_notes"], "kept");
    // Three reports tell their spread themselves.
    let report = "artifacts/report.json";
    promote(&here, &[report, report, report]).refuses(64, &["not promoted: report 2 is report 1 again"]);
    // Nor is a copy that differs by a line's end.
    here.write("copy.json", &format!("{}\n", here.read(report)));
    promote(&here, &[report, "copy.json"]).refuses(64, &["not promoted: report 2 is report 1 again"]);
    for name in ["two.json", "three.json"] {
        here.write(name, &here.read(report));
        here.edit(name, |other| other["timestamp_utc"] = name.into());
    }
    promote(&here, &[report, "two.json", "three.json"]).ends(0);
    assert_eq!(here.json(&name)["metrics"]["pack_p50_ms"]["max_regression_ratio"], 0.02);
}

#[test]
fn what_is_failed_skipped_dirty_or_of_another_revision_or_machine_is_refused() {
    let here = here();
    promote(&here, &[]).ends(0);
    let before = here.read(&here.baseline());
    let report = here.read("artifacts/report.json");
    let refuse = |change: &dyn Fn(&mut serde_json::Value), words: &str| {
        here.write("artifacts/report.json", &report);
        here.edit("artifacts/report.json", |report| change(report));
        promote(&here, &[]).refuses(64, &["not promoted: ", words]);
    };
    refuse(&|report| report["status"] = "failed".into(), "report 1 is of a run that failed");
    refuse(&|report| report["status"] = "skipped".into(), "report 1 is of a run that was skipped");
    refuse(&|report| report["revision"]["dirty"] = true.into(), "uncommitted changes");
    refuse(&|report| report["revision"]["commit"] = "0".repeat(40).into(), "report 1 is of revision 0000");
    refuse(&|report| report["revision"] = serde_json::Value::Null, "names no revision");
    refuse(&|report| report["machine"]["fingerprint"] = "another".into(), "of another machine");
    let drop = |report: &mut serde_json::Value| {
        report["benchmarks"].as_object_mut().unwrap().remove("true");
    };
    refuse(&drop, "the reports have not");
    let pack = |key: &'static str, value: serde_json::Value| {
        move |report: &mut serde_json::Value| report["benchmarks"]["pack"][key] = value.clone()
    };
    let wrong =
        |report: &mut serde_json::Value| report["benchmarks"]["pack"]["answer"]["passed"] = false.into();
    refuse(&wrong, "its answer is wrong");
    let reshape = |report: &mut serde_json::Value| {
        report["benchmarks"]["pack"]["identity"]["shape"] = serde_json::json!([1]);
    };
    refuse(&reshape, "pack_p50_ms: shape differs");
    here.write("artifacts/report.json", &report);
    here.edit("artifacts/report.json", |report| pack("p50_ms", 1e-9.into())(report));
    promote(&here, &[]).refuses(64, &["benchmarks.pack: p50_ms is 0.000000001, the median of its samples"]);
    here.write("artifacts/report.json", &report);
    here.git(&["commit", "--quiet", "--allow-empty", "--message", "second"]);
    promote(&here, &[]).refuses(64, &["not promoted: report 1 is of revision"]);
    promote(&here, &["--rev", "nowhere"]).ends(64);
    assert_eq!(here.read(&here.baseline()), before);
    promote(&here, &["--rev", "HEAD~1"]).ends(0);
}

#[test]
fn another_machine_is_taken_in_where_that_is_said() {
    let here = here();
    promote(&here, &[]).ends(0);
    here.edit("artifacts/report.json", |report| report["machine"]["fingerprint"] = "another".into());
    promote(&here, &["--baseline", &here.baseline()]).refuses(64, &["the baseline is of another machine"]);
    promote(&here, &["--new-machine"]).ends(0);
    assert!(here.path(".holdpoint/baselines/tiny-another.json").exists());
}
