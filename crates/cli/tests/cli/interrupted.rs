//! Signals: what was measured is kept, nothing is left running, and it can be gone on with.

use crate::common::{Here, PASSED, Ran, ran};
use crate::repository::FAST;
use crate::scripted_worker::{compare_arguments, outcome, units};
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Nothing that is waited for takes longer on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);
const QUICK: [&str; 2] = ["--budget", "600"];

impl Here {
    /// Starts the binary; each of its workers' runs takes a while.
    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("holdpoint"));
        command.current_dir(self.path(".")).env("TMPDIR", self.tmp()).env("HOLDPOINT_CACHE", self.cache());
        command
            .env("PAUSE", "0.05")
            .env("HOLDPOINT_PASS", PASSED)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// The processes of its workers so far.
    fn pids(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(self.path("pids")).unwrap_or_default();
        // The last line may be half written.
        text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')?.parse().ok()).collect()
    }

    /// None of them is left, and nothing they started.
    fn nothing_is_left_running(&self) {
        let folders = [&self.path("."), self.cache()].map(|folder| std::fs::canonicalize(folder).unwrap());
        let is_here = |process: std::fs::DirEntry| {
            let cwd = std::fs::read_link(process.path().join("cwd"));
            cwd.is_ok_and(|cwd| folders.iter().any(|folder| cwd.starts_with(folder)))
        };
        let here = || std::fs::read_dir("/proc").unwrap().flatten().map(is_here).filter(|is| *is).count();
        wait_until("no process is left", || here() == 0);
    }
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap().success());
}

fn end(child: Child) -> Ran {
    ran(child.wait_with_output().unwrap())
}

/// A comparison that needs ten units or so, ended by a signal after two.
fn interrupted(name: &str, code: i32) -> (Here, Value) {
    let here = Here::with_scripted_worker();
    let arguments = compare_arguments("2000 a b", "2000 a b");
    let child = here.start(&[&arguments.each_ref().map(String::as_str)[..], &QUICK].concat());
    wait_until("two units were made", || here.pids().len() >= 5);
    signal(&child, name);
    end(child).ends(code).prints(&["inconclusive", "--resume goes on"]).notes(&["evidence: artifacts"]);
    here.nothing_is_left_running();
    let report = here.ab();
    assert_eq!((&report["finished"], &report["verdict"]), (&false.into(), &"inconclusive".into()));
    assert_eq!(outcome(&report, "a")[..2], ["inconclusive", "interrupted"]);
    assert!(units(&report, "a").len() >= 2, "{report:#}");
    assert!(report["workloads"]["a"].get("failure").is_none());
    assert!(here.read("artifacts/ab.md").contains("--resume"));
    (here, report)
}

#[test]
fn what_was_typed_into_a_comparison_is_not_gone_on_from() {
    let here = Here::with_scripted_worker();
    let with = |more: &[&str]| here.compare_scripted("2000 a b", "4000 a b", &[&QUICK[..], more].concat());
    with(&["--units-max", "2"]).ends(3);
    here.edit("artifacts/ab.json", |ab| {
        ab["finished"] = false.into();
        for unit in ab["workloads"]["a"]["units"].as_array_mut().unwrap() {
            (unit["x"], unit["process"]) = (0.0.into(), u32::MAX.into());
        }
        let b = &mut ab["workloads"]["b"];
        (b["units"], b["ended"], b["verdict"]) = (serde_json::json!([]), "same_code".into(), "pass".into());
    });
    with(&["--resume", "--units-max", "90"]).ends(1);
    let report = here.ab();
    for name in ["a", "b"] {
        assert_eq!(outcome(&report, name)[..2], ["regressed", "decided"], "{report:#}");
    }
    assert!(units(&report, "a").iter().all(|unit| unit["x"].as_f64().unwrap() > 0.6), "{report:#}");
    // Neither calls without end nor units without rounds.
    let calls = report["workloads"]["a"]["calls_per_sample"].clone();
    here.edit("artifacts/ab.json", |ab| ab["workloads"]["a"]["calls_per_sample"] = u64::MAX.into());
    with(&["--resume"]).refuses(64, &["ab.json", "calls_per_sample of a"]);
    here.edit("artifacts/ab.json", |ab| {
        ab["workloads"]["a"]["calls_per_sample"] = calls.clone();
        ab["workloads"]["a"]["units"][0]["rounds"] = serde_json::json!([]);
    });
    with(&["--resume"]).refuses(64, &["ab.json", "cannot go on from this", "has no rounds"]);
}

