//! What a release rests on, read from files that are good, bad, missing, edited or swapped.

#![allow(clippy::unwrap_used)]

mod base;
mod beside;
mod edited;
mod interop;
mod rejudged;
mod release;
mod sealed;

use ed25519_dalek::SigningKey;
use holdpoint_evidence::attest::{
    BaseRelation, Facts, Places, Request, Signed, Signer, create, judge_release, statement, verify,
};
use holdpoint_evidence::canonical::to_canonical;
use holdpoint_evidence::{dsse, hash, keys, seal};
use holdpoint_gate::{Allow, Policy};
use holdpoint_model::attest::{GateStatus, ReleaseMetadata, RuntimeTarget, Subject};
use holdpoint_model::{Attestation, Date, ReleasePolicy};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use tempfile::TempDir;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
/// The commit that it is compared with.
const BASE: &str = "ba5eba5eba5eba5eba5eba5eba5eba5eba5eba5e";

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

/// One millisecond, and half of that slower at most.
fn baseline() -> Value {
    json!({
        "schema_version": 1, "suite": "cpu", "metrics": {"infer_p50_ms": {"value_ms": 1.0, "max_regression_ratio": 0.5}},
        "runs": [{"timestamp_utc": "2025-12-01T00:00:00Z", "revision": {"commit": BASE, "dirty": false}}],
    })
}

/// The reports as the gate judges them.
fn judged(reports: &[Value], baseline: &Value) -> Value {
    let runs: Vec<_> = reports
        .iter()
        .map(|r| holdpoint_interop::read_current(&r.to_string().as_str().into()).unwrap())
        .collect();
    let baseline = holdpoint_interop::read_baseline(&baseline.to_string().as_str().into()).unwrap();
    let current = holdpoint_gate::confirm::median_run(&runs).unwrap().current;
    let judgement = holdpoint_gate::judge_run(&current, &baseline, Allow::default(), Policy::AllowedMax);
    serde_json::to_value(judgement).unwrap()
}

/// A run of which the median is so long, and its comparison with the baseline, in the folder as a gate leaves them.
fn gated(dir: &Path, p50_ms: f64) -> Value {
    let report = report([(p50_ms * 1e6) as u64; 3]);
    let comparison = judged(std::slice::from_ref(&report), &baseline());
    write(dir, "report.json", &report);
    write(dir, "comparison.json", &comparison);
    comparison
}

fn fuzz(failures: usize) -> Value {
    let case = json!({"op": "x", "shape": [1], "dtype": "f32", "seed": 1, "values": "normal"});
    let failure = json!({"finding": {"kind": "wrong_answer", "detail": "d"}, "case": case, "first": case, "found_after": 1});
    json!({
        "schema_version": 1, "suite": "cpu", "timestamp_utc": "2026-01-01T00:00:00Z", "seed": 1, "elapsed_s": 1.0,
        "revision": {"commit": COMMIT, "dirty": false},
        "kernels": [{
            "op": "x", "dtype": "f32", "worker": "builtin", "cases_count": 10, "passed_count": 10 - failures,
            "errors": {"values_count": 1, "max_abs_err": 0.0, "mean_abs_err": 0.0, "max_rel_err": 0.0, "rel_norm": 0.0},
            "failures": vec![failure; failures],
        }],
    })
}

fn sign_off(gate: &str, commit: &str) -> Value {
    json!({
        "schema_version": 1, "gate": gate, "status": "PASS", "signed_off_by": "ada", "commit_sha": commit,
        "evidence": "read all of it"
    })
}

fn write(dir: &Path, name: &str, value: &Value) {
    holdpoint_store::write_text(&dir.join(name), &value.to_string()).unwrap();
}

/// A folder in which all is well for a release on the CPU.
fn complete() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str, value: Value| write(dir.path(), name, &value);
    let config = json!({"kmax": 32}).as_object().unwrap().clone();
    let manifest = holdpoint_evidence::replay::manifest(7, config, BTreeMap::new()).unwrap();
    at("replay.json", serde_json::to_value(manifest).unwrap());
    std::fs::write(dir.path().join("model.onnx"), [0x08, 0x09, 0x12]).unwrap();
    at("fuzz.json", fuzz(0));
    // One of Apex-X's own.
    at(
        "perf/perf_report.json",
        json!({"schema_version": 1, "suite": "cpu", "metrics": {"infer_p50_ms": 1.2}}),
    );
    at("eval.json", json!({"top1": 0.7}));
    let caps = include_str!("../fixtures/caps.json");
    std::fs::write(dir.path().join("doctor.json"), caps).unwrap();
    gated(dir.path(), 1.2);
    at("needs.json", json!({"lint": {"result": "success"}, "tests": {"result": "success"}}));
    at("signoff/security_review.json", sign_off("security_review", COMMIT));
    at("signoff/documentation_sync.json", sign_off("documentation_sync", COMMIT));
    dir
}

