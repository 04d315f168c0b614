//! The workflows that `ci init` writes, run: their shell steps, in order, with the real binary, against events of GitHub
//! and pipelines of GitLab.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod actions;
mod apart;
mod edges;
mod expression;
#[path = "../cli/github.rs"]
mod github;
mod gitlab;
mod hardening;
mod pipeline;
#[path = "../../../process/tests/support/program.rs"]
mod program;
mod reports;
mod repository;
#[allow(dead_code, reason = "other tests look at requests and headers too")]
#[path = "../../../ci/tests/ci/server.rs"]
mod server;

use actions::{Event, Run, parsed, run, written};
use repository::{Origin, event};
use serde_json::json;

/// A run of one of the workflows.
fn workflow(name: &str, flags: &[&str], event: &Event, origin: &Origin) -> Run {
    run(&parsed(&written(flags)[name]), event, origin)
}

#[track_caller]
fn ends(run: &Run, job: &str, result: &str, says: &str) {
    let found = &run.jobs[job];
    assert_eq!(found.result, result, "{job}: {:#?}", run.jobs);
    assert!(found.log.contains(says), "{says:?} in {}: {:#?}", found.log, run.jobs);
}

fn pull_request<'a>(fixture: &str, head: &'a str, base: &str) -> Event<'a> {
    let payload = event(fixture, head, base);
    Event::new("pull_request", payload, head)
}

/// A pull request that makes the program as quick as told, through the GPU's gate.
fn pulled(time: &str, flags: &[&str]) -> Run {
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("wider-loads");
    let head = origin.commit(time);
    workflow("perf_gpu.yml", flags, &pull_request("pull_request", &head, &base), &origin)
}

/// A push to the default branch, through the GPU's gate against a stored baseline.
fn pushed(origin: &Origin, head: &str, base: &str) -> Run {
    let payload = event("push", head, base);
    let event = Event::new("push", payload, head);
    workflow("perf_gpu.yml", &[], &event, origin)
}

#[test]
fn a_pull_request_into_another_branch_does_not_pass() {
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("topic");
    let head = origin.commit("2000");
    let mut event = pull_request("pull_request", &head, &base);
    event.payload["pull_request"]["base"]["ref"] = "old-and-slow".into();
    for (file, gate, required) in
        [("perf_gpu.yml", "gpu", REQUIRED), ("perf_cpu.yml", "cpu", "perf-regression")]
    {
        let run = workflow(file, &["--path", "src/**"], &event, &origin);
        ends(
            &run,
            required,
            "failure",
            "refused: pull request 42 goes to old-and-slow; only what goes to main",
        );
        assert!(!run.jobs[gate].outputs.contains_key("code") || run.jobs[gate].outputs["code"] == "");
    }
}

#[test]
fn a_run_that_passed_is_proposed_as_the_baseline_and_a_proposal_is_not() {
    let origin = Origin::new();
    let base = origin.record_baseline();
    let proposed = |head: &str, base: &str| {
        let vars = json!({"HOLDPOINT_PROMOTE_BASELINE": "true"});
        let event = Event { vars, ..Event::new("push", event("push", head, base), head) };
        workflow("perf_gpu.yml", &[], &event, &origin)
    };
    let head = origin.commit("1000");
    let run = proposed(&head, &base);
    ends(&run, "promote", "success", "");
    assert!(
        run.said.contains("pr create --head holdpoint/baseline "),
        "{}: {:#?}",
        run.said,
        run.jobs["promote"]
    );
    assert!(run.said.contains("\n-") && run.said.contains("\n+"), "old and new: {}", run.said);
    let file = repository::git(origin.path(), &["show", "--name-only", "--format=", "holdpoint/baseline"]);
    assert!(file.starts_with(".holdpoint/baselines/"), "{file}");
    // Merged, it is no reason for another.
    repository::git(origin.path(), &["merge", "--quiet", "--ff-only", "holdpoint/baseline"]);
    let merged = origin.head();
    let run = proposed(&merged, &head);
    ends(&run, "promote", "success", "only baselines have changed");
    assert_eq!(run.said, "");
}

