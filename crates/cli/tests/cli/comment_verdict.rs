//! The verdict that `ci report` and `ci notify` report: from the gate's own files, never from an earlier run's, and the
//! exit code where that is worse.

use crate::common::{Here, Ran, ran};
use crate::repository::FAST;
use crate::server::{Reply, Server};
use serde_json::{Value, json};

pub const NOTIFY: &str = "schema_version = 1\n[[slack]]\nname = \"room\"\nurl_env = \"ROOM\"\n";

fn comment(here: &Here) -> Ran {
    here.run(&["ci", "report", "--dry-run"])
}

fn notify(here: &Here) -> Ran {
    here.write("notify.toml", NOTIFY);
    here.run(&["ci", "notify", "--config", "notify.toml", "--dry-run"])
}

/// A folder with a comparison that passed.
fn passed_gate() -> Here {
    let here = Here::new();
    here.gate(&[]).ends(0);
    here.edit_times(1e9);
    here.gate(&[]).ends(0);
    assert!(here.path("artifacts/comparison.json").exists());
    here
}

#[test]
fn an_undecided_gate_removes_the_previous_verdict() {
    let here = passed_gate();
    here.write("artifacts/exit-code", "0\n");
    here.write("artifacts/ab.json", "{}");
    here.gate(&["--require-baseline", "--baseline-dir", "nobase"]).ends(3);
    let left: Vec<String> = here.files().into_iter().filter(|name| name.starts_with("artifacts/")).collect();
    assert_eq!(left, ["artifacts/report.json"], "the report stays until the next run");
    comment(&here).ends(0).prints(&["### holdpoint: inconclusive"]);
}

#[test]
fn bad_input_to_a_gate_deletes_no_evidence() {
    let here = passed_gate();
    here.write("artifacts/exit-code", "0\n");
    here.write("bad.json", "{");
    let evidence = || {
        let files = here.files().into_iter().filter(|name| name.starts_with("artifacts/"));
        files.map(|name| (here.read(&name), name)).collect::<Vec<_>>()
    };
    let before = evidence();
    for flags in [
        &["--policy", "allowed-max", "--threshold", "-5"][..],
        &["--baseline", "bad.json"],
        &["--baseline", "nowhere.json"],
        &["--waivers", "nowhere.toml"],
        &["--against", "no-such-revision"],
        &["--against", "HEAD", "--policy", "allowed-max"],
    ] {
        here.gate(flags).ends(64);
        assert_eq!(evidence(), before, "{flags:?}");
    }
    here.run(&["gate", "--suite", "nowhere.toml"]).ends(64);
    here.run(&["ab", "--base", "true", "--head", "true", "--waivers", "nowhere.toml"]).ends(64);
    here.run(&["ab", "--base", "true", "--head", "true", "--resume"]).ends(64);
    here.run(&["ab", "--base", "true", "--head", "true", "--alarm-rate", "7"]).ends(64);
    here.run(&["ab"]).ends(64);
    assert_eq!(evidence(), before);
    here.run(&["check", "--op", "tile_pack", "--shape", "x", "--output", "new/check.json"]).ends(64);
    assert!(!here.path("new").exists(), "no folder is created either");
}

#[test]
fn a_failed_build_removes_the_previous_verdict_and_an_unknown_revision_does_not() {
    let here = Here::repository();
    here.commit("first", Some(FAST));
    here.commit("second", None);
    let evidence = || {
        for name in ["ab.json", "ab.md", "comparison.json"] {
            here.write(&format!("artifacts/{name}"), "{}");
        }
    };
    std::fs::create_dir(here.path("artifacts")).unwrap();
    let left = || here.files().into_iter().filter(|name| name.starts_with("artifacts/")).count();
    for (against, code, count) in [("no-such-revision", 64, 3), ("HEAD~1", 4, 0)] {
        evidence();
        here.revisions(&["gate", "--against", against]).ends(code);
        assert_eq!(left(), count, "{against}");
        evidence();
        here.revisions(&["ab", "--base-rev", against]).ends(code);
        assert_eq!(left(), count, "{against}");
    }
    // `--resume` keeps the files it continues from.
    evidence();
    std::fs::copy(crate::common::data("ab-v1.json"), here.path("artifacts/ab.json")).unwrap();
    here.revisions(&["gate", "--against", "HEAD~1", "--resume"]).ends(4);
    assert_eq!(left(), 2);
}

