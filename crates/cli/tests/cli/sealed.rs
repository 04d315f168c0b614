//! Evidence that is sealed when it is measured: moved, edited, sealed by others; and keys that no child may see.

use crate::common::{Here, Ran};
use crate::program::write_program;
use crate::repository::FAST;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

const ATTESTATION: &str = "artifacts/release/release_attestation.json";

impl Here {
    /// Changes every JSON file of the evidence as `sed` would.
    fn sed(&self, from: &str, to: &str) {
        for name in
            self.files().iter().filter(|name| name.starts_with("artifacts/") && name.ends_with(".json"))
        {
            self.write(name, &self.read(name).replace(from, to));
        }
    }

    /// Attests, signs and verifies with the policy that names the key that sealed.
    fn verify_anew(&self) -> Ran {
        self.created();
        self.attest(&["sign", "--key", "holdpoint.key"], &[]);
        self.verify(&[])
    }

    /// A program of some name in a folder that comes first on the path; what it is called with goes to a file, with its environment.
    fn trap(&self, name: &str) -> String {
        let dir = self.tmp().join("traps");
        std::fs::create_dir_all(&dir).unwrap();
        let script =
            format!("#!/bin/sh\n{{ echo \"$0 $*\"; env; }} >> '{}'\nexit 1\n", self.seen().display());
        write_program(&dir.join(name), script);
        format!("{}:{}", dir.display(), std::env::var("PATH").unwrap())
    }

    /// Git, with a look at what it is started with.
    fn spy_on_git(&self) -> String {
        let path = self.trap("git");
        let script = std::fs::read_to_string(self.tmp().join("traps/git")).unwrap();
        let git = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|folder| folder.join("git"))
            .find(|git| git.is_file())
            .unwrap();
        let script = script.replace("exit 1", &format!("exec '{}' \"$@\"", git.display()));
        std::fs::write(self.tmp().join("traps/git"), script).unwrap();
        path
    }

    fn seen(&self) -> std::path::PathBuf {
        self.tmp().join("seen")
    }
}

#[test]
fn evidence_that_was_moved_to_another_commit_is_not_verified() {
    let here = Here::signed();
    here.verify(&[]).ends(0);
    let old = here.git(&["rev-parse", "HEAD"]);
    here.write("other.txt", "a change that nobody measured");
    here.git(&["add", "other.txt"]);
    here.git(&["commit", "--quiet", "--message", "second"]);
    here.sed(&old, &here.git(&["rev-parse", "HEAD"]));
    here.verify_anew().ends(5).prints(&["performance_report", "seal broken", "it was measured at"]);
    // The seal made anew to fit, as whoever has no key can.
    std::fs::remove_file(here.path("artifacts/report.seal.json")).unwrap();
    here.verify_anew().ends(5).prints(&["performance_report (report.json) is unsealed"]);
    // Or by a key of their own.
    here.attest(&["keygen", "--key", "other.key"], &[]).ends(0);
    here.gate(&["--confirm", "0", "--seal-key", "other.key"]).ends(0);
    here.verify_anew().ends(5).prints(&["is sealed by key", "--seal-keyid"]);
}

#[test]
fn a_seal_is_broken_by_whatever_changes_after_it() {
    let here = Here::released();
    let performance = || here.created()["artifacts"][5].clone();
    assert_eq!(performance()["status"], "PASS");
    assert!(performance()["detail"].as_str().unwrap().contains("sealed by"));
    let report = here.read("artifacts/report.json");
    let broken = |what: &str| {
        let found = performance();
        assert_eq!(found["status"], "FAIL", "{what}");
        assert!(found["detail"].as_str().unwrap().contains("seal broken"), "{what}: {found}");
        here.write("artifacts/report.json", &report);
    };
    here.edit("artifacts/report.json", |report| {
        report["benchmarks"].as_object_mut().unwrap().remove("true");
    });
    broken("a workload that was taken out");
    here.edit("artifacts/report.json", |report| report["timestamp_utc"] = json!("2026-01-01T00:00:00Z"));
    broken("another time");
    let comparison = here.read("artifacts/comparison.json");
    std::fs::remove_file(here.path("artifacts/comparison.json")).unwrap();
    broken("a verdict that was removed");
    here.write("artifacts/comparison.json", &comparison);
    here.edit("artifacts/report.seal.json", |envelope| envelope["signatures"][0]["sig"] = json!(""));
    broken("no signature");
}

