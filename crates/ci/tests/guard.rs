//! Events as GitHub and GitLab send them, and as somebody hostile would have them: who may touch the GPU, and why not.

#![allow(clippy::unwrap_used)]

#[path = "guard/gitlab.rs"]
mod pipelines;

use holdpoint_ci::guard::{
    Decision, EventError, Filter, GitHub, GitLab, Mode, Ruling, Settings, github, gitlab,
};
use holdpoint_model::pattern::find_glob_problem;
use pipelines::merge_request;
use serde_json::{Value, json};

const HEAD: &str = "6113728f27ae82c7b1a177c8d03f9e96e0adf246";
const BASE: &str = "ec26c3e57ca3a959ca5aad62de7213c562f8c821";
const AFTER: &str = "9f2c1d7e5b8a4036c2f1e0d9b8a7c6d5e4f3a2b1";
const NULL: &str = "0000000000000000000000000000000000000000";

fn event(name: &str) -> Value {
    let path = format!("{}/tests/events/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn changed(name: &str, pointer: &str, value: Value) -> Value {
    let mut event = event(name);
    *event.pointer_mut(pointer).unwrap() = value;
    event
}

fn without(name: &str, parent: &str, key: &str) -> Value {
    let mut event = event(name);
    event.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key).unwrap();
    event
}

fn decide(name: &str, payload: &Value, settings: &Settings) -> Result<Ruling, EventError> {
    let payload = payload.to_string();
    github(&GitHub { event_name: name, payload: &payload, sha: AFTER, ..GitHub::default() }, settings)
}

fn plainly(name: &str, payload: &Value) -> Ruling {
    decide(name, payload, &Settings::default()).unwrap()
}

/// A comment, with what the API says of its pull request and its author.
fn comment(payload: &Value, pull: &Value, permission: &Value) -> Result<Ruling, EventError> {
    let texts = [payload.to_string(), pull.to_string(), permission.to_string()];
    let [payload, pull, permission] = &texts;
    let given = GitHub {
        event_name: "issue_comment",
        payload,
        sha: AFTER,
        pull_request: Some(pull),
        permission: Some(permission),
    };
    github(&given, &Settings::default())
}

fn perf(payload: &Value) -> Ruling {
    comment(payload, &event("api_pull_fork"), &event("api_permission")).unwrap()
}

#[track_caller]
fn runs(guarded: &Ruling, mode: Mode, head: &str, base: &str) {
    let shas = |g: &Ruling| [&g.head_sha, &g.base_sha].map(|sha| sha.as_ref().map(ToString::to_string));
    assert_eq!((guarded.decision, guarded.mode), (Decision::Run, mode), "{guarded}");
    assert_eq!(shas(guarded), [Some(head.to_owned()), Some(base.to_owned())]);
    assert!(guarded.is_allowed() && guarded.outputs().starts_with("allowed=true\ndecision=run\n"));
}

#[track_caller]
fn not(guarded: &Ruling, decision: Decision, why: &str) {
    assert_eq!(guarded.decision, decision, "{guarded}");
    assert!(guarded.reason.contains(why), "{guarded}");
    assert!(!guarded.is_allowed() && guarded.outputs().starts_with("allowed=false\n"));
    assert_eq!((&guarded.head_sha, &guarded.base_sha), (&None, &None), "nothing to check out");
}

#[test]
fn a_push_to_the_default_branch_is_measured_with_the_baselines_from_before_it() {
    runs(&plainly("push", &event("push")), Mode::Baseline, AFTER, BASE);
    runs(&plainly("push", &changed("push", "/before", NULL.into())), Mode::Baseline, AFTER, AFTER);
    not(
        &plainly("push", &changed("push", "/ref", "refs/heads/topic".into())),
        Decision::Skip,
        "no branch that is judged",
    );
    not(
        &plainly("push", &changed("push", "/ref", "refs/tags/main".into())),
        Decision::Skip,
        "no branch that is judged",
    );
    let mut deleted = changed("push", "/deleted", true.into());
    deleted["after"] = NULL.into();
    not(&plainly("push", &deleted), Decision::Skip, "deleted");
}

