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
const BARE: &str = "artifacts/release/release_attestation.json";
const ENVELOPE: &str = "artifacts/release/release_attestation.dsse.json";

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
        here.write("notes.txt", "a release");
        here.git(&["add", "--all"]);
        here.git(&["commit", "--quiet", "--message", "second"]);
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

    /// Verifies with the policy of this project: it has no model, and one key that seals.
    pub fn verify(&self, arguments: &[&str]) -> Ran {
        self.write_policy("");
        let fixed = ["verify", "--public-key", "holdpoint.pub", "--policy", "policy.toml"];
        self.attest(&[&fixed, arguments].concat(), &[])
    }

    fn write_policy(&self, more: &str) {
        let keyid = self.read("seal.key.id");
        let without = "without = [\"onnx_graph\", \"eval_report\"]";
        self.write("policy.toml", &format!("schema_version = 1\n{without}\nsealed_by = [{keyid:?}]\n{more}"));
    }
}

#[test]
fn from_the_keys_to_a_verification() {
    let here = Here::signed();
    let mode = std::fs::metadata(here.path("holdpoint.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    here.verify(&[]).ends(0).prints(&["verified: unversioned at", "signed by", "overall status pass"]);
    let shown = here.attest(&["show"], &[]);
    shown.ends(0).prints(&["export_manifest", "replay manifest", "cpu_perf_regression", "comparison.json"]);
    let [base, commit] = ["HEAD~1", "HEAD"].map(|revision| here.git(&["rev-parse", revision]));
    shown.prints(&["compared", &format!("base {base}"), &format!("head {commit}")]);
    here.attest(&["show", ENVELOPE], &[]).ends(0).prints(&["PASS"]);
    here.verify(&["--commit-sha", &commit]).ends(0);
    let markdown = here.read("artifacts/release/release_attestation.md");
    for heading in
        ["# Release Evidence", "## Metadata", "## Artifact Evidence", "## Gate Evidence", "## Summary"]
    {
        assert!(markdown.contains(heading), "{markdown}");
    }
}

#[test]
fn without_a_policy_nothing_may_be_missing() {
    let here = Here::signed();
    let strictly = |arguments: &[&str]| here.attest(&[&["verify"], arguments].concat(), &[]);
    let key = ["--public-key", "holdpoint.pub"];
    strictly(&key).ends(5).prints(&[
        "onnx_graph was declared away",
        "none of the policy's keys",
        "not verified",
    ]);
    here.verify(&[BARE]).ends(5).prints(&["it is not signed"]);
    here.verify(&["--commit-sha", "0000"]).ends(5).prints(&["not of 0000"]);
    // No key, and keys that are none.
    strictly(&[]).ends(5).prints(&["--public-key FILE", "HOLDPOINT_PUBLIC_KEY"]);
    here.write("empty.pub", "");
    strictly(&["--public-key", "empty.pub"]).ends(5).prints(&["empty.pub: it is empty"]);
    for file in [ENVELOPE, BARE] {
        let ran = here.attest(&["verify", file], &[("HOLDPOINT_PUBLIC_KEY", "")]);
        ran.ends(5).prints(&["HOLDPOINT_PUBLIC_KEY: it is empty"]);
    }
    // Another commit is checked out.
    here.git(&["commit", "--quiet", "--allow-empty", "--message", "third"]);
    here.verify(&[]).ends(5).prints(&["it is of commit", "not of"]);
    here.write("policy.toml", "schema_version = 1\ngate = []");
    strictly(&["--policy", "policy.toml"]).refuses(64, &["policy.toml", "unknown field"]);
}

#[test]
fn a_base_that_is_no_ancestor_or_has_the_same_files_is_refused() {
    let here = Here::released();
    here.created();
    std::fs::remove_file(here.path("artifacts/report.seal.json")).unwrap();
    let judged = |base: &str, words: &str| {
        here.edit("artifacts/comparison.json", |c| {
            for run in c["basis"]["baseline"]["runs"].as_array_mut().unwrap() {
                run["revision"]["commit"] = json!(base);
            }
        });
        here.write_policy("allow = [\"unsealed\"]");
        let create = ["create", "--policy", "policy.toml"];
        here.attest(&[&create, WITHOUT].concat(), &[]).ends(5).notes(&[words]);
    };
    let head = here.git(&["rev-parse", "HEAD"]);
    judged(&head, "base and head are the same commit");
    judged(&"f".repeat(40), "is not in the repository here");
    judged("--output=x", "is not in the repository here");
    let tree = here.git(&["rev-parse", "HEAD^{tree}"]);
    let same = here.git(&["commit-tree", &tree, "-p", "HEAD~1", "-m", "the same files"]);
    judged(&same, "has the same files as the release");
    let old_tree = here.git(&["rev-parse", "HEAD~1^{tree}"]);
    let later = here.git(&["commit-tree", &old_tree, "-p", "HEAD", "-m", "later"]);
    judged(&later, "is not in the history of the release");
}

#[test]
fn released_files_are_attested_and_held_against_what_is_released() {
    let here = Here::released();
    std::fs::create_dir(here.path("dist")).unwrap();
    here.write("dist/a.whl", "wheel");
    here.write_policy("files = [\"dist/*.whl\"]");
    let create = ["create", "--policy", "policy.toml", "--release-file", "suite.toml"];
    here.attest(&[&create, WITHOUT].concat(), &[]).ends(0).prints(&["released", "dist/a.whl"]);
    here.attest(&["keygen"], &[]).ends(0);
    here.attest(&["sign", "--key", "holdpoint.key"], &[]).ends(0);
    let verify = || {
        let arguments = ["verify", "--public-key", "holdpoint.pub", "--policy", "policy.toml"];
        here.attest(&arguments, &[])
    };
    verify().ends(0);
    here.write("dist/a.whl", "another");
    verify().ends(5).prints(&["released file dist/a.whl is another file"]);
    here.write("dist/a.whl", "wheel");
    here.write("dist/b.whl", "");
    verify().ends(5).prints(&["released file dist/b.whl was not attested"]);
    here.attest(&["create", "--release-file", "gone"], &[])
        .refuses(64, &["--release-file gone", "no plain file"]);
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
    here.write_policy("");
    here.attest(&[&["create", "--policy", "policy.toml"], WITHOUT].concat(), &[])
        .ends(5)
        .notes(&["gate cpu_perf_regression is FAIL"]);
}

#[test]
fn a_checklist_is_filled_from_what_holds_only_and_says_what_is_missing() {
    let here = Here::signed();
    here.write_policy("");
    let from = |file: &str| {
        let against = ["--public-key", "holdpoint.pub", "--policy", "policy.toml"];
        here.run(&[&["checklist", "--init", "--attestation", file], &against[..]].concat())
    };
    from(ENVELOPE).ends(0).prints(&["filled"]);
    assert!(here.read("CHECKLIST.md").contains("- Release policy: met"));
    from(BARE).ends(5).notes(&["it is not signed"]);
    let filled = here.read("CHECKLIST.md");
    assert!(filled.contains("- Release policy: **not met**\n  - it is not signed"), "{filled}");
    here.edit(BARE, |a| a["release_metadata"]["release_owner"] = json!("eve"));
    here.edit(BARE, |a| a["gates"][1]["status"] = json!("FAIL"));
    here.run(&["checklist"]).ends(5).prints(&["problem", "not verified"]).notes(&["nothing was filled in"]);
    assert_eq!(here.read("CHECKLIST.md"), filled);
}

#[test]
fn an_envelope_that_was_touched_is_not_verified() {
    let here = Here::signed();
    let path = "artifacts/release/release_attestation.dsse.json";
    let whole = here.read(path);
    let begin = whole.find("\"payload\": \"").unwrap() + 12;
    let count = whole[begin..].find('"').unwrap();
    for at in (begin..begin + count).step_by(count / 12) {
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
    here.write_policy("");
    here.attest(&["verify", "--policy", "policy.toml"], &[("HOLDPOINT_PUBLIC_KEY", &public)]).ends(0);
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
    here.write_policy("allow = [\"unsigned\"]");
    let fill = || here.run(&["checklist", "docs/CHECKLIST.md", "--init", "--policy", "policy.toml"]);
    fill().ends(0).prints(&["filled: docs/CHECKLIST.md", "pass"]);
    let first = here.read("docs/CHECKLIST.md");
    assert!(first.contains("[comparison.json](../artifacts/comparison.json)"), "{first}");
    fill().ends(0).prints(&["unchanged"]);
    assert_eq!(here.read("docs/CHECKLIST.md"), first);
    let mine = first.replace("- [ ] Who decides:", "- [x] Who decides: *ada*, by phone");
    let tick = |text: &str, row: &str| -> String {
        let lines = text.split_inclusive('\n');
        lines.map(|l| if l.starts_with(row) { l.replace("[ ]", "[x]") } else { l.to_owned() }).collect()
    };
    let mine = tick(&tick(&mine, "| Parity report"), "| Performance report");
    here.write("docs/CHECKLIST.md", &mine);
    here.gate(&["--confirm", "0", "--seal-key", "seal.key"]).ends(0);
    here.created();
    fill().ends(0).prints(&["filled"]);
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
