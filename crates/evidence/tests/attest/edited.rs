//! Files that were edited, swapped or taken from elsewhere by somebody who wants a gate to pass.

use super::{COMMIT, attested, comparison, complete, gate, problems, sign_off, write};
use holdpoint_evidence::hash;
use holdpoint_model::attest::GateStatus;
use serde_json::{Value, json};
use std::path::Path;

fn read(dir: &Path, name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(dir.join(name)).unwrap()).unwrap()
}

/// A report of ours of one workload, three samples.
fn report(times_ns: [u64; 3]) -> Value {
    let mut sorted = times_ns.map(|ns| ns as f64 / 1e6);
    sorted.sort_by(f64::total_cmp);
    let [min, p50, _] = sorted;
    json!({
        "schema_version": 1, "suite": "cpu", "timestamp_utc": "2026-01-01T00:00:00Z", "status": "ok",
        "environment": {"platform": "x", "device": "cpu", "cuda_available": false},
        "config": {"seed": 1, "percentile_rule": "sorted[floor(q(n-1))]", "clock_resolution_ns": 25, "elapsed_s": 1.0},
        "revision": {"commit": COMMIT, "dirty": false},
        "toolchain": {"holdpoint": "0.1.0", "rustc": "x", "profile": "release", "kernel": "x"},
        "metrics": {"infer_p50_ms": p50},
        "benchmarks": {"infer": {
            "identity": {"op": "x", "shape": [1], "dtype": "f32", "timer": "host_monotonic"}, "gated": ["p50_ms"],
            "status": "measured", "p50_ms": p50, "p95_ms": p50, "p99_ms": p50,
            "mean_ms": sorted.iter().sum::<f64>() / 3.0, "min_ms": min,
            "answer": {"passed": true, "values_count": 1, "max_abs_err": 0.0, "max_rel_err": 0.0},
            "warmup": {"calls_count": 1, "stable": true}, "stopped": "rounds_max",
            "samples": {"calls_per_sample": 1, "rounds": [{"process": 0, "round": 0, "order": 0, "elapsed_ns": times_ns}]},
        }},
    })
}

#[test]
fn a_file_of_another_kind_passes_no_gate() {
    let jobs = json!({"x": {"result": "success"}});
    for (name, key) in [
        ("comparison.json", "cpu_perf_regression"),
        ("ab.json", "cpu_perf_regression"),
        ("check.json", "runtime_backend_parity"),
        ("doctor.json", "runtime_capability_transparency"),
        ("signoff/security_review.json", "security_review"),
        ("signoff/documentation_sync.json", "documentation_sync"),
    ] {
        let dir = complete();
        write(dir.path(), name, &jobs);
        let (status, said) = gate(&attested(dir.path()), key);
        assert!(
            status == GateStatus::Fail && said.contains("jobs' results says nothing about"),
            "{name}: {said}"
        );
    }
    let dir = complete();
    std::fs::copy(dir.path().join("doctor.json"), dir.path().join("ab.json")).unwrap();
    let attestation = attested(dir.path());
    for key in ["cpu_perf_regression", "gpu_perf_regression"] {
        assert_eq!(gate(&attestation, key).0, GateStatus::Fail);
    }
    let dir = complete();
    write(dir.path(), "doctor.json", &sign_off("runtime_capability_transparency", COMMIT));
    assert_eq!(gate(&attested(dir.path()), "runtime_capability_transparency").0, GateStatus::Fail);
    let artifact =
        attested(dir.path()).artifacts.into_iter().find(|a| a.key == "runtime_capability_snapshot");
    assert_eq!(artifact.unwrap().status, GateStatus::Fail);
}

#[test]
fn a_verdict_file_that_was_left_out_or_came_later_is_found() {
    let dir = complete();
    let whole = attested(dir.path());
    let mut bad = super::fuzz(2);
    bad["suite"] = json!("late");
    write(dir.path(), "parity/parity_report.json", &bad);
    let found = problems(whole, dir.path(), false);
    assert!(found.iter().any(|p| p.contains("parity/parity_report.json is there, says FAIL")), "{found:?}");
    // Made with it, then edited to say nothing of it.
    let mut edited = attested(dir.path());
    let parity = edited.gates.iter_mut().find(|gate| gate.key == "runtime_backend_parity").unwrap();
    parity.inputs.retain(|input| input.path == "fuzz.json");
    (parity.status, parity.evidence) =
        (GateStatus::Pass, "fuzz.json: cpu: 10 of 10 fuzzed cases right".to_owned());
    let found = problems(edited, dir.path(), false);
    assert!(found.iter().any(|p| p.contains("was not attested")), "{found:?}");
}