#[test]
fn an_interrupted_comparison_goes_on_where_it_was() {
    let (here, before) = interrupted("INT", 130);
    // More time and more units may be given.
    here.compare_scripted("2000 a b", "2000 a b", &[&QUICK[..], &["--resume", "--units-max", "90"]].concat())
        .ends(0);
    let after = here.ab();
    assert_eq!((&after["finished"], &after["verdict"]), (&true.into(), &"pass".into()));
    assert_eq!((&after["plan"]["units_max"], &after["plan"]["seed"]), (&90.into(), &before["plan"]["seed"]));
    assert_eq!(after["timestamp_utc"], before["timestamp_utc"]);
    for name in ["a", "b"] {
        let (was, is) = (units(&before, name), units(&after, name));
        assert!(is.len() > was.len());
        assert_eq!(is[..was.len()], was[..]);
        let processes: Vec<u64> = is.iter().map(|unit| unit["process"].as_u64().unwrap()).collect();
        assert!(processes.is_sorted_by(|a, b| a < b), "{processes:?}");
    }
    let elapsed = |report: &Value| report["elapsed_s"].as_f64().unwrap();
    assert!(elapsed(&after) > elapsed(&before));
    // What is finished cannot be gone on with.
    let file = here.read("artifacts/ab.json");
    here.compare_scripted("2000 a b", "2000 a b", &[&QUICK[..], &["--resume"]].concat())
        .refuses(64, &["artifacts/ab.json: cannot go on from this: it is finished", "measure anew"]);
    assert_eq!(here.read("artifacts/ab.json"), file);
}

#[test]
fn only_the_same_comparison_can_be_gone_on_with() {
    let (here, _) = interrupted("TERM", 143);
    let file = here.read("artifacts/ab.json");
    let resume = |base: &str, head: &str, more: &[&str]| {
        here.compare_scripted(base, head, &[&QUICK[..], &["--resume"], more].concat())
    };
    let recorded = "sh scripted.sh 2000 a b";
    for (base, head, side) in [("2000 a b", "3000 a b", "head"), ("3000 a b", "2000 a b", "base")] {
        let both = format!("{side} was {recorded}, is sh scripted.sh 3000 a b");
        resume(base, head, &[]).refuses(64, &[&both, "or leave out --resume to measure anew"]);
    }
    for (other, both) in [
        (&["--tolerance", "1%"][..], "--tolerance was 0.02, is 0.01"),
        (&["--alarm-rate", "0.01"], "--alarm-rate was 0.001, is 0.01"),
        (&["--miss-rate", "0.2"], "--miss-rate was 0.01, is 0.2"),
        (&["--at-once", "1"], "--at-once was 2, is 1"),
        (&["--policy", "disjoint-ci"], "--policy was sequential, is disjoint-ci"),
        (&["--pin"], "--pin was false, is true"),
    ] {
        resume("2000 a b", "2000 a b", other)
            .refuses(64, &["artifacts/ab.json: cannot go on from this: ", both]);
    }
    let seed = here.ab()["plan"]["seed"].as_u64().unwrap();
    let both = format!("--seed was {seed}, is 7;");
    resume("2000 a b", "2000 a b", &["--seed", "7"]).refuses(64, &[&both]);
    let ran = here.compare_scripted("2000 a b", "2000 a b", &["--resume", "--metric", "cpu"]);
    ran.refuses(64, &["--metric was None, is Some(Cpu)"]);
    let worker = here.read("scripted.sh");
    here.write("scripted.sh", &format!("{worker}\n# faster"));
    resume("2000 a b", "2000 a b", &[])
        .refuses(64, &["scripted.sh of base was sha256 ", "scripted.sh of head was sha256 "]);
    here.write("scripted.sh", &worker);
    here.write("suite.toml", &crate::scripted_worker::suite(&["a"]));
    resume("2000 a b", "2000 a b", &[])
        .refuses(64, &["the list of workloads was a, b, is a", "suite of base was sha256 "]);
    let suite = crate::scripted_worker::suite(&["a", "b"]).replace("rounds_min", "seed = 9\nrounds_min");
    here.write("suite.toml", &suite.replace("[measure]\nseed = 9\n", "seed = 9\n[measure]\n"));
    resume("2000 a b", "2000 a b", &[]).refuses(64, &["environment seed was 123, is 9"]);
    assert_eq!(here.read("artifacts/ab.json"), file);
    here.compare_scripted("2000 a b", "2000 a b", &["--resume", "--artifacts", "nowhere"])
        .refuses(64, &["nowhere/ab.json"]);
    here.write("artifacts/ab.json", "{}");
    resume("2000 a b", "2000 a b", &[]).refuses(64, &["artifacts/ab.json"]);
    assert_eq!(here.read("artifacts/ab.json"), "{}");
}

