//! Pull requests that are closed, a robot's, or go to a branch besides the default one; pushes whose past is gone.

#![allow(clippy::unwrap_used)]

use holdpoint_ci::guard::{Decision, GitHub, Ruling, Settings, github};
use serde_json::{Value, json};

const HEAD: &str = "6113728f27ae82c7b1a177c8d03f9e96e0adf246";
const BASE: &str = "ec26c3e57ca3a959ca5aad62de7213c562f8c821";

fn event(name: &str) -> Value {
    let path = format!("{}/tests/events/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn decide(name: &str, payload: &Value, settings: &Settings) -> Ruling {
    let payload = payload.to_string();
    github(&GitHub { event_name: name, payload: &payload, sha: HEAD, ..GitHub::default() }, settings).unwrap()
}

#[track_caller]
fn is(guarded: &Ruling, decision: Decision, why: &str) {
    assert!(guarded.decision == decision && guarded.reason.contains(why), "{guarded}");
    assert_eq!(
        guarded.head_sha.is_some(),
        decision == Decision::Run,
        "checked out only when it runs: {guarded}"
    );
}

fn hosted() -> Settings {
    Settings { hosted: true, ..Settings::default() }
}

/// A run that began while it was closed can be started anew when it is open again.
#[test]
fn a_closed_pull_request_turns_no_red_check_green() {
    let labelled = Settings { label: Some("benchmark".to_owned()), ..Settings::default() };
    for action in ["edited", "synchronize", "unlabeled"] {
        let mut closed = event("pull_request");
        closed["action"] = action.into();
        closed["pull_request"]["state"] = "closed".into();
        for settings in [&Settings::default(), &hosted(), &labelled] {
            let decided = decide("pull_request", &closed, settings);
            is(&decided, Decision::Refuse, "pull request 42 is closed");
            // Nor by a filter of paths.
            is(&decided.without_changes(), Decision::Refuse, "closed");
        }
    }
    let mut fork = event("pull_request_fork");
    fork["pull_request"]["state"] = "closed".into();
    is(&decide("pull_request", &fork, &Settings::default()), Decision::Refuse, "the fork mallory/kernels");
    is(&decide("pull_request", &fork, &hosted()), Decision::Refuse, "closed");
}

#[test]
fn a_robots_pull_request_waits_for_a_person_who_has_read_it() {
    let mut robot = event("pull_request");
    robot["pull_request"]["user"] = json!({"login": "dependabot[bot]", "type": "Bot"});
    let decided = decide("pull_request", &robot, &Settings::default());
    let remedy =
        format!("by dependabot?bot?, no person; a maintainer who has read it may comment /perf {HEAD}");
    is(&decided, Decision::Refuse, &remedy);
    // What touches nothing that is measured need not be read for that.
    is(&decided.without_changes(), Decision::Skip, "no file that matters");
    let labelled = Settings { label: Some("benchmark".to_owned()), ..Settings::default() };
    is(&decide("pull_request", &robot, &labelled), Decision::Skip, "no label");
    // A machine that is thrown away takes everybody.
    is(&decide("pull_request", &robot, &hosted()), Decision::Run, "GitHub's");
    robot["pull_request"]["user"] = Value::Null;
    is(&decide("pull_request", &robot, &Settings::default()), Decision::Refuse, "by nobody");
    // The repository's own workflows, such as the one that proposes a baseline; nothing runs before a person reopens it.
    robot["pull_request"]["user"] = json!({"login": "github-actions[bot]", "type": "Bot"});
    is(&decide("pull_request", &robot, &Settings::default()), Decision::Run, "branch of this repository");
}

#[test]
fn branches_that_are_named_are_judged_like_the_default_one() {
    let released =
        Settings { branches: vec!["main".to_owned(), "release/1.x".to_owned()], ..Settings::default() };
    let mut pull = event("pull_request");
    pull["pull_request"]["base"]["ref"] = "release/1.x".into();
    is(&decide("pull_request", &pull, &released), Decision::Run, "pull request 42 to release/1.x");
    is(
        &decide("pull_request", &pull, &Settings::default()),
        Decision::Refuse,
        "only what goes to main is judged",
    );
    pull["pull_request"]["base"]["ref"] = "release/1".into();
    let why = "goes to release/1; only what goes to main or release/1.x is judged";
    is(&decide("pull_request", &pull, &released), Decision::Refuse, why);
    let mut push = event("push");
    push["ref"] = "refs/heads/release/1.x".into();
    is(&decide("push", &push, &released), Decision::Run, "a push to release/1.x");
    is(&decide("push", &push, &Settings::default()), Decision::Skip, "no branch that is judged");
    push["ref"] = "refs/tags/release/1.x".into();
    is(&decide("push", &push, &released), Decision::Skip, "no branch that is judged");
    let queue = json!({
        "merge_group": {"head_sha": HEAD, "base_sha": BASE, "base_ref": "refs/heads/release/1.x"},
        "repository": event("push")["repository"],
    });
    is(&decide("merge_group", &queue, &released), Decision::Run, "merge queue of release/1.x");
    is(&decide("merge_group", &queue, &Settings::default()), Decision::Refuse, "no branch that is judged");
}

#[test]
fn only_a_push_is_held_against_its_parent() {
    let push = decide("push", &event("push"), &hosted()).since_parent(Some(HEAD));
    is(
        &push,
        Decision::Run,
        &format!("what was there before is gone, so it is compared with its parent {HEAD}"),
    );
    assert_eq!(push.base_sha.unwrap().as_str(), HEAD);
    let pull = decide("pull_request", &event("pull_request"), &hosted());
    assert_eq!(pull.clone().since_parent(Some(HEAD)), pull);
    let first = decide("push", &event("push"), &hosted()).since_parent(None);
    is(&first, Decision::Run, "it has no parent");
    assert_eq!(first.base_sha, first.head_sha);
}