fn asked(dir: &Path, target: RuntimeTarget) -> Request<'_> {
    let now = "2026-01-02T03:04:05Z";
    Request {
        dir,
        metadata: ReleaseMetadata {
            release_tag: "v1".to_owned(),
            commit_sha: COMMIT.to_owned(),
            build_date_utc: now.to_owned(),
            release_owner: "ada".to_owned(),
            runtime_target: target,
            ci_run_url: None,
            dirty: Some(false),
            tree_sha: None,
            ref_name: None,
        },
        artifact_paths: BTreeMap::new(),
        gate_files: Vec::new(),
        without: BTreeMap::new(),
        release_files: Vec::new(),
        holdpoint: "0.1.0".to_owned(),
    }
}

fn attested(dir: &Path) -> Attestation {
    create(&asked(dir, RuntimeTarget::Cpu)).unwrap()
}

fn gate(attestation: &Attestation, key: &str) -> (GateStatus, String) {
    let gate = attestation.gates.iter().find(|gate| gate.key == key).unwrap();
    (gate.status, gate.evidence.clone())
}

/// What is known of a release of [`COMMIT`] on its day.
fn facts() -> Facts {
    Facts {
        today: Date::new(2026, 1, 2).unwrap(),
        commit: Some(COMMIT.to_owned()),
        bases: [(BASE.to_owned(), BaseRelation::Ancestor)].into(),
    }
}

/// What the strictest policy misses in it beside a signature, where one key may seal.
fn missing(attestation: &Attestation) -> Vec<String> {
    let sealed_by = vec![keys::key_id(&sealing_key().verifying_key())];
    let policy = ReleasePolicy { sealed_by, ..Default::default() };
    judge_release(attestation, &Signer::NotYet, &policy, &facts())
}

fn verified(document: Signed<'_>, dir: &Path) -> (Vec<String>, Option<Attestation>) {
    let released = tempfile::tempdir().unwrap();
    let places = Places { artifacts: dir, released: released.path() };
    verify(document, places, &ReleasePolicy::default()).unwrap()
}

/// What does not hold of it when it is signed.
fn problems(attestation: Attestation, dir: &Path) -> Vec<String> {
    let key = SigningKey::from_bytes(&[3; 32]);
    let payload = to_canonical(&statement(attestation)).unwrap();
    let envelope = dsse::sign(payload.as_bytes(), &key);
    let public = key.verifying_key().into();
    verified(Signed::Envelope(envelope, &public), dir).0
}

/// The machine's key.
fn sealing_key() -> SigningKey {
    SigningKey::from_bytes(&[9; 32])
}

/// Seals one file.
fn seal(dir: &Path, path: &str, key: Option<&SigningKey>) {
    let file = dir.join(path);
    let text = std::fs::read_to_string(&file).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let samples = seal::sealed_samples(&text).unwrap();
    let (workloads, samples) =
        samples.map_or_else(Default::default, |(names, sha256)| (names, json!({name: sha256})));
    let sealed = json!({
        "schema_version": 1, "command": "gate", "sealed_at_utc": "2026-01-01T00:00:00Z", "holdpoint": "0.1.0",
        "commit": COMMIT, "tree": "tree", "dirty": false, "suite": {"name": "cpu", "sha256": "0"},
        "workloads": workloads, "samples_sha256": if samples.is_null() { json!({}) } else { samples },
        "files": {name: hash::bytes(text.as_bytes())},
    });
    let sealed = serde_json::from_value(sealed).unwrap();
    std::fs::write(seal::seal_path(&file), seal::seal_text(sealed, key).unwrap()).unwrap();
}

/// Seals every file about times, as the machine does.
fn seal_all(dir: &Path) {
    for path in ["perf/perf_report.json", "comparison.json", "cpu/comparison.json"] {
        if dir.join(path).exists() {
            seal(dir, path, Some(&sealing_key()));
        }
    }
}

