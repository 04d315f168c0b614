//! What a release rests on: made, signed, verified, tampered with.

use crate::common::{Here, Ran};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// What CI would tell, and must not be there.
const VARIABLES: &[&str] = &[
    "GITHUB_SHA",
    "GITHUB_REF_NAME",
    "GITHUB_REF_TYPE",
    "GITHUB_RUN_ID",
    "GITHUB_SERVER_URL",
    "GITHUB_REPOSITORY",
    "GITHUB_ACTOR",
    "CI_COMMIT_TAG",
    "CI_COMMIT_SHA",
    "CI_JOB_URL",
    "CI_PIPELINE_URL",
    "CI_COMMIT_REF_NAME",
    "GITLAB_USER_LOGIN",
    "HOLDPOINT_SIGNING_KEY",
    "HOLDPOINT_PUBLIC_KEY",
];
const WITHOUT: &[&str] = &["--without", "onnx_graph=no model", "--without", "eval_report=no model"];

impl Here {
    pub fn attest(&self, arguments: &[&str], set: &[(&str, &str)]) -> Ran {
        let mut command = self.command(&[&["attest"], arguments].concat());
        for name in VARIABLES {
            command.env_remove(name);
        }
        crate::common::ran(command.envs(set.iter().copied()).output().unwrap())
    }

    /// A repository with a gate, answers, a check and capabilities in its artifacts folder.
    pub fn released() -> Self {
        let here = Self::new();
        here.git(&["init", "--quiet", "--initial-branch", "main"]);
        here.write(".gitignore", "artifacts\n.holdpoint\n*.key*\n*.pub\n");
        here.git(&["add", "--all"]);
        here.git(&["commit", "--quiet", "--message", "first"]);
        let made =
            here.attest(&["keygen", "--key", "seal.key", "--format", "json"], &[]).ends(0).stdout.clone();
        let made: Value = serde_json::from_str(&made).unwrap();
        here.write("seal.key.id", made["keyid"].as_str().unwrap());
        here.gate(&[]).ends(0);
        // A baseline that every machine meets.
        here.edit_times(1e6);
        here.gate(&["--confirm", "0", "--seal-key", "seal.key"]).ends(0);
        here.run(&["replay", "record", "--suite", "suite.toml"]).ends(0);
        here.run(&["fuzz", "--suite", "suite.toml", "--cases", "3", "-o", "artifacts/fuzz.json"]).ends(0);
        let caps = here.run(&["doctor", "--format", "json"]).ends(0).stdout.clone();
        here.write("artifacts/doctor.json", &caps);
        here.write("artifacts/needs.json", "{\"lint\": {\"result\": \"success\"}}");
        let commit = here.git(&["rev-parse", "HEAD"]);
        std::fs::create_dir(here.path("artifacts/signoff")).unwrap();
        for gate in ["security_review", "documentation_sync"] {
            let sign_off = json!({
                "schema_version": 1, "gate": gate, "status": "PASS", "signed_off_by": "ada", "commit_sha": commit,
                "evidence": "read"
            });
            here.write(&format!("artifacts/signoff/{gate}.json"), &sign_off.to_string());
        }
        here
    }

    pub fn created(&self) -> Value {
        self.attest(&[&["create"], WITHOUT].concat(), &[]).ends(0);
        self.json("artifacts/release/release_attestation.json")
    }

    pub fn signed() -> Self {
        let here = Self::released();
        here.created();
        here.attest(&["keygen"], &[]).ends(0);
        here.attest(&["sign", "--key", "holdpoint.key"], &[]).ends(0).prints(&["signed", "keyid"]);
        here
    }

    /// Strictly, with the one key that may seal.
    pub fn verify_strictly(&self) -> Ran {
        self.verify(&["--strict", "--seal-keyid", self.read("seal.key.id").trim()])
    }

    fn verify(&self, arguments: &[&str]) -> Ran {
        self.attest(&[&["verify", "--public-key", "holdpoint.pub"], arguments].concat(), &[])
    }
}

