//! `holdpoint ci report` and `holdpoint ci notify`, against servers on this machine.

use crate::common::{Here, Ran, ran};
use crate::github::Kept;
use crate::server::{Reply, Server};
use serde_json::{Value, json};

const REPORT: &str = "artifacts/report.json";
const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

/// A folder with a comparison that regressed, of the commit SHA.
fn here() -> Here {
    let here = Here::new();
    here.run(&["-q", "run", "--suite", "suite.toml", "--output", REPORT]).ends(0);
    here.run(&["-q", "baseline", "template", REPORT, "--baseline", "base.json"]).ends(0);
    here.edit("base.json", |baseline| {
        let metric = &mut baseline["metrics"]["pack_p50_ms"];
        crate::common::scale(metric, 0.1);
        metric["max_regression_abs_ms"] = 0.0.into();
    });
    is_of(&here, &json!({"commit": SHA, "dirty": false}));
    here
}

/// Makes the comparison one of this revision.
fn is_of(here: &Here, revision: &Value) {
    here.edit(REPORT, |report| report["revision"] = revision.clone());
    let summary = ["--summary", "artifacts/comparison.json"];
    here.run(&[&["compare", REPORT, "--baseline", "base.json"][..], &summary].concat()).ends(1);
}

/// A commit that is not SHA.
fn other() -> Value {
    json!({"commit": "f".repeat(40), "dirty": false})
}

/// GitHub with pull request 7 at SHA.
fn github() -> (Server, Kept) {
    let (head, base) = (json!({"sha": SHA, "repo": {"id": 9}}), json!({"repo": {"full_name": "o/r"}}));
    let (server, written) =
        crate::github::github("o/r", json!({"number": 7, "state": "open", "head": head, "base": base}));
    (server, written.comments)
}

/// The command as a job of this event would run it.
fn job(here: &Here, server: &Server, event: &str, payload: &Value, arguments: &[&str]) -> Ran {
    here.write("event.json", &payload.to_string());
    let mut command = here.command(&[&["ci", "report"], arguments].concat());
    command
        .env("GITHUB_TOKEN", "t0ken")
        .env("GITHUB_REPOSITORY", "o/r")
        .env("GITHUB_API_URL", &server.url)
        .env("GITHUB_EVENT_NAME", event)
        .env("GITHUB_EVENT_PATH", here.path("event.json"))
        .env("GITHUB_STEP_SUMMARY", here.path("summary.md"));
    ran(command.output().unwrap())
}

fn pull_request(sha: &str) -> Value {
    json!({"pull_request": {"number": 7, "head": {"sha": sha, "repo": {"id": 1}}}, "repository": {"id": 1}})
}

fn workflow_run() -> Value {
    json!({"workflow_run": {"head_sha": SHA, "head_branch": "b", "head_repository": {"id": 9, "owner": {"login": "mallory"}}}})
}

#[test]
fn a_comment_is_created_then_updated_and_the_summary_has_the_same_text() {
    let (here, (server, comments)) = (here(), github());
    let event = pull_request(SHA);
    job(&here, &server, "pull_request", &event, &["--summary"])
        .ends(0)
        .prints(&["comment created on pull request 7 of o/r"]);
    let body = comments.lock().unwrap()[0]["body"].as_str().unwrap().to_owned();
    assert!(body.starts_with("<!-- holdpoint:comment:holdpoint -->\n### holdpoint: regressed\n"), "{body}");
    assert_eq!(here.read("summary.md").trim_end(), body.trim_end());
    assert_eq!(here.run(&["ci", "report", "--dry-run"]).stdout, body);
    job(&here, &server, "pull_request", &event, &[]).ends(0).prints(&["comment unchanged"]);
    here.edit("artifacts/comparison.json", |judged| judged["notes"] = json!(["something new"]));
    let ran = job(&here, &server, "pull_request", &event, &["--format", "json"]);
    let told: Value = serde_json::from_str(&ran.ends(0).stdout).unwrap();
    assert_eq!((&told["posted"], &told["verdict"]), (&"updated".into(), &"regressed".into()));
    assert!(comments.lock().unwrap()[0]["body"].as_str().unwrap().contains("something new"));
}