#[test]
fn a_comparison_that_was_turned_from_regressed_to_pass_is_found() {
    let says = |edit: fn(&mut Value)| {
        let dir = complete();
        let mut value = comparison("pass", 1.2);
        edit(&mut value);
        write(dir.path(), "comparison.json", &value);
        let (status, said) = gate(&attested(dir.path()), "cpu_perf_regression");
        if status == GateStatus::Fail { said } else { String::new() }
    };
    assert_eq!(says(|_| {}), "");
    assert!(says(|c| c["checks"][0]["current_ms"] = json!(1.1)).contains("regression_ratio of"));
    assert!(says(|c| c["checks"][0]["status"] = json!("fail")).contains("yet its status is fail"));
    assert!(says(|c| c["status"] = json!("fail")).contains("its checks do not make it"));
    assert!(says(|c| c["checks"][0]["allowed_max_ms"] = json!(null)).contains("no allowed_max_ms"));
    assert!(says(|c| c["checks"][0]["current_ms"] = json!(null)).contains("has not the times"));
    assert!(says(|c| c["current_status"] = json!("failed")).contains("not the required one"));
}

#[test]
fn a_comparison_is_of_all_the_runs_beside_it() {
    let dir = complete();
    let at = |name: &str, value: &Value| write(dir.path(), name, value);
    let cpu = || gate(&attested(dir.path()), "cpu_perf_regression");
    at("report.json", &report([1_100_000, 1_200_000, 1_300_000]));
    assert_eq!(cpu().0, GateStatus::Pass, "{:?}", cpu());
    at("report.json", &report([1_100_000, 1_900_000, 2_300_000]));
    assert!(cpu().1.contains("the report beside it says 1.9 ms"), "{:?}", cpu());
    // The median over all of them.
    at("report-2.json", &report([1_100_000, 1_100_000, 1_300_000]));
    at("report-3.json", &report([1_100_000, 1_200_000, 1_300_000]));
    assert_eq!(cpu().0, GateStatus::Pass, "{:?}", cpu());
    std::fs::write(dir.path().join("report-2.json"), "").unwrap();
    assert!(cpu().0 == GateStatus::Fail && cpu().1.contains("report-2.json beside it"), "{:?}", cpu());
    std::fs::remove_file(dir.path().join("report-2.json")).unwrap();
    let mut other = report([1_100_000, 1_200_000, 1_300_000]);
    other["benchmarks"]["extra"] = other["benchmarks"]["infer"].clone();
    at("report.json", &other);
    assert!(
        cpu().1.contains("extra_p50_ms: it is in the report beside it, and was not judged"),
        "{:?}",
        cpu()
    );
    let mut without = report([1_100_000, 1_200_000, 1_300_000]);
    without["benchmarks"]["infer"]["gated"] = json!([]);
    at("report.json", &without);
    assert!(cpu().1.contains("is not in the report beside it"), "{:?}", cpu());
}

#[test]
fn a_waiver_that_cannot_hold_waives_nothing_and_one_that_does_is_shown() {
    let says = |edit: fn(&mut Value)| {
        let dir = complete();
        let mut value = comparison("waived", 1.8);
        value["timestamp_utc"] = json!("2026-01-01T00:00:00Z");
        value["status"] = json!("pass");
        value["checks"][0]["status"] = json!("pass");
        value["checks"][0]["waiver"] = json!({
            "state": "waived", "owner": "ada", "reason": "bounds", "metric": "infer_*", "limit": 0.9, "expires": "2026-02-01"
        });
        edit(&mut value);
        write(dir.path(), "comparison.json", &value);
        gate(&attested(dir.path()), "cpu_perf_regression")
    };
    let (status, said) = says(|_| {});
    assert!(
        status == GateStatus::Pass && said.contains("waived up to +90.0 % by ada until 2026-02-01"),
        "{said}"
    );
    for (edit, words) in [
        ((|c| c["checks"][0]["waiver"]["expires"] = json!("2025-12-31")) as fn(&mut Value), "expired"),
        (|c| c["checks"][0]["waiver"]["metric"] = json!("other"), "something else"),
        (|c| c["checks"][0]["waiver"]["limit"] = json!(1e9), "that limit"),
        (|c| c["checks"][0]["waiver"]["owner"] = json!(" "), "no owner"),
        (|c| c["checks"][0]["waiver"]["reason"] = json!(""), "no reason"),
        (|c| c["checks"][0]["waiver"] = json!(null), "no waiver beside it"),
    ] {
        let (status, said) = says(edit);
        assert!(status == GateStatus::Fail && said.contains(words), "{words}: {said}");
    }
}

