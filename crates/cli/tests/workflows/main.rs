//! The workflows that `ci init` writes, run: their shell steps, in order, with the real binary, against events of GitHub
//! and pipelines of GitLab.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod actions;
mod apart;
mod edges;
mod expression;
mod forks;
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
use serde_json::{Value, json};

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

/// A pull request that GitHub still has at this head.
fn pull_request<'a>(fixture: &str, head: &'a str, base: &str) -> Event<'a> {
    let answers = [event("api_pull_fork", head, base), Value::Null];
    Event { answers, ..Event::new("pull_request", event(fixture, head, base), head) }
}

/// A pull request that makes the program as quick as told, through the GPU's gate.
fn pulled(time: &str, flags: &[&str]) -> Run {
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("wider-loads");
    let head = origin.commit(time);
    workflow("perf-gpu.yml", flags, &pull_request("pull_request", &head, &base), &origin)
}

/// A push to the default branch, through the GPU's gate against a stored baseline.
fn pushed(origin: &Origin, head: &str, base: &str) -> Run {
    let payload = event("push", head, base);
    let event = Event::new("push", payload, head);
    workflow("perf-gpu.yml", &[], &event, origin)
}

#[test]
fn a_pull_request_into_another_branch_does_not_pass() {
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("topic");
    let head = origin.commit("2000");
    let mut event = pull_request("pull_request", &head, &base);
    event.payload["pull_request"]["base"]["ref"] = "old-and-slow".into();
    for (file, required) in [("perf-gpu.yml", REQUIRED), ("perf.yml", "gate")] {
        let run = workflow(file, &[], &event, &origin);
        let says = "refused: pull request 42 goes to old-and-slow; only what goes to main";
        ends(&run, required, "failure", says);
        assert!(run.checks.iter().all(|check| check["conclusion"] == "failure"), "{:?}", run.checks);
        for name in ["perf-evidence", "perf-gpu-evidence"] {
            assert!(!run.artifacts.join(name).join("ab.json").exists());
        }
    }
}

/// A push through the GPU's gate, and what the workflow makes of it that proposes baselines.
fn proposed(origin: &Origin, head: &str, base: &str) -> Run {
    let gated = pushed(origin, head, base);
    let evidence = Some(gated.artifacts.join("perf-gpu-evidence"));
    let conclusion =
        if gated.jobs.values().all(|job| job.result != "failure") { "success" } else { "failure" };
    let payload = after("perf-gpu", "push", head, conclusion);
    let ended = Event { evidence, ..Event::new("workflow_run", payload, head) };
    workflow("perf-promote.yml", &[], &ended, origin)
}

/// A run of another workflow on the default branch has ended.
fn after(name: &str, event: &str, head: &str, conclusion: &str) -> Value {
    json!({
        "action": "completed",
        "repository": {"id": 186_853_002, "default_branch": "main"},
        "workflow_run": {
            "id": 30_433_642, "name": name, "event": event, "head_sha": head, "head_branch": "main",
            "conclusion": conclusion, "head_repository": {"id": 186_853_002, "owner": {"login": "octo-org"}},
        },
    })
}

#[test]
fn a_run_that_passed_is_proposed_as_the_baseline_and_a_proposal_is_not() {
    let origin = Origin::new();
    let base = origin.record_baseline();
    let head = origin.commit("1000");
    let run = proposed(&origin, &head, &base);
    ends(&run, "promote", "success", "proposed as pull request 43");
    let proposal = &run.proposals[0];
    assert_eq!((&proposal["head"], &proposal["base"]), (&"holdpoint/baseline".into(), &"main".into()));
    let body = proposal["body"].as_str().unwrap();
    assert!(body.contains("\n-") && body.contains("\n+"), "old and new: {body}");
    let file = repository::git(origin.path(), &["show", "--name-only", "--format=", "holdpoint/baseline"]);
    assert!(file.starts_with(".holdpoint/baselines/"), "{file}");
    // Merged, it is no reason for another.
    repository::git(origin.path(), &["merge", "--quiet", "--ff-only", "holdpoint/baseline"]);
    let merged = origin.head();
    let run = proposed(&origin, &merged, &head);
    ends(&run, "promote", "success", "not proposed: only baselines have changed");
    assert!(run.proposals.is_empty());
    let base = origin.commit_baselines_of_any_load();
    let slower = origin.commit("9000");
    let run = proposed(&origin, &slower, &base);
    assert_eq!((run.jobs["promote"].result.as_str(), run.proposals.len()), ("skipped", 0));
}