#[test]
fn from_the_keys_to_a_strict_verification() {
    let here = Here::signed();
    let mode = std::fs::metadata(here.path("holdpoint.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    here.verify_strictly().ends(0).prints(&["verified: unversioned at", "signed by", "overall status pass"]);
    here.attest(&["show"], &[]).ends(0).prints(&[
        "export_manifest",
        "replay manifest",
        "cpu_perf_regression",
        "comparison.json",
    ]);
    here.attest(&["show", "artifacts/release/release_attestation.dsse.json"], &[]).ends(0).prints(&["PASS"]);
    let commit = here.git(&["rev-parse", "HEAD"]);
    here.verify(&["--commit-sha", &commit]).ends(0);
    here.verify(&["--commit-sha", "0000"]).ends(5).prints(&["not of 0000"]);
    let markdown = here.read("artifacts/release/release_attestation.md");
    for heading in
        ["# Release Evidence", "## Metadata", "## Artifact Evidence", "## Gate Evidence", "## Summary"]
    {
        assert!(markdown.contains(heading), "{markdown}");
    }
    // Without a signature there is something left to want.
    let bare = "artifacts/release/release_attestation.json";
    here.attest(&["verify", bare], &[]).ends(0).prints(&["not signed"]);
    here.verify(&[bare]).ends(5).prints(&["it is not signed, and a public key was given"]);
    let public = here.read("holdpoint.pub");
    here.attest(&["verify", bare], &[("HOLDPOINT_PUBLIC_KEY", &public)]).ends(5);
    here.verify(&[bare, "--strict"]).ends(5).prints(&["problem", "it is not signed"]);
}

#[test]
fn the_keys_of_the_seed_are_all_there() {
    let here = Here::released();
    let a = here.created();
    let keys = crate::common::keys;
    for key in ["schema_version", "generated_at_utc", "release_metadata", "artifacts", "gates", "summary"] {
        assert!(keys(&a).contains(&key), "{key}");
    }
    for key in
        ["release_tag", "commit_sha", "build_date_utc", "release_owner", "runtime_target", "ci_run_url"]
    {
        assert!(keys(&a["release_metadata"]).contains(&key), "{key}");
    }
    for key in ["key", "label", "path", "producer", "required", "exists", "sha256", "size_bytes", "status"] {
        assert!(
            a["artifacts"].as_array().unwrap().iter().all(|artifact| keys(artifact).contains(&key)),
            "{key}"
        );
    }
    for key in ["key", "label", "evidence", "status"] {
        assert!(a["gates"].as_array().unwrap().iter().all(|gate| keys(gate).contains(&key)), "{key}");
    }
    assert_eq!((a["artifacts"].as_array().unwrap().len(), a["gates"].as_array().unwrap().len()), (8, 7));
    assert_eq!(a["summary"]["overall_status"], "pass", "{a:#}");
}

#[test]
fn a_hand_edited_report_and_a_swapped_artifact_are_refused() {
    let here = Here::signed();
    let report = here.read("artifacts/report.json");
    here.edit("artifacts/report.json", |report| report["benchmarks"]["pack"]["p50_ms"] = json!(1e-9));
    here.verify(&[]).ends(5).prints(&["performance_report (report.json) is another file", "not verified: "]);
    // Made again from the edited report, it says so itself.
    let a = here.created();
    let performance =
        a["artifacts"].as_array().unwrap().iter().find(|a| a["key"] == "performance_report").unwrap();
    assert_eq!(performance["status"], "FAIL");
    assert!(performance["detail"].as_str().unwrap().contains("the median of its samples"), "{performance}");
    here.write("artifacts/report.json", &report);
    std::fs::copy(here.path("artifacts/fuzz.json"), here.path("artifacts/replay.json")).unwrap();
    here.verify(&[]).ends(5).prints(&["export_manifest (replay.json) is another file"]);
}

#[test]
fn a_typed_verdict_is_neither_attested_nor_signed() {
    let here = Here::released();
    here.edit("artifacts/comparison.json", |c| c["checks"][0]["verdict"] = json!("regressed"));
    let a = here.created();
    assert_eq!((&a["gates"][1]["status"], &a["summary"]["overall_status"]), (&json!("FAIL"), &json!("fail")));
    here.edit("artifacts/release/release_attestation.json", |a| {
        a["gates"][1]["status"] = json!("PASS");
        a["gates"][1]["inputs"][0]["status"] = json!("PASS");
        a["summary"]["overall_status"] = json!("pass");
    });
    here.attest(&["keygen"], &[]).ends(0);
    let ran = here.attest(&["sign", "--key", "holdpoint.key"], &[]);
    ran.ends(5).prints(&["cpu_perf_regression is FAIL by its files"]).notes(&["nothing was signed"]);
    assert!(!here.files().iter().any(|name| name.ends_with("dsse.json")));
    here.attest(&[&["create", "--strict"], WITHOUT].concat(), &[])
        .ends(5)
        .notes(&["gate cpu_perf_regression is FAIL"]);
}

#[test]
fn a_checklist_is_filled_from_what_holds_only() {
    let here = Here::signed();
    let envelope = "artifacts/release/release_attestation.dsse.json";
    let from = |file: &str| {
        here.run(&["checklist", "--init", "--attestation", file, "--public-key", "holdpoint.pub"])
    };
    from(envelope).ends(0).prints(&["filled"]);
    let filled = here.read("CHECKLIST.md");
    from("artifacts/release/release_attestation.json").ends(5).prints(&["it is not signed"]);
    here.edit("artifacts/release/release_attestation.json", |a| {
        a["release_metadata"]["release_owner"] = json!("eve")
    });
    here.edit("artifacts/release/release_attestation.json", |a| a["gates"][1]["status"] = json!("FAIL"));
    here.run(&["checklist"]).ends(5).prints(&["problem", "not verified"]).notes(&["nothing was filled in"]);
    assert_eq!(here.read("CHECKLIST.md"), filled);
}

#[test]
fn an_envelope_that_was_touched_is_not_verified() {
    let here = Here::signed();
    let path = "artifacts/release/release_attestation.dsse.json";
    let whole = here.read(path);
    let count = whole.len();
    for at in (0..count).step_by(count / 12) {
        let mut bytes = whole.clone().into_bytes();
        bytes[at] ^= 1;
        std::fs::write(here.path(path), &bytes).unwrap();
        let ran = here.verify(&[]);
        assert_eq!(ran.code, 5, "byte {at}: {ran:?}");
    }
    std::fs::write(here.path(path), [0xff, 0xfe]).unwrap();
    here.verify(&[]).ends(5).prints(&["not UTF-8 text"]);
    here.write(path, &whole);
    here.attest(&["keygen", "--key", "other.key"], &[]).ends(0);
    let other = ["verify", "--public-key", "other.pub"];
    here.attest(&other, &[]).ends(5).prints(&["not by the key given"]);
    here.attest(&["verify"], &[]).refuses(64, &["--public-key", "HOLDPOINT_PUBLIC_KEY"]);
}

#[test]
fn keys_come_from_files_or_the_environment_and_are_never_overwritten() {
    let here = Here::released();
    here.created();
    here.attest(&["keygen"], &[]).ends(0);
    let (private, public) = (here.read("holdpoint.key"), here.read("holdpoint.pub"));
    here.attest(&["keygen"], &[]).refuses(64, &["there already", "never overwritten"]);
    assert_eq!(here.read("holdpoint.key"), private);
    here.attest(&["sign"], &[]).refuses(64, &["HOLDPOINT_SIGNING_KEY", "keygen"]);
    here.attest(&["sign"], &[("HOLDPOINT_SIGNING_KEY", &private)]).ends(0);
    here.attest(&["verify"], &[("HOLDPOINT_PUBLIC_KEY", &public)]).ends(0);
}

#[test]
fn ci_tells_who_what_and_where() {
    let here = Here::released();
    let github = [
        ("GITHUB_REF_NAME", "v1.2"),
        ("GITHUB_REF_TYPE", "tag"),
        ("GITHUB_RUN_ID", "42"),
        ("GITHUB_ACTOR", "ada"),
        ("GITHUB_SERVER_URL", "https://github.com"),
        ("GITHUB_REPOSITORY", "a/b"),
        ("GITHUB_SHA", "ffff"),
    ];
    here.attest(&["create", "-q"], &github).ends(0);
    let m = here.json("artifacts/release/release_attestation.json")["release_metadata"].clone();
    assert_eq!((&m["release_tag"], &m["release_owner"]), (&json!("v1.2"), &json!("ada")));
    assert_eq!(m["ci_run_url"], "https://github.com/a/b/actions/runs/42");
    assert_eq!((&m["commit_sha"], &m["dirty"]), (&json!(here.git(&["rev-parse", "HEAD"])), &json!(false)));
    let branch = [("GITHUB_REF_NAME", "main"), ("GITHUB_REF_TYPE", "branch")];
    here.attest(&["create", "-q"], &branch).ends(0);
    let m = here.json("artifacts/release/release_attestation.json")["release_metadata"].clone();
    assert_eq!((&m["release_tag"], &m["ref_name"]), (&json!("unversioned"), &json!("main")));
    let gitlab =
        [("CI_COMMIT_TAG", "v2"), ("CI_JOB_URL", "https://gitlab.com/j/1"), ("GITLAB_USER_LOGIN", "bob")];
    here.write("suite.toml", "changed");
    here.attest(&["create", "-q"], &gitlab).ends(0);
    let m = here.json("artifacts/release/release_attestation.json")["release_metadata"].clone();
    assert_eq!(
        (&m["release_tag"], &m["release_owner"], &m["dirty"]),
        (&json!("v2"), &json!("bob"), &json!(true))
    );
}

#[test]
fn what_was_typed_wrong_is_refused_in_one_line() {
    let here = Here::released();
    let create = |arguments: &[&str], words: &[&str]| {
        here.attest(&[&["create"], arguments].concat(), &[]).refuses(64, words);
    };
    create(&["--artifacts", "gone"], &["gone", "no such folder"]);
    create(&["--without", "eval_report"], &["KEY=VALUE is wanted", "eval_report"]);
    create(&["--without", "colour=x"], &["no such key", "security_review"]);
    create(&["--without", "eval_report="], &["nothing stands behind"]);
    create(&["--artifact-path", "onnx_graph=gone.onnx"], &["gone.onnx", "no such file"]);
    here.write("outside.onnx", "x");
    create(&["--artifact-path", "onnx_graph=../outside.onnx"], &["paths are below that folder"]);
    create(&["--gate-evidence", "security_review=../suite.toml"], &["paths are below that folder"]);
    create(&["--without", "performance_report=x"], &["report.json is there; remove the file or the flag"]);
    create(&["--without", "cpu_perf_regression=x"], &["comparison.json is there"]);
    here.attest(&["keygen", "--key", "one", "--public-key", "one"], &[]).refuses(64, &["cannot be one file"]);
    create(&["--commit-sha", "abc"], &["--commit-sha abc", "the tree here is at"]);
    here.attest(&["verify", "suite.toml"], &[]).ends(5).prints(&["suite.toml", "not verified"]);
    here.attest(&["show", "artifacts/doctor.json"], &[]).refuses(64, &["not a release attestation"]);
}

#[test]
fn a_checklist_is_filled_again_and_again_and_people_keep_what_they_wrote() {
    let here = Here::released();
    here.created();
    here.run(&["checklist"]).refuses(64, &["CHECKLIST.md", "no such file"]);
    here.run(&["checklist", "docs/CHECKLIST.md", "--init"])
        .ends(0)
        .prints(&["filled: docs/CHECKLIST.md", "pass"]);
    let first = here.read("docs/CHECKLIST.md");
    assert!(first.contains("[comparison.json](../artifacts/comparison.json)"), "{first}");
    here.run(&["checklist", "docs/CHECKLIST.md"]).ends(0).prints(&["unchanged"]);
    assert_eq!(here.read("docs/CHECKLIST.md"), first);
    let mine = first.replace("- [ ] Who decides:", "- [x] Who decides: *ada*, by phone");
    let tick = |text: &str, row: &str| -> String {
        let lines = text.split_inclusive('\n');
        lines.map(|l| if l.starts_with(row) { l.replace("[ ]", "[x]") } else { l.to_owned() }).collect()
    };
    let mine = tick(&tick(&mine, "| Parity report"), "| Performance report");
    here.write("docs/CHECKLIST.md", &mine);
    here.gate(&["--confirm", "0"]).ends(0);
    here.created();
    here.run(&["checklist", "docs/CHECKLIST.md"]).ends(0).prints(&["filled"]);
    let last = here.read("docs/CHECKLIST.md");
    assert!(last.contains("- [x] Who decides: *ada*, by phone"));
    let row = |name: &str| last.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(row("| Parity report").ends_with("| [x] |"), "{last}");
    assert!(row("| Performance report").ends_with("| [x] before this evidence |"), "{last}");
    here.write("docs/CHECKLIST.md", &last.replace("<!-- holdpoint:end gates -->", ""));
    here.run(&["checklist", "docs/CHECKLIST.md"])
        .refuses(64, &["docs/CHECKLIST.md: line ", "begins inside block \"gates\""]);
}

#[test]
fn a_tree_is_clean_only_where_its_files_are() {
    let here = Here::released();
    here.git(&["update-index", "--assume-unchanged", "suite.toml"]);
    let suite = here.read("suite.toml");
    here.write("suite.toml", &format!("{suite}\n# not looked at\n"));
    assert_eq!(here.created()["release_metadata"]["dirty"], true);
    here.git(&["update-index", "--no-assume-unchanged", "suite.toml"]);
    here.write("suite.toml", &suite);
    let made = here.created();
    assert_eq!(made["release_metadata"]["dirty"], false);
}
