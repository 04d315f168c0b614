//! GitLab's pipelines: what becomes of merge requests, pushes, schedules and pipelines that are started by hand.

use crate::actions::{parsed, written};
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
        assert_eq!(ended.jobs.len(), 6, "{:?}", ended.jobs.keys());
        for (gate, required, draft) in [
            ("holdpoint-cpu", "perf-regression", "release/release_attestation_ci"),
            ("holdpoint-gpu", "gpu-perf-regression", "release/release_attestation_gpu_ci"),
        ] {
            ends(&ended, gate, "success", "");
            ends(&ended, required, result, says);
            let gate = &ended.jobs[gate];
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
fn a_merge_request_of_another_project_never_reaches_the_gpu_and_does_not_pass_by_that() {
    let origin = Origin::new();
    let base = origin.head();
    let head = origin.commit_in_fork("2000");
    let mut started = merge_request(&head, &base, "99");
    // What it takes to start one by hand does nothing here.
    started.given.extend([("HOLDPOINT_RUN_MODE", "self-hosted-gpu"), ("HOLDPOINT_SHA", &head)]);
    let ended = run(&file(&[]), &started, &origin);
    assert!(!ended.jobs.contains_key("holdpoint-gpu"), "{:?}", ended.jobs.keys());
    ends(&ended, "holdpoint-guard-gpu", "success", "refuse: the change comes from another project, 99");
    ends(&ended, "gpu-perf-regression", "failure", "refused");
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
        ends(&ended, "holdpoint-guard-gpu", "success", &format!("run: started by hand for {head}"));
        ends(&ended, "gpu-perf-regression", result, says);
        ends(&ended, "holdpoint-comment-gpu", "success", "");
        assert!(ended.said.contains("projects/41/merge_requests/9/notes"), "{}", ended.said);
        assert!(ended.said.contains(&format!("holdpoint: {says}")), "{}", ended.said);
        assert!(ended.said.contains("> **Not proof**: "), "{}", ended.said);
        assert!(!ended.jobs.contains_key("perf-regression"), "{:?}", ended.jobs.keys());
    }
    let (ended, _) = by_hand("skip", "2000");
    assert_eq!(ended.jobs.len(), 0, "{:?}", ended.jobs.keys());
}

#[test]
fn a_note_of_its_own_is_written_over_and_a_strangers_is_not() {
    for (author, told) in [(7, "--request PUT"), (8, "--form")] {
        let ended = merged("9000", |started| {
            started.given.push(("HOLDPOINT_GITLAB_TOKEN", "glpat-comment"));
            let notes = ["cpu", "gpu"].map(|key| {
                json!({"id": 12, "author": {"id": author}, "body": format!("<!-- holdpoint:comment:{key} -->\nold")})
            });
            started.answers = [json!([]), json!(notes)];
        });
        for job in ["holdpoint-comment-cpu", "holdpoint-comment-gpu"] {
            ends(&ended, job, "success", "");
        }
        assert_eq!(ended.said.matches(told).count(), 2, "{}", ended.said);
        assert_eq!(ended.said.contains("notes/12"), author == 7, "{}", ended.said);
    }
}