#[test]
fn the_worse_of_files_and_exit_code_is_reported() {
    let here = passed_gate();
    for (code, verdict) in [("3", "inconclusive"), ("137", "broken"), ("none", "broken")] {
        here.write("artifacts/exit-code", &format!("{code}\n"));
        let says = format!("the files say improved, exit code {code} means {verdict}");
        comment(&here).ends(64).prints(&[&format!("### holdpoint: {verdict}\n"), &says]);
        notify(&here).ends(0).prints(&[&format!("[holdpoint] {verdict} gate: "), &says]);
    }
    here.write("artifacts/exit-code", "0\n");
    comment(&here).ends(0).prints(&["### holdpoint: improved\n"]);
    notify(&here).ends(0).prints(&["is not notified of improved"]);
}

#[test]
fn a_killed_gate_is_reported_as_broken() {
    let here = passed_gate();
    // The state that `gate --against` leaves after a signal.
    here.edit("artifacts/comparison.json", |judged| judged["verdict"] = "inconclusive".into());
    here.write("artifacts/exit-code", "none\n");
    let says = ["slack room: would be notified", "[holdpoint] broken gate: ", "no verdict: exit code none"];
    notify(&here).ends(0).prints(&says);
}

#[test]
fn a_contradictory_file_counts_as_its_worst_verdict() {
    let here = passed_gate();
    here.edit("artifacts/comparison.json", |judged| judged["checks"][0]["verdict"] = "regressed".into());
    let says = "comparison.json: its verdict is improved, yet the worst of its checks is regressed";
    comment(&here).ends(64).prints(&["### holdpoint: regressed\n", says]);
    notify(&here).ends(64).prints(&["slack room: would be notified", "[holdpoint] regressed", says]);
}

#[test]
fn a_missing_folder_means_no_verdict() {
    let here = Here::new();
    comment(&here).ends(0).prints(&["### holdpoint: inconclusive", "so there is no verdict"]);
    notify(&here).refuses(64, &["none of comparison.json, ab.json and exit-code is there"]);
}

#[test]
fn measured_text_cannot_issue_runner_commands() {
    let here = passed_gate();
    here.edit("artifacts/comparison.json", |judged| {
        judged["verdict"] = "regressed".into();
        judged["checks"][0]["verdict"] = "regressed".into();
        judged["checks"][0]["reason"] = "##[add-mask]e".into();
        judged["suite"] = "::add-mask::e".into();
    });
    here.write("notify.toml", NOTIFY);
    let notify = ["ci", "notify", "--config", "notify.toml", "--dry-run"];
    for arguments in [&notify[..], &["report", "artifacts/comparison.json"]] {
        let human = here.run(arguments).ends(64).stdout.clone();
        assert!(human.contains("# #[add-mask]e"), "{human}");
        let is_command = |line: &str| line.contains("##[") || line.trim_start().starts_with("::");
        assert!(!human.lines().any(is_command), "{human}");
        let json = here.run(&[arguments, &["--format", "json"]].concat()).ends(64).stdout.clone();
        assert!(!json.contains("##["), "{json}");
        assert!(serde_json::from_str::<Value>(&json).unwrap().to_string().contains("##[add-mask]e"));
    }
}

#[test]
fn a_secret_for_localhost_bypasses_the_proxy() {
    let here = passed_gate();
    let server = Server::start(|_, _| Reply::json(200, json!({})));
    let proxy = Server::start(|_, _| Reply::json(200, json!({})));
    let config = format!(
        "schema_version = 1\non = [\"improved\"]\n[[webhook]]\nname = \"hook\"\nurl = \"{}/hook\"\ntoken_env = \"TOKEN\"\n",
        server.url
    );
    here.write("notify.toml", &config);
    let mut command = here.command(&["ci", "notify", "--config", "notify.toml"]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        command.env(name, &proxy.url);
    }
    ran(command.env_remove("NO_PROXY").env_remove("no_proxy").env("TOKEN", "t0ken").output().unwrap())
        .ends(0);
    assert_eq!((server.requests().len(), proxy.requests().len()), (1, 0));
}
