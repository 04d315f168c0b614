//! SIGKILL at random moments of every command that writes: no file is broken, and the next start leaves nothing behind.
//!
//! `HOLDPOINT_KILLS=1000 cargo test -p holdpoint --test kills` is the whole campaign; without the variable it takes seconds.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../cli/common.rs"]
mod common;
#[allow(dead_code)]
#[path = "../cli/repository.rs"]
mod repository;

use common::Here;
use holdpoint_stats::random::Random;
use repository::FAST;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Kills of each command, and how long they may take, where nobody asks for more.
const KILLS: u32 = 24;
const TIME_MAX: Duration = Duration::from_secs(5);
/// Kills between two starts that run to their end: what several of them left must go at once.
const KILLS_PER_START: u32 = 4;
/// Whether processes that outlive a killed holdpoint fail the test.
const ORPHANS_FAIL: bool = true;
/// Nothing that is waited for takes longer on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command, and whether it starts without what it left in its cache.
struct Campaign<'a> {
    here: &'a Here,
    arguments: &'a [&'a str],
    forget: &'a [&'a str],
}

impl Campaign<'_> {
    fn run(&self) {
        let wanted = std::env::var("HOLDPOINT_KILLS").ok().map(|text| text.parse::<u32>().unwrap());
        let mut random = Random::new(self.arguments[0].len() as u64);
        let (begin, mut takes) = (Instant::now(), self.start_and_end());
        for kill in 1..=wanted.unwrap_or(KILLS) {
            let share = (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
            self.kill_after(takes.mul_f64(share * 1.05));
            self.every_file_is_whole();
            let is_late = wanted.is_none() && begin.elapsed() > TIME_MAX;
            if is_late || kill % KILLS_PER_START == 0 {
                takes = self.start_and_end();
                self.nothing_is_left();
            }
            if is_late {
                return;
            }
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("holdpoint"));
        command.current_dir(self.here.path(".")).args(self.arguments);
        command.env("TMPDIR", self.here.tmp()).env("HOLDPOINT_CACHE", self.here.cache());
        command.env("BUILDS", "/dev/null").stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn forget(&self) {
        for name in self.forget {
            let _ = std::fs::remove_file(self.here.path(name));
        }
        if self.arguments.contains(&"--against") {
            for entry in std::fs::read_dir(self.here.cache()).unwrap().flatten() {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Runs it to its end, and tells how long that takes.
    fn start_and_end(&self) -> Duration {
        self.forget();
        let start = Instant::now();
        let output = self.command().stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code < 5), "{:?}: {said}", self.arguments);
        start.elapsed()
    }

    fn kill_after(&self, delay: Duration) {
        self.forget();
        let mut child = self.command().spawn().unwrap();
        std::thread::sleep(delay);
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until("what it started has ended", || !ORPHANS_FAIL || processes_in(self.here) == 0);
    }

    /// Every document is whole or not there.
    fn every_file_is_whole(&self) {
        for name in self.here.files() {
            let is_temporary = name.contains(".holdpoint-") && name.contains(".tmp");
            let text = std::fs::read(self.here.path(&name)).unwrap_or_default();
            if name.ends_with(".json") && !is_temporary {
                let parsed = serde_json::from_slice::<serde_json::Value>(&text);
                assert!(parsed.is_ok(), "{:?} broke {name}: {parsed:?}", self.arguments);
            }
            if name.ends_with(".md") || name.ends_with(".key") {
                assert!(text.ends_with(b"\n"), "{:?} broke {name}", self.arguments);
            }
        }
    }

    fn nothing_is_left(&self) {
        assert_eq!(self.here.left_over(), [""; 0], "{:?}", self.arguments);
        assert_eq!(std::fs::read_dir(self.here.tmp()).unwrap().count(), 0, "{:?}", self.arguments);
        let mut names = self.here.files();
        names.extend(files_below(self.here.cache()));
        let is_left = |name: &&String| name.contains(".holdpoint-") || name.ends_with(".partial");
        let left: Vec<&String> = names.iter().filter(is_left).collect();
        assert_eq!(left, [""; 0], "{:?}", self.arguments);
    }
}

fn files_below(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        names.push(entry.path().display().to_string());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            names.extend(files_below(&entry.path()));
        }
    }
    names
}

