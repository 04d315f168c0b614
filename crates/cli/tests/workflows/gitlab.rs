//! GitLab's pipelines: what becomes of merge requests, pushes, schedules and pipelines that are started by hand.

use crate::actions::{parsed, written, written_as};
use crate::pipeline::{Ended, Started, names, resolved, run};
use crate::program::write_program;
use crate::repository::{Origin, git};
use serde_json::{Value, json};
use std::fs;

fn file(flags: &[&str]) -> Value {
    parsed(&written(&[&["--forge", "gitlab"], flags].concat())["holdpoint.yml"])
}

#[track_caller]
fn ends(ended: &Ended, job: &str, result: &str, says: &str) {
    let found = ended.jobs.get(job).unwrap_or_else(|| panic!("{job} is there: {:#?}", ended.jobs));
    assert_eq!(found.result, result, "{job}: {:#?}", ended.jobs);
    assert!(found.log.contains(says), "{says:?} in {}: {:#?}", found.log, ended.jobs);
}

/// What GitLab sets for a merge request to `main`.
fn merge_request<'a>(head: &'a str, base: &'a str, source_project: &'a str) -> Started<'a> {
    let given = vec![
        ("CI_PIPELINE_SOURCE", "merge_request_event"),
        ("CI_PROJECT_ID", "41"),
        ("CI_COMMIT_SHA", head),
        ("CI_DEFAULT_BRANCH", "main"),
        ("CI_MERGE_REQUEST_IID", "7"),
        ("CI_MERGE_REQUEST_PROJECT_ID", "41"),
        ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"),
        ("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", source_project),
        ("CI_MERGE_REQUEST_DIFF_BASE_SHA", base),
    ];
    Started { sha: head, given, ..Started::default() }
}

/// What GitLab sets for a pipeline of `main`.
fn of_main<'a>(source: &'a str, head: &'a str, before: &'a str, more: &[(&'a str, &'a str)]) -> Started<'a> {
    let given = [
        ("CI_PIPELINE_SOURCE", source),
        ("CI_PROJECT_ID", "41"),
        ("CI_COMMIT_SHA", head),
        ("CI_COMMIT_BEFORE_SHA", before),
        ("CI_COMMIT_BRANCH", "main"),
        ("CI_DEFAULT_BRANCH", "main"),
    ];
    Started { sha: head, given: given.iter().chain(more).copied().collect(), ..Started::default() }
}

/// A merge request that makes the program as quick as told.
fn merged(time: &str, change: impl FnOnce(&mut Started)) -> Ended {
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("topic");
    let head = origin.commit(time);
    let mut started = merge_request(&head, &base, "41");
    change(&mut started);
    run(&file(&[]), &started, &origin)
}

#[test]
fn a_merge_request_ends_by_its_verdict_and_its_evidence_is_kept() {
    for (time, result, says, code) in [
        ("2000", "success", "pass", "0\n"),
        ("9000", "failure", "regressed", "1\n"),
        ("skip", "failure", "skipped", "2\n"),
        ("die", "failure", "broken", "4\n"),
    ] {
        let ended = merged(time, |_| {});
        assert_eq!(ended.jobs.len(), 2, "{:?}", ended.jobs.keys());
        for (required, draft) in [
            ("perf-regression", "release/release_attestation_ci"),
            ("gpu-perf-regression", "release/release_attestation_gpu_ci"),
        ] {
            ends(&ended, required, result, says);
            let gate = &ended.jobs[required];
            assert_eq!(fs::read_to_string(gate.evidence("exit-code")).unwrap(), code);
            assert!(gate.evidence("ab.json").exists(), "{}", gate.log);
            let junit = fs::read_to_string(gate.evidence("junit.xml")).unwrap();
            assert_eq!(junit.contains("<failure"), code == "1\n", "{junit}");
            for ending in ["json", "md"] {
                assert!(gate.evidence(&format!("{draft}.{ending}")).exists(), "{}", gate.log);
            }
        }
    }
}