#[test]
fn without_a_key_evidence_is_unsealed_and_never_called_sealed() {
    let here = Here::new();
    let line = "\nunsealed: no key was given (--seal-key)\n";
    here.run(&["run", "--suite", "suite.toml"]).ends(0).notes(&["report: artifacts/report.json", line]);
    let ab = ["ab", "--base", "true", "--head", "true", "--units-max", "1"];
    here.run(&ab).notes(&["evidence: artifacts", line]);
    here.gate(&[]).ends(0).notes(&["baseline recorded: ", line]);
    here.edit_times(1e6);
    here.gate(&[]).ends(0).notes(&["evidence: artifacts", line]);
    let seal = here.json("artifacts/report.seal.json");
    assert_eq!((&seal["command"], &seal["public_key"]), (&json!("gate"), &Value::Null));
    assert_eq!(seal["workloads"], json!(["pack", "true"]));
    for name in ["report.json", "report.md"] {
        assert!(seal["files"][name].is_string(), "{seal:#}");
    }
    here.attest(&["create"], &[]).ends(0).prints(&["report of tiny, 2 workloads", "unsealed"]);
    assert!(!here.read(ATTESTATION).contains("sealed by"));
}

#[test]
fn answers_that_were_replayed_are_sealed() {
    let here = Here::new();
    here.attest(&["keygen", "--key", "seal.key"], &[]).ends(0);
    here.run(&["replay", "record", "--suite", "suite.toml"]).ends(0);
    let verify = ["replay", "verify", "--output", "out/verified.json", "--seal-key"];
    here.run(&[&verify[..], &["seal.key"]].concat()).ends(0);
    assert!(here.json("out/verified.seal.json")["payload"].is_string());
    // A manifest that is damaged was not computed again: what was found replaces what was sealed.
    here.edit("artifacts/replay.json", |manifest| manifest["seed"] = 2.into());
    here.run(&[&verify[..], &["seal.key"]].concat()).ends(5);
    assert!(here.path("out/verified.json").exists() && !here.path("out/verified.seal.json").exists());
}

#[test]
fn a_key_that_cannot_be_used_ends_a_run_before_it_begins() {
    let here = Here::new();
    here.gate(&[]).ends(0);
    let before = here.read("artifacts/report.json");
    here.write("open.key", "");
    std::fs::set_permissions(here.path("open.key"), std::fs::Permissions::from_mode(0o666)).unwrap();
    for command in [&["run"][..], &["gate"], &["ab", "--base", "true", "--head", "true"]] {
        here.run(&[command, &["--seal-key", "open.key"]].concat()).refuses(64, &["open.key", "chmod 600"]);
    }
    assert_eq!(here.read("artifacts/report.json"), before);
    let mut command = here.command(&["run"]);
    crate::common::ran(command.env("HOLDPOINT_SEAL_KEY", "").output().unwrap()).ends(64);
}

#[test]
fn nothing_at_all_runs_while_an_attestation_is_signed() {
    let here = Here::released();
    here.created();
    here.attest(&["keygen"], &[]).ends(0);
    let path = ["git", "sh", "python3", "gpg", "ssh"].map(|name| here.trap(name));
    here.git(&["config", "core.fsmonitor", &here.tmp().join("traps/git").display().to_string()]);
    let key = here.read("holdpoint.key");
    here.attest(&["sign"], &[("HOLDPOINT_SIGNING_KEY", &key), ("PATH", &path[0])]).ends(0);
    assert!(!here.seen().exists(), "{}", std::fs::read_to_string(here.seen()).unwrap());
    // The trap is set: what may ask git walks into it.
    here.attest(&["create"], &[("PATH", &path[0])]);
    assert!(here.seen().exists());
}

