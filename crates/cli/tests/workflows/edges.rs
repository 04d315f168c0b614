//! Histories, events and repositories that are not as one would like them.

use crate::actions::{Event, parsed, run, written};
use crate::repository::{Origin, event, git};
use crate::{REQUIRED, ends, pull_request, workflow};
use serde_json::{Value, json};

const GONE: &str = "4444444444444444444444444444444444444444";

/// A commit on `main` after which only these paths matter to both suites.
fn with_paths(origin: &Origin, path: &str) -> String {
    git(origin.path(), &["switch", "--quiet", "main"]);
    let gate = format!("[gate]\npaths = [\"{path}\"]\n[measure]");
    let suite = std::fs::read_to_string(origin.path().join("perf.toml")).unwrap().replace("[measure]", &gate);
    std::fs::write(origin.path().join("perf.toml"), &suite).unwrap();
    origin.commit_file("perf-gpu.toml", &suite)
}

#[test]
fn a_closed_pull_request_does_not_pass() {
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("topic");
    let head = origin.commit("9000");
    let mut closed = pull_request("pull_request", &head, &base);
    closed.payload["action"] = "edited".into();
    closed.payload["pull_request"]["state"] = "closed".into();
    let gpu = workflow("perf-gpu.yml", &[], &closed, &origin);
    ends(&gpu, REQUIRED, "failure", "refused: pull request 42 is closed");
    let cpu = workflow("perf.yml", &[], &closed, &origin);
    ends(&cpu, "gate", "failure", "refused: pull request 42 is closed");
}

#[test]
fn a_robots_pull_request_is_measured_when_a_person_asks_for_it() {
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("bump");
    let head = origin.commit("2000");
    let mut bump = pull_request("pull_request", &head, &base);
    bump.payload["pull_request"]["user"] = json!({"login": "dependabot[bot]", "type": "Bot"});
    let run = workflow("perf-gpu.yml", &[], &bump, &origin);
    assert_eq!(run.jobs["gpu"].result, "skipped");
    ends(&run, REQUIRED, "failure", &format!("may comment /perf {head}"));
    // Where nothing that is measured has changed, nobody is asked.
    let base = with_paths(&origin, "src/**");
    origin.branch("words");
    let head = origin.commit("2001");
    let mut bump = pull_request("pull_request", &head, &base);
    bump.payload["pull_request"]["user"] = json!({"login": "dependabot[bot]", "type": "Bot"});
    let run = workflow("perf-gpu.yml", &[], &bump, &origin);
    ends(&run, REQUIRED, "success", "no file that matters");
}

#[test]
fn a_submodule_counts_whatever_is_said_of_it() {
    let origin = Origin::new();
    let said = "[submodule \"vendor\"]\n\tpath = vendor\n\turl = ./vendor\n\tignore = all\n";
    std::fs::create_dir(origin.path().join("vendor")).unwrap();
    let point_to = |commit: &str| {
        let entry = format!("160000,{commit},vendor");
        git(origin.path(), &["update-index", "--add", "--cacheinfo", &entry]);
        git(origin.path(), &["commit", "--quiet", "--message", "vendor"]);
        origin.head()
    };
    let without = with_paths(&origin, "vendor/**");
    let base = {
        point_to(&without);
        origin.commit_file(".gitmodules", said)
    };
    origin.branch("topic");
    let head = point_to(&base);
    let event = pull_request("pull_request", &head, &base);
    let run = workflow("perf-gpu.yml", &[], &event, &origin);
    assert_eq!(run.jobs["guard"].outputs["decision"], "run", "{:#?}", run.jobs);
    // Nor is what is said of it no change.
    git(origin.path(), &["switch", "--quiet", "--detach", &base]);
    let head = origin.commit_file(".gitmodules", "");
    let event = pull_request("pull_request", &head, &base);
    let run = workflow("perf-gpu.yml", &[], &event, &origin);
    assert_eq!(run.jobs["guard"].outputs["decision"], "run", "{:#?}", run.jobs);
}

#[test]
fn a_workload_that_is_newer_than_a_change_asks_for_a_rebase() {
    let origin = Origin::new();
    origin.branch("topic");
    let head = origin.commit("2000");
    git(origin.path(), &["switch", "--quiet", "main"]);
    let suite = std::fs::read_to_string(origin.path().join("perf-gpu.toml")).unwrap();
    let newer = "[[workload]]\nname = \"newer\"\ncommand = [\"sh\", \"newer.sh\"]\n";
    std::fs::write(origin.path().join("newer.sh"), "true\n").unwrap();
    let base = origin.commit_file("perf-gpu.toml", &format!("{suite}{newer}"));
    let run = workflow("perf-gpu.yml", &[], &pull_request("pull_request", &head, &base), &origin);
    ends(&run, REQUIRED, "failure", "broken");
    ends(&run, "gpu", "failure", "::warning::perf-gpu.toml has changed since this change left its base");
    // A change that breaks by itself is not told to do what does not help.
    let broken = crate::pulled("die", &[]);
    ends(&broken, REQUIRED, "failure", "broken");
    assert!(!broken.jobs["gpu"].log.contains("rebase"), "{:#?}", broken.jobs);
}

