//! What a runner's event file says.

use holdpoint_ci::github::{Event, EventError};
use serde_json::json;

const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

fn parse(event: &str, payload: &serde_json::Value) -> Result<Event, EventError> {
    Event::parse(event, &payload.to_string())
}

#[test]
fn pull_requests_comments_and_runs_are_read() {
    let pull = json!({"action": "synchronize", "number": 7, "pull_request": {"number": 7, "head": {"sha": SHA, "ref": "x"}}});
    let read = parse("pull_request", &pull);
    assert_eq!(read, Ok(Event::PullRequest { number: 7, head_sha: SHA.to_owned() }));
    let comment = json!({"action": "created", "issue": {"number": 7, "pull_request": {"url": "x"}}, "comment": {"body": "/perf"}});
    assert_eq!(parse("issue_comment", &comment), Ok(Event::Comment { number: 7 }));
    let run = json!({"action": "completed", "workflow_run": {
        "head_sha": SHA, "head_branch": "x", "pull_requests": [], "event": "pull_request",
        "head_repository": {"id": 9, "full_name": "mallory/r", "owner": {"login": "mallory"}}}});
    let wanted = Event::WorkflowRun {
        head_sha: SHA.to_owned(),
        head_branch: "x".to_owned(),
        head_owner: "mallory".to_owned(),
        head_repository_id: 9,
    };
    assert_eq!(parse("workflow_run", &run), Ok(wanted));
}

#[test]
fn an_event_without_a_pull_request_says_so() {
    for event in ["push", "schedule", "workflow_dispatch", ""] {
        assert_eq!(parse(event, &json!({})), Err(EventError::None(event.to_owned())));
    }
    let target = parse("pull_request_target", &json!({})).unwrap_err().to_string();
    assert!(target.contains("is not supported: its jobs hold the repository's secrets"), "{target}");
    let issue = json!({"issue": {"number": 7}});
    assert!(matches!(parse("issue_comment", &issue), Err(EventError::None(_))));
}

#[test]
fn a_payload_that_is_none_is_refused_with_its_place() {
    for (event, payload, words) in [
        ("pull_request", json!({}), "/pull_request/number"),
        ("pull_request", json!({"pull_request": {"number": -1}}), "/pull_request/number"),
        (
            "pull_request",
            json!({"pull_request": {"number": 7, "head": {"sha": "../x"}}}),
            "/pull_request/head/sha",
        ),
        ("workflow_run", json!({"workflow_run": {"head_sha": SHA}}), "/workflow_run/head_branch"),
        ("workflow_run", json!([]), "/workflow_run/head_sha"),
        // A fork that is gone.
        (
            "workflow_run",
            json!({"workflow_run": {"head_sha": SHA, "head_branch": "x", "head_repository": null}}),
            "/workflow_run/head_repository",
        ),
    ] {
        let error = parse(event, &payload).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert!(Event::parse("pull_request", "not json").is_err());
}
