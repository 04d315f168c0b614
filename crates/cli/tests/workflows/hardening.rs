//! Rules that every workflow keeps, whatever is set.

use crate::actions::{parsed, written};
use serde_json::Value;
use std::collections::BTreeMap;

fn all() -> Vec<(String, Value, String)> {
    let full = [
        "--path",
        "src/**",
        "--label",
        "it's: \"it\"",
        "--build",
        "make x=\"$Y\"",
        "--branch",
        "release/1.x",
        "--branch",
        "it's",
    ];
    let both: [BTreeMap<String, String>; 2] = [written(&[]), written(&full)];
    both.into_iter().flatten().map(|(name, text)| (name, parsed(&text), text)).collect()
}

fn jobs(workflow: &Value) -> impl Iterator<Item = (&String, &Value)> {
    workflow["jobs"].as_object().unwrap().iter()
}

fn steps(workflow: &Value) -> impl Iterator<Item = &Value> {
    jobs(workflow).flat_map(|(_, job)| job["steps"].as_array().unwrap())
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
            let secrets = of.to_string().contains("secrets.");
            assert!(
                !secrets || of["environment"] == "holdpoint-notify",
                "{name} {job}: secrets without an environment"
            );
            let checks_out = of.to_string().contains("actions/checkout@");
            let by_event = ["perf_command.yml", "perf_report.yml"].contains(&name.as_str());
            assert!(
                !(by_event && can_write && checks_out),
                "{name} {job}: checks out what it should only read of"
            );
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
        assert!(pinned > 0 || name == "perf_report.yml", "{name}");
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
        for required in ["perf-regression", "gpu-perf-regression"] {
            let Some(job) = workflow["jobs"].get(required) else { continue };
            assert_eq!((&job["if"], &job["name"]), (&"always()".into(), &required.into()), "{name}");
            let pulls = &workflow["on"]["pull_request"];
            assert!(
                pulls.get("paths").is_none() && workflow["on"].get("pull_request").is_some(),
                "{name}: {pulls}"
            );
        }
    }
}

#[test]
fn settings_stand_for_themselves() {
    let full = ["--label", "it's: \"it\"", "--build", "make x=\"$Y\" # '", "--runner", "self-hosted,H200"];
    let gpu = parsed(&written(&full)["perf_gpu.yml"]);
    let step = |job: &str, id: &str| {
        let steps = gpu["jobs"][job]["steps"].as_array().unwrap();
        steps.iter().find(|step| step["id"] == id).unwrap()["env"].clone()
    };
    assert_eq!(step("guard", "guard")["LABEL"], "it's: \"it\"");
    assert!(
        written(&["--label", " benchmark "])["perf_gpu.yml"].contains("LABEL: 'benchmark'\n"),
        "as a label is"
    );
    assert_eq!(step("gpu", "gate")["BUILD"], "make x=\"$Y\" # '");
    assert_eq!(gpu["jobs"]["gpu"]["runs-on"], serde_json::json!(["self-hosted", "H200"]));
    assert_eq!(gpu["on"]["pull_request"]["types"].as_array().unwrap().len(), 6, "labels are listened to");
}
