//! Several processes in one folder: they take turns, lose nothing, and what lies together belongs together.

use crate::common::{Here, Ran, data, ran};
use crate::scripted_worker::compare_arguments;
use holdpoint_store::FolderLock;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

impl Here {
    /// Starts the binary beside others.
    fn begin(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("holdpoint"));
        command.current_dir(self.path(".")).env("TMPDIR", self.tmp()).env("HOLDPOINT_CACHE", self.cache());
        command.env_remove("CI");
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs a command while the folder is another writer's: it says that it waits, and goes on when the other has ended.
    #[track_caller]
    fn waits(&self, folder: &str, arguments: &[&str]) -> Ran {
        let lock = FolderLock::acquire(&self.path(folder), Duration::ZERO, || {}).unwrap();
        let mut child = self.begin(arguments);
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains(&format!("{folder}: another holdpoint is writing to this folder; waiting")) {
            assert!(stderr.read_line(&mut said).unwrap() > 0, "{arguments:?} did not wait: {said}");
        }
        assert!(child.try_wait().unwrap().is_none());
        drop(lock);
        let output = child.wait_with_output().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        Ran { stderr: said, ..ran(output) }
    }
}

const TINY: [&str; 6] = ["--suite", "suite.toml", "--runs", "1", "--policy", "allowed-max"];

#[test]
fn a_gate_waits_for_the_one_before_it_in_the_same_folder() {
    let here = Here::new();
    here.waits("artifacts", &[&["gate"], &TINY[..]].concat()).ends(0);
    here.waits("artifacts", &["run", "--suite", "suite.toml"]).ends(0);
    let sides = ["ab", "--base", "true", "--head", "true", "--budget", "0.01"];
    here.waits("artifacts", &sides).ends(3);
    let calibrate = ["calibrate", "--suite", "suite.toml", "--trials", "1", "--budget", "0.01"];
    here.waits(".holdpoint/calibration", &calibrate).ends(0);
    here.waits("replay.outputs", &["replay", "record", "--suite", "suite.toml", "-o", "replay.json"]).ends(0);
    // Another folder is another's business.
    let _lock = FolderLock::acquire(&here.path("artifacts"), Duration::ZERO, || {}).unwrap();
    here.run(&["run", "--suite", "suite.toml", "--output", "artifacts/mine.json"]).ends(0);
    here.gate(&["--artifacts", "elsewhere", "--confirm", "0"]);
    assert!(here.path("elsewhere/comparison.json").exists());
}

#[test]
fn whoever_reads_a_baseline_to_write_it_anew_waits_for_other_writers() {
    let here = Here::new();
    let report = data("apex-cpu-report.json");
    let reports = [report.as_str(); 3];
    here.run(&[&["baseline", "template"], &reports[..], &["--baseline", "b/base.json"]].concat()).ends(0);
    here.waits("b", &["baseline", "fit", "b/base.json"]).ends(0);
    here.git(&["init", "--quiet", "--initial-branch", "main"]);
    here.git(&["add", "suite.toml"]);
    here.git(&["commit", "--quiet", "--message", "first"]);
    here.run(&["-q", "run", "--suite", "suite.toml"]).ends(0);
    here.waits(".holdpoint/baselines", &["baseline", "promote", "--by", "ada"]).ends(0);
}

#[test]
fn a_killed_gate_keeps_nobody_waiting() {
    let here = Here::with_scripted_worker();
    let [ab, rest @ ..] = compare_arguments("2000 a b", "2000 a b");
    let rest = rest.each_ref().map(String::as_str);
    let arguments = [&[ab.as_str()], &rest[..], &["--tolerance", "0%"]].concat();
    let mut first = here.begin(&arguments);
    let is_locked = || FolderLock::acquire(&here.path("artifacts"), Duration::ZERO, || {}).is_err();
    while !is_locked() {
        assert!(first.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    // A process that it was just starting holds the lock too, until it has become another program.
    assert!(FolderLock::acquire(&here.path("artifacts"), Duration::from_secs(10), || {}).is_ok());
}

#[test]
fn gates_that_start_together_leave_the_files_of_one() {
    let here = Here::new();
    here.gate(&[]).ends(0);
    here.edit_times(1e9);
    let arguments = [&["gate"], &TINY[..]].concat();
    let children: Vec<Child> = (0..4).map(|_| here.begin(&arguments)).collect();
    for child in children {
        ran(child.wait_with_output().unwrap()).ends(0);
    }
    let [report, comparison] =
        ["report", "comparison"].map(|name| here.json(&format!("artifacts/{name}.json")));
    for check in comparison["checks"].as_array().unwrap() {
        assert_eq!(check["current_ms"], report["metrics"][check["metric"].as_str().unwrap()], "{check:#}");
    }
    assert_eq!(here.left_over(), [""; 0]);
}

#[test]
fn points_that_processes_append_together_are_all_kept() {
    let here = Here::new();
    let mut children = Vec::new();
    for second in 10..26 {
        let name = format!("{second}.json");
        here.write(&name, &std::fs::read_to_string(data("trend-v1.json")).unwrap());
        here.edit(&name, |point| point["timestamp_utc"] = format!("2026-02-14T10:00:{second}Z").into());
        children.push(here.begin(&["trend", "append", &name]));
    }
    for child in children {
        ran(child.wait_with_output().unwrap()).ends(0).notes(&["appended to"]);
    }
    let history = here.files().into_iter().find(|name| name.ends_with(".ndjson")).unwrap();
    here.run(&["trend", "show", &history]).ends(0).prints(&["trend: 16 runs"]);
}

#[test]
fn a_run_takes_the_place_of_what_a_gate_left() {
    let here = Here::new();
    here.gate(&[]).ends(0);
    here.gate(&["--confirm", "0"]);
    let ours = [
        "comparison.json",
        "trend.json",
        "report.md",
        "ab.json",
        "ab.md",
        "ab.seal.json",
        "report-2.json",
        "report-7.json",
    ];
    for name in ours.iter().chain(&["exit-code", "notes.txt", "report-x.json"]) {
        here.write(&format!("artifacts/{name}"), "{}");
    }
    here.run(&["run", "--suite", "suite.toml", "--output", "artifacts/other.json"]).ends(0);
    assert!(ours.iter().all(|name| here.path(&format!("artifacts/{name}")).exists()));
    here.run(&["run", "--suite", "suite.toml"]).ends(0);
    let left: Vec<String> = here.files().into_iter().filter(|name| name.starts_with("artifacts/")).collect();
    assert_eq!(
        left,
        [
            "exit-code",
            "notes.txt",
            "other.json",
            "other.seal.json",
            "report-x.json",
            "report.json",
            "report.seal.json"
        ]
        .map(|name| format!("artifacts/{name}"))
    );
}

#[test]
fn reports_of_an_earlier_gate_go_even_after_a_gap() {
    let here = Here::new();
    here.gate(&[]).ends(0);
    here.write("artifacts/report-3.json", "{}");
    here.gate(&["--confirm", "0"]);
    assert!(!here.path("artifacts/report-3.json").exists());
}