#[test]
fn a_verdict_that_was_typed_into_the_file_is_judged_again_and_told_first() {
    let (here, (server, comments)) = (here(), github());
    here.edit("artifacts/comparison.json", |judged| {
        (judged["verdict"], judged["status"]) = (json!("pass"), json!("pass"));
        for check in judged["checks"].as_array_mut().unwrap() {
            (check["verdict"], check["status"]) = (json!("pass"), json!("pass"));
        }
    });
    let says = "comparison.json: it says pass, judged again it is regressed: pack_p50_ms";
    job(&here, &server, "pull_request", &pull_request(SHA), &[]).ends(64).notes(&[says]);
    let body = comments.lock().unwrap()[0]["body"].as_str().unwrap().to_owned();
    assert!(
        body.contains("### holdpoint: regressed\n\n- **problem**: comparison.json: it says pass"),
        "{body}"
    );
    for form in ["github", "junit", "sarif"] {
        let ran = here.run(&["report", "artifacts/comparison.json", "--as", form]);
        ran.ends(64).prints(&["regressed", "it says pass, judged again it is regressed"]);
    }
    here.run(&["report", "artifacts/comparison.json"])
        .ends(64)
        .prints(&["problem: it says pass", "regressed"]);
    let shown = ["report", REPORT, "--comparison", "artifacts/comparison.json", "--markdown", "page.md"];
    here.run(&shown).ends(64).prints(&["problem: it says pass"]);
    assert!(here.read("page.md").starts_with("> **problem**: it says pass"), "{}", here.read("page.md"));
}

#[test]
fn a_comparison_without_its_report_cannot_be_judged_again_and_is_no_pass() {
    let here = here();
    here.run(&[
        "compare",
        REPORT,
        "--baseline",
        REPORT,
        "--summary",
        "alone/comparison.json",
        "--policy",
        "allowed-max",
    ])
    .ends(0);
    let says =
        "it says pass, which cannot be judged again: the samples that it was made of are not beside it";
    here.run(&["ci", "report", "--dry-run", "--artifacts", "alone"])
        .ends(64)
        .prints(&["### holdpoint: inconclusive\n\n- **problem**: comparison.json: it says pass"]);
    here.run(&["report", "alone/comparison.json"]).ends(0).prints(&[says, "inconclusive"]);
    here.run(&["report", "alone/comparison.json", "--as", "junit"]).ends(0).prints(&["errors=\"1\"", says]);
    // The report that is shown with it is what it judged.
    let shown = here.run(&["report", REPORT, "--comparison", "alone/comparison.json"]);
    assert!(!shown.ends(0).stdout.contains("problem"), "{shown:?}");
}

