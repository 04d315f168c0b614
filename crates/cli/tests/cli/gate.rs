//! `holdpoint gate`: the whole flow.

use crate::common::{Here, TINY, keys, ran as ran_of};

#[test]
fn the_first_gate_records_a_baseline_and_says_what_next() {
    let here = Here::new();
    let ran = here.run(&["gate", "--suite", "suite.toml", "--runs", "2", "--policy", "allowed-max"]);
    ran.ends(0).prints(&["tiny · baseline", "pack_p50_ms", "2 metrics, from 2 runs"]);
    ran.notes(&["no baseline for suite \"tiny\" on this machine yet; recording one from 2 runs"]);
    ran.notes(&[
        "baseline recorded: .holdpoint/baselines/tiny-",
        "next: change something and run \"holdpoint gate --suite suite.toml\" again",
    ]);
    let baseline = here.json(&here.baseline());
    assert_eq!(baseline["metrics"]["true_p50_ms"]["runs_ms"].as_array().unwrap().len(), 2);
    let artifacts = ["report.json", "report.md", "report.seal.json"].map(|name| format!("artifacts/{name}"));
    let expected = [&[here.baseline()], &artifacts[..], &["suite.toml".to_owned()]].concat();
    assert_eq!(here.files(), expected);
    assert_eq!(here.left_over(), [""; 0]);
}

#[test]
fn a_baseline_of_one_run_is_recorded_with_a_warning_and_passes_nothing() {
    let here = Here::new();
    let gate = || here.run(&["gate", "--suite", "suite.toml", "--runs", "1"]);
    gate().ends(3).notes(&["warning: this baseline cannot serve 2 of 2 metrics", "baseline recorded: "]);
    gate().ends(3).prints(&["policy stored", "the baseline is one run", "holdpoint gate --against REV"]);
}

#[test]
fn the_second_gate_compares_and_leaves_evidence() {
    let here = Here::new();
    here.gate(&[]).ends(0);
    let ran = here.gate(&[]);
    let comparison = here.json("artifacts/comparison.json");
    let expected = match comparison["verdict"].as_str().unwrap() {
        "pass" | "improved" => 0,
        "regressed" => 1,
        other => panic!("{other}"),
    };
    ran.ends(expected)
        .prints(&["pack_p50_ms", "true_p50_ms"])
        .notes(&["baseline: .holdpoint/", "evidence: artifacts"]);
    let evidence = here.files().iter().filter(|name| name.starts_with("artifacts/")).count();
    assert!(evidence >= 4, "{:?}", here.files());
    assert_eq!(comparison["checks"].as_array().unwrap().len(), 2);
    assert!(here.read("artifacts/report.md").contains("pack_p50_ms"));
    let trend = here.json("artifacts/trend.json");
    assert_eq!((&trend["suite"], &trend["total_metrics"]), (&"tiny".into(), &2.into()));
    assert_eq!(trend["timestamp_utc"], here.json("artifacts/report.json")["timestamp_utc"]);
    let baseline = here.baseline();
    for (file, kind) in [
        ("artifacts/report.json", "report"),
        ("artifacts/report.seal.json", "seal"),
        ("artifacts/comparison.json", "comparison"),
        (&baseline, "baseline"),
    ] {
        let document = here.json(file);
        assert_eq!((&document["kind"], &document["schema_version"]), (&kind.into(), &1.into()), "{file}");
    }
}

#[test]
fn a_verdict_of_before_does_not_outlive_its_baseline() {
    let here = Here::new();
    here.gate(&[]).ends(0);
    here.edit_times(1e9);
    here.gate(&[]).ends(0).prints(&["improved"]);
    std::fs::remove_file(here.path(&here.baseline())).unwrap();
    here.gate(&[]).ends(0).notes(&["baseline recorded"]);
    assert!(!here.path("artifacts/comparison.json").exists());
    assert!(!here.path("artifacts/trend.json").exists());
}

#[test]
fn slower_than_allowed_is_regressed() {
    let here = Here::new();
    here.gate(&[]).ends(0);
    here.edit_times(1e-9);
    here.gate(&[]).ends(1).prints(&["regressed: 2 of 2 metrics are slower than allowed"]);
    assert_eq!(here.json("artifacts/comparison.json")["verdict"], "regressed");
    assert_eq!(here.json("artifacts/trend.json")["failed_metrics"], 2);
}