#[test]
fn a_merge_request_of_documents_alone_is_not_measured() {
    let origin = Origin::new();
    let base = origin.head();
    origin.branch("words");
    // What a checkout has under the name of the evidence is none.
    origin.commit_file("holdpoint-artifacts/comparison.json.md", "{}");
    let head = origin.commit_file("README.md", "words");
    let ended = run(&file(&[]), &merge_request(&head, &base, "41"), &origin);
    for job in ["perf-regression", "gpu-perf-regression"] {
        ends(&ended, job, "success", "nothing to measure: no file that matters for speed has changed");
        assert!(!ended.jobs[job].evidence("comparison.json.md").exists());
    }
}

#[test]
fn a_merge_request_of_another_project_never_reaches_the_gpu_and_does_not_pass_by_that() {
    let origin = Origin::new();
    let base = origin.head();
    let head = origin.commit_in_fork("2000");
    let mut started = merge_request(&head, &base, "99");
    // What it takes to start one by hand does nothing here.
    started.given.extend([("HOLDPOINT_RUN_MODE", "self-hosted-gpu"), ("HOLDPOINT_SHA", &head)]);
    let ended = run(&file(&[]), &started, &origin);
    assert!(!ended.jobs.contains_key("gpu-perf-regression"), "{:?}", ended.jobs.keys());
    ends(&ended, "gpu-perf-refused", "failure", "refused: the change comes from another project, 99");
    assert!(!ended.jobs["gpu-perf-refused"].evidence("ab.json").exists());
    ends(&ended, "perf-regression", "success", "pass");
}

/// A pipeline of `main` that somebody starts by hand for a commit of a fork.
fn by_hand(run_mode: &str, time: &str) -> (Ended, String) {
    let origin = Origin::new();
    let base = origin.head();
    let head = origin.commit_in_fork(time);
    let asked = [
        ("HOLDPOINT_RUN_MODE", run_mode),
        ("HOLDPOINT_SHA", head.as_str()),
        ("HOLDPOINT_GITLAB_TOKEN", "glpat-comment"),
    ];
    let mut started = of_main("web", &base, "0000000000000000000000000000000000000000", &asked);
    started.answers = [json!([{"iid": 6, "sha": base}, {"iid": 9, "sha": head}]), json!([])];
    (run(&file(&[]), &started, &origin), head)
}

#[test]
fn a_maintainer_measures_a_fork_by_its_full_hash_and_is_answered_on_its_merge_request() {
    for (time, result, says) in
        [("2000", "success", "pass"), ("9000", "failure", "regressed"), ("die", "failure", "broken")]
    {
        let (ended, head) = by_hand("self-hosted-gpu", time);
        ends(&ended, "gpu-perf-regression", result, &format!("run: started by hand for {head}"));
        ends(&ended, "gpu-perf-regression", result, says);
        ends(&ended, "gpu-perf-report", "success", "comment created on merge request 9");
        let [[method, place, body]] = ended.notes.as_slice() else { panic!("{:?}", ended.notes) };
        assert_eq!([method.as_str(), place], ["POST", "/projects/41/merge_requests/9/notes"]);
        assert!(body.contains(&format!("holdpoint: {says}")) && body.contains("> **Not proof**: "), "{body}");
        assert!(!ended.jobs.contains_key("perf-regression"), "{:?}", ended.jobs.keys());
    }
    let (ended, _) = by_hand("skip", "2000");
    assert_eq!(ended.jobs.len(), 0, "{:?}", ended.jobs.keys());
}

#[test]
fn a_note_of_its_own_is_written_over_and_a_strangers_is_not() {
    for (author, method) in [(7, "PUT"), (8, "POST")] {
        let ended = merged("9000", |started| {
            started.given.push(("HOLDPOINT_GITLAB_TOKEN", "glpat-comment"));
            let notes = ["holdpoint", "gpu"].map(|key| {
                json!({"id": 12, "author": {"id": author}, "body": format!("<!-- holdpoint:comment:{key} -->\nold")})
            });
            started.answers = [json!([]), json!(notes)];
        });
        for job in ["perf-report", "gpu-perf-report"] {
            ends(&ended, job, "success", "on merge request 7");
        }
        assert_eq!(ended.notes.len(), 2, "{:?}", ended.notes);
        for [found, place, _] in &ended.notes {
            assert_eq!((found.as_str(), place.ends_with("/notes/12")), (method, author == 7));
        }
    }
}

