//! Reports of a gate: `/perf SHA`, the check and the comment.

use crate::actions::{Event, Run, run};
use crate::repository::{Origin, event};
use crate::{ends, perf_with, pull_request, workflow};
use serde_json::{Value, json};

/// A comment on a fork's pull request.
fn commented(time: &str, change: impl FnOnce(&mut Value)) -> (Run, String) {
    let origin = Origin::new();
    let base = origin.head();
    let head = origin.commit_in_fork(time);
    let mut payload = event("issue_comment", &head, &base);
    change(&mut payload);
    let answers = [event("api_pull_fork", &head, &base), event("api_permission", &head, &base)];
    let event = Event { answers, ..Event::new("issue_comment", payload, &base) };
    (workflow("perf-gpu.yml", &[], &event, &origin), head)
}

const DECIDES: &str = "gpu-perf-regression";

#[test]
fn a_maintainers_perf_measures_a_fork_and_sets_the_check() {
    for (time, conclusion, what) in [
        ("2000", "success", "pass"),
        ("9000", "failure", "regressed"),
        ("die", "failure", "broken"),
        ("skip", "failure", "skipped"),
    ] {
        let (run, head) = commented(time, |_| {});
        ends(&run, DECIDES, conclusion, "comment created on pull request 42");
        let comment = &run.comments[0];
        assert!(
            comment.starts_with("<!-- holdpoint") && comment.contains(&format!("holdpoint: {what}")),
            "{comment}"
        );
        assert!(comment.contains("**Not proof**"), "{comment}");
        let check = &run.checks[0];
        assert_eq!(
            [&check["name"], &check["head_sha"], &check["conclusion"]],
            ["holdpoint/gpu", &head, conclusion]
        );
        assert!(check["output"]["title"].as_str().unwrap().contains(what), "{check}");
    }
}

#[test]
fn a_comment_that_may_not_is_told_nothing_and_sets_nothing() {
    let (run, _) = commented("2000", |event| event["comment"]["user"]["type"] = "Bot".into());
    ends(&run, "guard", "success", "refuse: mona is a bot");
    // What a comment's author is called does not count; what the author may do does, and who that is not known of may nothing.
    let (hidden, _) =
        commented("2000", |event| event["comment"]["author_association"] = "CONTRIBUTOR".into());
    ends(&hidden, DECIDES, "success", "comment created");
    let (past, _) = commented("2000", |event| {
        event["comment"]["user"]["login"] = "ghost".into();
        event["sender"]["login"] = "ghost".into();
    });
    ends(&past, "guard", "failure", "refused: GitHub does not say that ghost may write to this repository");
    // Nothing is checked out or built before that is known.
    assert!(!past.jobs["guard"].log.contains("Install holdpoint"), "{}", past.jobs["guard"].log);
    assert!(run.jobs["guard"].log.contains("Install holdpoint"), "{}", run.jobs["guard"].log);
    let (chat, _) = commented("2000", |event| event["comment"]["body"] = "/performance is great".into());
    assert_eq!(chat.jobs["guard"].result, "skipped");
    let (issue, _) = commented("2000", |event| event["issue"]["pull_request"] = Value::Null);
    assert_eq!(issue.jobs["guard"].result, "skipped");
    for run in [run, past, chat, issue] {
        assert_eq!([&run.jobs["gpu"].result, &run.jobs[DECIDES].result], ["skipped", "skipped"]);
        assert_eq!((run.checks.len(), run.comments.len()), (0, 0));
    }
}

/// A fork's run of the GPU workflow reports nothing: what "/perf SHA" has found of the commit stands.
#[test]
fn a_forks_own_run_sets_no_check_and_writes_no_comment() {
    let origin = Origin::new();
    let base = origin.head();
    let head = origin.commit_in_fork("1000");
    for change in
        [|_: &mut Value| {}, |payload: &mut Value| payload["pull_request"]["head"]["repo"] = Value::Null]
    {
        let mut fork = pull_request("pull_request_fork", &head, &base);
        change(&mut fork.payload);
        let run = workflow("perf-gpu.yml", &[], &fork, &origin);
        ends(&run, DECIDES, "failure", "refused: ");
        assert_eq!((run.checks.len(), run.comments.len()), (0, 0), "{:?}", run.checks);
    }
}

#[test]
fn a_gate_that_died_is_reported_and_one_that_had_nothing_to_do_is_not() {
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("topic");
    let head = origin.commit("2000");
    // The machine is gone before anything was kept.
    let perf = perf_with(|steps, gate| {
        steps[gate]["run"] = "exit 1".into();
        steps.retain(|step| step["name"] != "Keep the evidence");
    });
    let died = run(&perf, &pull_request("pull_request", &head, &base), &origin);
    ends(&died, "report", "success", "no verdict");
    assert_eq!((died.comments.len(), &died.checks[0]["conclusion"]), (1, &"failure".into()));
    assert!(died.comments[0].contains("holdpoint: inconclusive"), "{}", died.comments[0]);
}

#[test]
fn what_a_pull_request_left_becomes_one_comment_at_its_head() {
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("wider-loads");
    let head = origin.commit("9000");
    let event = pull_request("pull_request", &head, &base);
    let gated = workflow("perf-gpu.yml", &[], &event, &origin);
    ends(&gated, DECIDES, "failure", "created");
    assert!(gated.comments[0].contains("holdpoint: regressed"), "{}", gated.comments[0]);
    assert_eq!(gated.checks[0]["conclusion"], "failure");
    // What was there before this run began is somebody else's evidence by now.
    let mut moved = pull_request("pull_request", &head, &base);
    moved.answers[0]["head"]["sha"] = "4444444444444444444444444444444444444444".into();
    let late = workflow("perf-gpu.yml", &[], &moved, &origin);
    ends(&late, DECIDES, "failure", "nothing was posted: pull request 42 has moved on");
    assert_eq!(late.comments.len(), 0);
}

#[test]
fn evidence_that_was_typed_into_sets_no_check_that_passes() {
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("topic");
    let head = origin.commit("9000");
    let edit = "sed -i 's/\"regressed\"/\"pass\"/g' \"$RUNNER_TEMP/artifacts/comparison.json\"; echo 0 > \"$RUNNER_TEMP/artifacts/exit-code\"";
    // The gate's own result is lost, as measured code could bring about on a machine that is its own.
    let perf = perf_with(|steps, gate| {
        steps[gate]["continue-on-error"] = true.into();
        steps.insert(gate + 1, json!({"name": "Forge", "run": edit}));
    });
    let forged = run(&perf, &pull_request("pull_request", &head, &base), &origin);
    assert_eq!(forged.jobs["gate"].result, "success");
    ends(&forged, "report", "failure", "judged again it is regressed");
    assert_eq!(forged.checks[0]["conclusion"], "failure");
    assert!(forged.comments[0].contains("**problem**"), "{}", forged.comments[0]);
}