#[test]
fn a_waived_run_is_not_proposed_as_the_baseline() {
    let origin = Origin::new();
    origin.record_baseline();
    // A waiver holds for a year at most.
    let soon =
        std::process::Command::new("date").args(["-u", "-d", "+30 days", "+%F"]).output().unwrap().stdout;
    let soon = String::from_utf8(soon).unwrap();
    let waiver = "owner = \"@mona\"\nreason = \"known\"\nmetric = \"scan*\"\nlimit = \"900%\"";
    let waivers = format!("schema_version = 1\n[[waiver]]\n{waiver}\nexpires = {soon}");
    let base = origin.commit_file(".holdpoint/waivers.toml", &waivers);
    let head = origin.commit("9000");
    let vars = json!({"HOLDPOINT_PROMOTE_BASELINE": "true"});
    let event = Event { vars, ..Event::new("push", event("push", &head, &base), &head) };
    let run = workflow("perf_gpu.yml", &[], &event, &origin);
    ends(&run, REQUIRED, "success", "pass");
    ends(&run, "promote", "success", "the verdict is waived");
    assert_eq!(run.said, "");
}

#[test]
fn people_are_told_of_a_push_that_did_not_pass() {
    let config = "schema_version = 1\n[[slack]]\nname = \"room\"\nurl_env = \"SLACK_WEBHOOK_URL\"\n";
    for (time, told) in [("9000", "failure"), ("2000", "skipped")] {
        let origin = Origin::new();
        let base = origin.commit_file(".holdpoint/notify.toml", config);
        let head = origin.commit(time);
        let vars = json!({"HOLDPOINT_NOTIFY": "true"});
        let event = Event { vars, ..Event::new("push", event("push", &head, &base), &head) };
        let run = workflow("perf_cpu.yml", &[], &event, &origin);
        // The secret is not there, so that nobody can be told; that somebody was to be is seen by it.
        let says = if told == "failure" { "slack room: could not be notified" } else { "" };
        ends(&run, "notify", told, says);
    }
}

const REQUIRED: &str = "gpu-perf-regression";

#[test]
fn a_pull_request_that_is_not_slower_passes() {
    for time in ["2000", "1000"] {
        let run = pulled(time, &[]);
        ends(&run, REQUIRED, "success", "pass: not slower than allowed");
        let evidence = run.artifacts.join("perf-gpu-regression-artifacts");
        assert_eq!(std::fs::read_to_string(evidence.join("exit-code")).unwrap(), "0\n");
        assert!(evidence.join("ab.json").exists());
    }
}

#[test]
fn a_slower_pull_request_fails_and_its_evidence_is_kept() {
    let run = pulled("9000", &[]);
    ends(&run, "gpu", "success", "regressed");
    ends(&run, REQUIRED, "failure", "regressed: slower than allowed");
    assert!(run.artifacts.join("perf-gpu-regression-artifacts/ab.json").exists());
}

#[test]
fn a_pull_request_that_cannot_be_measured_or_breaks_fails() {
    ends(&pulled("skip", &[]), REQUIRED, "failure", "skipped: nothing could be measured");
    let broken = pulled("die", &[]);
    ends(&broken, REQUIRED, "failure", "broken: a wrong answer, a crash");
    assert!(broken.artifacts.join("perf-gpu-regression-artifacts/ab.json").exists());
}

#[test]
fn no_baseline_is_inconclusive_and_fails_unless_set_otherwise() {
    let origin = Origin::new();
    let base = origin.head();
    let head = origin.commit("2000");
    ends(&pushed(&origin, &head, &base), REQUIRED, "failure", "inconclusive: the evidence does not suffice");
    let payload = event("push", &head, &base);
    let event = Event::new("push", payload, &head);
    let lenient = workflow("perf_gpu.yml", &["--on-inconclusive", "pass"], &event, &origin);
    ends(&lenient, REQUIRED, "success", "inconclusive");
    assert_eq!(lenient.jobs["gpu"].outputs["code"], "3");
}

