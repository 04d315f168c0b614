//! Pipelines of GitLab, by the variables it sets.

use super::{AFTER, BASE, HEAD, NULL, not, runs};
use holdpoint_ci::guard::{Decision, GitLab, Mode, Settings, gitlab};

pub fn merge_request() -> GitLab {
    GitLab {
        pipeline_source: "merge_request_event".to_owned(),
        project_id: "41".to_owned(),
        commit_sha: HEAD.to_owned(),
        default_branch: "main".to_owned(),
        merge_request_project_id: "41".to_owned(),
        merge_request_source_project_id: "41".to_owned(),
        merge_request_diff_base_sha: BASE.to_owned(),
        merge_request_target_branch: "main".to_owned(),
        merge_request_labels: "documentation,benchmark".to_owned(),
        ..GitLab::default()
    }
}

#[test]
fn gitlab_pipelines_are_held_to_the_same_rules() {
    let plain = Settings::default();
    let decide = |pipeline: &GitLab| gitlab(pipeline, &plain).unwrap();
    runs(&decide(&merge_request()), Mode::Against, HEAD, BASE);
    let merged = GitLab {
        commit_sha: AFTER.to_owned(),
        merge_request_source_branch_sha: HEAD.to_owned(),
        ..merge_request()
    };
    runs(&decide(&merged), Mode::Against, HEAD, BASE);
    for source in ["99", ""] {
        let fork = GitLab { merge_request_source_project_id: source.to_owned(), ..merge_request() };
        not(&decide(&fork), Decision::Refuse, "another project");
    }
    let in_the_fork = GitLab {
        project_id: "99".to_owned(),
        merge_request_source_project_id: "99".to_owned(),
        ..merge_request()
    };
    not(&decide(&in_the_fork), Decision::Refuse, "comes from another project");
    let elsewhere = GitLab { project_id: "99".to_owned(), ..merge_request() };
    not(&decide(&elsewhere), Decision::Refuse, "does not run in the project");
    // GitLab has Benchmark and benchmark side by side: they are two labels.
    for (label, decision) in
        [("benchmark", Decision::Run), ("bench", Decision::Skip), ("Benchmark", Decision::Skip)]
    {
        let settings = Settings { label: Some(label.to_owned()), ..Settings::default() };
        assert_eq!(gitlab(&merge_request(), &settings).unwrap().decision, decision);
    }
    let push = GitLab {
        pipeline_source: "push".to_owned(),
        commit_branch: "main".to_owned(),
        commit_before_sha: BASE.to_owned(),
        ..merge_request()
    };
    runs(&decide(&push), Mode::Baseline, HEAD, BASE);
    runs(&decide(&GitLab { commit_before_sha: NULL.to_owned(), ..push.clone() }), Mode::Baseline, HEAD, HEAD);
    not(
        &decide(&GitLab { commit_branch: "topic".to_owned(), ..push.clone() }),
        Decision::Skip,
        "default branch",
    );
    let schedule = GitLab { pipeline_source: "schedule".to_owned(), ..push };
    not(&decide(&schedule), Decision::Skip, "not enabled");
    let enabled = Settings { scheduled: true, ..Settings::default() };
    runs(&gitlab(&schedule, &enabled).unwrap(), Mode::Baseline, HEAD, HEAD);
    for source in ["trigger", "pipeline", "chat", "external_pull_request_event", "x\nallowed=true"] {
        not(
            &decide(&GitLab { pipeline_source: source.to_owned(), ..merge_request() }),
            Decision::Refuse,
            "not trusted",
        );
    }
    assert!(gitlab(&GitLab::default(), &plain).is_err());
    let unset = GitLab { pipeline_source: String::new(), ..merge_request() };
    assert!(gitlab(&unset, &plain).unwrap_err().to_string().contains("CI_PIPELINE_SOURCE"));
    assert!(
        gitlab(&GitLab { merge_request_diff_base_sha: "main".to_owned(), ..merge_request() }, &plain)
            .is_err()
    );
}

/// A pipeline that somebody started on the default branch with "New pipeline", or over the API.
fn by_hand(run_mode: &str, wanted_sha: &str) -> GitLab {
    GitLab {
        pipeline_source: "web".to_owned(),
        project_id: "41".to_owned(),
        commit_sha: BASE.to_owned(),
        commit_before_sha: NULL.to_owned(),
        commit_branch: "main".to_owned(),
        default_branch: "main".to_owned(),
        run_mode: run_mode.to_owned(),
        wanted_sha: wanted_sha.to_owned(),
        ..GitLab::default()
    }
}

#[test]
fn a_gitlab_pipeline_started_by_hand_uses_the_gpu_only_when_asked_to_and_for_a_full_hash() {
    let decide = |pipeline: &GitLab| gitlab(pipeline, &Settings::default()).unwrap();
    for source in ["web", "api"] {
        let of = |pipeline: GitLab| GitLab { pipeline_source: source.to_owned(), ..pipeline };
        runs(&decide(&of(by_hand("self-hosted-gpu", HEAD))), Mode::Against, HEAD, BASE);
        runs(&decide(&of(by_hand("self-hosted-gpu", ""))), Mode::Baseline, BASE, BASE);
        for run_mode in ["", "skip", "SELF-HOSTED-GPU", "self-hosted-gpu ", "true"] {
            not(&decide(&of(by_hand(run_mode, HEAD))), Decision::Skip, "without asking for the GPU");
        }
        let upper = HEAD.to_uppercase();
        for wanted in
            [&HEAD[..12], "main", "refs/merge-requests/7/head", &upper, "$(id)", &format!("{HEAD} ")]
        {
            let refused = decide(&of(by_hand("self-hosted-gpu", wanted)));
            not(&refused, Decision::Refuse, "no full commit hash");
        }
        let elsewhere = GitLab { commit_branch: "topic".to_owned(), ..by_hand("self-hosted-gpu", HEAD) };
        not(&decide(&of(elsewhere)), Decision::Refuse, "on topic; start it on main");
        // A tag has no branch.
        let tag = GitLab { commit_branch: String::new(), ..by_hand("self-hosted-gpu", HEAD) };
        not(&decide(&of(tag)), Decision::Refuse, "start it on main");
    }
    // What it takes to start one by hand does nothing for a pipeline that starts by itself.
    let asked = |pipeline: GitLab| GitLab {
        run_mode: "self-hosted-gpu".to_owned(),
        wanted_sha: HEAD.to_owned(),
        ..pipeline
    };
    let fork = GitLab { merge_request_source_project_id: "99".to_owned(), ..merge_request() };
    not(&decide(&asked(fork)), Decision::Refuse, "may start a pipeline of main for 6113");
    let schedule = GitLab { pipeline_source: "schedule".to_owned(), ..by_hand("", "") };
    not(&decide(&asked(schedule)), Decision::Skip, "not enabled");
}