#[test]
fn a_pull_request_from_a_branch_of_the_repository_runs() {
    let guarded = plainly("pull_request", &event("pull_request"));
    runs(&guarded, Mode::Against, HEAD, BASE);
    not(&guarded.without_changes(), Decision::Skip, "no file that matters");
}

#[test]
fn only_what_goes_to_the_default_branch_is_judged() {
    let hosted = Settings { hosted: true, ..Settings::default() };
    for name in ["pull_request", "pull_request_fork"] {
        let old = changed(name, "/pull_request/base/ref", "old-and-slow".into());
        for settings in [&hosted, &Settings::default()] {
            let decided = decide("pull_request", &old, settings).unwrap();
            not(&decided, Decision::Refuse, "goes to old-and-slow; only what goes to main is judged");
            // Nor does a filter of paths make it green.
            not(&decided.without_changes(), Decision::Refuse, "old-and-slow");
        }
    }
    let old = changed("api_pull_fork", "/base/ref", "old-and-slow".into());
    let asked = comment(&event("issue_comment"), &old, &event("api_permission")).unwrap();
    not(&asked, Decision::Refuse, "goes to old-and-slow");
    let reason = plainly("pull_request", &event("pull_request")).reason;
    assert!(reason.contains("pull request 42 to main"), "{reason}");
    let elsewhere = GitLab { merge_request_target_branch: "old".to_owned(), ..merge_request() };
    not(&gitlab(&elsewhere, &hosted).unwrap(), Decision::Refuse, "goes to old");
}

#[test]
fn a_merge_queue_is_compared_with_what_it_puts_the_change_on() {
    let queue = json!({
        "action": "checks_requested",
        "merge_group": {
            "head_sha": HEAD, "head_ref": "refs/heads/gh-readonly-queue/main/pr-42", "base_sha": BASE,
            "base_ref": "refs/heads/main",
        },
        "repository": event("push")["repository"],
    });
    let guarded = plainly("merge_group", &queue);
    runs(&guarded, Mode::Against, HEAD, BASE);
    assert_eq!(guarded.filter, Some(Filter::SinceBase));
    let mut other = queue.clone();
    other["merge_group"]["base_ref"] = "refs/heads/old".into();
    not(&plainly("merge_group", &other), Decision::Refuse, "no branch that is judged");
    other["merge_group"]["base_ref"] = 7.into();
    assert!(decide("merge_group", &other, &Settings::default()).is_err());
}

#[test]
fn paths_that_no_file_has_are_known() {
    for path in
        ["./src/**", "src//**", "src/", "../x", "a/../b", "a/./b", "/src", ".", "!src/**", ":(attr:x)", "-x"]
    {
        assert!(find_glob_problem(path).is_some(), "{path}");
    }
    for path in ["src/**", "**/*.cu", "..a/.b", "*"] {
        assert_eq!(find_glob_problem(path), None, "{path}");
    }
}

#[test]
fn a_fork_is_refused_whatever_it_says_of_itself() {
    let event_name = "pull_request";
    not(&plainly(event_name, &event("pull_request_fork")), Decision::Refuse, "fork mallory/kernels");
    // Same name, another repository: only the number counts.
    let named = changed("pull_request_fork", "/pull_request/head/repo/full_name", "octo-org/kernels".into());
    not(&plainly(event_name, &named), Decision::Refuse, "fork");
    let claimed = changed("pull_request_fork", "/pull_request/author_association", "OWNER".into());
    not(&plainly(event_name, &claimed), Decision::Refuse, "fork");
    let elsewhere = changed("pull_request", "/repository/id", 7.into());
    not(&plainly(event_name, &elsewhere), Decision::Refuse, "fork");
    let refused = plainly(event_name, &event("pull_request_fork")).without_changes();
    not(&refused, Decision::Refuse, "fork");
}

#[test]
fn a_fork_that_was_deleted_is_refused() {
    let gone = changed("pull_request_fork", "/pull_request/head/repo", Value::Null);
    not(&plainly("pull_request", &gone), Decision::Refuse, "is gone");
    let missing = without("pull_request_fork", "/pull_request/head", "repo");
    not(&plainly("pull_request", &missing), Decision::Refuse, "is gone");
}