#[test]
fn no_baseline_is_inconclusive_fails_unless_set_otherwise_and_keeps_its_numbers() {
    for (flags, result) in [(&[][..], "failure"), (&["--on-inconclusive", "pass"][..], "success")] {
        let origin = Origin::new();
        let before = origin.head();
        let head = origin.commit("2000");
        let ended = run(&file(flags), &of_main("push", &head, &before, &[]), &origin);
        ends(&ended, "gpu-perf-regression", result, "inconclusive");
        assert!(ended.jobs["holdpoint-gpu"].evidence("report.json").exists());
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
    let script = format!("#!/bin/sh\nenv | grep GIT_PUSH_OPTION_ > {}\n", said.display());
    write_program(&hook, script);
    let proposed = |head: &str, before: &str| {
        let mut started = of_main("push", head, before, &[("HOLDPOINT_PROMOTE_BASELINE", "true")]);
        started.scoped = vec![("holdpoint-baseline", "HOLDPOINT_PUSH_TOKEN", "glpat-push")];
        run(&file(&[]), &started, &origin)
    };
    let before = origin.record_baseline();
    let head = origin.commit("1000");
    ends(&proposed(&head, &before), "holdpoint-promote", "success", "");
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
    ends(&ended, "holdpoint-promote", "success", "");
    let under = git(origin.path(), &["rev-parse", "holdpoint/baseline~1"]);
    assert_eq!(under, newer, "{:#?}", ended.jobs);
    // Merged, it is no reason for another.
    git(origin.path(), &["merge", "--quiet", "--ff-only", "holdpoint/baseline"]);
    fs::remove_file(&said).unwrap();
    let merged = origin.head();
    ends(&proposed(&merged, &newer), "holdpoint-promote", "success", "only baselines have changed");
    let slower = origin.commit("9000");
    ends(&proposed(&slower, &merged), "holdpoint-promote", "success", "not proposed: exit code 1");
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
    let started = of_main("push", &head, &before, &[("HOLDPOINT_PROMOTE_BASELINE", "true")]);
    let ended = run(&file(&[]), &started, &origin);
    ends(&ended, "gpu-perf-regression", "success", "pass");
    ends(&ended, "holdpoint-promote", "success", "not proposed: the verdict is waived");
}

#[test]
fn people_are_told_of_what_did_not_pass_on_the_default_branch() {
    let config = "schema_version = 1\n[[slack]]\nname = \"room\"\nurl_env = \"SLACK_WEBHOOK_URL\"\n";
    for (source, schedule, time, told) in [
        ("push", "", "9000", &["holdpoint-notify-cpu", "holdpoint-notify-gpu"][..]),
        ("schedule", "weekly", "9000", &["holdpoint-notify-cpu", "holdpoint-notify-gpu"]),
        ("schedule", "nightly", "9000", &["holdpoint-notify-gpu"]),
        ("push", "", "2000", &[]),
    ] {
        let origin = Origin::new();
        origin.record_baseline();
        let before = origin.commit_file(".holdpoint/notify.toml", config);
        let head = origin.commit(time);
        let enabled = [
            ("HOLDPOINT_NOTIFY", "true"),
            ("HOLDPOINT_SCHEDULE", schedule),
            ("HOLDPOINT_ENABLE_GPU_NIGHTLY", "true"),
            ("HOLDPOINT_ENABLE_GPU_WEEKLY", "true"),
        ];
        let ended = run(&file(&[]), &of_main(source, &head, &before, &enabled), &origin);
        for job in ended.jobs.keys().filter(|name| name.starts_with("holdpoint-notify")) {
            // The secret is not there, so that nobody can be told; that somebody was to be is seen by it.
            if told.contains(&job.as_str()) {
                ends(&ended, job, "warning", "slack room: could not be notified");
            } else {
                ends(&ended, job, "success", "nothing to tell: decision run, exit code 0");
            }
        }
        assert!(told.iter().all(|job| ended.jobs.contains_key(*job)), "{:?}", ended.jobs.keys());
    }
}

#[test]
fn schedules_are_told_apart_and_use_the_gpu_only_where_it_is_enabled() {
    let origin = Origin::new();
    let head = origin.record_baseline();
    let (cpu, gpu) = (["holdpoint-cpu", "holdpoint-guard-cpu"], ["holdpoint-gpu", "holdpoint-guard-gpu"]);
    for (schedule, enabled, expected) in [
        ("", "HOLDPOINT_ENABLE_GPU_NIGHTLY", vec![]),
        ("nightly", "HOLDPOINT_ENABLE_GPU_WEEKLY", vec![]),
        ("nightly", "HOLDPOINT_ENABLE_CPU_NIGHTLY", [&cpu[..], &["perf-regression"]].concat()),
        ("nightly", "HOLDPOINT_ENABLE_GPU_NIGHTLY", [&["gpu-perf-regression"], &gpu[..]].concat()),
        ("weekly", "HOLDPOINT_ENABLE_GPU_NIGHTLY", [&["cpu-trend"], &cpu[..]].concat()),
        ("weekly", "HOLDPOINT_ENABLE_GPU_WEEKLY", {
            vec!["cpu-trend", "gpu-trend", cpu[0], gpu[0], cpu[1], gpu[1]]
        }),
    ] {
        let more = [("HOLDPOINT_SCHEDULE", schedule), (enabled, "true")];
        let ended = run(&file(&[]), &of_main("schedule", &head, &head, &more), &origin);
        assert_eq!(ended.jobs.keys().collect::<Vec<_>>(), expected, "{schedule} {enabled}");
        assert!(ended.jobs.values().all(|job| job.result == "success"), "{:#?}", ended.jobs);
    }
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
        let weekly = [("HOLDPOINT_SCHEDULE", "weekly"), ("HOLDPOINT_ENABLE_GPU_WEEKLY", "true")];
        let ended = run(&file(&[]), &of_main("schedule", &head, &head, &weekly), &origin);
        for (job, gate, of) in [("cpu-trend", "holdpoint-cpu", "cpu"), ("gpu-trend", "holdpoint-gpu", "gpu")]
        {
            ends(&ended, job, result, says);
            let gate = &ended.jobs[gate];
            assert_eq!(gate.name, format!("perf-trend-{of}-weekly"));
            // With or without a baseline, the week has its numbers.
            assert!(gate.evidence("report.json").exists(), "{}", gate.log);
            assert_eq!(gate.evidence("trend.json").exists(), with_baseline);
            assert!(gate.evidence(&format!("release/release_attestation_{of}_weekly.json")).exists());
        }
    }
}

