//! Comments on pull requests of forks: the workflow of `ci init --forks`, and what a stranger could try with it.

use crate::actions::{Event, Run};
use crate::repository::{Origin, event};
use crate::{after, ends, pull_request, workflow};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// The fork of the fixtures.
const FORK: u64 = 912_345_678;

/// A fork's pull request and what its own run has left.
struct Pull {
    origin: Origin,
    base: String,
    head: String,
    gated: Run,
}

impl Pull {
    /// One whose code takes this time.
    fn new(time: &str) -> Self {
        let origin = Origin::new();
        let base = origin.head();
        let head = origin.commit_in_fork(time);
        let gated = workflow("perf.yml", &[], &pull_request("pull_request_fork", &head, &base), &origin);
        Self { origin, base, head, gated }
    }

    fn evidence(&self) -> PathBuf {
        self.gated.artifacts.join("perf-evidence")
    }

    /// The event of its run's end.
    fn ended(&self) -> Value {
        let mut payload = after("perf", "pull_request", &self.head, &self.gated.jobs["gate"].result);
        payload["workflow_run"]["head_branch"] = "wider-loads".into();
        payload["workflow_run"]["head_repository"] = json!({"id": FORK, "owner": {"login": "mallory"}});
        payload["workflow_run"]["actor"] = json!({"login": "mallory"});
        payload
    }

    /// Runs the trusted workflow on an event, with GitHub listing the pull request like this.
    fn reported(&self, payload: Value, pull: Value, evidence: Option<&Path>) -> Run {
        let event = Event {
            evidence: evidence.map(Path::to_owned),
            answers: [pull, Value::Null],
            ..Event::new("workflow_run", payload, &self.base)
        };
        workflow("perf-forks.yml", &[], &event, &self.origin)
    }

    /// The pull request as GitHub has it.
    fn open(&self) -> Value {
        event("api_pull_fork", &self.head, &self.base)
    }

    fn plainly(&self) -> Run {
        self.reported(self.ended(), self.open(), Some(&self.evidence()))
    }
}

/// Neither a comment nor a check.
#[track_caller]
fn is_silent(run: &Run) {
    assert_eq!((run.comments.len(), run.checks.len()), (0, 0), "{:#?}", run.jobs);
}

#[test]
fn a_forks_pull_request_gets_a_comment_that_is_no_proof_and_no_check() {
    for (time, verdict) in [("2000", "pass"), ("9000", "regressed"), ("die", "broken")] {
        let pull = Pull::new(time);
        is_silent(&pull.gated);
        let run = pull.plainly();
        ends(&run, "report", "success", "comment created on pull request 42");
        let comment = &run.comments[0];
        assert!(comment.contains(&format!("### holdpoint: {verdict}")), "{comment}");
        assert!(comment.contains("-->\n> **Not proof**: "), "{comment}");
        assert_eq!(run.checks.len(), 0, "a stranger's evidence sets no check");
        assert!(!run.jobs["report"].log.contains("Check out"), "nothing of the change is there");
    }
}

#[test]
fn only_ended_runs_of_pull_requests_that_cannot_comment_themselves_are_reported() {
    let pull = Pull::new("9000");
    for (place, value) in [
        ("/workflow_run/event", json!("push")),
        ("/workflow_run/conclusion", json!("cancelled")),
        ("/workflow_run/conclusion", json!("action_required")),
        ("/workflow_run/conclusion", Value::Null),
        ("/workflow_run/head_repository", Value::Null),
        ("/workflow_run/head_repository/id", json!(186_853_002)),
    ] {
        let mut payload = pull.ended();
        *payload.pointer_mut(place).unwrap() = value;
        let run = pull.reported(payload, pull.open(), Some(&pull.evidence()));
        assert_eq!(run.jobs["report"].result, "skipped", "{place}");
        is_silent(&run);
    }
    // Dependabot's branch is in the repository itself.
    let (mut payload, mut bump) = (pull.ended(), pull.open());
    payload["workflow_run"]["head_repository"]["id"] = 186_853_002.into();
    payload["workflow_run"]["actor"]["login"] = "dependabot[bot]".into();
    bump["head"]["repo"]["id"] = 186_853_002.into();
    let run = pull.reported(payload, bump, Some(&pull.evidence()));
    ends(&run, "report", "success", "comment created on pull request 42");
}