#[test]
fn a_label_decides_by_being_there_and_never_for_a_fork() {
    let benchmark = Settings { label: Some("benchmark".to_owned()), ..Settings::default() };
    runs(
        &decide("pull_request", &event("pull_request_labeled"), &benchmark).unwrap(),
        Mode::Against,
        HEAD,
        BASE,
    );
    // Another label has been added now; the one that counts is still there, and a failed check stays a failed check.
    let other = changed("pull_request_labeled", "/label/name", "documentation".into());
    runs(&decide("pull_request", &other, &benchmark).unwrap(), Mode::Against, HEAD, BASE);
    let capital = changed("pull_request_labeled", "/pull_request/labels", json!([{"name": "Benchmark"}]));
    runs(&decide("pull_request", &capital, &benchmark).unwrap(), Mode::Against, HEAD, BASE);
    // Only said to be added.
    let claimed = changed("pull_request_labeled", "/pull_request/labels", json!([{"name": "benchmark\n"}]));
    not(&decide("pull_request", &claimed, &benchmark).unwrap(), Decision::Skip, "no label benchmark");
    // A label from an outsider, on an outsider's change.
    let mut outsider = event("pull_request_fork");
    outsider["action"] = "labeled".into();
    outsider["label"] = json!({"name": "benchmark"});
    outsider["pull_request"]["labels"] = json!([{"name": "benchmark"}]);
    not(&decide("pull_request", &outsider, &benchmark).unwrap(), Decision::Refuse, "fork");
}

#[test]
fn a_dispatch_runs_only_when_it_asks_for_the_gpu() {
    let name = "workflow_dispatch";
    runs(&plainly(name, &event(name)), Mode::Baseline, AFTER, AFTER);
    not(&plainly(name, &changed(name, "/inputs/run_mode", "skip".into())), Decision::Skip, "run_mode");
    not(&plainly(name, &changed(name, "/inputs", Value::Null)), Decision::Skip, "run_mode");
    not(&plainly(name, &changed(name, "/inputs", json!({"run_gpu": "false"}))), Decision::Skip, "GPU");
    runs(&plainly(name, &changed(name, "/inputs", json!({"run_gpu": "true"}))), Mode::Baseline, AFTER, AFTER);
    runs(&plainly(name, &changed(name, "/inputs/sha", HEAD.into())), Mode::Against, HEAD, AFTER);
    for sha in ["main", &HEAD[..39], "6113728F27AE82C7B1A177C8D03F9E96E0ADF246", "--upload-pack=x"] {
        not(&plainly(name, &changed(name, "/inputs/sha", sha.into())), Decision::Refuse, "full commit hash");
    }
}

#[test]
fn a_forges_own_runner_takes_everybody_and_compares_side_by_side() {
    let hosted = Settings { hosted: true, label: Some("benchmark".to_owned()), ..Settings::default() };
    let decide = |name: &str, event: &Value| decide(name, event, &hosted).unwrap();
    runs(&decide("push", &event("push")), Mode::Against, AFTER, BASE);
    runs(&decide("pull_request", &event("pull_request_fork")), Mode::Against, HEAD, BASE);
    let gone = changed("pull_request_fork", "/pull_request/head/repo", Value::Null);
    runs(&decide("pull_request", &gone), Mode::Against, HEAD, BASE);
    let closed = changed("pull_request_fork", "/pull_request/state", "closed".into());
    not(&decide("pull_request", &closed), Decision::Refuse, "closed");
    runs(&decide("schedule", &event("schedule")), Mode::Baseline, AFTER, AFTER);
    let plain = changed("workflow_dispatch", "/inputs", Value::Null);
    runs(&decide("workflow_dispatch", &plain), Mode::Baseline, AFTER, AFTER);
    not(&decide("workflow_run", &event("push")), Decision::Refuse, "not trusted");
    let fork = GitLab { merge_request_source_project_id: "99".to_owned(), ..merge_request() };
    runs(&gitlab(&fork, &hosted).unwrap(), Mode::Against, HEAD, BASE);
}

#[test]
fn a_schedule_runs_only_where_the_variable_says_so() {
    not(&plainly("schedule", &event("schedule")), Decision::Skip, "not enabled");
    let enabled = Settings { scheduled: true, ..Settings::default() };
    runs(&decide("schedule", &event("schedule"), &enabled).unwrap(), Mode::Baseline, AFTER, AFTER);
}