#[test]
fn a_forks_own_job_says_first_that_it_is_no_proof() {
    let (here, (server, _)) = (here(), github());
    for head in [json!({"sha": SHA, "repo": {"id": 2}}), json!({"sha": SHA, "repo": null})] {
        let event = json!({"pull_request": {"number": 7, "head": head}, "repository": {"id": 1}});
        job(&here, &server, "pull_request", &event, &["--dry-run"])
            .ends(0)
            .prints(&["-->\n> **Not proof**: "]);
    }
    let own = job(&here, &server, "pull_request", &pull_request(SHA), &["--dry-run"]);
    assert!(!own.ends(0).stdout.contains("Not proof"), "{own:?}");
    let mut gitlab = here.command(&["ci", "report", "--dry-run"]);
    gitlab.env("CI_MERGE_REQUEST_PROJECT_ID", "1").env("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "2");
    ran(gitlab.output().unwrap()).ends(0).prints(&["-->\n> **Not proof**: "]);
}

#[test]
fn a_stale_head_posts_nothing_and_says_so() {
    let (here, (server, comments)) = (here(), github());
    let event = pull_request(&"f".repeat(40));
    is_of(&here, &other());
    job(&here, &server, "pull_request", &event, &[])
        .ends(0)
        .prints(&["nothing was posted: pull request 7 has moved on"]);
    assert!(comments.lock().unwrap().is_empty());
}

#[test]
fn in_a_workflow_run_the_artifact_chooses_nothing() {
    let (here, (server, comments)) = (here(), github());
    // Whatever the artifact says, it is text.
    here.edit("artifacts/comparison.json", |judged| {
        judged["notes"] = json!(["x --> <b> @all"]);
        judged["pull_request"] = 8.into();
    });
    here.write("artifacts/pr_number", "8");
    job(&here, &server, "workflow_run", &workflow_run(), &[])
        .ends(0)
        .prints(&["comment created on pull request 7 of o/r"]);
    let body = comments.lock().unwrap()[0]["body"].as_str().unwrap().to_owned();
    let first = "<!-- holdpoint:comment:holdpoint -->\n> **Not proof**: ";
    assert!(body.starts_with(first) && !body.contains("<b>"), "{body}");
    for choice in [["--pr", "8"], ["--sha", SHA]] {
        job(&here, &server, "workflow_run", &workflow_run(), &choice)
            .refuses(64, &["--pr and --sha are refused in a workflow_run"]);
    }
    assert!(server.requests().iter().all(|request| !request.target.contains("/8")));
}

#[test]
fn evidence_of_another_commit_is_a_problem_and_no_verdict() {
    let (here, (server, comments)) = (here(), github());
    is_of(&here, &other());
    let says = format!("the evidence is of the commit {}, not of {SHA}", "f".repeat(40));
    job(&here, &server, "workflow_run", &workflow_run(), &[]).ends(64).notes(&[&says]);
    job(&here, &server, "pull_request", &pull_request(SHA), &[]).ends(64).notes(&[&says]);
    let body = comments.lock().unwrap()[0]["body"].as_str().unwrap().to_owned();
    assert!(body.contains(&says), "{body}");
    is_of(&here, &json!({"commit": SHA, "dirty": false}));
    job(&here, &server, "workflow_run", &workflow_run(), &[]).ends(0).prints(&["updated"]);
    // What does not say what it is of may be of anything.
    for (revision, says) in [
        (Value::Null, "the evidence does not say that it is of the commit"),
        (json!({"commit": SHA, "dirty": true}), "the evidence is of changed files, not of the commit"),
    ] {
        is_of(&here, &revision);
        job(&here, &server, "workflow_run", &workflow_run(), &[]).ends(64).notes(&[says]);
        job(&here, &server, "pull_request", &pull_request(SHA), &[]).ends(64).notes(&[says]);
    }
}

#[test]
fn after_a_comment_the_numbers_are_a_strangers_and_their_commit_has_to_be_given() {
    let (here, (server, comments)) = (here(), github());
    let event = json!({"issue": {"number": 7, "pull_request": {}}});
    job(&here, &server, "issue_comment", &event, &[]).refuses(64, &["--sha"]);
    job(&here, &server, "issue_comment", &event, &["--pr", "7"]).refuses(64, &["--sha"]);
    job(&here, &server, "issue_comment", &event, &["--pr", "7", "--sha", SHA]).ends(0).prints(&["created"]);
    let body = comments.lock().unwrap()[0]["body"].as_str().unwrap().to_owned();
    assert!(body.contains("-->\n> **Not proof**: "), "{body}");
    // With --pr, the event still knows what was measured.
    let moved = pull_request(&"f".repeat(40));
    is_of(&here, &other());
    job(&here, &server, "pull_request", &moved, &["--pr", "7"]).ends(0).prints(&["nothing was posted"]);
}

#[test]
fn an_artifact_that_cannot_be_used_is_told_of_and_is_no_pass() {
    let (here, (server, comments)) = (here(), github());
    here.write("secret", "{\"schema_version\": 1, \"k3y\": 1}");
    std::fs::remove_file(here.path("artifacts/comparison.json")).unwrap();
    std::os::unix::fs::symlink(here.path("secret"), here.path("artifacts/comparison.json")).unwrap();
    here.write("artifacts/ab.json", "{\"schema_version\": 1, \"plan\": ");
    let ran = job(&here, &server, "workflow_run", &workflow_run(), &[]);
    ran.ends(64).notes(&["comparison.json: it is not a plain file"]);
    let body = comments.lock().unwrap()[0]["body"].as_str().unwrap().to_owned();
    for words in ["### holdpoint: inconclusive", "comparison.json: it is not a plain file", "ab.json: EOF"] {
        assert!(body.contains(words), "{words}: {body}");
    }
    assert!(!body.contains("k3y"));
}

#[test]
fn what_is_missing_is_named() {
    let (here, (server, _)) = (here(), github());
    let bare = |arguments: &[&str]| {
        let mut command = here.command(&[&["ci", "report"], arguments].concat());
        let names = ["TOKEN", "REPOSITORY", "EVENT_NAME", "EVENT_PATH", "STEP_SUMMARY", "API_URL"];
        for name in names {
            command.env_remove(format!("GITHUB_{name}"));
        }
        ran(command.output().unwrap())
    };
    bare(&[]).refuses(64, &["GITHUB_REPOSITORY is not set"]);
    bare(&["--summary", "--dry-run"]).refuses(64, &["GITHUB_STEP_SUMMARY"]);
    bare(&["--artifacts", "nowhere", "--dry-run"])
        .ends(0)
        .prints(&["### holdpoint: inconclusive"])
        .notes(&["nowhere: no such folder"]);
    job(&here, &server, "push", &json!({}), &[]).refuses(64, &["has no pull request; give --pr N"]);
    job(&here, &server, "push", &json!({}), &["--pr", "7"]).ends(0).prints(&["created"]);
    job(&here, &server, "push", &json!({}), &["--pr", "9"]).refuses(64, &["404", "Not Found"]);
    for bad in
        [&["--key", "a--b"][..], &["--key", "<b>"], &["--rate", "2.5"], &["--sha", "abc"], &["--pr", "0"]]
    {
        assert_eq!(bare(bad).code, 64, "{bad:?}");
    }
}

#[test]
fn an_empty_folder_makes_an_inconclusive_comment() {
    let here = Here::new();
    std::fs::create_dir(here.path("artifacts")).unwrap();
    here.run(&["ci", "report", "--dry-run"])
        .ends(0)
        .prints(&["### holdpoint: inconclusive", "left no comparison"]);
    let on = "on = [\"pass\", \"inconclusive\", \"regressed\", \"broken\"]";
    here.write("c.toml", &format!("schema_version = 1\n{on}\n[[slack]]\nname = \"a\"\nurl_env = \"A\"\n"));
    let notify = ["ci", "notify", "--config", "c.toml", "--dry-run"];
    here.run(&notify).refuses(64, &["none of comparison.json, ab.json and exit-code"]);
    // A gate that ended before it compared has left its exit code, and one that ran out of time not even that.
    for (code, verdict) in [
        ("0", "inconclusive"),
        ("1", "regressed"),
        ("3", "inconclusive"),
        ("4", "broken"),
        ("64", "broken"),
        ("none", "broken"),
    ] {
        here.write("artifacts/exit-code", &format!("{code}\n"));
        let subject = format!("[holdpoint] {verdict} gate: ");
        here.run(&notify).ends(0).prints(&[
            "slack a: would be notified",
            &subject,
            &format!("exit code {code}"),
            "it left no comparison",
        ]);
        here.run(&["ci", "report", "--dry-run"])
            .ends(0)
            .prints(&[&format!("### holdpoint: {verdict}"), &format!("exit code {code}")]);
    }
    here.write("artifacts/exit-code", "<!channel>");
    here.run(&notify).refuses(64, &["exit-code: it is no exit code"]);
}

#[test]
fn people_are_told_and_one_that_fails_does_not_stop_the_others() {
    let here = here();
    let server = Server::start(|_, _| Reply::json(200, json!({})));
    let hook =
        format!("[[webhook]]\nname = \"hook\"\nurl = \"{}/hook\"\nsecret_env = \"HOOK_KEY\"\n", server.url);
    let unset = "[[slack]]\nname = \"room\"\nurl_env = \"SLACK_NOT_SET\"\n";
    here.write("c.toml", &format!("schema_version = 1\n{unset}{hook}"));
    let arguments = ["ci", "notify", "--config", "c.toml"];
    let told = ran(here.command(&arguments).env("HOOK_KEY", "s3cret").output().unwrap());
    told.ends(64)
        .prints(&["slack room: could not be notified", "webhook hook: notified"])
        .notes(&["SLACK_NOT_SET is not set"]);
    assert!(!format!("{told:?}").contains("s3cret"));
    let document = server.requests()[0].json();
    assert_eq!(
        (&document["verdict"], &document["rows"][0]["name"]),
        (&"regressed".into(), &"pack_p50_ms".into())
    );
    here.run(&["ci", "notify", "--config", "c.toml", "--dry-run"]).ends(0).prints(&[
        "webhook hook: would be notified",
        "[holdpoint] regressed",
        "pack_p50_ms +900 %",
    ]);
    assert_eq!(server.requests().len(), 1);
    here.write("c.toml", &format!("schema_version = 1\non = [\"improved\"]\n{unset}"));
    here.run(&arguments).ends(0).prints(&["slack room: is not notified of regressed"]);
    here.write("c.toml", &format!("schema_version = 1\n{unset}token = \"x\"\n"));
    here.run(&arguments).refuses(64, &["c.toml: slack 1: token is refused"]);
}

#[test]
fn forms_need_a_comparison_and_go_to_a_file_where_one_is_named() {
    let here = here();
    here.run(&[
        "report",
        "artifacts/comparison.json",
        "--as",
        "sarif",
        "--location",
        "perf.toml",
        "--output",
        "out.sarif",
    ])
    .ends(0);
    assert_eq!(here.json("out.sarif")["version"], "2.1.0");
    here.run(&["-q", "run", "--suite", "suite.toml", "--output", "run.json"]).ends(0);
    here.run(&["report", "run.json", "--as", "junit"]).refuses(64, &["run.json: nothing was decided in it"]);
    here.run(&["report", "artifacts/comparison.json", "--markdown", "x.md"]).ends(0);
    assert!(here.read("x.md").contains("## Checks"));
    std::fs::create_dir(here.path("alone")).unwrap();
    here.write("alone/comparison.json", &here.read("artifacts/comparison.json"));
    let alone = here.run(&["report", "alone/comparison.json", "--markdown", "x.md"]);
    alone.refuses(64, &["without its samples has no page"]);
}