#[test]
fn only_a_push_to_the_default_branch_that_passed_is_proposed() {
    let origin = Origin::new();
    let head = origin.head();
    for (place, value) in [
        ("/workflow_run/event", json!("pull_request")),
        ("/workflow_run/head_branch", json!("topic")),
        ("/workflow_run/conclusion", json!("failure")),
        ("/workflow_run/head_repository/id", json!(912_345_678)),
        ("/workflow_run/head_repository", Value::Null),
    ] {
        let mut payload = after("perf-gpu", "push", &head, "success");
        *payload.pointer_mut(place).unwrap() = value;
        let run = workflow("perf-promote.yml", &[], &Event::new("workflow_run", payload, &head), &origin);
        assert_eq!(run.jobs["promote"].result, "skipped", "{place}");
    }
    // One that measured nothing has left nothing.
    let payload = after("perf-gpu", "push", &head, "success");
    let run = workflow("perf-promote.yml", &[], &Event::new("workflow_run", payload, &head), &origin);
    ends(&run, "promote", "success", "not proposed: nothing was measured");
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
    ends(&pushed(&origin, &head, &base), REQUIRED, "success", "pass");
    let run = proposed(&origin, &head, &base);
    ends(&run, "promote", "success", "not proposed: the verdict is waived");
    assert!(run.proposals.is_empty());
}

#[test]
fn people_are_told_of_a_push_that_did_not_pass() {
    let config = "schema_version = 1\n[[slack]]\nname = \"room\"\nurl_env = \"SLACK_WEBHOOK_URL\"\n";
    let origin = Origin::new();
    let base = origin.commit_file(".holdpoint/notify.toml", config);
    let head = origin.commit("9000");
    let push = Event::new("push", event("push", &head, &base), &head);
    let gated = workflow("perf.yml", &[], &push, &origin);
    let left = gated.artifacts.join("perf-evidence");
    for (event, conclusion, evidence, told) in [
        ("push", "failure", Some(left.clone()), "failure"),
        ("schedule", "failure", None, "failure"),
        ("push", "cancelled", None, "failure"),
        ("push", "success", Some(left.clone()), "skipped"),
        ("pull_request", "failure", Some(left), "skipped"),
    ] {
        let payload = after("perf", event, &head, conclusion);
        let ended = Event { evidence: evidence.clone(), ..Event::new("workflow_run", payload, &head) };
        let run = workflow("perf-notify.yml", &[], &ended, &origin);
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
        let evidence = run.artifacts.join("perf-gpu-evidence");
        assert_eq!(std::fs::read_to_string(evidence.join("exit-code")).unwrap(), "0\n");
        assert!(evidence.join("ab.json").exists());
    }
}

#[test]
fn a_slower_pull_request_fails_and_its_evidence_is_kept() {
    let run = pulled("9000", &[]);
    ends(&run, "gpu", "failure", "regressed");
    ends(&run, REQUIRED, "failure", "regressed: slower than allowed");
    assert!(run.artifacts.join("perf-gpu-evidence/ab.json").exists());
}

#[test]
fn a_pull_request_that_cannot_be_measured_or_breaks_fails() {
    ends(&pulled("skip", &[]), REQUIRED, "failure", "skipped: nothing could be measured");
    let broken = pulled("die", &[]);
    ends(&broken, REQUIRED, "failure", "broken: a wrong answer, a crash");
    assert!(broken.artifacts.join("perf-gpu-evidence/ab.json").exists());
}

