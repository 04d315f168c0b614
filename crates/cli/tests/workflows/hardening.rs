//! Rules that every workflow keeps, whatever is set.

use crate::actions::{parsed, written, written_as};
use serde_json::Value;
use std::collections::BTreeMap;

fn all() -> Vec<(String, Value, String)> {
    let full = ["--label", "it's: \"it\"", "--branch", "release/1.x", "--branch", "it's"];
    let both: [BTreeMap<String, String>; 2] = [written(&[]), written(&full)];
    both.into_iter().flatten().map(|(name, text)| (name, parsed(&text), text)).collect()
}

fn jobs(workflow: &Value) -> impl Iterator<Item = (&String, &Value)> {
    workflow["jobs"].as_object().unwrap().iter()
}

fn steps(workflow: &Value) -> impl Iterator<Item = &Value> {
    jobs(workflow).flat_map(|(_, job)| steps_of(job))
}

fn steps_of(job: &Value) -> impl Iterator<Item = &Value> {
    job["steps"].as_array().unwrap().iter()
}

#[test]
fn no_job_may_do_more_than_it_says_or_run_for_ever() {
    for (name, workflow, _) in all() {
        assert_eq!(workflow["permissions"], serde_json::json!({}), "{name}");
        assert!(workflow["concurrency"]["group"].is_string(), "{name}");
        for (job, of) in jobs(&workflow) {
            assert!(of["permissions"].is_object() && of["timeout-minutes"].is_u64(), "{name} {job}");
        }
    }
}

#[test]
fn nothing_runs_with_rights_on_a_strangers_code() {
    for (name, workflow, _) in all() {
        assert!(workflow["on"].get("pull_request_target").is_none(), "{name}");
        for (job, of) in jobs(&workflow) {
            let can_write = of["permissions"].as_object().unwrap().values().any(|right| right == "write");
            let is_ours = of["runs-on"] != "ubuntu-latest";
            assert!(!(can_write && is_ours), "{name} {job}: rights to write on the GPU machine");
            if is_ours {
                assert_eq!(of["if"], "needs.guard.outputs.allowed == 'true'", "{name} {job}");
                assert_eq!(of["needs"], "guard", "{name} {job}");
            }
            // Strangers' code runs without isolation only where there is nothing to take, on a machine that is thrown away.
            let is_open = steps_of(of).any(|step| {
                let script = step["run"].as_str().unwrap_or_default();
                script.contains("ci gate") && !script.contains("--isolate")
            });
            let text = of.to_string();
            if is_open {
                assert_eq!(of["permissions"], serde_json::json!({"contents": "read"}), "{name} {job}");
                assert!(
                    !is_ours && of.get("environment").is_none() && of.get("outputs").is_none(),
                    "{name} {job}"
                );
                assert!(!text.contains("secrets.") && !text.contains("github.token"), "{name} {job}");
            }
            let secrets = text.contains("secrets.");
            assert!(
                !secrets || of["environment"] == "holdpoint-notify",
                "{name} {job}: secrets without an environment"
            );
            // A merged commit, which only `ci promote` looks at.
            let checks_out = text.contains("actions/checkout@") && name != "perf-promote.yml";
            assert!(!(can_write && checks_out), "{name} {job}: checks out what it should only read of");
            assert!(!(can_write && text.contains("ci gate")), "{name} {job}: measures with a right to write");
        }
    }
}

#[test]
fn actions_are_pinned_by_their_commit_and_leave_no_credentials() {
    for (name, workflow, text) in all() {
        let mut pinned = 0;
        for step in steps(&workflow) {
            let Some(action) = step["uses"].as_str() else { continue };
            let (_, commit) = action.split_once('@').unwrap();
            let is_hash = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(is_hash && text.contains(&format!("{action} # v")), "{name}: {action}");
            if action.starts_with("actions/checkout@") {
                assert_eq!(step["with"]["persist-credentials"], false, "{name}");
            }
            pinned += 1;
        }
        assert!(pinned > 0, "{name}");
    }
}