/// Processes that run in the folder or in the cache.
fn processes_in(here: &Here) -> usize {
    let folders = [&here.path("."), here.cache()].map(|folder| std::fs::canonicalize(folder).unwrap());
    let is_there = |process: &std::fs::DirEntry| {
        let cwd = std::fs::read_link(process.path().join("cwd"));
        cwd.is_ok_and(|cwd| folders.iter().any(|folder| cwd.starts_with(folder)))
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter(is_there).count()
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[track_caller]
fn survives(here: &Here, arguments: &[&str]) {
    Campaign { here, arguments, forget: &[] }.run();
}

#[test]
fn killed_runs_leave_nothing() {
    survives(&Here::new(), &["run", "--suite", "suite.toml"]);
}

#[test]
fn killed_gates_leave_nothing() {
    let here = Here::new();
    here.gate(&[]).ends(0);
    // Slower than allowed, so that it looks again.
    here.edit_times(1e-9);
    survives(&here, &["gate", "--suite", "suite.toml", "--confirm", "1"]);
}

#[test]
fn killed_comparisons_leave_nothing() {
    survives(&Here::new(), &["ab", "--base", "true", "--head", "true", "--budget", "0.2"]);
}

#[test]
fn killed_gates_between_revisions_leave_nothing() {
    let here = Here::repository();
    here.commit("first", Some(FAST));
    here.commit("second", Some(FAST));
    let arguments =
        ["gate", "--suite", "suite.toml", "--against", "HEAD~1", "--tolerance", "100%", "--budget", "0.2"];
    survives(&here, &arguments);
}

#[test]
fn killed_baselines_leave_nothing() {
    survives(&Here::new(), &["baseline", "record", "--suite", "suite.toml", "--runs", "2"]);
}

#[test]
fn killed_calibrations_leave_nothing() {
    let arguments =
        ["calibrate", "--suite", "suite.toml", "--trials", "2", "--budget", "0.1", "--output", "out.json"];
    survives(&Here::new(), &arguments);
}

#[test]
fn killed_appends_leave_nothing() {
    let here = Here::new();
    let point = std::fs::read_to_string(common::data("trend-v1.json")).unwrap();
    let names: Vec<String> = (10..40).map(|second| format!("{second}.point")).collect();
    for name in &names {
        here.write(name, &point);
        here.edit(name, |point| point["timestamp_utc"] = format!("2026-02-14T10:00:{}Z", &name[..2]).into());
    }
    let arguments =
        [&["trend", "append"], &names.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat();
    survives(&here, &arguments);
    let history = here.files().into_iter().find(|name| name.ends_with(".ndjson")).unwrap();
    here.run(&["trend", "show", &history]).ends(0).prints(&["trend: 30 runs"]);
}

#[test]
fn killed_fuzzing_leaves_nothing() {
    survives(
        &Here::new(),
        &["fuzz", "--suite", "suite.toml", "--cases", "30", "--output", "artifacts/fuzz.json"],
    );
}

#[test]
fn killed_checks_leave_nothing() {
    survives(&Here::new(), &["check", "--suite", "suite.toml", "--output", "artifacts/check.json"]);
}

#[test]
fn killed_records_leave_nothing() {
    let here = Here::new();
    survives(&here, &["replay", "record", "--suite", "suite.toml"]);
    here.run(&["replay", "verify"]).ends(0);
}

#[test]
fn killed_attestations_leave_nothing() {
    let here = Here::new();
    here.gate(&[]).ends(0);
    let create = [
        "attest",
        "create",
        "--release-tag",
        "v1",
        "--commit-sha",
        "0123456789abcdef0123456789abcdef01234567",
    ];
    survives(&here, &[&create[..], &["--release-owner", "ada", "--runtime-target", "cpu"]].concat());
}

#[test]
fn killed_keys_are_whole_or_not_there() {
    let forget = ["a.key", "a.pub"];
    Campaign { here: &Here::new(), arguments: &["attest", "keygen", "--key", "a.key"], forget: &forget }
        .run();
}

#[test]
fn killed_pages_leave_nothing() {
    let here = Here::new();
    here.gate(&[]).ends(0);
    here.edit_times(1e9);
    here.gate(&[]).ends(0);
    let (report, baseline) = ("artifacts/report.json", here.baseline());
    survives(&here, &["report", report, "--markdown", "out/page.md", "--html", "out/page.html"]);
    let files = ["--summary", "out/comparison.json", "--trend-output", "out/trend.json"];
    survives(&here, &[&["compare", report, "--baseline", &baseline], &files[..]].concat());
    let baseline = ["--baseline", "out/base.json"];
    survives(&here, &[&["baseline", "template", report], &baseline[..]].concat());
}
