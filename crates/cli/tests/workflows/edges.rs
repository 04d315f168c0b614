//! Histories, events and repositories that are not as one would like them.

use crate::actions::{Event, parsed, run, written};
use crate::repository::{Origin, event, git};
use crate::{REQUIRED, ends, pull_request, workflow};
use serde_json::{Value, json};

const GONE: &str = "4444444444444444444444444444444444444444";

#[test]
fn a_closed_pull_request_does_not_pass() {
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("topic");
    let head = origin.commit("9000");
    let mut closed = pull_request("pull_request", &head, &base);
    closed.payload["action"] = "edited".into();
    closed.payload["pull_request"]["state"] = "closed".into();
    let gpu = workflow("perf_gpu.yml", &[], &closed, &origin);
    ends(&gpu, REQUIRED, "failure", "refused: pull request 42 is closed");
    let cpu = workflow("perf_cpu.yml", &[], &closed, &origin);
    ends(&cpu, "perf-regression", "failure", "refused: pull request 42 is closed");
}

#[test]
fn a_robots_pull_request_is_measured_when_a_person_asks_for_it() {
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("bump");
    let head = origin.commit("2000");
    let mut bump = pull_request("pull_request", &head, &base);
    bump.payload["pull_request"]["user"] = json!({"login": "dependabot[bot]", "type": "Bot"});
    let run = workflow("perf_gpu.yml", &[], &bump, &origin);
    assert_eq!(run.jobs["gpu"].result, "skipped");
    ends(&run, REQUIRED, "failure", &format!("may comment /perf {head}"));
    // Where nothing that is measured has changed, nobody is asked.
    let run = workflow("perf_gpu.yml", &["--path", "src/**"], &bump, &origin);
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
    let without = origin.head();
    let base = {
        point_to(&without);
        origin.commit_file(".gitmodules", said)
    };
    origin.branch("topic");
    let head = point_to(&base);
    let event = pull_request("pull_request", &head, &base);
    let run = workflow("perf_gpu.yml", &["--path", "vendor/**"], &event, &origin);
    assert_eq!(run.jobs["guard"].outputs["decision"], "run", "{:#?}", run.jobs);
    // Nor is what is said of it no change.
    git(origin.path(), &["switch", "--quiet", "--detach", &base]);
    let head = origin.commit_file(".gitmodules", "");
    let event = pull_request("pull_request", &head, &base);
    let run = workflow("perf_gpu.yml", &["--path", "src/**"], &event, &origin);
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
    let run = workflow("perf_gpu.yml", &[], &pull_request("pull_request", &head, &base), &origin);
    ends(&run, REQUIRED, "failure", "broken");
    ends(&run, "gpu", "success", "::warning::perf-gpu.toml has changed since this change left its base");
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
    let run = workflow("perf_gpu.yml", &[], &pull_request("pull_request", &head, &base), &origin);
    ends(&run, "gpu", "failure", &format!("::error::{head} has no history in common with {base}"));
    ends(&run, REQUIRED, "failure", "no verdict");
}

#[test]
fn a_push_by_force_whose_past_is_gone_is_held_against_its_parent() {
    for (time, result, says) in [("2000", "success", "pass"), ("9000", "failure", "regressed")] {
        let origin = Origin::new();
        let head = origin.commit(time);
        let push = Event::new("push", event("push", &head, GONE), &head);
        // Whatever has changed since: nobody knows.
        let run = workflow("perf_cpu.yml", &["--path", "src/**"], &push, &origin);
        ends(&run, "cpu", "success", "what was there before is gone, so it is compared with its parent");
        ends(&run, "perf-regression", result, says);
    }
    let origin = Origin::new();
    origin.record_baseline();
    let head = origin.commit("9000");
    let push = Event::new("push", event("push", &head, GONE), &head);
    ends(&workflow("perf_gpu.yml", &[], &push, &origin), REQUIRED, "failure", "regressed");
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
        for (file, required) in [("perf_gpu.yml", REQUIRED), ("perf_cpu.yml", "perf-regression")] {
            let run = workflow(file, &[], &queue, &origin);
            ends(&run, required, result, says);
            assert_eq!(run.jobs["notify"].result, "skipped");
        }
    }
}

#[test]
fn a_branch_that_is_released_from_is_judged_too() {
    let flags = ["--branch", "main", "--branch", "release/1.x"];
    let files = written(&flags);
    let gpu = parsed(&files["perf_gpu.yml"]);
    assert_eq!(gpu["on"]["push"]["branches"], json!(["main", "release/1.x"]));
    assert!(
        files["perf_gpu.yml"]
            .starts_with("# Written by: holdpoint ci init --branch main --branch release/1.x ")
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
fn people_are_told_when_nothing_got_as_far_as_the_gpu() {
    let config = "schema_version = 1\n[[slack]]\nname = \"room\"\nurl_env = \"SLACK_WEBHOOK_URL\"\n";
    let origin = Origin::new();
    let head = origin.commit_file(".holdpoint/notify.toml", config);
    for (file, job) in [("perf_gpu.yml", "notify"), ("perf_trend_weekly.yml", "notify-gpu")] {
        let mut payload = event("schedule", &head, &head);
        for (schedule, told) in [(json!(7), "failure"), ("0 4 * * *".into(), "skipped")] {
            payload["schedule"] = schedule;
            let vars = json!({"HOLDPOINT_NOTIFY": "true"});
            let night = Event { vars, ..Event::new("schedule", payload.clone(), &head) };
            let run = workflow(file, &[], &night, &origin);
            // The secret is not there, so that nobody can be told; that somebody was to be is seen by it.
            ends(&run, job, told, if told == "failure" { "slack room: could not be notified" } else { "" });
        }
    }
}

#[test]
fn a_proposal_of_any_length_is_made() {
    let origin = Origin::new();
    let base = origin.record_baseline();
    let head = origin.commit("1000");
    let mut gpu = parsed(&written(&[])["perf_gpu.yml"]);
    let steps = gpu["jobs"]["promote"]["steps"].as_array_mut().unwrap();
    let propose = steps.iter().position(|step| step["name"] == "Propose it").unwrap();
    let grow = "seq 60000 > head/.holdpoint/baselines/other.json";
    steps.insert(propose, json!({"name": "Grow", "run": grow}));
    let vars = json!({"HOLDPOINT_PROMOTE_BASELINE": "true"});
    let push = Event { vars, ..Event::new("push", event("push", &head, &base), &head) };
    let run = run(&gpu, &push, &origin);
    ends(&run, "promote", "success", "");
    assert!(
        run.said.contains("pr create --head holdpoint/baseline ") && run.said.len() > 40_000,
        "{:#?}",
        run.jobs
    );
}

#[test]
fn commits_that_are_dispatched_do_not_cancel_each_other() {
    let gpu: Value = parsed(&written(&[])["perf_gpu.yml"]);
    let group = gpu["concurrency"]["group"].as_str().unwrap();
    let of = |event: &str, id: &str| {
        let github = json!({"github": {"event_name": event, "ref": "refs/heads/main", "run_id": id}});
        crate::expression::fill(group, &github)
    };
    assert_ne!(of("workflow_dispatch", "1"), of("workflow_dispatch", "2"));
    assert_ne!(of("push", "1"), of("push", "2"));
    assert_eq!(of("pull_request", "1"), of("pull_request", "2"));
    assert_eq!(of("schedule", "1"), of("schedule", "2"));
}