#[test]
fn no_baseline_is_inconclusive_warns_fails_where_the_suite_says_so_and_keeps_its_numbers() {
    for (gate, result) in [("", "warning"), ("[gate]\non_inconclusive = \"fail\"\n", "failure")] {
        let origin = Origin::new();
        let suite = fs::read_to_string(origin.path().join("perf-gpu.toml")).unwrap();
        let before =
            origin.commit_file("perf-gpu.toml", &suite.replace("[measure]", &format!("{gate}[measure]")));
        let head = origin.commit("2000");
        let ended = run(&file(&[]), &of_main("push", &head, &before, &[]), &origin);
        ends(&ended, "gpu-perf-regression", result, "inconclusive");
        assert!(ended.jobs["gpu-perf-regression"].evidence("report.json").exists());
        // The forge's machines have no baseline of their own: side by side.
        ends(&ended, "perf-regression", "success", "pass");
    }
}

#[test]
fn a_run_that_passed_is_proposed_as_the_baseline_and_a_proposal_is_not() {
    let origin = Origin::new();
    git(origin.path(), &["config", "receive.advertisePushOptions", "true"]);
    let hook = origin.path().join(".git/hooks/post-receive");
    let said = origin.path().join(".git/said");
    // The history is pushed too, to a ref of its own.
    let script = format!(
        "#!/bin/sh\nif grep -q refs/heads/; then env | grep GIT_PUSH_OPTION_ > {}; fi\n",
        said.display()
    );
    write_program(&hook, script);
    let proposed = |head: &str, before: &str| {
        let mut started = of_main("push", head, before, &[]);
        started.scoped = vec![("holdpoint-baseline", "HOLDPOINT_PUSH_TOKEN", "glpat-push")];
        run(&file(&[]), &started, &origin)
    };
    let before = origin.record_baseline();
    let head = origin.commit("1000");
    ends(&proposed(&head, &before), "holdpoint-promote", "success", "proposed: ");
    let options = fs::read_to_string(&said).unwrap();
    for option in [
        "=merge_request.create\n",
        "=merge_request.target=main\n",
        "=merge_request.title=Performance baseline of ",
    ] {
        assert!(options.contains(option), "{options}");
    }
    let shown = git(origin.path(), &["show", "--name-only", "holdpoint/baseline"]);
    assert!(shown.contains("\n    -") && shown.contains("\n    +"), "old and new: {shown}");
    assert!(shown.lines().last().unwrap().starts_with(".holdpoint/baselines/"), "{shown}");
    // A newer one takes its place.
    let newer = origin.commit("1500");
    let ended = proposed(&newer, &head);
    ends(&ended, "holdpoint-promote", "success", "proposed: ");
    let under = git(origin.path(), &["rev-parse", "holdpoint/baseline~1"]);
    assert_eq!(under, newer, "{:#?}", ended.jobs);
    // Merged, it is no reason for another.
    git(origin.path(), &["merge", "--quiet", "--ff-only", "holdpoint/baseline"]);
    fs::remove_file(&said).unwrap();
    let merged = origin.head();
    ends(&proposed(&merged, &newer), "holdpoint-promote", "success", "only baselines have changed");
    let base = origin.commit_baselines_of_any_load();
    let slower = origin.commit("9000");
    ends(&proposed(&slower, &base), "holdpoint-promote", "skipped", "");
    assert!(!said.exists());
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
    let before = origin.commit_file(".holdpoint/waivers.toml", &waivers);
    let head = origin.commit("9000");
    let ended = run(&file(&[]), &of_main("push", &head, &before, &[]), &origin);
    ends(&ended, "gpu-perf-regression", "success", "pass");
    ends(&ended, "holdpoint-promote", "success", "not proposed: the verdict is waived");
}