#[test]
fn a_push_is_judged_by_the_baselines_from_before_it() {
    let origin = Origin::new();
    let base = origin.record_baseline();
    let same = origin.commit("2000");
    ends(&pushed(&origin, &same, &base), REQUIRED, "success", "pass");
    // It comes with a baseline of its own, which is not the one it is judged by.
    origin.commit("9000");
    let slower = origin.record_baseline();
    ends(&pushed(&origin, &slower, &base), REQUIRED, "failure", "regressed");
}

#[test]
fn a_fork_never_reaches_the_gpu_and_does_not_pass_by_that() {
    let origin = Origin::new();
    let base = origin.head();
    let head = origin.commit_in_fork("1000");
    let fork = pull_request("pull_request_fork", &head, &base);
    let run = workflow("perf_gpu.yml", &[], &fork, &origin);
    assert_eq!(run.jobs["gpu"].result, "skipped");
    ends(&run, REQUIRED, "failure", "refused: the head is in the fork mallory/kernels");
    // On GitHub's own machines it is measured like any other.
    let run = workflow("perf_cpu.yml", &[], &fork, &origin);
    ends(&run, "perf-regression", "success", "pass");
}

#[test]
fn the_cpu_gate_ends_by_the_same_rules() {
    for (time, result, says) in [
        ("2000", "success", "pass"),
        ("9000", "failure", "regressed"),
        ("die", "failure", "broken"),
        ("skip", "failure", "skipped"),
    ] {
        let origin = Origin::new();
        let base = origin.head();
        origin.branch("wider-loads");
        let head = origin.commit(time);
        let run = workflow("perf_cpu.yml", &[], &pull_request("pull_request", &head, &base), &origin);
        ends(&run, "perf-regression", result, says);
        assert!(run.artifacts.join("perf-regression-artifacts/ab.json").exists());
    }
    // What is merged is compared with what was there before: the forge's machines have no baseline.
    let origin = Origin::new();
    let base = origin.head();
    let head = origin.commit("9000");
    let payload = event("push", &head, &base);
    let push = Event::new("push", payload, &head);
    ends(&workflow("perf_cpu.yml", &[], &push, &origin), "perf-regression", "failure", "regressed");
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("words");
    let head = origin.commit_file("README", "only words");
    let event = pull_request("pull_request", &head, &base);
    let run = workflow("perf_cpu.yml", &["--path", "src/**"], &event, &origin);
    ends(
        &run,
        "perf-regression",
        "success",
        "nothing to measure: no file that matters for speed has changed",
    );
    assert!(!run.artifacts.join("perf-regression-artifacts").exists());
}

#[test]
fn what_no_path_touches_is_not_measured_and_what_decides_always_is() {
    let flags = ["--path", "src/**/*.cu", "--path", "kernels/**"];
    for (file, gate, says) in [
        ("README", "skipped", "nothing to measure: no file that matters"),
        ("src/scan.rs", "skipped", "nothing to measure"),
        ("src/deep/scan.cu", "success", "pass"),
        ("kernels/x", "success", "pass"),
        ("perf-gpu.toml", "success", "pass"),
        (".holdpoint/waivers.txt", "success", "pass"),
        (".github/workflows/perf_gpu.yml", "success", "pass"),
    ] {
        let origin = Origin::new();
        let base = origin.head();
        origin.branch("topic");
        let head = origin.commit_file(file, "changed");
        let run = workflow("perf_gpu.yml", &flags, &pull_request("pull_request", &head, &base), &origin);
        assert_eq!(run.jobs["gpu"].result, gate, "{file}: {:#?}", run.jobs);
        ends(&run, REQUIRED, "success", says);
    }
}

#[test]
fn a_change_cannot_loosen_the_gate_that_judges_it() {
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("topic");
    origin.commit_file(
        "perf-gpu.toml",
        "schema_version = 1\nname = \"easy\"\n[[workload]]\nname = \"true\"\ncommand = [\"true\"]\n",
    );
    let head = origin.commit("9000");
    let run = workflow("perf_gpu.yml", &[], &pull_request("pull_request", &head, &base), &origin);
    ends(&run, REQUIRED, "failure", "regressed");
}

