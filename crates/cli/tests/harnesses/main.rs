//! The examples of benchmark harnesses, measured with the real tools. Where a tool is missing, its example is skipped, aloud;
//! `.ci/run` installs them.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[allow(dead_code)]
#[path = "../cli/common.rs"]
mod common;

use common::Here;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set by `.ci/run`: without the packages of Python and Rust their tests fail instead of being skipped.
const REQUIRED: &str = "HOLDPOINT_REQUIRE_INTEROP";

/// Copies an example's files into a folder.
fn take(here: &Here, example: &str) {
    let from = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example);
    copy(&from, &here.path("."));
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() && !path.ends_with("target") {
            std::fs::create_dir_all(&to).unwrap();
            copy(&path, &to);
        } else if path.is_file() {
            std::fs::copy(&path, &to).unwrap();
        }
    }
}

/// The last line of what a failing program prints, or why it does not start.
fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output().map_err(|e| format!("{program}: {e}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.trim().lines().last().unwrap_or_default();
    if output.status.success() { Ok(()) } else { Err(format!("{program} {}: {last}", arguments.join(" "))) }
}

/// A folder that is kept between runs, for what is fetched and built.
fn kept(name: &str) -> String {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).display().to_string()
}

/// Measures the example in its folder, and finds these benchmarks, each with samples.
fn measures(here: &Here, variables: &[(&str, String)], benchmarks: &[&str]) {
    let arguments = ["run", "--suite", "perf.toml", "--output", "report.json"];
    let output = here.command(&arguments).envs(variables.iter().cloned()).output().unwrap();
    common::ran(output).ends(0);
    let report = here.json("report.json");
    let found = report["benchmarks"].as_object().unwrap();
    assert_eq!(found.keys().map(String::as_str).collect::<Vec<_>>(), benchmarks);
    for (name, measured) in found {
        let rounds = measured["samples"]["rounds"].as_array().unwrap();
        assert!(rounds.iter().all(|round| !round["elapsed_ns"].as_array().unwrap().is_empty()), "{name}");
    }
}

#[test]
fn criterion_is_measured() {
    let here = Here::new();
    take(&here, "criterion");
    if let Err(why) = run("cargo", &["fetch", "--manifest-path", here.path("Cargo.toml").to_str().unwrap()]) {
        assert!(std::env::var_os(REQUIRED).is_none(), "{REQUIRED} is set: {why}");
        return eprintln!("skipped: {why}");
    }
    measures(&here, &[("CARGO_TARGET_DIR", kept("criterion"))], &["words_count", "words_longest"]);
}

#[test]
fn google_benchmark_is_measured() {
    let here = Here::new();
    take(&here, "google-benchmark");
    if let Err(why) = run("make", &["-C", here.path(".").to_str().unwrap()]) {
        return eprintln!("skipped: no libbenchmark-dev? {why}");
    }
    measures(&here, &[], &["BM_count_200", "BM_count_2000"]);
}

/// An environment of Python with what an example requires, on the path; none where that cannot be had.
fn python_of(here: &Here, example: &str) -> Option<(&'static str, String)> {
    let venv = kept(example);
    let python = format!("{venv}/bin/python3");
    let requirements = here.path("requirements.txt").display().to_string();
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", &requirements];
    if let Err(why) = run("python3", &["-m", "venv", &venv]).and_then(|()| run(&python, &install)) {
        assert!(std::env::var_os(REQUIRED).is_none(), "{REQUIRED} is set: {why}");
        eprintln!("skipped: {why}");
        return None;
    }
    Some(("PATH", format!("{venv}/bin:{}", std::env::var("PATH").unwrap())))
}

#[test]
fn pytest_benchmark_is_measured() {
    let here = Here::new();
    take(&here, "pytest-benchmark");
    let Some(path) = python_of(&here, "pytest-benchmark") else { return };
    measures(&here, &[path], &["test_words_py__test_count_2000_", "test_words_py__test_count_200_"]);
}

#[test]
fn asv_is_measured() {
    let here = Here::new();
    take(&here, "asv");
    let Some(path) = python_of(&here, "asv") else { return };
    let benchmarks = ["count_Count_time_count_2000_", "count_Count_time_count_200_", "count_Kept_time_kept"];
    measures(&here, &[path], &benchmarks);
}

#[test]
fn go_is_measured() {
    let here = Here::new();
    take(&here, "go");
    if let Err(why) = run("go", &["version"]) {
        return eprintln!("skipped: {why}");
    }
    let cache = ("GOCACHE", kept("go"));
    measures(&here, &[cache], &["BenchmarkCount_words_200", "BenchmarkCount_words_2000"]);
}