/// GitLab refuses a file that says `when` both in a job and in its rules.
#[test]
fn the_deciding_jobs_run_whatever_came_before() {
    let file = file(&[]);
    for name in names(&file) {
        let job = resolved(&file, name);
        let rules = job["rules"].as_array().unwrap();
        assert!(!job.contains_key("when") && !rules.is_empty(), "{name}");
        let decides = ["perf-regression", "gpu-perf-regression", "cpu-trend", "gpu-trend"];
        assert!(
            !decides.contains(&name.as_str()) || rules.iter().all(|rule| rule["when"] == "always"),
            "{name}"
        );
        assert!(job["timeout"].is_string(), "{name}");
    }
    assert_eq!(file["holdpoint-gpu"]["tags"], json!(["self-hosted", "linux", "x64", "gpu"]));
}

#[test]
fn secrets_are_where_nothing_is_measured_and_nothing_is_left_to_fill_in() {
    let full =
        ["--path", "src/**", "--label", "it's: \"it\"", "--build", "make x=\"$Y\" # '", "--prefix", "APEXX"];
    for (flags, prefix) in [(&[][..], "HOLDPOINT"), (&full[..], "APEXX")] {
        let text = &written(&[&["--forge", "gitlab"], flags].concat())["holdpoint.yml"];
        assert!(!text.contains("@@") && !text.contains("#@"), "everything is filled in: {text}");
        let file = parsed(text);
        let mut found = Vec::new();
        for name in names(&file) {
            let job = resolved(&file, name);
            let script = job["script"].to_string();
            let environment = job.get("environment").map(|environment| environment["name"].as_str().unwrap());
            let runs_others = script.contains("holdpoint gate") || job.contains_key("tags");
            assert!(!(runs_others && environment.is_some()), "{name} measures, and has secrets");
            assert_eq!(
                script.contains(&format!("{prefix}_PUSH_TOKEN")),
                environment == Some("holdpoint-baseline")
            );
            assert_eq!(script.contains("ci notify"), environment == Some("holdpoint-notify"), "{name}");
            found.extend(environment.map(str::to_owned));
        }
        assert_eq!(found, ["holdpoint-notify", "holdpoint-notify", "holdpoint-baseline"]);
        let (guard, gate) = (&file["holdpoint-guard-gpu"]["variables"], &file["holdpoint-gpu"]["variables"]);
        let settings = if flags.is_empty() { ["", ""] } else { ["it's: \"it\"", "make x=\"$Y\" # '"] };
        assert_eq!([&guard["HP_JOB_LABEL"]["value"], &gate["HP_JOB_BUILD"]["value"]], settings);
    }
}

#[test]
fn a_pipeline_without_a_verdict_fails() {
    let file = file(&[]);
    for (job, variables, passes, says) in [
        ("perf-regression", &[("decision", "run")][..], false, "no verdict"),
        ("perf-regression", &[("decision", "skip; true")], false, "no verdict"),
        ("perf-regression", &[("code", "0")], false, "no verdict"),
        ("perf-regression", &[("decision", "skip")], true, "nothing to measure"),
        ("cpu-trend", &[("code", "0")], false, "without a verdict"),
        ("gpu-trend", &[("decision", "run")], false, "without a verdict"),
    ] {
        let script = resolved(&file, job)["script"][0].as_str().unwrap().to_owned();
        let mut sh = std::process::Command::new("sh");
        let done =
            sh.args(["-e", "-c", &script]).env_clear().envs(variables.iter().copied()).output().unwrap();
        let said = String::from_utf8(done.stdout).unwrap();
        assert!(done.status.success() == passes && said.contains(says), "{job} {variables:?}: {said}");
    }
}