#[test]
fn a_change_is_compared_with_where_it_left_the_default_branch() {
    let origin = Origin::new();
    origin.branch("topic");
    let head = origin.commit("2000");
    repository::git(origin.path(), &["switch", "--quiet", "main"]);
    // Since then the default branch has become quicker; the change has not become slower by that.
    let base = origin.commit("500");
    let run = workflow("perf_gpu.yml", &[], &pull_request("pull_request", &head, &base), &origin);
    ends(&run, REQUIRED, "success", "pass");
}

#[test]
fn an_event_that_is_not_understood_fails_the_required_check() {
    let origin = Origin::new();
    let base = origin.head();
    let mut broken = pull_request("pull_request", &base, &base);
    broken.payload["pull_request"]["head"]["sha"] = "main".into();
    let workflow = parsed(&written(&[])["perf_gpu.yml"]);
    // The checkout would fail as well; here it is the guard that does.
    let mut only_guard = workflow.clone();
    only_guard["jobs"]["guard"]["steps"].as_array_mut().unwrap().remove(0);
    let run = run(&only_guard, &broken, &origin);
    ends(&run, "guard", "failure", "is no full commit hash");
    assert_eq!(run.jobs["gpu"].result, "skipped");
    ends(&run, REQUIRED, "failure", "no verdict: guard failure, decision none, gate skipped");
}

#[test]
fn a_dispatch_and_a_night_use_the_gpu_only_when_asked_to() {
    let origin = Origin::new();
    let head = origin.record_baseline();
    for (name, pointer, value, vars, gate) in [
        ("workflow_dispatch", "/inputs/run_mode", "skip", json!({}), "skipped"),
        ("workflow_dispatch", "/inputs/run_mode", "self-hosted-gpu", json!({}), "success"),
        ("schedule", "/schedule", "0 4 * * *", json!({}), "skipped"),
        ("schedule", "/schedule", "0 4 * * *", json!({"HOLDPOINT_ENABLE_GPU_NIGHTLY": "yes"}), "skipped"),
        ("schedule", "/schedule", "0 4 * * *", json!({"HOLDPOINT_ENABLE_GPU_NIGHTLY": "true"}), "success"),
    ] {
        let mut payload = event(name, &head, &head);
        *payload.pointer_mut(pointer).unwrap() = value.into();
        let event = Event { vars, ..Event::new(name, payload, &head) };
        let run = workflow("perf_gpu.yml", &[], &event, &origin);
        assert_eq!(run.jobs["gpu"].result, gate, "{:#?}", run.jobs);
        assert_eq!(run.jobs[REQUIRED].result, "success", "{:#?}", run.jobs);
    }
}

#[test]
fn the_weekly_trend_fails_for_what_is_worse_and_warns_of_what_is_not_known() {
    for (time, with_baseline, result, says) in [
        ("2000", true, "success", "pass"),
        ("9000", true, "failure", "worse, broken"),
        ("die", true, "failure", "worse, broken"),
        ("2000", false, "success", "::warning::not known this week: exit code 3"),
    ] {
        let origin = Origin::new();
        if with_baseline {
            origin.record_baseline();
        }
        let head = origin.commit(time);
        let payload = event("schedule", &head, &head);
        let vars = json!({"HOLDPOINT_ENABLE_GPU_WEEKLY": "true"});
        let event = Event { vars, ..Event::new("schedule", payload, &head) };
        let run = workflow("perf_trend_weekly.yml", &[], &event, &origin);
        for job in ["cpu-trend", "gpu-trend"] {
            ends(&run, job, result, says);
        }
        assert!(run.artifacts.join("perf-trend-cpu-weekly/exit-code").exists());
        // With or without a baseline, the week has its numbers.
        assert!(run.artifacts.join("perf-trend-cpu-weekly/report.json").exists());
        assert_eq!(run.artifacts.join("perf-trend-gpu-weekly/trend.json").exists(), with_baseline);
    }
}
