//! What is told: `/perf SHA`, the status after a pull request, the comment.

use crate::actions::{Event, Run};
use crate::repository::{Origin, event};
use crate::{ends, pull_request, workflow};
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
    (workflow("perf_command.yml", &[], &event, &origin), head)
}

#[test]
fn a_maintainers_perf_measures_a_fork_and_sets_the_status() {
    for (time, state, what) in [
        ("2000", "success", "not slower"),
        ("9000", "failure", "regressed"),
        ("die", "failure", "broken"),
        ("skip", "failure", "skipped"),
    ] {
        let (run, head) = commented(time, |_| {});
        ends(&run, "report", "success", "Comment on the pull request");
        let words = if state == "success" { "pass" } else { what };
        let comment = &run.comments[0];
        assert!(
            comment.starts_with("<!-- holdpoint") && comment.contains(&format!("holdpoint: {words}")),
            "{comment}"
        );
        let said = format!(
            "repos/octo-org/kernels/statuses/{head} --raw-field state={state} --raw-field context=holdpoint/gpu"
        );
        assert!(run.said.contains(&said) && run.said.contains(what), "{}: {:#?}", run.said, run.jobs);
    }
}

#[test]
fn a_comment_that_may_not_is_told_nothing_and_sets_nothing() {
    let (run, _) = commented("2000", |event| event["comment"]["user"]["type"] = "Bot".into());
    ends(&run, "guard", "success", "refuse: mona is a bot");
    // What a comment's author is called does not count; what the author may do does, and who that is not known of may nothing.
    let (hidden, _) =
        commented("2000", |event| event["comment"]["author_association"] = "CONTRIBUTOR".into());
    ends(&hidden, "report", "success", "Comment on the pull request");
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
        assert_eq!([&run.jobs["gpu"].result, &run.jobs["report"].result], ["skipped", "skipped"]);
        assert_eq!(run.said, "");
    }
}

#[test]
fn the_status_after_a_pull_request_believes_no_fork() {
    let origin = Origin::new();
    let head = origin.head();
    for (repository, conclusion, state) in [
        (json!({"id": 186_853_002}), "success", "success"),
        (json!({"id": 186_853_002}), "failure", "failure"),
        (json!({"id": 186_853_002}), "cancelled", "failure"),
        (json!({"id": 912_345_678}), "success", "pending"),
        (Value::Null, "success", "pending"),
    ] {
        let payload = json!({
            "action": "completed",
            "repository": {"id": 186_853_002},
            "workflow_run": {
                "id": 30_433_642, "name": "GPU Perf Regression", "event": "pull_request", "head_sha": head,
                "conclusion": conclusion, "head_repository": repository, "head_branch": "topic",
            },
        });
        let event = Event::new("workflow_run", payload, &head);
        let run = workflow("perf_report.yml", &[], &event, &origin);
        ends(&run, "status", "success", "");
        // A fork's evidence under the name of the GPU's gate is not told of.
        assert_eq!(run.jobs["comment"].result == "skipped", state == "pending", "{:#?}", run.jobs);
        assert!(run.said.contains(&format!("statuses/{head} --raw-field state={state} ")), "{}", run.said);
        // What "/perf SHA" has found stays.
        let found = workflow("perf_report.yml", &[], &Event { status: Some("failure"), ..event }, &origin);
        ends(&found, "status", "success", "");
        assert_eq!(found.said.is_empty(), state == "pending", "{}", found.said);
    }
}

/// A run of the GPU's gate on a pull request of this repository has ended.
fn ended(head: &str, conclusion: &str) -> Value {
    json!({
        "action": "completed",
        "repository": {"id": 186_853_002},
        "workflow_run": {
            "id": 30_433_642, "name": "GPU Perf Regression", "event": "pull_request", "head_sha": head,
            "head_branch": "wider-loads", "conclusion": conclusion,
            "head_repository": {"id": 186_853_002, "owner": {"login": "octo-org"}},
        },
    })
}

#[test]
fn a_run_that_died_is_told_of_and_one_that_had_nothing_to_do_is_not() {
    let origin = Origin::new();
    let head = origin.head();
    for (conclusion, says, told) in [
        ("failure", "no verdict: the run ended with failure and left nothing", 1),
        ("cancelled", "no verdict: the run ended with cancelled", 1),
        ("success", "nothing was to be measured", 0),
        ("action_required", "waits for somebody to approve it", 0),
    ] {
        let answers = [event("api_pull_fork", &head, &head), Value::Null];
        let event = Event { answers, ..Event::new("workflow_run", ended(&head, conclusion), &head) };
        let run = workflow("perf_report.yml", &[], &event, &origin);
        assert!(run.jobs["comment"].log.contains(says), "{:#?}", run.jobs);
        assert_eq!(run.comments.len(), told, "{:#?}", run.jobs);
    }
}

#[test]
fn what_a_pull_request_left_becomes_one_comment() {
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("wider-loads");
    let head = origin.commit("9000");
    let measured = workflow("perf_gpu.yml", &[], &pull_request("pull_request", &head, &base), &origin);
    let answers = [event("api_pull_fork", &head, &base), Value::Null];
    let evidence = Some(measured.artifacts.join("perf-gpu-regression-artifacts"));
    let event = Event { answers, evidence, ..Event::new("workflow_run", ended(&head, "failure"), &base) };
    let run = workflow("perf_report.yml", &[], &event, &origin);
    ends(&run, "comment", "success", "created");
    assert!(run.comments[0].contains("holdpoint: regressed"), "{}", run.comments[0]);
    // What was there before this run began is somebody else's evidence by now.
    let moved = event_at(&event, "4444444444444444444444444444444444444444");
    let late = workflow("perf_report.yml", &[], &moved, &origin);
    assert_eq!(
        (late.jobs["comment"].result.as_str(), late.comments.len()),
        ("success", 0),
        "{:#?}",
        late.jobs
    );
}

/// The same event, when the pull request is at another commit by now.
fn event_at<'a>(event: &Event<'a>, sha: &str) -> Event<'a> {
    let mut answers = event.answers.clone();
    answers[0]["head"]["sha"] = sha.into();
    let (payload, evidence) = (event.payload.clone(), event.evidence.clone());
    Event { answers, evidence, ..Event::new(event.name, payload, event.sha) }
}