#[test]
fn no_baseline_is_inconclusive_which_fails_where_the_suite_says_so() {
    let origin = Origin::new();
    let base = origin.head();
    let head = origin.commit("2000");
    let run = pushed(&origin, &head, &base);
    let undecided =
        "undecided: the evidence does not suffice; allowed through by on_inconclusive = \"neutral\"";
    ends(&run, REQUIRED, "success", undecided);
    ends(&run, "gpu", "success", &format!("::notice::{undecided}"));
    assert_eq!(std::fs::read_to_string(run.artifacts.join("perf-gpu-evidence/exit-code")).unwrap(), "3\n");
    let suite = std::fs::read_to_string(origin.path().join("perf-gpu.toml")).unwrap();
    let strict = suite.replace("[measure]", "[gate]\non_inconclusive = \"fail\"\n[measure]");
    let base = origin.commit_file("perf-gpu.toml", &strict);
    let head = origin.commit("2001");
    let run = pushed(&origin, &head, &base);
    ends(&run, "gpu", "failure", "inconclusive");
    ends(&run, REQUIRED, "failure", "inconclusive: the evidence does not suffice");
    // A change that loosens it is judged by what was there before.
    let loose = origin.commit_file("perf-gpu.toml", &suite);
    ends(&pushed(&origin, &loose, &head), REQUIRED, "failure", "inconclusive");
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
    let run = workflow("perf-gpu.yml", &[], &fork, &origin);
    assert_eq!(run.jobs["gpu"].result, "skipped");
    ends(&run, REQUIRED, "failure", "refused: the head is in the fork mallory/kernels");
    // On GitHub's own machines it is measured like any other.
    let run = workflow("perf.yml", &[], &fork, &origin);
    ends(&run, "gate", "success", "pass");
    // Its token may only read, so nothing is reported but the gate's own summary.
    assert_eq!((run.jobs["report"].result.as_str(), run.comments.len(), run.checks.len()), ("skipped", 0, 0));
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
        let run = workflow("perf.yml", &[], &pull_request("pull_request", &head, &base), &origin);
        ends(&run, "gate", result, says);
        assert!(run.artifacts.join("perf-evidence/ab.json").exists());
        // What the measured code wrote into the job's files changes nothing: only the evidence is read, and judged again.
        ends(&run, "report", "success", "comment created on pull request 42");
        assert_eq!(run.checks[0]["conclusion"], *result);
        assert_eq!((&run.checks[0]["name"], &run.checks[0]["head_sha"]), (&"holdpoint".into(), &head.into()));
        assert!(run.comments[0].contains(&format!("holdpoint: {says}")), "{}", run.comments[0]);
    }
    // What is merged is compared with what was there before: the forge's machines have no baseline.
    let origin = Origin::new();
    let base = origin.head();
    let head = origin.commit("9000");
    let payload = event("push", &head, &base);
    let push = Event::new("push", payload, &head);
    ends(&workflow("perf.yml", &[], &push, &origin), "gate", "failure", "regressed");
}

#[test]
fn a_change_of_documents_alone_passes_without_being_measured_or_built() {
    let origin = Origin::new();
    let suite = std::fs::read_to_string(origin.path().join("perf.toml")).unwrap();
    // A build would fail.
    let base = origin.commit_file("perf.toml", &format!("{suite}[build]\ncommand = [\"false\"]\n"));
    origin.branch("words");
    let head = origin.commit_file("README.md", "only words");
    let run = workflow("perf.yml", &[], &pull_request("pull_request", &head, &base), &origin);
    ends(&run, "gate", "success", "nothing to measure: no file that matters for speed has changed");
    ends(&run, "report", "success", "nothing was measured, so there is nothing to tell");
    assert_eq!((run.comments.len(), &run.checks[0]["conclusion"]), (0, &"success".into()));
    assert!(!run.artifacts.join("perf-evidence/ab.json").exists());
}

/// The default workflow with the steps of its gate changed; given with the position of the gate itself.
fn perf_with(change: impl FnOnce(&mut Vec<Value>, usize)) -> Value {
    let mut perf = parsed(&written(&[])["perf.yml"]);
    let steps = perf["jobs"]["gate"]["steps"].as_array_mut().unwrap();
    let gate = steps.iter().position(|step| step["name"] == "Gate").unwrap();
    change(steps, gate);
    perf
}