#[test]
fn people_are_told_of_what_did_not_pass_on_the_default_branch() {
    let config = "schema_version = 1\n[[slack]]\nname = \"room\"\nurl_env = \"SLACK_WEBHOOK_URL\"\n";
    for (source, schedule, time, told) in [
        ("push", "", "9000", &["holdpoint-notify-cpu", "holdpoint-notify-gpu"][..]),
        ("schedule", "weekly", "9000", &["holdpoint-notify-trend", "holdpoint-notify-gpu-trend"]),
        ("schedule", "nightly", "9000", &["holdpoint-notify-gpu"]),
        ("push", "", "2000", &[]),
    ] {
        let origin = Origin::new();
        origin.record_baseline();
        let before = origin.commit_file(".holdpoint/notify.toml", config);
        let head = origin.commit(time);
        let ended =
            run(&file(&[]), &of_main(source, &head, &before, &[("HOLDPOINT_SCHEDULE", schedule)]), &origin);
        for job in ended.jobs.keys().filter(|name| name.starts_with("holdpoint-notify")) {
            // The secret is not there, so that nobody can be told; that somebody was to be is seen by it.
            if told.contains(&job.as_str()) {
                ends(&ended, job, "warning", "slack room: could not be notified");
            } else {
                ends(&ended, job, "skipped", "");
            }
        }
        assert!(told.iter().all(|job| ended.jobs.contains_key(*job)), "{:?}", ended.jobs.keys());
    }
}

#[test]
fn the_default_branch_is_kept_in_the_history_whatever_its_verdict() {
    let origin = Origin::new();
    let before = origin.record_baseline();
    let kept = || {
        let paths = git(origin.path(), &["ls-tree", "-r", "--name-only", "refs/holdpoint/history"]);
        paths.lines().filter(|path| path.starts_with("runs/")).count()
    };
    let head = origin.commit("9000");
    let of = |source: &'static str, schedule: &'static str| {
        let more = [("HOLDPOINT_SCHEDULE", schedule)];
        let mut started = of_main(source, &head, &before, &more);
        started.scoped = vec![("holdpoint-history", "HOLDPOINT_PUSH_TOKEN", "glpat-push")];
        run(&file(&[]), &started, &origin)
    };
    let ended = of("push", "");
    ends(&ended, "gpu-perf-regression", "failure", "regressed");
    for job in ["holdpoint-history-cpu", "holdpoint-history-gpu"] {
        ends(&ended, job, "success", " 0 known already");
        let project = ended.jobs[job].home.join("project");
        assert!(!project.join("perf.toml").exists(), "nothing is checked out");
    }
    // Samples and verdicts of both gates.
    let pushed = kept();
    assert!(pushed >= 4, "{pushed}");
    let ended = of("schedule", "weekly");
    for job in ["holdpoint-history-trend", "holdpoint-history-gpu-trend"] {
        ends(&ended, job, "success", " 0 known already");
    }
    assert!(kept() >= pushed + 4, "{}", kept());
    // A change that is not merged, and a fork's commit that somebody measures by hand, leave nothing there.
    let is_history = |name: &&String| name.starts_with("holdpoint-history");
    assert_eq!(merged("2000", |_| {}).jobs.keys().filter(is_history).count(), 0);
    assert_eq!(by_hand("self-hosted-gpu", "2000").0.jobs.keys().filter(is_history).count(), 0);
}

#[test]
fn schedules_are_told_apart() {
    let origin = Origin::new();
    let head = origin.record_baseline();
    for (schedule, expected) in
        [("", &[][..]), ("nightly", &["gpu-perf-regression"]), ("weekly", &["cpu-trend", "gpu-trend"])]
    {
        let more = [("HOLDPOINT_SCHEDULE", schedule)];
        let ended = run(&file(&[]), &of_main("schedule", &head, &head, &more), &origin);
        let measured = ended.jobs.iter().filter(|(name, _)| !name.starts_with("holdpoint-"));
        let measured: Vec<&str> = measured.map(|(name, _)| name.as_str()).collect();
        assert_eq!(measured, expected, "{schedule}");
        let is_good = |result: &str| ["success", "skipped"].contains(&result);
        assert!(ended.jobs.values().all(|job| is_good(job.result)), "{:#?}", ended.jobs);
    }
    // Where nobody asked for more, nothing else is there.
    let plain = parsed(&written_as(&["--forge", "gitlab"])["holdpoint.yml"]);
    assert_eq!(names(&plain).collect::<Vec<_>>(), ["perf-regression", "perf-report"]);
}