#[test]
fn a_slow_run_is_looked_at_again_and_every_run_is_kept() {
    let here = Here::new();
    here.gate(&[]).ends(0);
    here.edit_times(1e-9);
    here.gate(&["--confirm", "2"]).ends(1).prints(&["judged by the median of 3 runs"]);
    assert!(here.path("artifacts/report-2.json").exists() && here.path("artifacts/report-3.json").exists());
    // The next gate leaves none of them behind to be mistaken for its own.
    here.edit_times(1e9);
    here.gate(&[]).ends(0);
    assert!(!here.path("artifacts/report-2.json").exists() && !here.path("artifacts/report-3.json").exists());
    here.edit_times(1e-9);
    here.gate(&["--confirm", "0"]).ends(1);
    assert!(!here.path("artifacts/report-2.json").exists());
}

#[test]
fn a_required_baseline_is_not_made_up() {
    let here = Here::new();
    let ran = here.run(&["gate", "--suite", "suite.toml", "--require-baseline"]);
    ran.ends(3).notes(&["inconclusive: no baseline for suite \"tiny\" on this machine"]);
    assert_eq!(here.files(), ["suite.toml"]);
    // A job that only records would be green for any change.
    let in_ci = here.command(&["gate", "--suite", "suite.toml"]).env("CI", "true").output().unwrap();
    let advice =
        "record one of code that is known to be good with \"holdpoint baseline record --suite suite.toml\"";
    ran_of(in_ci).ends(3).notes(&[advice]);
    assert_eq!(here.files(), ["suite.toml"]);
}

#[test]
fn baselines_of_other_machines_are_named_when_one_is_recorded() {
    let here = Here::new();
    here.gate(&[]).ends(0);
    let own = here.path(&here.baseline());
    std::fs::rename(&own, own.with_file_name("tiny-0123456789ab.json")).unwrap();
    here.gate(&[]).ends(0).notes(&["has baselines of other machines (tiny-0123456789ab.json)"]);
}

#[test]
fn what_cannot_run_here_is_left_out_of_the_baseline_and_asked_for_again() {
    let here = Here::new();
    let skip = r#"while read -r line; do case "$line" in
*hello*) echo '{"id":1,"type":"hello","protocol":2,"name":"s","version":"1","timer":"host_monotonic","clock_resolution_ns":30}';;
*list*) echo '{"id":2,"type":"workloads","workloads":[{"name":"gpu","op":"x","shape":[],"dtype":"f32"}]}';;
*prepare*) echo '{"id":3,"type":"skipped","workload":"gpu","reason":"cuda_unavailable"}';;
*) exit;; esac; done"#;
    here.write("skip.sh", skip);
    let gpu = "\n[workers.s]\ncommand = [\"sh\", \"skip.sh\"]\n\n[[workload]]\nname = \"gpu\"\nworker = \"s\"\nop = \"x\"\n";
    here.write("suite.toml", &format!("{TINY}{gpu}"));
    here.gate(&[]).ends(0).prints(&["requires      a run of status \"partial\""]);
    here.edit_times(1e9);
    here.gate(&[]).ends(0);
    assert_eq!(here.json("artifacts/report.json")["status"], "partial");
}

#[test]
fn another_machine_is_inconclusive_until_it_is_allowed() {
    let here = Here::new();
    here.gate(&[]).ends(0);
    here.edit_times(1e9);
    let baseline = here.baseline();
    here.edit(&baseline, |value| {
        value["machine"]["fingerprint"] = "0123".into();
        value["machine"]["cpu_model"] = "Another CPU".into();
    });
    let ran = here.gate(&["--baseline", &baseline]);
    ran.ends(3).prints(&["baseline is from another machine (Another CPU", "--allow machine"]);
    here.gate(&["--baseline", &baseline, "--allow", "machine"])
        .ends(0)
        .prints(&["compared across machines, as allowed"]);
}