#[test]
fn a_complete_cpu_release_passes_strictly() {
    let dir = complete();
    seal_all(dir.path());
    let attestation = attested(dir.path());
    let s = &attestation.summary;
    assert_eq!(
        (s.overall_status.as_str(), s.required_artifacts_total, s.required_artifacts_passed),
        ("pass", 6, 6),
        "{attestation:#?}"
    );
    assert_eq!(
        (s.gates_total, s.gates_passed, s.gates_failed, s.gates_pending),
        (7, 6, 0, 0),
        "{attestation:#?}"
    );
    assert_eq!(gate(&attestation, "gpu_perf_regression").0, GateStatus::NotApplicable);
    let tensorrt: Vec<GateStatus> =
        attestation.artifacts.iter().filter(|a| a.key.starts_with("trt_")).map(|a| a.status).collect();
    assert_eq!(tensorrt, [GateStatus::NotApplicable; 2]);
    assert_eq!(missing(&attestation), Vec::<String>::new());
    assert_eq!(problems(attestation, dir.path()), Vec::<String>::new());
}

#[test]
fn tensorrt_needs_all_eight_and_a_gpu_gate() {
    let dir = complete();
    let attestation = create(&asked(dir.path(), RuntimeTarget::Tensorrt)).unwrap();
    assert_eq!(attestation.summary.required_artifacts_total, 8);
    assert_eq!(
        (attestation.summary.required_artifacts_failed, attestation.summary.overall_status.as_str()),
        (2, "fail")
    );
    assert_eq!(gate(&attestation, "gpu_perf_regression").0, GateStatus::Pending);
}

#[test]
fn what_is_missing_is_named_and_what_a_project_does_not_have_says_why() {
    let dir = complete();
    std::fs::remove_file(dir.path().join("eval.json")).unwrap();
    std::fs::remove_file(dir.path().join("needs.json")).unwrap();
    seal_all(dir.path());
    let attestation = attested(dir.path());
    assert_eq!(attestation.summary.overall_status, "fail");
    let found = missing(&attestation);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("eval_report") && found[1].contains("lint_type_tests is PENDING"), "{found:?}");
    let mut asked = asked(dir.path(), RuntimeTarget::Cpu);
    asked.without =
        [("eval_report".to_owned(), "no model".to_owned()), ("lint_type_tests".to_owned(), "x".to_owned())]
            .into();
    let attestation = create(&asked).unwrap();
    assert_eq!(attestation.summary.overall_status, "pass");
    assert_eq!(
        gate(&attestation, "lint_type_tests"),
        (GateStatus::NotApplicable, "not of this project: x".to_owned())
    );
    assert_eq!(problems(attestation, dir.path()), Vec::<String>::new());
}

#[test]
fn a_gate_stands_as_its_verdict_file_says() {
    let dir = complete();
    let cpu = || gate(&attested(dir.path()), "cpu_perf_regression");
    let with = |value: &Value| {
        write(dir.path(), "comparison.json", value);
        cpu()
    };
    gated(dir.path(), 2.0);
    assert_eq!(cpu().0, GateStatus::Fail);
    let skipped = json!({"schema_version": 1, "suite": "cpu", "status": "skipped", "metrics": {},
        "revision": {"commit": COMMIT, "dirty": false}});
    write(dir.path(), "report.json", &skipped);
    assert_eq!(with(&judged(&[skipped], &baseline())).0, GateStatus::Pending, "{:?}", cpu());
    let good = gated(dir.path(), 1.2);
    assert_eq!(
        cpu(),
        (
            GateStatus::Pass,
            "comparison.json: cpu: pass, 1 metric, policy allowed-max, at most +50.0 % allowed, unsealed"
                .to_owned()
        )
    );
    let mut other = good.clone();
    other["revision"]["commit"] = json!("f".repeat(40));
    assert_eq!(with(&other).0, GateStatus::Fail);
    assert!(with(&json!({"verdict": "PASS"})).1.contains("not a verdict file"));
    let mut dirty = report([1_200_000; 3]);
    dirty["revision"]["dirty"] = json!(true);
    write(dir.path(), "report.json", &dirty);
    let (status, said) = with(&judged(&[dirty], &baseline()));
    assert!(status == GateStatus::Pending && said.contains("uncommitted changes"), "{said}");
    std::fs::remove_file(dir.path().join("report.json")).unwrap();
    let (status, said) = with(&good);
    assert!(
        status == GateStatus::Pending && said.contains("the samples that it was made of are not beside it"),
        "{said}"
    );
}