#[test]
fn a_head_without_a_common_past_is_told_so() {
    let origin = Origin::new();
    let base = origin.head();
    git(origin.path(), &["switch", "--quiet", "--orphan", "elsewhere"]);
    let head = origin.commit_file("perf-gpu.toml", "");
    let run = workflow("perf-gpu.yml", &[], &pull_request("pull_request", &head, &base), &origin);
    ends(&run, "gpu", "failure", &format!("::error::{head} has no history in common with {base}"));
    ends(&run, REQUIRED, "failure", "no verdict");
    assert!(!run.checks.iter().any(|check| check["conclusion"] == "success"));
}

#[test]
fn a_push_by_force_whose_past_is_gone_is_held_against_its_parent() {
    for (time, result, says) in [("2000", "success", "pass"), ("9000", "failure", "regressed")] {
        let origin = Origin::new();
        with_paths(&origin, "src/**");
        let head = origin.commit(time);
        let push = Event::new("push", event("push", &head, GONE), &head);
        // Whatever has changed since: nobody knows.
        let run = workflow("perf.yml", &[], &push, &origin);
        ends(&run, "gate", result, "what was there before is gone, so it is compared with its parent");
        ends(&run, "gate", result, says);
    }
    let origin = Origin::new();
    origin.record_baseline();
    let head = origin.commit("9000");
    let push = Event::new("push", event("push", &head, GONE), &head);
    ends(&workflow("perf-gpu.yml", &[], &push, &origin), REQUIRED, "failure", "regressed");
}

#[test]
fn a_merge_queue_is_judged_before_it_merges() {
    for (time, result, says) in [("2000", "success", "pass"), ("9000", "failure", "regressed")] {
        let origin = Origin::new();
        let base = origin.head();
        origin.branch("gh-readonly-queue/main/pr-42");
        let head = origin.commit(time);
        let payload = json!({
            "action": "checks_requested",
            "merge_group": {
                "head_sha": head, "head_ref": "refs/heads/gh-readonly-queue/main/pr-42", "base_sha": base,
                "base_ref": "refs/heads/main",
            },
            "repository": event("push", &head, &base)["repository"],
        });
        let queue = Event::new("merge_group", payload, &head);
        for (file, required) in [("perf-gpu.yml", REQUIRED), ("perf.yml", "gate")] {
            let run = workflow(file, &[], &queue, &origin);
            ends(&run, required, result, says);
            assert_eq!((run.comments.len(), run.checks.len()), (0, 0));
        }
    }
}

#[test]
fn a_branch_that_is_released_from_is_judged_too() {
    let flags = ["--branch", "main", "--branch", "release/1.x"];
    let files = written(&flags);
    let gpu = parsed(&files["perf-gpu.yml"]);
    assert_eq!(gpu["on"]["push"]["branches"], json!(["main", "release/1.x"]));
    assert!(
        files["perf-gpu.yml"]
            .starts_with("# Written by: holdpoint ci init --branch main --branch release/1.x --install ")
    );
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("fix");
    let head = origin.commit("9000");
    let mut event = pull_request("pull_request", &head, &base);
    event.payload["pull_request"]["base"]["ref"] = "release/1.x".into();
    let run = run(&gpu, &event, &origin);
    ends(&run, "guard", "success", "pull request 42 to release/1.x");
    ends(&run, REQUIRED, "failure", "regressed");
}

#[test]
fn commits_that_are_dispatched_do_not_cancel_each_other() {
    let gpu: Value = parsed(&written(&[])["perf-gpu.yml"]);
    let group = gpu["concurrency"]["group"].as_str().unwrap();
    let of = |event: Value, id: &str| {
        crate::expression::fill(group, &json!({"github": {"event": event, "run_id": id}}))
    };
    assert_ne!(of(json!({}), "1"), of(json!({}), "2"));
    let pull = |number: u64| json!({"pull_request": {"number": number}});
    assert_eq!(of(pull(7), "1"), of(pull(7), "2"));
    assert_ne!(of(pull(7), "1"), of(pull(8), "2"));
}

#[test]
fn a_run_by_hand_is_compared_with_the_branch_that_it_left() {
    for (is_topic, time, result, says) in [
        (true, "9000", "failure", "regressed"),
        (true, "2000", "success", "pass"),
        (false, "9000", "failure", "regressed"),
    ] {
        let origin = Origin::new();
        if is_topic {
            origin.branch("topic");
        }
        let head = origin.commit(time);
        let by_hand = Event::new("workflow_dispatch", event("workflow_dispatch", &head, &head), &head);
        ends(&workflow("perf.yml", &[], &by_hand, &origin), "gate", result, says);
    }
}

#[test]
fn a_change_that_brings_the_first_suite_is_judged_by_it() {
    let origin = Origin::new();
    let suite = std::fs::read_to_string(origin.path().join("perf.toml")).unwrap();
    git(origin.path(), &["rm", "--quiet", "perf.toml"]);
    let base = origin.commit("2000");
    origin.branch("topic");
    let head = origin.commit_file("perf.toml", &suite);
    let run = workflow("perf.yml", &[], &pull_request("pull_request", &head, &base), &origin);
    ends(&run, "gate", "success", "perf.toml is new: the base has none");
    // Neither side has one.
    git(origin.path(), &["switch", "--quiet", "main"]);
    origin.branch("other");
    let head = origin.commit("2001");
    let run = workflow("perf.yml", &[], &pull_request("pull_request", &head, &base), &origin);
    ends(&run, "gate", "failure", "neither the base nor the change has this suite");
    assert_eq!(run.checks[0]["conclusion"], "failure");
}