#[test]
fn a_wrong_answer_is_broken_and_makes_no_baseline() {
    let here = Here::new();
    let suite = format!("{TINY}expect_stdout = \"yes\"\n");
    here.write("suite.toml", &suite);
    let ran = here.run(&["gate", "--suite", "suite.toml", "--runs", "3", "--policy", "allowed-max"]);
    ran.ends(4).prints(&["wrong answer before timing: stdout: got \"\", want \"yes\""]);
    ran.notes(&["no baseline was recorded: the run's status is \"failed\""]);
    assert!(
        !here.path(".holdpoint/baselines").exists() || here.files().iter().all(|f| !f.contains("baselines"))
    );
    here.write("suite.toml", TINY);
    here.gate(&[]).ends(0);
    here.write("suite.toml", &suite);
    here.gate(&[]).ends(4).prints(&["broken", "wrong_answer: wrong answer before timing"]);
}

#[test]
fn a_workload_that_vanished_is_missing_and_fails() {
    let here = Here::new();
    here.gate(&[]).ends(0);
    here.edit_times(1e9);
    here.write("suite.toml", TINY.split("[[workload]]\nname = \"true\"").next().unwrap());
    here.gate(&[]).ends(1).prints(&["was the workload removed or renamed?"]);
    let comparison = here.json("artifacts/comparison.json");
    let check = comparison["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["metric"] == "true_p50_ms")
        .unwrap();
    assert_eq!((&check["status"], &check["verdict"]), (&"missing".into(), &"regressed".into()));
}

#[test]
fn a_run_in_which_nothing_could_be_measured_is_skipped() {
    let here = Here::new();
    let answers = [
        r#"{"id":1,"type":"hello","protocol":2,"name":"x","version":"1","timer":"t","clock_resolution_ns":1}"#,
        r#"{"id":2,"type":"workloads","workloads":[{"name":"gpu","op":"copy","dtype":"f32"}]}"#,
        r#"{"id":3,"type":"skipped","workload":"gpu","reason":"cuda_unavailable"}"#,
    ];
    let script: String = answers.iter().map(|answer| format!("read -r line; echo '{answer}'; ")).collect();
    let head = TINY.split("[[workload]]").next().unwrap();
    let worker =
        format!("[workers.x]\ncommand = [\"sh\", \"-c\", {}]\n", serde_json::to_string(&script).unwrap());
    let workload = "[[workload]]\nname = \"gpu\"\nop = \"copy\"\nworker = \"x\"\n";
    here.write("suite.toml", &format!("{head}{worker}{workload}"));
    here.run(&["run", "--suite", "suite.toml"]).ends(2).prints(&["skipped", "cuda_unavailable"]);
    here.gate(&[]).ends(2).notes(&["no baseline was recorded"]);
}

#[test]
fn a_report_names_everything_it_is_made_of() {
    let here = Here::new();
    here.run(&["run", "--suite", "suite.toml"]).ends(0).notes(&["report: artifacts/report.json"]);
    let report = here.json("artifacts/report.json");
    let expected = [
        "benchmarks",
        "config",
        "environment",
        "environment_lock",
        "kind",
        "machine",
        "metrics",
        "revision",
        "schema_version",
        "status",
        "suite",
        "timestamp_utc",
        "toolchain",
    ];
    assert_eq!(keys(&report), expected);
    assert_eq!(keys(&report["metrics"]), ["pack_p50_ms", "true_p50_ms"]);
}

#[test]
fn the_suite_of_a_repository_is_found_from_its_folders_and_no_other() {
    let here = Here::new();
    here.write("perf.toml", &TINY.replace("\"tiny\"", "\"above\""));
    std::fs::create_dir_all(here.path("own/.git")).unwrap();
    std::fs::create_dir_all(here.path("own/src/deep")).unwrap();
    let name = |folder: &str| {
        let run = ["run", "--output", "report.json"];
        ran_of(here.command(&run).current_dir(here.path(folder)).output().unwrap()).ends(0);
        here.json(&format!("{folder}/report.json"))["suite"].as_str().unwrap().to_owned()
    };
    assert_eq!(name("."), "above");
    here.write("own/perf.toml", &TINY.replace("\"tiny\"", "\"own\""));
    assert_eq!(name("own/src/deep"), "own");
    std::fs::remove_file(here.path("own/perf.toml")).unwrap();
    let shown = here.command(&["baseline", "show"]).current_dir(here.path("own/src")).output().unwrap();
    ran_of(shown).notes(&["\"cpu\""]);
}