#[test]
fn a_verdict_is_about_the_cpu_or_a_device_and_belongs_to_the_gate_it_is_given_for() {
    let dir = complete();
    let mut report = report([1_200_000; 3]);
    write(dir.path(), "report.json", &report);
    // A worker of the user's on a device that only the host's clock times, and that nothing names.
    let mut asked = asked(dir.path(), RuntimeTarget::Triton);
    asked.gate_files = vec![("gpu_perf_regression".to_owned(), "comparison.json".to_owned())];
    let attestation = create(&asked).unwrap();
    assert_eq!(gate(&attestation, "gpu_perf_regression").0, GateStatus::Pass);
    assert_eq!(gate(&attestation, "cpu_perf_regression").0, GateStatus::Pending);
    assert_eq!(problems(attestation, dir.path()), Vec::<String>::new());
    let clock = |baseline: &mut Value| {
        baseline["metrics"]["infer_p50_ms"]["identity"] =
            json!({"op": "x", "shape": [1], "dtype": "f32", "timer": "cuda_events"});
    };
    let mut baseline = baseline();
    clock(&mut baseline);
    report["benchmarks"]["infer"]["identity"]["timer"] = json!("cuda_events");
    write(dir.path(), "report.json", &report);
    write(dir.path(), "comparison.json", &judged(std::slice::from_ref(&report), &baseline));
    let by_clock = attested(dir.path());
    assert_eq!(
        gate(&by_clock, "cpu_perf_regression").0,
        GateStatus::Pending,
        "a GPU's verdict is none about the CPU"
    );
    assert_eq!(gate(&by_clock, "gpu_perf_regression").0, GateStatus::Pass);
    report["machine"] = json!({
        "fingerprint": "x", "cpu_model": "c", "cpus": 1, "memory_gib": 1, "arch": "x86_64", "os": "linux", "devices": ["H200"]
    });
    report["benchmarks"]["infer"]["identity"]["timer"] = json!("host_monotonic");
    write(dir.path(), "report.json", &report);
    write(dir.path(), "comparison.json", &judged(&[report], &self::baseline()));
    let by_name = attested(dir.path());
    assert_eq!(gate(&by_name, "gpu_perf_regression").0, GateStatus::Pass, "{:?}", by_name.gates);
    let mut asked = self::asked(dir.path(), RuntimeTarget::Cpu);
    asked.gate_files = vec![("cpu_perf_regression".to_owned(), "comparison.json".to_owned())];
    let (status, said) = gate(&create(&asked).unwrap(), "cpu_perf_regression");
    assert!(status == GateStatus::Fail && said.contains("a device's"), "{said}");
}

#[test]
fn parity_jobs_sign_offs_and_capabilities_are_read_too() {
    let dir = complete();
    let with = |name: &str, value: Value, key: &str| {
        write(dir.path(), name, &value);
        gate(&attested(dir.path()), key)
    };
    assert_eq!(with("fuzz.json", fuzz(2), "runtime_backend_parity").0, GateStatus::Fail);
    let mut hidden = fuzz(2);
    hidden["kernels"][0]["failures"] = json!([]);
    assert!(with("fuzz.json", hidden, "runtime_backend_parity").1.contains("it was edited"));
    let jobs = |result: &str| json!({"lint": {"result": "success"}, "tests": {"result": result}});
    assert_eq!(with("needs.json", jobs("failure"), "lint_type_tests").0, GateStatus::Fail);
    assert_eq!(with("needs.json", jobs("skipped"), "lint_type_tests").0, GateStatus::Pending);
    let other = sign_off("security_review", &"e".repeat(40));
    assert_eq!(with("signoff/security_review.json", other, "security_review").0, GateStatus::Fail);
    let wrong = sign_off("documentation_sync", COMMIT);
    assert!(with("signoff/security_review.json", wrong, "security_review").1.contains("signs off"));
    let mut caps: Value = serde_json::from_str(include_str!("../fixtures/caps.json")).unwrap();
    caps["nvml"] = json!({"available": false, "reason": null});
    let (status, said) = with("doctor.json", caps, "runtime_capability_transparency");
    assert!(
        status == GateStatus::Fail && said.contains("nvml is not available and does not say why"),
        "{said}"
    );
}

#[test]
fn artifacts_are_read_and_their_own_hashes_checked() {
    let dir = complete();
    let artifact = |key: &str| attested(dir.path()).artifacts.into_iter().find(|a| a.key == key).unwrap();
    let mut manifest: Value =
        serde_json::from_str(&std::fs::read_to_string(dir.path().join("replay.json")).unwrap()).unwrap();
    manifest["seed"] = json!(8);
    write(dir.path(), "replay.json", &manifest);
    let found = artifact("export_manifest");
    assert!(found.status == GateStatus::Fail && found.detail.starts_with("manifest_sha256"), "{found:?}");
    std::fs::write(dir.path().join("model.onnx"), "<html>").unwrap();
    assert_eq!(artifact("onnx_graph").status, GateStatus::Fail);
    std::fs::write(dir.path().join("eval.json"), "{}").unwrap();
    assert_eq!(artifact("eval_report").status, GateStatus::Fail);
    std::fs::write(dir.path().join("perf/perf_report.json"), "{\"schema_version\": 2, \"metrics\": {}}")
        .unwrap();
    assert!(artifact("performance_report").detail.contains("schema_version"));
}

