//! `holdpoint` without a command.

use crate::common::{Here, TINY};

#[test]
fn without_a_suite_the_next_step_is_init() {
    let here = Here::new();
    std::fs::remove_file(here.path("suite.toml")).unwrap();
    here.run(&[]).ends(0).prints(&["no perf.toml here or above", "next", "holdpoint init"]);
}

#[test]
fn each_step_leads_to_the_next() {
    let here = Here::new();
    here.write("perf.toml", TINY);
    here.run(&[]).ends(0).prints(&["perf.toml: 2 workloads", "none on this machine", "holdpoint calibrate"]);
    here.run(&["calibrate", "--trials", "2", "--budget", "1", "--tolerance", "100%"]).ends(0);
    here.run(&[]).ends(0).prints(&[
        "false alarms in 2 suites",
        "none in artifacts/",
        "holdpoint gate: is your change slower",
    ]);
    let gate = ["gate", "--confirm", "0", "--runs", "1", "--policy", "allowed-max"];
    here.run(&gate).ends(0);
    here.edit_times(1e9);
    here.run(&gate).ends(0);
    here.run(&[]).ends(0).prints(&["2 metrics", "improved, 20", "not set up", "holdpoint ci init"]);
    here.edit_times(1e-9);
    here.run(&gate).ends(1);
    here.run(&[]).ends(0).prints(&["regressed, 20", "holdpoint report artifacts/comparison.json"]);
    here.edit("artifacts/comparison.json", |stated| stated["verdict"] = "pass".into());
    here.run(&[])
        .ends(0)
        .prints(&["does not verify: it says pass, judged again it is regressed", "holdpoint report"]);
    let status: serde_json::Value =
        serde_json::from_str(&here.run(&["--format", "json"]).ends(0).stdout).unwrap();
    assert_eq!(status["ci"], "not set up");
}

#[test]
fn a_bad_file_is_named() {
    let here = Here::new();
    here.write("perf.toml", "[[workload]]\n");
    here.run(&[]).refuses(64, &["perf.toml"]);
    here.write("perf.toml", TINY);
    std::fs::create_dir(here.path("artifacts")).unwrap();
    here.write("artifacts/comparison.json", "{");
    here.run(&[]).refuses(64, &["artifacts/comparison.json"]);
}