#[test]
fn no_child_inherits_a_secret() {
    let here = Here::released();
    let suite = here
        .read("suite.toml")
        .replace("\"true\"]", "\"sh\", \"-c\", \"env >> $SEEN; cat /proc/$PPID/environ >> $SEEN.parent\"]");
    here.write("suite.toml", &suite);
    let (head, program) = (suite.split("[[").next().unwrap(), suite.rsplit("[[").next().unwrap());
    here.write("program.toml", &format!("{head}[[{program}"));
    let path = here.trap("python3");
    here.git(&["config", "core.fsmonitor", &here.tmp().join("traps/python3").display().to_string()]);
    let seal_key = here.read("seal.key");
    let commands: [&[&str]; 6] = [
        &["run", "--suite", "suite.toml"],
        &["gate", "--suite", "suite.toml"],
        &["ab", "--base", "sh -c 'env >> $SEEN'", "--head", "sh -c 'env >> $SEEN'", "--units-max", "2"],
        &["gate", "--against", "HEAD", "--dirty", "--suite", "program.toml", "--units-max", "2"],
        &["attest", "create"],
        &["doctor"],
    ];
    for arguments in commands {
        let mut command = here.command(arguments);
        command
            .envs(SECRETS)
            .env("HOLDPOINT_SEAL_KEY", &seal_key)
            .env("SEEN", here.seen())
            .env("PATH", &path);
        let ran = crate::common::ran(command.output().unwrap());
        assert!(![64, 70].contains(&ran.code), "{arguments:?}: {ran:?}");
        let seen = std::fs::read_to_string(here.seen()).unwrap_or_default();
        let body = seal_key.lines().nth(1).unwrap();
        assert!(!seen.contains("of-nobodys-business") && !seen.contains(body), "{arguments:?}: {seen}");
    }
    assert!(std::fs::read_to_string(here.seen()).unwrap().contains("PATH="), "something was started");
    let uid = std::process::Command::new("id").arg("-u").output().unwrap().stdout;
    if uid == b"0\n" {
        eprintln!("skipped: root reads the environment of every process");
        return;
    }
    let parent = std::fs::read(here.tmp().join("seen.parent")).unwrap_or_default();
    assert!(!String::from_utf8_lossy(&parent).contains("of-nobodys-business"));
}

/// Secrets of the environment, of which no child may see the value.
const SECRETS: [(&str, &str); 5] = [
    ("HOLDPOINT_SIGNING_KEY", "of-nobodys-business"),
    ("GITHUB_TOKEN", "of-nobodys-business"),
    ("CI_JOB_TOKEN", "of-nobodys-business"),
    ("HOLDPOINT_GITLAB_TOKEN", "of-nobodys-business"),
    ("SMTP_PASSWORD", "of-nobodys-business"),
];

#[test]
fn no_child_of_git_inherits_a_secret() {
    let (here, lib) = (Here::repository(), Here::repository());
    lib.commit("first", Some("a library"));
    let home = here.tmp().join("home");
    std::fs::create_dir(&home).unwrap();
    // A filter and a transport of the user's own: what git starts while it checks out.
    let spy = format!("{{ echo $0 smudge; env; }} >> '{}'", here.seen().display());
    let config = format!("[protocol \"file\"]\nallow = always\n[filter \"spy\"]\nsmudge = \"{spy}; cat\"\n");
    std::fs::write(home.join(".gitconfig"), config).unwrap();
    here.write(".gitattributes", "prog.sh filter=spy\n");
    let url = lib.path(".").display().to_string();
    here.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "lib"]);
    here.git(&["add", ".gitattributes", ".gitmodules", "lib"]);
    here.commit("first", Some(FAST));
    here.commit("second", Some(&format!("{FAST}# 2\n")));
    let path = here.spy_on_git();
    let commands: [&[&str]; 2] =
        [&["gate", "--against", "HEAD~1", "--units-max", "2"], &["bisect", "--good", "HEAD~1"]];
    for arguments in commands {
        let mut command =
            here.command(&[arguments, &["--suite", "suite.toml", "--tolerance", "100%"]].concat());
        command.envs(SECRETS).env("PATH", &path).env("HOME", &home).env("BUILDS", "/dev/null");
        let ran = crate::common::ran(command.output().unwrap());
        assert!(![64, 70].contains(&ran.code), "{arguments:?}: {ran:?}");
    }
    let seen = std::fs::read_to_string(here.seen()).unwrap();
    for words in ["checkout --quiet --force", "submodule --quiet update", "smudge"] {
        assert!(seen.contains(words), "{words} was not run: {seen}");
    }
    assert!(!seen.contains("of-nobodys-business"), "{seen}");
}