#[test]
fn a_check_passes_only_where_the_gates_job_did() {
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("topic");
    let head = origin.commit("2000");
    // A step after the gate fails, or the evidence is that of nothing to measure although the gate failed.
    let fail = json!({"name": "Fail", "run": "exit 1"});
    let perf = perf_with(|steps, gate| steps.insert(gate + 1, fail.clone()));
    let failed = run(&perf, &pull_request("pull_request", &head, &base), &origin);
    ends(&failed, "report", "success", "no verdict: decision run, gate failure");
    assert_eq!(failed.checks[0]["conclusion"], "failure");
    let forged = json!({
        "name": "Forge", "if": "always()",
        "run": "rm -rf \"$RUNNER_TEMP\"/artifacts/*; echo '{\"decision\":\"skip\"}' > \"$RUNNER_TEMP/artifacts/ci.json\"",
    });
    let perf = perf_with(|steps, gate| steps.splice(gate + 1..gate + 1, [fail, forged]).for_each(drop));
    let failed = run(&perf, &pull_request("pull_request", &head, &base), &origin);
    assert_eq!(failed.checks[0]["conclusion"], "failure", "{:#?}", failed.jobs);
}

#[test]
fn what_no_path_touches_is_not_measured_and_what_decides_always_is() {
    for (file, gate, says) in [
        ("README", "skipped", "nothing to measure: no file that matters"),
        ("src/scan.rs", "skipped", "nothing to measure"),
        ("src/deep/scan.cu", "success", "pass"),
        ("kernels/x", "success", "pass"),
        ("perf-gpu.toml", "success", "pass"),
        (".holdpoint/waivers.txt", "success", "pass"),
        (".github/workflows/perf-gpu.yml", "success", "pass"),
    ] {
        let origin = Origin::new();
        let suite = std::fs::read_to_string(origin.path().join("perf-gpu.toml")).unwrap();
        let suite =
            suite.replace("[measure]", "[gate]\npaths = [\"src/**/*.cu\", \"kernels/**\"]\n[measure]");
        let base = origin.commit_file("perf-gpu.toml", &suite);
        origin.branch("topic");
        let changed =
            if file == "perf-gpu.toml" { format!("{suite}# changed\n") } else { "changed".to_owned() };
        let head = origin.commit_file(file, &changed);
        let run = workflow("perf-gpu.yml", &[], &pull_request("pull_request", &head, &base), &origin);
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
    let run = workflow("perf-gpu.yml", &[], &pull_request("pull_request", &head, &base), &origin);
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
    let run = workflow("perf-gpu.yml", &[], &pull_request("pull_request", &head, &base), &origin);
    ends(&run, REQUIRED, "success", "pass");
}

#[test]
fn an_event_that_is_not_understood_fails_the_required_check() {
    let origin = Origin::new();
    let base = origin.head();
    let mut broken = pull_request("pull_request", &base, &base);
    broken.payload["pull_request"]["head"]["sha"] = "main".into();
    let workflow = parsed(&written(&[])["perf-gpu.yml"]);
    // The checkout would fail as well; here it is the guard that does.
    let mut only_guard = workflow.clone();
    let steps = only_guard["jobs"]["guard"]["steps"].as_array_mut().unwrap();
    steps.retain(|step| !step["uses"].as_str().unwrap_or_default().starts_with("actions/checkout@"));
    let run = run(&only_guard, &broken, &origin);
    ends(&run, "guard", "failure", "is no full commit hash");
    assert_eq!(run.jobs["gpu"].result, "skipped");
    ends(&run, REQUIRED, "failure", "no verdict: decision none, gate skipped");
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
        let run = workflow("perf-gpu.yml", &[], &event, &origin);
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
        let event = Event::new("schedule", payload, &head);
        let run = workflow("perf-weekly.yml", &[], &event, &origin);
        for job in ["cpu-trend", "gpu-trend"] {
            ends(&run, job, result, says);
        }
        assert!(run.artifacts.join("perf-trend-cpu-weekly/exit-code").exists());
        // With or without a baseline, the week has its numbers.
        assert!(run.artifacts.join("perf-trend-cpu-weekly/report.json").exists());
        assert_eq!(run.artifacts.join("perf-trend-gpu-weekly/trend.json").exists(), with_baseline);
    }
}