#[test]
fn a_maintainers_perf_of_the_present_head_runs_a_fork() {
    runs(&perf(&event("issue_comment")), Mode::Against, HEAD, BASE);
    // A member who hides the membership is told as something else: what the author may do is what counts.
    for association in ["OWNER", "COLLABORATOR", "CONTRIBUTOR", "NONE"] {
        let by = changed("issue_comment", "/comment/author_association", association.into());
        runs(&perf(&by), Mode::Against, HEAD, BASE);
    }
    let more = format!("/perf {HEAD}\r\n\r\nLooks fine to me.");
    runs(&perf(&changed("issue_comment", "/comment/body", more.into())), Mode::Against, HEAD, BASE);
}

#[test]
fn a_comment_of_anybody_else_is_refused() {
    let bot = changed("issue_comment", "/comment/user/type", "Bot".into());
    not(&perf(&bot), Decision::Refuse, "is a bot");
    let sent = changed("issue_comment", "/sender/login", "mallory".into());
    not(&perf(&sent), Decision::Refuse, "mallory is a bot, or not");
    let (payload, pull) = (event("issue_comment"), event("api_pull_fork"));
    for permission in ["read", "none", ""] {
        let permission = changed("api_permission", "/permission", permission.into());
        // Whatever else is said of the author.
        assert_eq!(payload["comment"]["author_association"], "MEMBER");
        not(&comment(&payload, &pull, &permission).unwrap(), Decision::Refuse, "may not write");
    }
    let of_another = changed("api_permission", "/user/login", "hubot".into());
    not(&comment(&payload, &pull, &of_another).unwrap(), Decision::Refuse, "may not write");
}

#[test]
fn a_comment_that_is_not_a_new_command_is_refused() {
    let edited = changed("issue_comment", "/action", "edited".into());
    not(&perf(&edited), Decision::Refuse, "only new comments count");
    let on_issue = without("issue_comment", "/issue", "pull_request");
    not(&perf(&on_issue), Decision::Refuse, "no pull request");
    for body in [
        "/perf".to_owned(),
        format!("/perf {}", &HEAD[..12]),
        format!("/perf {HEAD} --force"),
        format!("please /perf {HEAD}"),
        format!("\n/perf {HEAD}"),
        format!("> /perf {HEAD}"),
        format!("/perf{HEAD}"),
        format!("/perf {}", HEAD.to_uppercase()),
        String::new(),
    ] {
        not(
            &perf(&changed("issue_comment", "/comment/body", body.into())),
            Decision::Refuse,
            "/perf and a full",
        );
    }
}

#[test]
fn a_head_that_has_moved_since_is_refused() {
    let other = format!("/perf {BASE}");
    not(
        &perf(&changed("issue_comment", "/comment/body", other.into())),
        Decision::Refuse,
        "the head is 6113728f",
    );
    let pushed = changed("api_pull_fork", "/head/sha", AFTER.into());
    let guarded = comment(&event("issue_comment"), &pushed, &event("api_permission")).unwrap();
    not(&guarded, Decision::Refuse, &format!("the head is {AFTER} now, not {HEAD}"));
}

#[test]
fn a_comment_on_a_closed_pull_request_is_refused() {
    let closed = changed("api_pull_fork", "/state", "closed".into());
    let guarded = comment(&event("issue_comment"), &closed, &event("api_permission")).unwrap();
    not(&guarded, Decision::Refuse, "closed");
    not(&perf(&changed("issue_comment", "/issue/state", "closed".into())), Decision::Refuse, "closed");
}

#[test]
fn a_comment_needs_the_pull_request_it_is_on_and_what_its_author_may_do() {
    let alone = decide("issue_comment", &event("issue_comment"), &Settings::default()).unwrap_err();
    assert!(alone.to_string().contains("--permission"), "{alone}");
    let (payload, permission) = (event("issue_comment").to_string(), event("api_permission").to_string());
    let given = GitHub { event_name: "issue_comment", payload: &payload, sha: AFTER, ..GitHub::default() };
    let given = GitHub { permission: Some(&permission), ..given };
    let alone = github(&given, &Settings::default()).unwrap_err();
    assert!(alone.to_string().contains("--pull-request"), "{alone}");
    for (pointer, value) in [("/number", json!(43)), ("/base/repo/id", json!(7)), ("/base/repo", Value::Null)]
    {
        let other = changed("api_pull_fork", pointer, value);
        let error = comment(&event("issue_comment"), &other, &event("api_permission")).unwrap_err();
        assert!(error.to_string().contains("the comment is on 42"), "{error}");
    }
}

