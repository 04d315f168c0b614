//! Workers that misbehave, one way each, driven through `run`, `gate` and `ab`: none may pass, hang, or leave anything.

use crate::common::Here;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const WORKER: &str = include_str!("../misbehaving/worker.py");
/// Of an answer. The honest worker gets all the time it needs.
const TIMEOUT_MS: u64 = 700;
const HONEST: &str = "honest";
/// For everything after a time-out, on a machine that does other things too.
const GRACE: Duration = Duration::from_secs(30);

fn suite(way: &str) -> String {
    let timeout_ms = if way == HONEST { 60_000 } else { TIMEOUT_MS };
    format!(
        "schema_version = 1\nname = \"strange\"\n[gate]\npolicy = \"allowed-max\"\n[measure]\nrounds_min = 10\nrounds_max = 10\nround_ms = 1\nwarmup_ms_max = 0\n\
         timeout_ms = {timeout_ms}\n[workers.spin]\ncommand = [\"python3\", \"worker.py\", \"{way}\", \"pids\"]\n\
         [[workload]]\nname = \"spin\"\nworker = \"spin\"\nop = \"spin\"\nshape = [2000]\ndtype = \"i64\"\n"
    )
}

fn ways(command: &str) -> Vec<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/misbehaving/worker.py");
    let output = Command::new("python3").args([script, "--list", command]).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    // On a busy machine half of a sample may be a wait. Only `ab` subtracts waits, and believes those that both sides have.
    let is_wanted = |way: &&str| command == "ab" || *way != "waits_half";
    let ways: Vec<String> = listed.lines().filter(is_wanted).map(str::to_owned).collect();
    assert!(ways.len() >= 120, "{ways:?} {}", String::from_utf8_lossy(&output.stderr));
    ways
}

/// Runs a command with a worker of each kind. What is wrong is told in the end, all of it.
fn campaign(command: &str, arguments: &[&str]) {
    let here = Here::new();
    here.write("worker.py", WORKER);
    here.write("suite.toml", &suite(HONEST));
    here.gate(&[]).ends(0);
    // However busy the machine is: slower than this is nobody.
    here.edit_times(1e9);
    let mut wrong = Vec::new();
    for way in std::iter::once(HONEST.to_owned()).chain(ways(command)) {
        let head = format!("python3 worker.py {way} pids");
        let mut all = vec![command, "--suite", "suite.toml"];
        all.extend_from_slice(arguments);
        here.write("suite.toml", &suite(&way));
        if command == "ab" {
            all.extend(["--head-worker", &head]);
        }
        let (start, before) = (Instant::now(), here.files());
        let ran = here.run(&all);
        let took = start.elapsed();
        if (ran.code == 0) != (way == HONEST) || ![0, 1, 2, 3, 4].contains(&ran.code) {
            wrong.push(format!("{way}: ended with {}: {}{}", ran.code, ran.stdout, ran.stderr));
        }
        if took > Duration::from_millis(TIMEOUT_MS) + GRACE {
            wrong.push(format!("{way}: took {took:?}"));
        }
        wrong.extend(processes_left(&here).into_iter().map(|pid| format!("{way}: left process {pid}")));
        let is_left = |name: &String| !before.contains(name) && !name.starts_with("artifacts/");
        wrong.extend(here.files().into_iter().filter(is_left).map(|name| format!("{way}: left {name}")));
        wrong.extend(files_below(here.tmp()).into_iter().map(|name| format!("{way}: left temporary {name}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn is_there(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start().chars().next();
    state.is_some_and(|state| state != 'Z')
}

/// The processes that the workers have noted, and that are still there.
fn processes_left(here: &Here) -> Vec<String> {
    let pids = std::fs::read_to_string(here.path("pids")).unwrap_or_default();
    std::fs::remove_file(here.path("pids")).unwrap_or_default();
    pids.lines().filter(|pid| is_there(pid)).map(str::to_owned).collect()
}

fn files_below(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn no_misbehaving_worker_passes_run() {
    campaign("run", &[]);
}

#[test]
fn no_misbehaving_worker_passes_gate() {
    campaign("gate", &["--require-baseline", "--confirm", "0"]);
}

#[test]
fn no_misbehaving_worker_passes_ab() {
    let base = "python3 worker.py honest pids";
    campaign("ab", &["--base-worker", base, "--tolerance", "400%", "--budget", "30"]);
}

#[test]
fn a_killed_holdpoint_takes_its_workers_with_it() {
    let here = Here::new();
    here.write("worker.py", WORKER);
    for way in ["run_hangs_in_session", "run_hangs_in_our_group", "run_hangs_deaf"] {
        here.write("suite.toml", &suite(way).replace(&TIMEOUT_MS.to_string(), "60000"));
        let mut holdpoint = Command::new(assert_cmd::cargo::cargo_bin!("holdpoint"))
            .args(["run", "--suite", "suite.toml"])
            .current_dir(here.path("."))
            .spawn()
            .unwrap();
        let noted = || std::fs::read_to_string(here.path("pids")).unwrap_or_default().lines().count();
        let wanted = if way == "run_hangs_deaf" { 1 } else { 2 };
        wait_for(way, || noted() >= wanted);
        holdpoint.kill().unwrap();
        holdpoint.wait().unwrap();
        let pids = here.read("pids");
        std::fs::remove_file(here.path("pids")).unwrap();
        wait_for(way, || !pids.lines().any(is_there));
    }
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < GRACE, "{what}: waited for {GRACE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