/// Somebody pushes another's commit to a fork, has it measured by files of their own, and closes their pull request.
#[test]
fn evidence_made_in_one_fork_is_not_put_on_the_pull_request_of_another() {
    let pull = Pull::new("9000");
    for (place, value) in [
        ("/head/repo/id", json!(7)),
        ("/head/repo", Value::Null),
        ("/head/sha", json!("4444444444444444444444444444444444444444")),
        ("/state", json!("closed")),
        ("/base/repo/full_name", json!("mallory/kernels")),
    ] {
        let mut other = pull.open();
        *other.pointer_mut(place).unwrap() = value;
        let run = pull.reported(pull.ended(), other, Some(&pull.evidence()));
        ends(&run, "report", "success", "nothing was posted: no open pull request of this repository is at");
        is_silent(&run);
    }
}

#[test]
fn forged_evidence_becomes_no_pass() {
    let pull = Pull::new("9000");
    let file = |name: &str| pull.evidence().join(name);
    let judged = fs::read_to_string(file("comparison.json")).unwrap();
    let pages = |says: &[&str]| {
        let run = pull.plainly();
        ends(&run, "report", "failure", says[0]);
        let comment = &run.comments[0];
        assert!(!comment.contains("### holdpoint: pass"), "{comment}");
        assert!(says[1..].iter().all(|words| comment.contains(words)), "{comment}");
        assert_eq!(run.checks.len(), 0);
    };
    fs::write(file("comparison.json"), judged.replace("\"regressed\"", "\"pass\"")).unwrap();
    fs::write(file("exit-code"), "0\n").unwrap();
    pages(&["judged again it is regressed", "**problem**"]);
    // Of a commit that is not the one that was asked about.
    fs::write(file("exit-code"), "1\n").unwrap();
    let ab = fs::read_to_string(file("ab.json")).unwrap();
    fs::write(file("comparison.json"), judged.replace(&pull.head, &pull.base)).unwrap();
    fs::write(file("ab.json"), ab.replace(&pull.head, &pull.base)).unwrap();
    pages(&["the evidence is of the commit", "### holdpoint: "]);
    fs::write(file("comparison.json"), "{".repeat(100_000)).unwrap();
    pages(&["comparison.json", "**problem**"]);
}

#[test]
fn a_link_in_the_evidence_is_not_followed_and_none_is_no_pass() {
    let pull = Pull::new("9000");
    let secret = pull.origin.path().join("secret");
    fs::write(&secret, "{\"schema_version\": 1, \"k3y\": 1}").unwrap();
    fs::remove_file(pull.evidence().join("comparison.json")).unwrap();
    std::os::unix::fs::symlink(&secret, pull.evidence().join("comparison.json")).unwrap();
    let run = pull.plainly();
    ends(&run, "report", "failure", "it is not a plain file");
    assert!(!run.comments[0].contains("k3y"), "{}", run.comments[0]);
    let none = pull.reported(pull.ended(), pull.open(), None);
    ends(&none, "report", "success", "comment created");
    assert!(none.comments[0].contains("### holdpoint: inconclusive"), "{}", none.comments[0]);
}

#[test]
fn a_forks_change_of_documents_alone_gets_no_comment() {
    let origin = Origin::new();
    let base = origin.head();
    crate::repository::git(origin.path(), &["switch", "--quiet", "--detach"]);
    let head = origin.commit_file("README.md", "only words");
    let gated = workflow("perf.yml", &[], &pull_request("pull_request_fork", &head, &base), &origin);
    ends(&gated, "gate", "success", "nothing to measure");
    let pull = Pull { origin, base, head, gated };
    let run = pull.plainly();
    ends(&run, "report", "success", "nothing was measured, so there is nothing to tell");
    is_silent(&run);
}