#[test]
fn what_names_no_commit_or_another_one_does_not_pass() {
    let dir = complete();
    let mut value = comparison("pass", 1.2);
    value.as_object_mut().unwrap().remove("revision");
    write(dir.path(), "comparison.json", &value);
    let (status, said) = gate(&attested(dir.path()), "cpu_perf_regression");
    assert!(status == GateStatus::Pending && said.contains("it names no commit"), "{said}");
    let artifact = |key: &str| attested(dir.path()).artifacts.into_iter().find(|a| a.key == key).unwrap();
    let mut manifest = read(dir.path(), "replay.json");
    manifest["revision"] = json!({"commit": "f".repeat(40), "dirty": false});
    write(dir.path(), "replay.json", &manifest);
    assert!(artifact("export_manifest").detail.contains("it is of commit ffff"));
    manifest["revision"] = json!({"commit": COMMIT, "dirty": true});
    write(dir.path(), "replay.json", &manifest);
    assert_eq!(artifact("export_manifest").status, GateStatus::Fail);
    let verified = json!({
        "schema_version": 1, "manifest_sha256": hash::bytes(b"another"), "compared": "exact", "same": true, "differences": [],
        "skipped": {}, "outputs_count": 1, "values_count": 1, "timestamp_utc": "2026-01-01T00:00:00Z",
        "revision": {"commit": COMMIT, "dirty": false},
    });
    write(dir.path(), "replay-verify.json", &verified);
    assert!(gate(&attested(dir.path()), "runtime_backend_parity").1.contains("another manifest"));
}

#[test]
fn an_edited_report_is_no_performance_report() {
    let says = |edit: fn(&mut Value)| {
        let dir = complete();
        std::fs::remove_dir_all(dir.path().join("perf")).unwrap();
        let mut value = report([1_100_000, 1_200_000, 1_300_000]);
        edit(&mut value);
        write(dir.path(), "report.json", &value);
        let artifact =
            attested(dir.path()).artifacts.into_iter().find(|a| a.key == "performance_report").unwrap();
        (artifact.status, artifact.detail)
    };
    assert_eq!(says(|_| {}), (GateStatus::Pass, "report of cpu, 1 workload".to_owned()));
    for (edit, words) in [
        ((|r| r["benchmarks"]["infer"]["p95_ms"] = json!(1.0)) as fn(&mut Value), "p95_ms is 1"),
        (|r| r["benchmarks"]["infer"]["min_ms"] = json!(0.1), "min_ms is 0.1"),
        (|r| r["benchmarks"]["infer"]["mean_ms"] = json!(0.1), "mean_ms is 0.1"),
        (|r| r["benchmarks"]["infer"]["answer"]["passed"] = json!(false), "its answer is wrong"),
        (|r| r["status"] = json!("failed"), "its status is failed"),
        (|r| drop(r.as_object_mut().unwrap().remove("toolchain")), ""),
        (|r| r["revision"]["commit"] = json!("other"), "it is of commit other"),
        (|r| r["benchmarks"] = json!({}), "it has no workloads"),
    ] {
        let (status, said) = says(edit);
        assert!(status == GateStatus::Fail && said.contains(words), "{words}: {said}");
    }
    let (status, said) = says(|r| drop(r.as_object_mut().unwrap().remove("revision")));
    assert!(status == GateStatus::Pending && said.contains("names no commit"), "{said}");
}

