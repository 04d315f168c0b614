//! A suite with one worker that may misbehave and one that does not, and what came of it.

use holdpoint_measure::{ReadySuite, run_suite};
use holdpoint_model::report::Measured;
use holdpoint_model::{Failure, FailureCause, Measurement, Outcome, Report, Suite};
use rustix::process::{Pid, test_kill_process};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Few rounds, no warm-up: the number of requests is then known. Nobody waits for a worker that lives.
pub const PLAN: &str =
    "rounds_min = 6\nrounds_max = 6\nround_ms = 0.01\nwarmup_ms_max = 0\ntime_budget_ms = 10\n";
/// Long enough for a loaded machine to start a shell.
pub const PATIENT: &str = "timeout_ms = 20000\n";
/// Short, for workers that hang on purpose.
pub const SHORT: &str = "timeout_ms = 700\n";

/// A run of a suite, and the processes that it started.
pub struct Ran {
    pub report: Report,
    pids: PathBuf,
    _dir: TempDir,
}

/// A suite file of the head, a plan and the workloads.
pub fn suite(plan: &str, rest: &str) -> Suite {
    let text = format!("schema_version = 1\nname = \"mine\"\n[measure]\n{plan}{rest}");
    Suite::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The suite with what its workers list.
pub fn ready(suite: Suite) -> ReadySuite {
    ReadySuite::list(suite).unwrap_or_else(|error| panic!("{error}"))
}

/// Measures a suite as it is.
pub fn measure(suite: &Suite) -> Report {
    run_suite(&ready(suite.clone()), std::path::Path::new("/"), &mut |_| {})
}

/// The command line of a shell worker whose middle is `script`, as TOML.
pub fn worker(script: &str, pids: &Path) -> String {
    let text = include_str!("worker.sh").replace("@SCRIPT@", script);
    // A JSON string is a TOML string.
    let (text, pids) = (serde_json::to_string(&text).unwrap(), serde_json::to_string(pids).unwrap());
    format!("command = [\"sh\", \"-c\", {text}, \"worker\", {pids}]\n")
}

/// Measures `bad` and `other` on a worker with this script in it, and `good` on one that behaves.
pub fn run_with(plan: &str, script: &str) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let plan = format!("{PLAN}{plan}[workers.strange]\n{}", worker(script, &pids));
    run(&plan, dir, pids)
}

/// As [`run_with`], with all the time that a worker could need.
pub fn run_patiently(script: &str) -> Ran {
    run_with(PATIENT, script)
}

/// As [`run_patiently`], where the strange worker is this program.
pub fn run_program(command: &str) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    run(&format!("{PLAN}{PATIENT}[workers.strange]\ncommand = {command}\n"), dir, pids)
}

fn run(plan: &str, dir: TempDir, pids: PathBuf) -> Ran {
    let workload = |name: &str, worker: &str| {
        format!("[[workload]]\nname = \"{name}\"\nop = \"copy\"\nshape = [2, 3]\nworker = \"{worker}\"\n")
    };
    let rest = format!(
        "[workers.good]\n{}{}{}{}",
        worker("", &pids),
        workload("bad", "strange"),
        workload("other", "strange"),
        workload("good", "good")
    );
    let report = measure(&suite(plan, &rest));
    Ran { report, pids, _dir: dir }
}

pub fn failure<'a>(report: &'a Report, name: &str) -> &'a Failure {
    match &report.benchmarks[name].outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("{name} should have failed: {other:?}"),
    }
}

pub fn measured<'a>(report: &'a Report, name: &str) -> &'a Measured {
    match &report.benchmarks[name].outcome {
        Outcome::Measured(measured) => measured,
        other => panic!("{name} should be measured: {other:?}"),
    }
}

impl Ran {
    pub fn of(&self, name: &str) -> &Measurement {
        &self.report.benchmarks[name]
    }

    /// The worker was of no use to `bad`; the others were measured and no process is left.
    #[track_caller]
    pub fn bad_failed(&self, cause: FailureCause, words: &[&str]) -> &Failure {
        self.measured(&["other", "good"]);
        self.failed("bad", cause, words)
    }

    /// The worker was of no use to anyone; the other worker's workload was measured and no process is left.
    #[track_caller]
    pub fn worker_failed(&self, cause: FailureCause, words: &[&str]) -> &Failure {
        self.measured(&["good"]);
        self.failed("other", cause, words);
        self.failed("bad", cause, words)
    }

    #[track_caller]
    pub fn failed(&self, name: &str, cause: FailureCause, words: &[&str]) -> &Failure {
        let failure = failure(&self.report, name);
        assert_eq!(failure.cause, cause, "{failure:?}");
        for word in words {
            assert!(failure.detail.contains(word), "{:?} should contain {word:?}", failure.detail);
        }
        assert!(failure.detail.chars().all(|c| !c.is_control()), "{:?}", failure.detail);
        failure
    }

    #[track_caller]
    pub fn measured(&self, names: &[&str]) {
        for name in names {
            let measured = measured(&self.report, name);
            assert_eq!(measured.p50_ms, 0.002);
        }
        self.no_process_is_left();
    }

    #[track_caller]
    pub fn no_process_is_left(&self) {
        let pids = std::fs::read_to_string(&self.pids).unwrap_or_default();
        for pid in pids.lines() {
            assert!(is_gone(pid.parse().unwrap()), "process {pid} is still there");
        }
    }
}

/// Whether a process has ended; one that was killed may take a moment, and its parent may never reap it.
pub fn is_gone(pid: i32) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    let is_there = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let is_zombie = stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
        Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid).is_ok()) && !is_zombie
    };
    while is_there() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::yield_now();
    }
    true
}
