//! `holdpoint calibrate`: a suite against itself.

use crate::common::{Here, TINY};
use crate::repository::FAST;
use crate::scripted_worker::suite;
use serde_json::Value;

/// The tiny suite without its command, and a tolerance that a call of 10 µs cannot miss.
fn here() -> Here {
    let here = Here::new();
    here.write("suite.toml", TINY.split("[[workload]]\nname = \"true\"").next().unwrap());
    here
}

const CALIBRATE: [&str; 3] = ["calibrate", "--suite", "suite.toml"];
const TWO: [&str; 4] = ["--trials", "2", "--budget", "10"];

#[test]
fn a_calibration_is_kept_and_shown_beside_later_verdicts() {
    let here = here();
    let arguments = [&CALIBRATE[..], &TWO, &["--tolerance", "300%", "--output", "out.json"]].concat();
    here.run(&arguments).ends(0).prints(&["tiny", "pack", "2 trials"]);
    let kept =
        here.files().into_iter().find(|name| name.starts_with(".holdpoint/calibration/tiny-")).unwrap();
    let calibration = here.json(&kept);
    assert_eq!(calibration, here.json("out.json"));
    for (key, value) in [("trials", 2), ("false_alarms", 0), ("detected", 0), ("inconclusive", 0)] {
        assert_eq!(calibration[key], value, "{key}");
    }
    assert_eq!((&calibration["finished"], &calibration["tolerance"]), (&true.into(), &3.0.into()));
    assert!(calibration["seconds"].as_f64().unwrap() > 0.0);
    let pack = &calibration["workloads"]["pack"];
    assert_eq!((&pack["trials"], &pack["passed"], &pack["too_noisy"]), (&2.into(), &2.into(), &false.into()));

    let suites = ["ab", "--base-suite", "suite.toml", "--head-suite", "suite.toml", "--tolerance", "300%"];
    here.run(&suites).ends(0);
    assert_eq!(here.ab()["workloads"]["pack"]["calibrated"], *pack);
    here.run(&[&suites[..], &["--calibration-dir", "elsewhere"]].concat()).ends(0);
    assert!(here.ab()["workloads"]["pack"].get("calibrated").is_none());
    // A calibration that cannot be read is told, and costs no verdict.
    here.write(&kept, "{}");
    here.run(&suites).ends(0).prints(&["the calibration could not be read"]);
}

#[test]
fn a_slowdown_that_is_put_in_is_found_and_not_kept() {
    let here = here();
    let inject = ["--inject", "100%", "--tolerance", "10%", "--format", "json"];
    let ran = here.run(&[&CALIBRATE[..], &TWO, &inject].concat());
    let calibration: Value = serde_json::from_str(&ran.ends(0).stdout).unwrap();
    assert_eq!((&calibration["inject"], &calibration["detected"]), (&1.0.into(), &2.into()));
    assert_eq!((&calibration["false_alarms"], calibration.get("false_alarm_rate_upper")), (&0.into(), None));
    assert_eq!(calibration["workloads"]["pack"]["detected"], 2);
    assert_eq!(here.files(), ["suite.toml"]);
}

#[test]
fn nothing_can_be_put_into_programs_of_others() {
    let here = Here::new();
    let inject = ["--inject", "5%"];
    here.run(&[&CALIBRATE[..], &inject].concat()).refuses(
        64,
        &["--inject can slow down built-in ops only", "workload \"true\" runs on worker \"command\""],
    );
    let here = Here::with_scripted_worker();
    here.run(&[&CALIBRATE[..], &inject].concat())
        .refuses(64, &["workload \"a\" runs on worker \"scripted\""]);
    // A program in the built-in ops' place is none of ours either.
    let replaced = suite(&["a"])
        .replace("[workers.scripted]", "[workers.builtin]")
        .replace("worker = \"scripted\"\n", "");
    here.write("suite.toml", &replaced);
    here.run(&[&CALIBRATE[..], &inject].concat()).refuses(64, &["--inject can slow down built-in ops only"]);
    for arguments in [["--trials", "0"], ["--inject", "5"], ["--inject", "-5%"]] {
        here.run(&[&CALIBRATE[..], &arguments].concat()).ends(64);
    }
    assert!(!here.path("pids").exists());
}