#[test]
fn no_expression_stands_in_a_script() {
    for (name, workflow, text) in all() {
        for step in steps(&workflow) {
            let script = step["run"].as_str().unwrap_or_default();
            assert!(!script.contains("${{"), "{name}: {script}");
        }
        assert!(!text.contains("@@") && !text.contains("#@"), "{name}: everything is filled in");
    }
}

#[test]
fn the_required_checks_always_report() {
    for (name, workflow, _) in all() {
        for (job, required) in [("gate", "perf-regression"), ("gpu-perf-regression", "gpu-perf-regression")] {
            let Some(job) = workflow["jobs"].get(job) else { continue };
            assert_eq!(job["name"], required, "{name}");
            // On every event of a pull request or a queue: what has no condition and needs nobody, or says always().
            let is_always = match job.get("if").map(|condition| condition.as_str().unwrap()) {
                None => job.get("needs").is_none(),
                Some(condition) => {
                    condition.strip_prefix("always() && ")
                        == Some(
                            "(github.event_name != 'issue_comment' || needs.guard.outputs.allowed == 'true')",
                        )
                }
            };
            assert!(is_always, "{name}");
            let pulls = &workflow["on"]["pull_request"];
            assert!(pulls.get("paths").is_none() && pulls.get("types").is_some(), "{name}: {pulls}");
            assert!(workflow["on"].get("merge_group").is_some(), "{name}");
        }
    }
}

#[test]
fn what_judges_is_installed_before_and_beside_what_is_judged() {
    for (name, workflow, _) in all() {
        for (job, of) in jobs(&workflow) {
            let mut is_checked_out = false;
            for step in steps_of(of) {
                if step["name"] == "Install holdpoint" {
                    assert_eq!(step["working-directory"], "${{ runner.temp }}", "{name} {job}");
                    assert!(!is_checked_out, "{name} {job}");
                }
                is_checked_out |= step["uses"].as_str().unwrap_or_default().starts_with("actions/checkout@");
            }
        }
    }
}

#[test]
fn each_workflow_fits_its_page() {
    let full = ["--label", "benchmark", "--branch", "main", "--branch", "release/1.x"];
    for files in [written(&[]), written(&full)] {
        assert_eq!(files.len(), 7);
        for (name, text) in files {
            let most = if name == "perf.yml" { 80 } else { 120 };
            assert!(text.lines().count() <= most, "{name}: {} lines", text.lines().count());
            // One command at most, but for who may not have anything built.
            for step in steps(&parsed(&text)) {
                let lines = step["run"].as_str().unwrap_or_default().lines().count();
                let is_asked_first = step["name"] == "Ask what the author may do and what the head is now";
                assert!(lines <= if is_asked_first { 3 } else { 1 }, "{name}: {}", step["name"]);
            }
        }
    }
    assert_eq!(written_as(&[]).into_keys().collect::<Vec<_>>(), ["perf.yml"]);
}

#[test]
fn settings_stand_for_themselves() {
    let full = ["--label", "it's: \"it\"", "--runner", "self-hosted,H200"];
    let gpu = parsed(&written(&full)["perf-gpu.yml"]);
    let guard = steps_of(&gpu["jobs"]["guard"]).find(|step| step["id"] == "guard").unwrap();
    assert_eq!(guard["env"]["LABEL"], "it's: \"it\"");
    assert!(
        written(&["--label", " benchmark "])["perf-gpu.yml"].contains("LABEL: 'benchmark'\n"),
        "as a label is"
    );
    assert_eq!(gpu["jobs"]["gpu"]["runs-on"], serde_json::json!(["self-hosted", "H200"]));
    assert_eq!(gpu["on"]["pull_request"]["types"].as_array().unwrap().len(), 6, "labels are listened to");
}