#[test]
fn an_event_that_is_not_understood_allows_nothing() {
    for (name, text) in [
        ("push", ""),
        ("push", "{}"),
        ("pull_request", "[]"),
        ("pull_request", "{\"number\": 1, \"number\": 2}"),
        ("schedule", "null"),
        ("issue_comment", "{\"action\": 1}"),
        ("workflow_dispatch", "{\"inputs\": {\"run_mode\": \"self-hosted-gpu\"}}"),
    ] {
        let given = GitHub { event_name: name, payload: text, sha: AFTER, ..GitHub::default() };
        let error = github(&given, &Settings::default()).unwrap_err();
        assert!(error.to_string().contains(&format!("the {name} event is not of the form")), "{error}");
    }
    let numbers = decide("pull_request", &changed("pull_request", "/number", 7.into()), &Settings::default());
    assert!(numbers.unwrap_err().to_string().contains("different numbers"));
    for (name, pointer) in
        [("push", "/after"), ("push", "/before"), ("pull_request", "/pull_request/head/sha")]
    {
        let event = changed(name, pointer, "main; rm -rf /\n".into());
        let error = decide(name, &event, &Settings::default()).unwrap_err().to_string();
        assert!(error.contains("no full commit hash: \"main? rm -rf /?\""), "{error}");
    }
    let quoting = decide("push", &changed("push", "/deleted", "##[add-mask]x".into()), &Settings::default());
    assert!(!quoting.unwrap_err().to_string().contains("##["));
    for name in ["pull_request_target", "workflow_run", "release", "", "push\nallowed=true"] {
        not(&plainly(name, &event("push")), Decision::Refuse, "not trusted");
    }
}

#[test]
fn nothing_in_an_event_reaches_the_outputs_as_more_than_a_word() {
    let nasty =
        "x\nallowed=true\r\n::set-output name=allowed::true\n##[error]$(id)`id`${{ github.token }}<<EOF|<b>";
    let check = |guarded: &Ruling, lines: usize| {
        let outputs = guarded.outputs();
        assert_eq!(outputs.lines().count(), lines, "{outputs}");
        assert_eq!(outputs.matches("allowed=").count(), 1, "{outputs}");
        assert!(outputs.starts_with("allowed=false\n"), "{outputs}");
        for bad in ["::", "##[", "${{", "$(", "`", "<", "|", "\r"] {
            assert!(!outputs.contains(bad), "{bad:?} in {outputs}");
        }
        assert!(guarded.reason.len() < 300, "{outputs}");
    };
    let long = nasty.repeat(1000);
    for text in [nasty, long.as_str()] {
        let text = Value::from(text);
        check(
            &plainly(
                "pull_request",
                &changed("pull_request_fork", "/pull_request/head/repo/full_name", text.clone()),
            ),
            6,
        );
        check(&plainly("push", &changed("push", "/ref", text.clone())), 6);
        let mut robot = changed("pull_request", "/pull_request/user/login", text.clone());
        robot["pull_request"]["user"]["type"] = "Bot".into();
        check(&plainly("pull_request", &robot), 6);
        check(&perf(&changed("issue_comment", "/sender/login", text.clone())), 6);
        check(&perf(&changed("issue_comment", "/action", text.clone())), 6);
        check(&perf(&changed("issue_comment", "/comment/body", text.clone())), 6);
        check(&plainly(text.as_str().unwrap(), &event("push")), 6);
    }
    // Titles and branch names are not looked at at all.
    let mut named = changed("pull_request", "/pull_request/title", nasty.into());
    named["pull_request"]["head"]["ref"] = nasty.into();
    named["pull_request"]["body"] = nasty.into();
    assert_eq!(plainly("pull_request", &named), plainly("pull_request", &event("pull_request")));
}