#[test]
fn sign_offs_of_nobody_and_silent_capabilities_do_not_pass() {
    let dir = complete();
    let security = |edit: fn(&mut Value)| {
        let mut value = sign_off("security_review", COMMIT);
        edit(&mut value);
        write(dir.path(), "signoff/security_review.json", &value);
        gate(&attested(dir.path()), "security_review").0
    };
    assert_eq!(security(|_| {}), GateStatus::Pass);
    assert_eq!(security(|s| s["schema_version"] = json!(2)), GateStatus::Fail);
    assert_eq!(security(|s| s["signed_off_by"] = json!(" ")), GateStatus::Fail);
    let caps = |nvml: Value| {
        let mut value = read(Path::new("tests/fixtures"), "caps.json");
        value["nvml"] = nvml;
        write(dir.path(), "doctor.json", &value);
        gate(&attested(dir.path()), "runtime_capability_transparency").0
    };
    assert_eq!(caps(json!({"available": false, "reason": "no driver"})), GateStatus::Pass);
    assert_eq!(caps(json!({"available": false, "reason": "  "})), GateStatus::Fail);
    assert_eq!(caps(json!({"available": false})), GateStatus::Fail);
}

#[test]
fn a_bad_file_fails_the_summary_even_where_it_is_not_needed() {
    let dir = complete();
    write(dir.path(), "trt/plugin_versions.json", &json!([]));
    let attestation = attested(dir.path());
    assert_eq!(attestation.summary.overall_status, "fail");
}

#[test]
fn two_sides_are_held_against_their_units() {
    let ab = |ratio: f64, x: f64| {
        let times = json!({"p50_ms": 1.0, "p95_ms": 1.0, "p99_ms": 1.0});
        json!({
            "schema_version": 1, "suite": "cpu", "timestamp_utc": "2026-01-01T00:00:00Z", "verdict": "pass",
            "policy": "sequential", "finished": true,
            "plan": {
                "tolerance": 0.05, "alarm_rate": 0.001, "miss_rate": 0.01, "units_max": 4, "budget_s": 1.0,
                "rounds_per_unit": 1, "round_ms": 1.0, "seed": 1
            },
            "base": {"label": "a"}, "head": {"label": "b", "revision": {"commit": COMMIT, "dirty": false}},
            "toolchain": {"holdpoint": "0.1.0", "rustc": "x", "profile": "release", "kernel": "x"}, "elapsed_s": 1.0, "notes": [],
            "workloads": {"infer": {
                "identity": {"op": "x", "shape": [1], "dtype": "f32", "timer": "host_monotonic"}, "verdict": "pass",
                "reason": "", "ended": "decided", "spent_s": 1.0, "calls_per_sample": 1,
                "evidence": {
                    "ratio": ratio, "e_slower": 0.0, "e_not_slower": 1e9, "e_faster": 0.0, "units_count": 1, "rounds_count": 1,
                    "rounds_left_out": 0, "base": times, "head": times
                },
                "units": [{"process": 0, "x": x, "rounds": []}],
            }},
        })
    };
    let dir = complete();
    let cpu = |value: &Value| {
        write(dir.path(), "ab.json", value);
        gate(&attested(dir.path()), "cpu_perf_regression")
    };
    assert_eq!(cpu(&ab(1.0, 0.0)).0, GateStatus::Pass, "{:?}", cpu(&ab(1.0, 0.0)));
    assert!(cpu(&ab(1.0, 0.7)).1.contains("is not that of its units"));
    assert!(cpu(&ab(0.7_f64.exp(), 0.7)).1.contains("slower than the tolerance"));
    let mut bare = ab(1.0, 0.0);
    bare["workloads"]["infer"].as_object_mut().unwrap().remove("evidence");
    assert!(cpu(&bare).1.contains("has not the evidence"));
    let mut other = ab(1.0, 0.0);
    other["head"]["revision"]["commit"] = json!("e".repeat(40));
    write(dir.path(), "ab.json", &other);
    std::fs::remove_dir_all(dir.path().join("perf")).unwrap();
    let artifact =
        attested(dir.path()).artifacts.into_iter().find(|a| a.key == "performance_report").unwrap();
    assert!(
        artifact.status == GateStatus::Fail && artifact.detail.contains("it is of commit eeee"),
        "{artifact:?}"
    );
}
