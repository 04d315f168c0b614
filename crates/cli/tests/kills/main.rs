//! SIGKILL at random moments of every command that writes: no file is broken, no process outlives it, and the next start
//! leaves nothing behind.
//!
//! `HOLDPOINT_KILLS=1000 cargo test -p holdpoint --test kills -- --nocapture` is the whole campaign, a line for each command;
//! without the variable it takes seconds. `tune` is killed only where there is a GPU: without one it writes nothing. Nor is
//! `roofline --measure` here, which takes half a minute a run and measures and writes as `run` does.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../cli/common.rs"]
mod common;
#[allow(dead_code)]
#[path = "../cli/fakes.rs"]
mod fakes;
#[path = "../../../process/tests/support/program.rs"]
mod program;
#[allow(dead_code)]
#[path = "../cli/repository.rs"]
mod repository;

use common::Here;
use holdpoint_evidence::hash;
use holdpoint_stats::random::Random;
use repository::{FAST, SLOW};
use serde_json::Value;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Kills of each command, and how long they may take, where nobody asks for more.
const KILLS: u32 = 12;
const TIME_MAX: Duration = Duration::from_secs(3);
/// Kills between two starts that run to their end: what several of them left must go at once.
const KILLS_PER_START: u32 = 10;
/// The part of a run in which half of the kills fall: most files are written there.
const END: f64 = 0.2;
/// Nothing that is waited for takes longer on a busy machine of two cores.
const PATIENCE: Duration = Duration::from_secs(20);

/// A workload that only its end ends, while NAP is set: one process stays in its group, the other leaves it.
const NAP: &str = "setsid sleep ${NAP:-0} & sleep ${NAP:-0}; wait";

/// A command, and what it must not find when it starts.
struct Campaign<'a> {
    here: &'a Here,
    arguments: &'a [&'a str],
    forget: &'a [&'a str],
    variables: &'a [(&'static str, String)],
    /// Whether its workload is [`NAP`], and it is killed while that sleeps.
    naps: bool,
}

impl Campaign<'_> {
    fn run(&self) {
        let wanted = std::env::var("HOLDPOINT_KILLS").ok().map(|text| text.parse::<u32>().unwrap());
        // Each process its own moments, so that a campaign can be split over several.
        let mut random = Random::new(std::process::id().into());
        let (begin, mut takes, mut kills) = (Instant::now(), self.start_and_end(), 0);
        while kills < wanted.unwrap_or(KILLS) {
            let is_killed = self.kill_after(moment(takes, &mut random));
            self.every_file_is_whole();
            if is_killed {
                kills += 1;
            } else {
                // It has become quicker.
                takes = takes.mul_f64(0.9);
            }
            let is_late = wanted.is_none() && begin.elapsed() > TIME_MAX;
            if is_late || is_killed && kills % KILLS_PER_START == 0 {
                takes = self.start_and_end();
                self.nothing_is_left();
            }
            if is_late {
                break;
            }
        }
        let words = &self.arguments[..self.arguments.len().min(3)];
        println!("{}: {kills} kills in {:.0} s", words.join(" "), begin.elapsed().as_secs_f64());
    }

    fn command(&self) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("holdpoint"));
        command.current_dir(self.here.path(".")).args(self.arguments);
        command.env("TMPDIR", self.here.tmp()).env("HOLDPOINT_CACHE", self.here.cache()).env_remove("CI");
        command
            .env("HOLDPOINT_PASS", common::PASSED)
            .env("BUILDS", "/dev/null")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn forget(&self) {
        for name in self.forget {
            let path = self.here.path(name);
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
        if self.arguments.contains(&"--against") || self.arguments[0] == "bisect" {
            for entry in fs::read_dir(self.here.cache()).unwrap().flatten() {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Runs it to its end, and tells how long that takes.
    fn start_and_end(&self) -> Duration {
        self.forget();
        let start = Instant::now();
        let output = self.command().stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code < 64), "{:?}: {said}", self.arguments);
        start.elapsed()
    }

    /// Whether it was killed: it may have ended before.
    fn kill_after(&self, delay: Duration) -> bool {
        self.forget();
        let mut command = self.command();
        if self.naps {
            command.env("NAP", "300");
        }
        let mut child = command.spawn().unwrap();
        if self.naps {
            let is_asleep = || processes_in(self.here).iter().filter(|name| *name == "sleep").count() >= 2;
            wait_until(&format!("{:?} runs its workload", self.arguments), is_asleep);
        } else {
            std::thread::sleep(delay);
        }
        child.kill().unwrap();
        let status = child.wait().unwrap();
        wait_until(&format!("all of {:?} has ended", self.arguments), || processes_in(self.here).is_empty());
        status.signal().is_some()
    }

    /// Every document is whole or not there, and no seal is broken.
    fn every_file_is_whole(&self) {
        for path in files_below(&self.here.path(".")).into_iter().chain(files_below(self.here.cache())) {
            let is_temporary = is_of_crash(&path.display().to_string());
            let Some(kind) = path.extension().filter(|_| !is_temporary) else { continue };
            let read = || fs::read(&path).unwrap();
            let is_json = |text: &[u8]| serde_json::from_slice::<Value>(text).is_ok();
            let is_whole = match kind.to_str().unwrap() {
                "json" => is_json(&read()) && has_sealed_files(&path),
                "ndjson" => read().split_inclusive(|byte| *byte == b'\n').all(is_json),
                "html" | "key" | "md" | "pub" | "svg" | "yml" => read().ends_with(b"\n"),
                _ => true,
            };
            assert!(is_whole, "{:?} broke {}", self.arguments, path.display());
        }
    }

    fn nothing_is_left(&self) {
        let mut files = files_below(&self.here.path("."));
        files.extend(files_below(self.here.cache()));
        files.retain(|path| is_of_crash(&path.display().to_string()) || is_worktree(path));
        files.extend(fs::read_dir(self.here.tmp()).unwrap().flatten().map(|entry| entry.path()));
        assert_eq!(files, [""; 0].map(PathBuf::from), "{:?}", self.arguments);
    }
}

/// Half of the moments anywhere in a run, half near its end.
fn moment(takes: Duration, random: &mut Random) -> Duration {
    let is_late = random.bits() & 1 == 1;
    let share = (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
    takes.mul_f64(if is_late { 1.0 - END * share } else { share })
}

fn is_of_crash(path: &str) -> bool {
    path.contains("/.holdpoint-") || path.ends_with(".partial") || path.ends_with(".lock")
}

/// Whether the user's repository knows of a checkout: none of ours is for `git worktree list`.
fn is_worktree(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.ends_with(".git/worktrees"))
}

/// Whether the files beside a seal are those that it was made over; true of any other file.
fn has_sealed_files(path: &Path) -> bool {
    let seal: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let files = seal["files"].as_object().filter(|_| path.to_str().unwrap().ends_with(".seal.json"));
    files.into_iter().flatten().all(|(name, sha256)| {
        hash::file(&path.with_file_name(name)).is_ok_and(|(hash, _)| sha256.as_str() == Some(&hash))
    })
}

/// Files and folders, at any depth.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        paths.push(entry.path());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            paths.extend(files_below(&entry.path()));
        }
    }
    paths
}