#[test]
fn no_command_of_ci_hands_a_secret_to_a_child() {
    let here = Here::released();
    let path = here.spy_on_git();
    let event = format!("{}/../ci/tests/events/push.json", env!("CARGO_MANIFEST_DIR"));
    here.write("notify.toml", crate::comment_verdict::NOTIFY);
    here.write("perf.toml", "");
    let commands: [&[&str]; 6] = [
        &["ci", "guard", "--repository", ".", "--suite", "perf.toml"],
        &["ci", "gate", "--artifacts", "gated"],
        &["ci", "gate", "--isolate", "--artifacts", "gated"],
        &["ci", "init", "--install", "true"],
        &["ci", "report", "--dry-run"],
        &["ci", "notify", "--config", "notify.toml", "--dry-run"],
    ];
    for arguments in commands {
        let mut command = here.command(arguments);
        command.envs(SECRETS).env("PATH", &path).env_remove("GITLAB_CI");
        command.env("GITHUB_EVENT_NAME", "push").env("GITHUB_EVENT_PATH", &event);
        let ran = crate::common::ran(command.output().unwrap());
        let seen = std::fs::read_to_string(here.seen()).unwrap_or_default();
        assert!(!seen.contains("of-nobodys-business"), "{arguments:?}: {seen}");
        // The others start nothing.
        let looks_at_commits = ["guard", "gate"].contains(&arguments[1]);
        let asks_git = looks_at_commits || arguments[1] == "init";
        assert_eq!(seen.contains("git "), asks_git, "{arguments:?}: {ran:?} {seen}");
        assert_eq!(ran.code == 0, !looks_at_commits, "{arguments:?}: {ran:?}");
        let _ = std::fs::remove_file(here.seen());
    }
}

#[test]
fn a_link_that_leads_out_of_the_folder_is_no_evidence() {
    let here = Here::signed();
    std::fs::rename(here.path("artifacts/report.json"), here.path("elsewhere.json")).unwrap();
    std::os::unix::fs::symlink("../elsewhere.json", here.path("artifacts/report.json")).unwrap();
    for arguments in [&["create"][..], &["verify", "--public-key", "holdpoint.pub"]] {
        here.attest(arguments, &[]).refuses(64, &["report.json", "leads out of the folder"]);
    }
}

#[test]
fn a_comparison_that_goes_on_from_an_unsealed_part_is_not_sealed() {
    let here = Here::new();
    here.attest(&["keygen", "--key", "seal.key"], &[]).ends(0);
    let ab = ["ab", "--base", "true", "--head", "true", "--seed", "1", "--tolerance", "100%"];
    here.run(&[&ab[..], &["--units-max", "1"]].concat());
    let ran = here.run(&[&ab[..], &["--units-max", "8", "--resume", "--seal-key", "seal.key"]].concat());
    ran.notes(&["unsealed: ab.json"]);
    assert!(here.json("artifacts/ab.seal.json")["public_key"].is_null());
    // With the key from the beginning it stays sealed, and names the part before.
    here.run(&[&ab[..], &["--units-max", "1", "--seal-key", "seal.key"]].concat());
    here.run(&[&ab[..], &["--units-max", "8", "--resume", "--seal-key", "seal.key"]].concat());
    assert!(here.json("artifacts/ab.seal.json")["payload"].is_string());
}
