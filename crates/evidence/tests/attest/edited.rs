//! Files that were edited, swapped or taken from elsewhere by somebody who wants a gate to pass.

use super::{
    BASE, COMMIT, attested, baseline, complete, gate, gated, judged, problems, report, sign_off, write,
};
use holdpoint_evidence::hash;
use holdpoint_model::attest::GateStatus;
use serde_json::{Value, json};
use std::path::Path;

fn read(dir: &Path, name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(dir.join(name)).unwrap()).unwrap()
}

#[test]
fn a_file_of_another_kind_passes_no_gate() {
    let jobs = json!({"x": {"result": "success"}});
    for (name, key) in [
        ("comparison.json", "cpu_perf_regression"),
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
    std::fs::copy(dir.path().join("doctor.json"), dir.path().join("comparison.json")).unwrap();
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
    let found = problems(whole, dir.path());
    assert!(found.iter().any(|p| p.contains("parity/parity_report.json is there, says FAIL")), "{found:?}");
    // Made with it, then edited to say nothing of it.
    let mut edited = attested(dir.path());
    let parity = edited.gates.iter_mut().find(|gate| gate.key == "runtime_backend_parity").unwrap();
    parity.inputs.retain(|input| input.path == "fuzz.json");
    (parity.status, parity.evidence) =
        (GateStatus::Pass, "fuzz.json: cpu: 10 of 10 fuzzed cases right".to_owned());
    let found = problems(edited, dir.path());
    assert!(found.iter().any(|p| p.contains("was not attested")), "{found:?}");
}

#[test]
fn a_comparison_that_was_turned_from_regressed_to_pass_is_found() {
    let says = |edit: fn(&mut Value)| {
        let dir = complete();
        let mut value = gated(dir.path(), 1.2);
        edit(&mut value);
        write(dir.path(), "comparison.json", &value);
        let (status, said) = gate(&attested(dir.path()), "cpu_perf_regression");
        if status == GateStatus::Fail { said } else { String::new() }
    };
    assert_eq!(says(|_| {}), "");
    for (edit, words) in [
        ((|c| c["verdict"] = json!("improved")) as fn(&mut Value), "the worst of its checks is pass"),
        (|c| c["checks"][0]["current_ms"] = json!(1.1), "infer_p50_ms.current_ms is 1.1, judged again 1.2"),
        (|c| c["checks"][0]["status"] = json!("fail"), "status"),
        (|c| c["status"] = json!("fail"), "its checks do not make it"),
        (|c| c["checks"][0]["allowed_max_ms"] = json!(null), "allowed_max_ms is null, judged again 1.5"),
        (|c| c["checks"][0]["allowed_max_ms"] = json!(2.5), "allowed_max_ms is 2.5, judged again 1.5"),
        (|c| c["checks"][0]["baseline_ms"] = json!(9.0), "baseline_ms is 9.0, judged again 1.0"),
        (
            |c| c["basis"]["baseline"]["metrics"]["infer_p50_ms"]["value_ms"] = json!(9.0),
            "allowed_max_ms is 1.5, judged again 13.5",
        ),
        (|c| c["basis"]["baseline"]["metrics"] = json!({}), "it.checks is"),
        (|c| c["policy"] = json!("threshold"), "no policy"),
        (|c| c["current_status"] = json!("failed"), "it.current_status is"),
        (|c| c["timestamp_utc"] = json!("2020-01-01T00:00:00Z"), "it.timestamp_utc is"),
        (|c| c["ungated"] = json!(["other_p50_ms"]), "it.ungated is"),
    ] {
        let said = says(edit);
        assert!(said.contains(words), "{words}: {said}");
    }
    // Regressed, and turned into a pass everywhere it is said.
    let dir = complete();
    let mut value = gated(dir.path(), 2.0);
    value["verdict"] = json!("pass");
    value["status"] = json!("pass");
    value["checks"][0]["verdict"] = json!("pass");
    value["checks"][0]["status"] = json!("pass");
    write(dir.path(), "comparison.json", &value);
    let (status, said) = gate(&attested(dir.path()), "cpu_perf_regression");
    assert!(status == GateStatus::Fail && said.contains("infer_p50_ms.status is"), "{said}");
    // Without what it was judged by, it is anybody's word.
    value.as_object_mut().unwrap().remove("basis");
    write(dir.path(), "comparison.json", &value);
    let (status, said) = gate(&attested(dir.path()), "cpu_perf_regression");
    assert!(status == GateStatus::Pending && said.contains("does not hold what it was judged by"), "{said}");
}

#[test]
fn a_comparison_is_of_all_the_runs_beside_it() {
    let dir = complete();
    let at = |name: &str, value: &Value| write(dir.path(), name, value);
    let cpu = || gate(&attested(dir.path()), "cpu_perf_regression");
    at("report.json", &report([1_100_000, 1_900_000, 2_300_000]));
    assert!(cpu().1.contains("current_ms is 1.2, judged again 1.9"), "{:?}", cpu());
    // The median over all of them.
    at("report-2.json", &report([1_100_000, 1_100_000, 1_300_000]));
    at("report-3.json", &report([1_100_000, 1_200_000, 1_300_000]));
    assert_eq!(cpu().0, GateStatus::Pass, "{:?}", cpu());
    std::fs::write(dir.path().join("report-2.json"), "").unwrap();
    assert!(cpu().0 == GateStatus::Fail && cpu().1.contains("report-2.json beside it"), "{:?}", cpu());
    std::fs::remove_file(dir.path().join("report-2.json")).unwrap();
    let mut other = report([1_200_000; 3]);
    other["benchmarks"]["extra"] = other["benchmarks"]["infer"].clone();
    at("report.json", &other);
    assert!(cpu().1.contains("it.ungated is [], judged again [\"extra_p50_ms\"]"), "{:?}", cpu());
    let mut without = report([1_200_000; 3]);
    without["benchmarks"]["infer"]["gated"] = json!([]);
    at("report.json", &without);
    assert_eq!(cpu().0, GateStatus::Fail, "{:?}", cpu());
}

#[test]
fn a_waiver_that_cannot_hold_waives_nothing_and_one_that_does_is_shown() {
    let says = |edit: fn(&mut Value)| {
        let dir = complete();
        let mut value = gated(dir.path(), 1.8);
        value["status"] = json!("pass");
        value["verdict"] = json!("waived");
        value["checks"][0]["verdict"] = json!("waived");
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
    let mut nameless = report([1_200_000; 3]);
    nameless.as_object_mut().unwrap().remove("revision");
    write(dir.path(), "report.json", &nameless);
    write(dir.path(), "comparison.json", &judged(&[nameless], &baseline()));
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
    assert_eq!(says(|_| {}), (GateStatus::Pass, "report of cpu, 1 workload, unsealed".to_owned()));
    for (edit, words) in [
        ((|r| r["benchmarks"]["infer"]["p95_ms"] = json!(1.0)) as fn(&mut Value), "p95_ms is 1"),
        (|r| r["benchmarks"]["infer"]["min_ms"] = json!(0.1), "min_ms is 0.1"),
        (|r| r["benchmarks"]["infer"]["mean_ms"] = json!(0.1), "mean_ms is 0.1"),
        (
            |r| r["benchmarks"]["infer"]["cpu_p50_ms"] = json!(0.1),
            "cpu_p50_ms is 0.1, the median of its samples 0",
        ),
        (|r| r["metrics"]["infer_p50_ms"] = json!(0.1), "metrics.infer_p50_ms: is 0.1"),
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

/// Two sides as they are left: samples, 40 units in which head takes so many times as long, and their judgement.
pub struct Sides {
    pub samples: Value,
    pub judgement: Value,
}

impl Sides {
    pub fn write(&self, dir: &Path) {
        write(dir, "ab.json", &self.samples);
        write(dir, "comparison.json", &self.judgement);
    }

    /// Judges the samples as they are now.
    pub fn judge(&mut self) {
        let report =
            holdpoint_model::document::read::<holdpoint_model::AbReport>(&self.samples.to_string()).unwrap();
        self.judgement = serde_json::to_value(holdpoint_gate::judge_recorded(&report).unwrap()).unwrap();
    }
}

pub fn side_by_side(ratio: f64) -> Sides {
    let round = |unit: u64| {
        let ns = 1_000_000 + 100 * unit;
        let head = (ns as f64 * ratio) as u64;
        json!({"round": 0, "order": 0, "first": "base", "base_ns": [ns, ns], "head_ns": [head, head], "state": {}})
    };
    let units: Vec<Value> =
        (0..40).map(|unit| json!({"process": unit, "x": 0.0, "rounds": [round(unit)]})).collect();
    let value = json!({
        "schema_version": 1, "suite": "cpu", "timestamp_utc": "2026-01-01T00:00:00Z", "finished": true,
        "plan": {
            "tolerance": 0.05, "alarm_rate": 0.001, "miss_rate": 0.01, "units_max": 40, "budget_s": 1.0,
            "seed": 1
        },
        "base": {"label": "a", "revision": {"commit": BASE, "dirty": false}}, "head": {"label": "b", "revision": {"commit": COMMIT, "dirty": false}},
        "toolchain": {"holdpoint": "0.1.0", "rustc": "x", "profile": "release", "kernel": "x"}, "elapsed_s": 1.0, "notes": [],
        "workloads": {"infer": {
            "identity": {"op": "x", "shape": [1], "dtype": "f32", "timer": "host_monotonic"}, "ended": "decided", "spent_s": 1.0, "calls_per_sample": 1, "units": units,
        }},
    });
    let mut report =
        holdpoint_model::document::read::<holdpoint_model::AbReport>(&value.to_string()).unwrap();
    for unit in report.workloads.values_mut().flat_map(|workload| &mut workload.units) {
        holdpoint_gate::ab::estimate::unit(unit).unwrap();
    }
    let mut sides = Sides { samples: serde_json::to_value(report).unwrap(), judgement: Value::Null };
    sides.judge();
    sides
}

#[test]
fn the_same_code_passes_only_where_the_code_of_both_sides_is_in_the_file() {
    let dir = complete();
    let mut sides = side_by_side(1.0);
    let infer = &mut sides.samples["workloads"]["infer"];
    infer["identity"]["timer"] = json!("cuda_graph");
    (infer["ended"], infer["units"]) = (json!("same_code"), json!([]));
    let judged = |sides: &Sides, key: &str| {
        sides.write(dir.path());
        gate(&attested(dir.path()), key)
    };
    sides.judge();
    assert_eq!(sides.judgement["verdict"], "inconclusive");
    assert_eq!(judged(&sides, "gpu_perf_regression").0, GateStatus::Pending);
    let kernel = |code: &str| {
        json!({
            "op_name": "x", "kernel_name": "k", "shape_bucket": "", "selection_source": "heuristic",
            "launches_per_call": 1, "code_sha256": code, "launches": ["k 1 32 0"]
        })
    };
    sides.samples["workloads"]["infer"]["kernels"] = json!({"base": kernel("a"), "head": kernel("a")});
    sides.judge();
    let (status, said) = judged(&sides, "gpu_perf_regression");
    assert!(status == GateStatus::Pass && said.contains("infer not measured: the same code"), "{said}");
    sides.samples["workloads"]["infer"]["kernels"]["head"] = kernel("b");
    let (status, said) = judged(&sides, "gpu_perf_regression");
    assert!(status == GateStatus::Fail && said.contains("its code differs"), "{said}");
    // What is timed on the host is always measured.
    sides.samples["workloads"]["infer"]["kernels"]["head"] = kernel("a");
    sides.samples["workloads"]["infer"]["identity"]["timer"] = json!("host_monotonic");
    let (status, said) = judged(&sides, "gpu_perf_regression");
    assert!(status == GateStatus::Fail && said.contains("it is timed on the host"), "{said}");
}

#[test]
fn two_sides_are_judged_again_from_their_rounds() {
    let dir = complete();
    let cpu = |sides: &Sides| {
        sides.write(dir.path());
        gate(&attested(dir.path()), "cpu_perf_regression")
    };
    assert_eq!(cpu(&side_by_side(1.0)).0, GateStatus::Pass, "{:?}", cpu(&side_by_side(1.0)));
    assert_eq!(cpu(&side_by_side(1.2)).0, GateStatus::Fail);
    let says = |edit: fn(&mut Value, &mut Value)| {
        let mut sides = side_by_side(1.2);
        (sides.judgement["verdict"], sides.judgement["status"]) = (json!("pass"), json!("pass"));
        let check = &mut sides.judgement["checks"][0];
        (check["verdict"], check["status"]) = (json!("pass"), json!("pass"));
        edit(&mut sides.judgement, &mut sides.samples);
        let (status, said) = cpu(&sides);
        assert_eq!(status, GateStatus::Fail, "{said}");
        said
    };
    let evidence = |check: &str| format!("infer.paired.evidence.{check}");
    assert!(says(|_, _| {}).contains("infer.status is \"pass\", judged again \"fail\""));
    assert!(says(|j, _| j["verdict"] = json!("improved")).contains("worst of its checks"));
    assert!(
        says(|_, s| s["workloads"]["infer"]["units"][3]["x"] = json!(0.0)).contains("unit 3 says x is 0")
    );
    let ratio = says(|j, _| {
        (j["checks"][0]["verdict"], j["checks"][0]["status"]) = (json!("regressed"), json!("fail"));
        (j["verdict"], j["status"]) = (json!("regressed"), json!("fail"));
        j["checks"][0]["paired"]["evidence"]["ratio"] = json!(1.0);
    });
    assert!(ratio.contains(&evidence("ratio is 1.0")), "{ratio}");
    assert!(
        says(|_, s| s["workloads"]["infer"]["units"][0]["rounds"] = json!([])).contains("has no samples")
    );
    assert!(says(|_, s| s["plan"]["units_max"] = json!(3)).contains("more units than its plan allows"));
    says(|j, _| j["basis"]["plan"]["alarm_rate"] = json!(7));
    let mut same_code = side_by_side(1.0);
    same_code.samples["workloads"]["infer"]["ended"] = json!("same_code");
    assert!(
        cpu(&same_code).1.contains("is called the same code, yet it was measured"),
        "{:?}",
        cpu(&same_code)
    );
    let mut waived = side_by_side(1.2);
    (waived.judgement["verdict"], waived.judgement["status"]) = (json!("waived"), json!("pass"));
    let mut waive = |expires: &str| {
        let check = &mut waived.judgement["checks"][0];
        (check["verdict"], check["status"]) = (json!("waived"), json!("pass"));
        check["waiver"] = json!({
            "state": "waived", "owner": "ada", "reason": "bounds", "metric": "infer", "limit": 0.5, "expires": expires
        });
        cpu(&waived)
    };
    assert_eq!(waive("2026-01-02").0, GateStatus::Pass, "{:?}", waive("2026-01-02"));
    // The run was in time, the release is not.
    assert!(waive("2026-01-01").1.contains("its waiver had expired"), "{:?}", waive("2026-01-01"));
    let mut other = side_by_side(1.0);
    other.samples["head"]["revision"]["commit"] = json!("e".repeat(40));
    other.write(dir.path());
    std::fs::remove_dir_all(dir.path().join("perf")).unwrap();
    std::fs::remove_file(dir.path().join("report.json")).unwrap();
    let artifact =
        attested(dir.path()).artifacts.into_iter().find(|a| a.key == "performance_report").unwrap();
    assert!(
        artifact.status == GateStatus::Fail && artifact.detail.contains("it is of commit eeee"),
        "{artifact:?}"
    );
}