/// The names of the processes that run in the folder or in the cache.
fn processes_in(here: &Here) -> Vec<String> {
    let folders = [&here.path("."), here.cache()].map(|folder| fs::canonicalize(folder).unwrap());
    let name_of = |process: fs::DirEntry| {
        let cwd = fs::read_link(process.path().join("cwd")).ok()?;
        let is_there = folders.iter().any(|folder| cwd.starts_with(folder));
        is_there
            .then(|| fs::read_to_string(process.path().join("comm")).unwrap_or_default().trim().to_owned())
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(name_of).collect()
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn survives(here: &Here, arguments: &[&str]) {
    Campaign { here, arguments, forget: &[], variables: &[], naps: false }.run();
}

fn survives_without(here: &Here, arguments: &[&str], forget: &[&str]) {
    Campaign { here, arguments, forget, variables: &[], naps: false }.run();
}

/// A folder whose suite sleeps while it is told to.
fn napping() -> Here {
    let here = Here::new();
    here.write("nap.sh", NAP);
    here.write("suite.toml", &common::TINY.replace("[\"true\"]", "[\"sh\", \"nap.sh\"]"));
    here
}

fn dies_asleep(here: &Here, arguments: &[&str]) {
    Campaign { here, arguments, forget: &[], variables: &[], naps: true }.run();
}

#[test]
fn runs_killed_while_their_workload_sleeps_leave_no_process() {
    dies_asleep(&napping(), &["run", "--suite", "suite.toml", "--output", "napped.json"]);
}

#[test]
fn gates_killed_while_their_workload_sleeps_leave_no_process() {
    let here = napping();
    here.gate(&[]).ends(0);
    dies_asleep(&here, &["gate", "--confirm", "0", "--suite", "suite.toml"]);
}

#[test]
fn comparisons_killed_while_their_sides_sleep_leave_no_process() {
    let sides = ["ab", "--budget", "0.2", "--base", "sh nap.sh", "--head", "sh nap.sh"];
    dies_asleep(&napping(), &sides);
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
    let record = ["replay", "record", "--suite", "suite.toml"];
    survives(&here, &record);
    // The last one may have been killed.
    here.run(&record).ends(0);
    here.run(&["replay", "verify"]).ends(0);
}

#[test]
fn killed_verifications_leave_nothing() {
    let here = Here::new();
    here.run(&["replay", "record", "--suite", "suite.toml"]).ends(0);
    survives(&here, &["replay", "verify", "--output", "out/verified.json"]);
}

/// A repository with a gate of its second commit, keys and an attestation.
fn attested() -> Here {
    let here = Here::repository();
    here.write("suite.toml", common::TINY);
    here.commit("first", Some(FAST));
    here.run(&["attest", "keygen", "--key", "a.key"]).ends(0);
    here.gate(&["--seal-key", "a.key"]).ends(0);
    here.run(&["attest", "create"]).ends(0);
    here
}

#[test]
fn killed_attestations_leave_nothing() {
    survives(&attested(), &["attest", "create"]);
}

#[test]
fn killed_signatures_leave_nothing() {
    survives(&attested(), &["attest", "sign", "--key", "a.key"]);
}

#[test]
fn killed_checklists_leave_nothing() {
    survives_without(&attested(), &["checklist", "--init"], &["CHECKLIST.md"]);
}

#[test]
fn killed_keys_are_whole_or_not_there() {
    survives_without(&Here::new(), &["attest", "keygen", "--key", "a.key"], &["a.key", "a.pub"]);
}

#[test]
fn killed_searches_for_a_commit_leave_nothing() {
    let here = Here::repository();
    for (subject, program) in [("first", FAST), ("second", SLOW)] {
        here.commit(subject, Some(program));
    }
    here.commit("third", Some(&format!("{SLOW}# 3\n")));
    survives(&here, &["bisect", "--good", "HEAD~2", "--suite", "suite.toml", "--tolerance", "100%"]);
}

#[test]
fn killed_tunings_leave_nothing() {
    if !Path::new("/dev/nvidiactl").exists() {
        println!("tune: no GPU, nothing to kill");
        return;
    }
    let here = Here::new();
    here.write(
        "gate.toml",
        "[[workload]]\nname = \"gate\"\nop = \"fusion_gate\"\nworker = \"cuda\"\nshape = [1, 64, 32, 32]\n",
    );
    survives(&here, &["tune", "--suite", "gate.toml"]);
}

/// A command with stand-ins for the profiler and the sanitizer.
fn survives_with_fakes(fake: &str, arguments: &[&str]) {
    let here = fakes::here();
    let variables = fakes::variables(&here, fake, "");
    Campaign { here: &here, arguments, forget: &[], variables: &variables, naps: false }.run();
}

#[test]
fn killed_profiles_leave_nothing() {
    survives_with_fakes("", &["profile", "--suite", "fake.toml"]);
}

#[test]
fn killed_sanitizers_leave_nothing() {
    survives_with_fakes("clean", &["sanitize", "--suite", "fake.toml"]);
}

#[test]
fn killed_rooflines_leave_nothing() {
    let [report, ceilings] = ["gpu.json", "ceilings-gpu.json"]
        .map(|name| format!("{}/../../docs/results/h200/{name}", env!("CARGO_MANIFEST_DIR")));
    survives(&Here::new(), &["roofline", &report, "--ceilings", &ceilings, "-o", "out/roofline.svg"]);
}

#[test]
fn killed_workflows_are_whole_or_not_there() {
    let here = Here::repository();
    here.write("perf.toml", common::TINY);
    survives_without(&here, &["ci", "init", "--install", "true"], &[".github"]);
}

#[test]
fn killed_promotions_leave_nothing() {
    let here = Here::repository();
    here.write("suite.toml", common::TINY);
    here.commit("first", Some(FAST));
    here.run(&["run", "--suite", "suite.toml"]).ends(0);
    survives(&here, &["baseline", "promote", "--by", "ada"]);
}

#[test]
fn killed_tolerances_leave_nothing() {
    let here = Here::new();
    // Three runs on a busy machine hardly serve any tolerance.
    let ran = here.run(&["baseline", "record", "--suite", "suite.toml", "--runs", "3"]);
    assert!([0, 3].contains(&ran.code), "{ran:?}");
    survives(&here, &["baseline", "fit", "--suite", "suite.toml"]);
}

/// A folder with a gate that passed.
fn gated() -> Here {
    let here = Here::new();
    here.gate(&[]).ends(0);
    here.edit_times(1e9);
    here.gate(&[]).ends(0);
    here
}

#[test]
fn killed_pages_leave_nothing() {
    let arguments =
        ["report", "artifacts/report.json", "--markdown", "out/page.md", "--html", "out/page.html"];
    survives(&gated(), &arguments);
}

#[test]
fn killed_judgements_leave_nothing() {
    let here = gated();
    let baseline = here.baseline();
    let files = ["--summary", "out/comparison.json", "--trend-output", "out/trend.json"];
    survives(&here, &[&["compare", "artifacts/report.json", "--baseline", &baseline], &files[..]].concat());
}

#[test]
fn killed_templates_leave_nothing() {
    survives(&gated(), &["baseline", "template", "artifacts/report.json", "--baseline", "out/base.json"]);
}