#[test]
fn programs_of_others_are_calibrated_by_what_they_tell() {
    let here = Here::with_scripted_worker();
    let arguments = ["--trials", "3", "--quiet"];
    let ran = here.run(&[&CALIBRATE[..], &arguments].concat());
    assert_eq!((ran.ends(0).stdout.as_str(), ran.stderr.as_str()), ("", ""));
    let kept =
        here.files().into_iter().find(|name| name.starts_with(".holdpoint/calibration/scripted-")).unwrap();
    let calibration = here.json(&kept);
    assert_eq!((&calibration["trials"], &calibration["false_alarms"]), (&3.into(), &0.into()));
    for name in ["a", "b"] {
        let workload = &calibration["workloads"][name];
        assert_eq!((&workload["passed"], &workload["unit_sd"]), (&3.into(), &0.0.into()));
    }
}

#[test]
fn a_suite_that_does_not_run_is_broken_and_leaves_no_evidence() {
    let here = Here::with_scripted_worker();
    here.write("scripted.sh", "exit 3");
    let ran = here.run(&[&CALIBRATE[..], &["--trials", "30", "--output", "out.json"]].concat());
    ran.ends(4)
        .prints(&["failed: 2 of 2 comparisons failed", "1 trial"])
        .notes(&["not kept: a: ", " failed: "]);
    let kept = |name: &String| name.contains("calibration/") || name == "out.json";
    assert!(!here.files().iter().any(kept), "{:?}", here.files());
}

#[test]
fn a_suite_is_built_before_it_is_compared_with_itself() {
    let here = Here::repository();
    here.commit("fast", Some(FAST));
    let arguments = ["calibrate", "--trials", "1", "--budget", "10", "--output", "out.json"];
    here.revisions(&arguments).ends(0).prints(&["no false alarm in 1 trial"]);
    let calibration = here.json("out.json");
    assert_eq!(calibration["workloads"]["program"]["passed"], 1);
    assert_eq!(here.builds_count(), 1);
    here.git(&["rm", "--quiet", "prog.sh"]);
    here.revisions(&["calibrate", "--trials", "1"]).ends(4).notes(&["building the work tree"]);
}

#[test]
fn failed_trials_of_an_older_file_are_not_shown_beside_verdicts() {
    let here = Here::with_scripted_worker();
    let arguments = ["--trials", "1", "--quiet"];
    here.run(&[&CALIBRATE[..], &arguments].concat()).ends(0);
    let is_kept = |name: &String| name.starts_with(".holdpoint/calibration/scripted-");
    let kept = here.files().into_iter().find(is_kept).unwrap();
    let suites = ["ab", "--base-suite", "suite.toml", "--head-suite", "suite.toml"];
    here.run(&suites).ends(0).prints(&["0/1"]);
    let mut calibration = here.json(&kept);
    calibration["workloads"]["a"]["failed"] = 1.into();
    here.write(&kept, &calibration.to_string());
    here.run(&suites).ends(0).prints(&["has failed trials and says nothing"]);
    assert!(here.ab()["workloads"]["b"].get("calibrated").is_none());
}

#[test]
fn a_worker_can_be_slowed_down_by_hand() {
    let here = here();
    let program = assert_cmd::cargo::cargo_bin!("holdpoint");
    let worker =
        |slowdown: &str| format!("{} worker --suite suite.toml --slowdown {slowdown}", program.display());
    let arguments = ["--tolerance", "20%", "--suite", "suite.toml"];
    let sides = ["ab", "--base-worker", &worker("0%"), "--head-worker", &worker("200%")];
    here.run(&[&sides[..], &arguments].concat()).ends(1).prints(&["pack", "regressed"]);
    here.run(&["worker", "--slowdown", "2"]).ends(64).notes(&["such as 1% or 0.5%"]);
}