#[test]
fn the_weekly_trend_fails_for_what_is_worse_and_warns_of_what_is_not_known() {
    for (time, with_baseline, result, says) in [
        ("2000", true, "success", "pass"),
        ("9000", true, "failure", "worse, broken"),
        ("die", true, "failure", "worse, broken"),
        ("2000", false, "warning", "not known this week: exit code 3"),
    ] {
        let origin = Origin::new();
        if with_baseline {
            origin.record_baseline();
        }
        let head = origin.commit(time);
        let weekly = [("HOLDPOINT_SCHEDULE", "weekly")];
        let ended = run(&file(&[]), &of_main("schedule", &head, &head, &weekly), &origin);
        for (job, of) in [("cpu-trend", "cpu"), ("gpu-trend", "gpu")] {
            ends(&ended, job, result, says);
            let gate = &ended.jobs[job];
            // With or without a baseline, the week has its numbers.
            assert!(gate.evidence("report.json").exists(), "{}", gate.log);
            assert_eq!(gate.evidence("trend.json").exists(), with_baseline);
            assert!(gate.evidence(&format!("release/release_attestation_{of}_weekly.json")).exists());
        }
    }
}

/// GitLab refuses a file that says `when` both in a job and in its rules.
#[test]
fn every_job_has_rules_and_a_time_and_the_gates_need_nobody() {
    let file = file(&[]);
    for name in names(&file) {
        let job = resolved(&file, name);
        let rules = job["rules"].as_array().unwrap();
        assert!(!job.contains_key("when") && !rules.is_empty(), "{name}");
        assert!(job["timeout"].is_string(), "{name}");
        if job["script"].to_string().contains("ci gate") {
            // A job that needs another is skipped with it, and GitLab takes that for a success.
            assert!(!job.contains_key("needs"), "{name}");
            assert_eq!(job["allow_failure"], json!({"exit_codes": 3}), "{name}");
            assert!(job["script"].to_string().contains("--isolate"), "{name}");
        }
    }
    assert_eq!(file["gpu-perf-regression"]["tags"], json!(["self-hosted", "linux", "x64", "gpu"]));
}

#[test]
fn secrets_are_where_nothing_is_measured_and_nothing_is_left_to_fill_in() {
    for flags in [&[][..], &["--label", "it's: \"it\""]] {
        let text = &written(&[&["--forge", "gitlab"], flags].concat())["holdpoint.yml"];
        assert!(!text.contains("@@") && !text.contains("#@"), "everything is filled in: {text}");
        let file = parsed(text);
        let mut found = Vec::new();
        for name in names(&file) {
            let job = resolved(&file, name);
            let script = job["script"].to_string();
            let environment = job.get("environment").map(|environment| environment["name"].as_str().unwrap());
            let runs_others = script.contains("ci gate") || job.contains_key("tags");
            assert!(!(runs_others && environment.is_some()), "{name} measures, and has secrets");
            assert_eq!(script.contains("ci promote"), environment == Some("holdpoint-baseline"), "{name}");
            assert_eq!(script.contains("ci notify"), environment == Some("holdpoint-notify"), "{name}");
            assert_eq!(script.contains("history add"), environment == Some("holdpoint-history"), "{name}");
            found.extend(environment.map(str::to_owned));
        }
        assert_eq!(found.len(), 9, "{found:?}");
        let label = &file["gpu-perf-regression"]["variables"]["HP_JOB_LABEL"]["value"];
        assert_eq!(label, if flags.is_empty() { "" } else { "it's: \"it\"" });
    }
}
