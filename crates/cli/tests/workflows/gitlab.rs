//! GitLab's pipeline on this machine: guard, gate and decision of a merge request, with their variables handed on.

use crate::actions::{parsed, written};
use crate::repository::Origin;
use serde_json::{Map, Value};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A job with what it extends below it.
fn resolved(file: &Value, name: &str) -> Map<String, Value> {
    let own = file[name].as_object().unwrap().clone();
    let mut job = own.get("extends").map_or_else(Map::new, |parent| resolved(file, parent.as_str().unwrap()));
    for (key, value) in own {
        match (job.get_mut(&key).and_then(Value::as_object_mut), &value) {
            (Some(below), Value::Object(above)) => below.extend(above.clone()),
            _ => drop(job.insert(key, value)),
        }
    }
    job
}

/// Runs a job's scripts; whether they succeeded, and what they printed. Its dotenv report goes into `passed_on`.
fn job(
    file: &Value,
    name: &str,
    dir: &Path,
    given: &[(&str, &str)],
    passed_on: &mut Vec<(String, String)>,
) -> (bool, String) {
    let job = resolved(file, name);
    let lines = |key: &str| job.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let script: Vec<String> = lines("before_script")
        .iter()
        .chain(&lines("script"))
        .map(|line| line.as_str().unwrap().to_owned())
        .collect();
    let bin = dir.with_extension("bin");
    fs::create_dir_all(&bin).unwrap();
    let mut bash = Command::new("bash");
    bash.args(["-eo", "pipefail", "-c", &script.join("\n")]).current_dir(dir).env_clear();
    bash.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())).env("HOME", &bin);
    bash.env("BIN", &bin).env("BUILT", env!("CARGO_BIN_EXE_holdpoint")).env("CI_PROJECT_DIR", dir);
    bash.envs(given.iter().copied()).envs(passed_on.iter().map(|(name, value)| (name, value)));
    for (name, value) in job["variables"].as_object().unwrap() {
        bash.env(name, value.as_str().unwrap().replace("$CI_PROJECT_DIR", &dir.display().to_string()));
    }
    let done = bash.output().unwrap();
    let report = job.get("artifacts").and_then(|artifacts| artifacts["reports"]["dotenv"].as_str());
    let report = report.and_then(|report| fs::read_to_string(dir.join(report)).ok()).unwrap_or_default();
    for line in report.lines() {
        let (name, value) = line.split_once('=').unwrap();
        assert!(!value.is_empty() && !value.contains(' '), "GitLab takes no such line: {line}");
        passed_on.push((name.to_owned(), value.to_owned()));
    }
    let log = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (done.status.success(), log)
}

/// A merge request through guard, gate and decision of the GPU.
fn merge_request(time: &str, source_project: &str) -> (bool, String) {
    let file = parsed(&written(&["--forge", "gitlab"])["holdpoint.yml"]);
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("topic");
    let head = origin.commit(time);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("project");
    origin.check_out(&dir, &head, true);
    let given = [
        ("GITLAB_CI", "true"),
        ("CI_PIPELINE_SOURCE", "merge_request_event"),
        ("CI_PROJECT_ID", "41"),
        ("CI_COMMIT_SHA", head.as_str()),
        ("CI_DEFAULT_BRANCH", "main"),
        ("CI_MERGE_REQUEST_PROJECT_ID", "41"),
        ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"),
        ("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", source_project),
        ("CI_MERGE_REQUEST_DIFF_BASE_SHA", base.as_str()),
    ];
    let mut passed_on = Vec::new();
    let (ok, log) = job(&file, "holdpoint-guard-gpu", &dir, &given, &mut passed_on);
    assert!(ok, "{log}");
    // A job that the rules leave out passes nothing on.
    if source_project == "41" {
        let (ok, log) = job(&file, "holdpoint-gpu", &dir, &given, &mut passed_on);
        assert!(ok, "{log}");
        assert!(dir.join("artifacts/ab.json").exists());
    }
    job(&file, "gpu-perf-regression", &dir, &given, &mut passed_on)
}

#[test]
fn a_merge_request_ends_by_its_verdict() {
    for (time, passes, says) in [
        ("2000", true, "pass"),
        ("4000", false, "regressed"),
        ("skip", false, "skipped"),
        ("die", false, "broken"),
    ] {
        let (ok, log) = merge_request(time, "41");
        assert!(ok == passes && log.contains(says), "{time}: {log}");
    }
}

#[test]
fn a_merge_request_of_another_project_never_reaches_the_gpu_and_does_not_pass_by_that() {
    let (ok, log) = merge_request("2000", "99");
    assert!(!ok && log.contains("refused"), "{log}");
    let file = parsed(&written(&["--forge", "gitlab"])["holdpoint.yml"]);
    let first = &file["holdpoint-gpu"]["rules"][0];
    assert!(first["if"].as_str().unwrap().contains("$CI_MERGE_REQUEST_SOURCE_PROJECT_ID != $CI_PROJECT_ID"));
    assert_eq!(first["when"], "never");
    assert_eq!(file["holdpoint-gpu"]["tags"], serde_json::json!(["self-hosted", "linux", "x64", "gpu"]));
}

/// GitLab refuses a file that says `when` both in a job and in its rules.
#[test]
fn the_deciding_jobs_run_whatever_came_before() {
    let file = parsed(&written(&["--forge", "gitlab"])["holdpoint.yml"]);
    for name in file.as_object().unwrap().keys().filter(|name| !name.starts_with('.')) {
        let job = resolved(&file, name);
        assert!(
            !job.contains_key("when") && job["rules"].as_array().is_some_and(|rules| !rules.is_empty()),
            "{name}"
        );
        let decides = ["perf-regression", "gpu-perf-regression"].contains(&name.as_str());
        assert!(
            !decides || job["rules"].as_array().unwrap().iter().all(|rule| rule["when"] == "always"),
            "{name}"
        );
    }
}

#[test]
fn a_pipeline_without_a_verdict_fails() {
    let file = parsed(&written(&["--forge", "gitlab"])["holdpoint.yml"]);
    let dir = tempfile::tempdir().unwrap();
    for decision in [("decision", "run"), ("decision", "skip; true"), ("code", "0")] {
        let (ok, log) = job(&file, "perf-regression", dir.path(), &[decision], &mut Vec::new());
        assert!(!ok && log.contains("no verdict"), "{log}");
    }
    let (ok, log) = job(&file, "perf-regression", dir.path(), &[("decision", "skip")], &mut Vec::new());
    assert!(ok && log.contains("nothing to measure"), "{log}");
}
