//! Verdicts that say less than they seem to, and the files that they rest on.

use super::{COMMIT, attested, complete, fuzz, gate, gated, problems, write};
use holdpoint_evidence::attest::{Signer, judge_release};
use holdpoint_model::attest::GateStatus;
use holdpoint_model::{Allowance, ReleasePolicy};
use serde_json::{Value, json};
use std::path::Path;

fn parity(dir: &Path, name: &str, value: &Value) -> (GateStatus, String) {
    write(dir, name, value);
    gate(&attested(dir), "runtime_backend_parity")
}

#[test]
fn a_kernel_that_did_not_run_agrees_with_nobody() {
    let dir = complete();
    let with = |edit: fn(&mut Value)| {
        let mut report = fuzz(0);
        let mut other = report["kernels"][0].clone();
        edit(&mut other);
        report["kernels"].as_array_mut().unwrap().push(other);
        parity(dir.path(), "fuzz.json", &report)
    };
    assert_eq!(with(|_| {}).0, GateStatus::Pass);
    let (status, said) = with(|kernel| {
        kernel["skipped"] = json!("cuda_unavailable");
        kernel["cases_count"] = json!(0);
        kernel["passed_count"] = json!(0);
    });
    assert!(
        status == GateStatus::Pending && said.contains("x f32 by builtin did not run: cuda_unavailable"),
        "{said}"
    );
    // More right than there were makes up for nobody's wrong ones.
    for (cases, passed) in [(10, 15), (10, 5), (u64::MAX, u64::MAX - 1)] {
        let mut report = fuzz(0);
        report["kernels"][0]["cases_count"] = json!(cases);
        report["kernels"][0]["passed_count"] = json!(passed);
        let (status, said) = parity(dir.path(), "fuzz.json", &report);
        assert!(status == GateStatus::Fail && said.contains("it was edited"), "{said}");
    }
}

#[test]
fn a_check_with_an_error_without_end_is_not_right() {
    let dir = complete();
    let check = |error: Value| {
        json!({
            "correctness": {
                "passed": true, "max_abs_error": error, "mean_abs_error": 0.0, "correlation": 1.0, "rel_norm": 0.0,
                "cases_count": 3
            },
            "performance": null, "roofline": null, "config": {}, "kernel_name": "k", "timestamp": "2026-01-01T00:00:00Z"
        })
    };
    assert_eq!(parity(dir.path(), "check.json", &check(json!(0.1))).0, GateStatus::Pass);
    let (status, said) = parity(dir.path(), "check.json", &check(Value::Null));
    assert!(status == GateStatus::Fail && said.contains("an error without end"), "{said}");
}

#[test]
fn jobs_may_be_called_anything() {
    let dir = complete();
    let job = json!({"result": "success"});
    for names in [["cpu", "cuda"], ["correctness", "verdict"], ["kernels", "seed"]] {
        write(dir.path(), "needs.json", &json!({names[0]: job, names[1]: job}));
        assert_eq!(gate(&attested(dir.path()), "lint_type_tests").0, GateStatus::Pass, "{names:?}");
    }
}

#[test]
fn a_verdict_is_attested_with_the_files_it_rests_on() {
    let dir = complete();
    std::fs::remove_file(dir.path().join("report.json")).unwrap();
    std::fs::remove_file(dir.path().join("comparison.json")).unwrap();
    let cpu = dir.path().join("cpu");
    std::fs::create_dir(&cpu).unwrap();
    gated(&cpu, 1.2);
    super::seal_all(dir.path());
    let whole = attested(dir.path());
    assert_eq!(gate(&whole, "cpu_perf_regression").0, GateStatus::Pass);
    assert_eq!(problems(whole.clone(), dir.path()), Vec::<String>::new());
    let report = cpu.join("report.json");
    let text = std::fs::read_to_string(&report).unwrap();
    std::fs::write(&report, format!("{text}\n")).unwrap();
    let found = problems(whole.clone(), dir.path());
    assert!(found[0].contains("cpu/report.json, on which cpu/comparison.json rests"), "{found:?}");
    std::fs::remove_file(&report).unwrap();
    assert!(!problems(whole, dir.path()).is_empty());
}

#[test]
fn a_replay_is_of_the_manifest_that_is_attested_wherever_it_lies() {
    let dir = complete();
    std::fs::remove_file(dir.path().join("fuzz.json")).unwrap();
    let manifest: Value =
        serde_json::from_str(&std::fs::read_to_string(dir.path().join("replay.json")).unwrap()).unwrap();
    let verified = |manifest_sha256: &Value, outputs: u64, exact: u64| {
        json!({
            "schema_version": 1, "manifest_sha256": manifest_sha256, "compared": "exact", "same": true,
            "differences": [], "skipped": {}, "outputs_count": outputs, "exact_count": exact, "values_count": 1,
            "timestamp_utc": "2026-01-01T00:00:00Z", "revision": {"commit": COMMIT, "dirty": false},
        })
    };
    let says = |value: &Value| parity(dir.path(), "parity/parity_report.json", value).1;
    let own = &manifest["manifest_sha256"];
    assert!(says(&verified(&json!("0".repeat(64)), 1, 1)).contains("another manifest than replay.json"));
    assert!(says(&verified(own, 2, 2)).contains("2 were compared, replay.json has 0 answers"));
    assert!(says(&verified(own, 0, 7)).contains("more answers are exact"));
    std::fs::remove_file(dir.path().join("replay.json")).unwrap();
    assert!(says(&verified(own, 2, 2)).contains("the manifest that it is about is not here"));
}

#[test]
fn a_release_that_says_nothing_about_speed_is_none_and_pipes_are_not_waited_for() {
    let dir = complete();
    std::fs::remove_file(dir.path().join("comparison.json")).unwrap();
    super::seal_all(dir.path());
    let mut asked = super::asked(dir.path(), holdpoint_model::attest::RuntimeTarget::Cpu);
    asked.without = [("cpu_perf_regression".to_owned(), "we trust it".to_owned())].into();
    let attestation = holdpoint_evidence::attest::create(&asked).unwrap();
    assert_eq!(holdpoint_evidence::attest::without(&attestation), ["cpu_perf_regression"]);
    let policy = ReleasePolicy {
        without: vec!["cpu_perf_regression".to_owned()],
        allow: vec![Allowance::Unsealed],
        ..Default::default()
    };
    let found = judge_release(&attestation, &Signer::NotYet, &policy, &super::facts());
    assert!(found.len() == 1 && found[0].contains("it says nothing about speed"), "{found:?}");
    gated(dir.path(), 1.2);
    let pipe = dir.path().join("report-2.json");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (status, said) = gate(&attested(dir.path()), "cpu_perf_regression");
    assert!(status == GateStatus::Fail && said.contains("it is not a plain file"), "{said}");
}