#[test]
fn every_byte_of_a_small_artifact_counts_and_a_swapped_one_is_found() {
    let dir = complete();
    let attestation = attested(dir.path());
    for name in ["eval.json", "model.onnx", "needs.json"] {
        let path = dir.path().join(name);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert!(!problems(attestation.clone(), dir.path()).is_empty(), "byte {at} of {name}");
        }
        std::fs::write(&path, whole).unwrap();
    }
    assert_eq!(problems(attestation.clone(), dir.path()), Vec::<String>::new());
    std::fs::copy(dir.path().join("eval.json"), dir.path().join("model.onnx")).unwrap();
    let found = problems(attestation.clone(), dir.path());
    assert!(found.len() == 1 && found[0].contains("onnx_graph (model.onnx) is another file"), "{found:?}");
    std::fs::remove_file(dir.path().join("model.onnx")).unwrap();
    assert!(problems(attestation, dir.path())[0].contains("not there any more"));
}

#[test]
fn an_attestation_that_was_typed_is_found_even_when_it_is_signed() {
    let dir = complete();
    gated(dir.path(), 2.0);
    let honest = attested(dir.path());
    assert_eq!(problems(honest.clone(), dir.path()), Vec::<String>::new(), "a failed gate is evidence too");
    let edit = |change: fn(&mut Attestation)| {
        let mut attestation = honest.clone();
        change(&mut attestation);
        problems(attestation, dir.path()).join("; ")
    };
    assert!(
        edit(|a| a.gates[1].status = GateStatus::Pass).contains("cpu_perf_regression is FAIL by its files")
    );
    assert!(edit(|a| a.gates[1].inputs[0].status = GateStatus::Pass).contains("comparison.json says FAIL"));
    assert!(edit(|a| a.summary.overall_status = "pass".to_owned()).contains("summary"));
    assert!(edit(|a| a.gates.truncate(6)).contains("not the 7"));
    assert!(edit(|a| a.artifacts.swap(0, 1)).contains("not the 8"));
    assert!(edit(|a| a.artifacts[0].required = false).contains("export_manifest"));
    assert!(edit(|a| a.inputs_sha256 = "0".repeat(64)).contains("inputs_sha256"));
    assert!(edit(|a| a.generated_at_utc.push('0')).contains("two dates"));
    assert!(edit(|a| a.artifacts[0].path = "../../etc/passwd".to_owned()).contains("export_manifest"));
}

#[test]
fn a_statement_is_about_the_files_and_nothing_else() {
    let dir = complete();
    let key = SigningKey::from_bytes(&[3; 32]);
    let opened = |statement: &holdpoint_model::Statement| {
        let payload = to_canonical(statement).unwrap();
        let (envelope, public) = (dsse::sign(payload.as_bytes(), &key), key.verifying_key().into());
        verified(Signed::Envelope(envelope, &public), dir.path()).0
    };
    let whole = statement(attested(dir.path()));
    assert_eq!(whole.subject.len(), 11);
    let names: Vec<&str> = whole.subject.iter().map(|subject| subject.name.as_str()).collect();
    assert!(names.contains(&"model.onnx") && names.contains(&"signoff/security_review.json"), "{names:?}");
    assert_eq!(opened(&whole), Vec::<String>::new());
    let mut fewer = whole.clone();
    fewer.subject.pop();
    assert!(opened(&fewer)[0].contains("is not among its subjects"));
    let mut more = whole.clone();
    more.subject.push(Subject { name: "other".to_owned(), ..whole.subject[0].clone() });
    assert!(opened(&more)[0].contains("its subject other is not a file"));
    // What others add or order differently changes nothing.
    let mut foreign = whole.clone();
    foreign.subject.reverse();
    foreign.subject[0].digest.insert("sha512".to_owned(), "0".repeat(128));
    assert_eq!(opened(&foreign), Vec::<String>::new());
    foreign.subject[0].digest.remove("sha256");
    assert_eq!(opened(&foreign).len(), 2, "a subject is known by its SHA-256");
    let mut other = whole.clone();
    other.predicate_type = "https://slsa.dev/provenance/v1".to_owned();
    assert!(opened(&other)[0].contains("slsa"));
    let mut old = whole;
    old.statement_type = "https://in-toto.io/Statement/v0.1".to_owned();
    assert!(opened(&old)[0].contains("v0.1"));
}