#[test]
fn answers_are_checked_again_when_going_on() {
    let (here, before) = interrupted("HUP", 129);
    let sides = compare_arguments("2000 a b", "2000 a b");
    let arguments = [&sides.each_ref().map(String::as_str)[..], &QUICK[..], &["--resume"]].concat();
    ran(here.command(&arguments).env("WRONG", "1").output().unwrap()).ends(4).prints(&["wrong_answer"]);
    let after = here.ab();
    assert_eq!(outcome(&after, "a")[..2], ["broken", "failed"]);
    assert_eq!(units(&after, "a")[..units(&before, "a").len()], units(&before, "a")[..]);
}

#[test]
fn a_comparison_that_was_killed_goes_on_from_its_last_save() {
    let here = Here::with_scripted_worker();
    // Constants at a tolerance of nothing are never decided.
    let sides = compare_arguments("2000 a b", "2000 a b");
    let arguments = [&sides.each_ref().map(String::as_str)[..], &QUICK, &["--tolerance", "0%"]].concat();
    let mut child = here.start(&arguments);
    wait_until("the first save", || here.path("artifacts/ab.json").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    here.nothing_is_left_running();
    let before = here.ab();
    let saved = units(&before, "a").len();
    assert!(before["finished"] == false && saved > 1);
    let more = (saved + 2).to_string();
    here.run(&[&arguments[..], &["--resume", "--units-max", &more]].concat()).ends(3);
    let after = here.ab();
    assert_eq!((&after["finished"], units(&after, "a").len()), (&true.into(), saved + 2));
    assert_eq!(units(&after, "a")[..saved], units(&before, "a")[..]);
}

#[test]
fn a_signal_ends_commands_at_once_and_leaves_none() {
    let here = Here::new();
    let mut suite = "schema_version = 1\nname = \"long\"\n".to_owned();
    for name in ["a", "b", "c"] {
        suite += &format!(
            "[[workload]]\nname = \"{name}\"\ncommand = [\"sh\", \"-c\", \"echo $$ >> pids; sleep 50 & wait\"]\n"
        );
    }
    here.write("suite.toml", &suite);
    let start = Instant::now();
    let child = here.start(&["ab", "--base-suite", "suite.toml", "--head-suite", "suite.toml"]);
    wait_until("a command runs", || !here.pids().is_empty());
    signal(&child, "INT");
    end(child).ends(130);
    assert!(start.elapsed() < Duration::from_secs(45), "the other commands were not started");
    here.nothing_is_left_running();
    let report = here.ab();
    assert_eq!((&report["finished"], outcome(&report, "c")[1]), (&false.into(), "interrupted"));
}

#[test]
fn a_calibration_keeps_the_trials_it_has_made() {
    let here = Here::with_scripted_worker();
    let arguments = ["calibrate", "--suite", "suite.toml", "--trials", "10000", "--tolerance", "300%"];
    let mut command = here.start(&[&arguments[..], &QUICK, &["--output", "out.json"]].concat());
    // A trial takes ten units or so; thirty are at least one.
    wait_until("a trial was made", || here.pids().len() > 60);
    signal(&command, "TERM");
    assert_eq!(command.wait().unwrap().code(), Some(143));
    here.nothing_is_left_running();
    let calibration = here.json("out.json");
    assert_eq!(calibration["finished"], false);
    assert_eq!(calibration["false_alarms"], 0);
    assert!(calibration["trials"].as_u64().unwrap() >= 1);
    assert_eq!(calibration["workloads"]["a"]["trials"], calibration["trials"]);
}

#[test]
fn a_build_ends_with_the_command_that_wants_it() {
    let here = Here::repository();
    here.commit("first", Some(FAST));
    here.commit("second", Some(FAST));
    let suite = here.read("suite.toml").replace("cp prog.sh run.sh", "sleep 50");
    here.write("suite.toml", &suite.replace("$BUILDS", &here.path("builds").display().to_string()));
    for arguments in [&["gate", "--against", "HEAD~1"][..], &["bisect", "--good", "HEAD~1"]] {
        let child = here.start(&[arguments, &["--suite", "suite.toml"]].concat());
        wait_until("it builds", || here.builds_count() > 0);
        signal(&child, "INT");
        assert_eq!(end(child).ends(130).stdout, "");
        here.nothing_is_left_running();
        std::fs::remove_file(here.path("builds")).unwrap();
        assert!(!here.path("artifacts/ab.json").exists());
    }
}
