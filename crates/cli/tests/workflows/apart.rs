//! What a GitLab job keeps from what it measures: secrets, its own files, and the time after the gate.

use crate::actions::{parsed, written};
use crate::pipeline::{Ended, Started, can_be_without_namespaces, run};
use crate::repository::Origin;
use std::fs;
use std::process::Command;

/// A push that is slower, with these variables of the project.
fn pushed(more: &[(&str, &str)], no_namespaces: bool) -> Ended {
    let file = parsed(&written(&["--forge", "gitlab"])["holdpoint.yml"]);
    let origin = Origin::new();
    let suite = fs::read_to_string(origin.path().join("perf-gpu.toml")).unwrap();
    let build = "[build]\ncommand = [\"sh\", \"-c\", 'env > \"$HOME/built\"']\n";
    origin.commit_file("perf-gpu.toml", &format!("{suite}{build}"));
    let before = origin.record_baseline();
    let head = origin.commit("9000");
    let given = [
        ("CI_PIPELINE_SOURCE", "push"),
        ("CI_PROJECT_ID", "41"),
        ("CI_COMMIT_SHA", head.as_str()),
        ("CI_COMMIT_BEFORE_SHA", before.as_str()),
        ("CI_COMMIT_BRANCH", "main"),
        ("CI_DEFAULT_BRANCH", "main"),
    ];
    let given = given.iter().chain(more).copied().collect();
    let started = Started { sha: &head, given, no_namespaces, ..Started::default() };
    run(&file, &started, &origin)
}

/// Whether this machine lets the job set something apart.
fn has_namespaces() -> bool {
    let can = |program: &str, more: &[&str]| {
        let mut command = Command::new(program);
        let alone = ["--pid", "--fork", "--kill-child", "--mount-proc"];
        if program == "sudo" {
            command.args(["-n", "unshare"]);
        }
        command.args(alone).args(more).arg("true").output().is_ok_and(|done| done.status.success())
    };
    can("sudo", &[]) || can("unshare", &["--user", "--map-current-user"]) || can("unshare", &[])
}

#[test]
fn what_is_measured_sees_no_secret_of_the_job() {
    let ended = pushed(
        &[
            ("CI_REGISTRY_PASSWORD", "s3cret-registry"),
            ("CI_DEPLOY_PASSWORD", "s3cret-deploy"),
            ("HOLDPOINT_GITLAB_TOKEN", "s3cret-comment"),
            ("CARGO_REGISTRY_TOKEN", "s3cret-crates"),
            ("ANY_NAME_THAT_IS_MASKED", "s3cret-masked"),
            ("CI_COMMIT_MESSAGE", "two\nlines"),
            ("CUDA_VISIBLE_DEVICES", "0"),
            ("KERNEL_VARIANT", "wide 'and' \"odd\"\nlines $HOME"),
            ("HOLDPOINT_PASS", "KERNEL_VARIANT, NOT_THERE"),
        ],
        false,
    );
    let job = &ended.jobs["gpu-perf-regression"];
    assert_eq!(ended.jobs["gpu-perf-regression"].result, "failure", "{:#?}", ended.jobs);
    assert_eq!(has_namespaces(), !job.log.contains("may outlive the gate"), "{}", job.log);
    for seen in ["seen", "built"] {
        let seen = fs::read_to_string(job.home.join(seen)).unwrap();
        assert!(seen.contains("CUDA_VISIBLE_DEVICES=0\n"), "{seen}");
        assert!(seen.contains("KERNEL_VARIANT=wide 'and' \"odd\"\nlines $HOME\n"), "{seen}");
        // Where a machine has no namespaces, it can look at the job's process, and the job warns of it.
        if has_namespaces() {
            assert!(!seen.contains("s3cret") && !seen.contains("glcbt-job"), "{seen}");
        }
    }
}

#[test]
fn without_namespaces_the_job_warns_and_still_says_what_it_found() {
    if !can_be_without_namespaces() {
        eprintln!("skipped: not root, or namespaces cannot be forbidden here");
        return;
    }
    let ended = pushed(&[], true);
    let gate = &ended.jobs["gpu-perf-regression"];
    assert!(gate.log.contains("WARNING: this machine has no namespaces"), "{}", gate.log);
    assert_eq!(fs::read_to_string(gate.evidence("exit-code")).unwrap(), "1\n");
}

/// Processes that the code of a stranger has left as another user.
fn left_by_user(user: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let path = entry.ok()?.path();
        let status = fs::read_to_string(path.join("status")).ok()?;
        let line = String::from_utf8_lossy(&fs::read(path.join("cmdline")).ok()?).into_owned();
        status.contains(&format!("\nUid:\t{user}\t")).then_some(line)
    });
    all.filter(|line| line.contains("left by")).collect()
}

#[test]
fn where_the_job_is_root_another_user_is_measured_and_nothing_of_it_is_left() {
    let id = |arguments: &[&str]| {
        String::from_utf8(Command::new("id").args(arguments).output().unwrap().stdout)
            .unwrap()
            .trim()
            .to_owned()
    };
    if id(&["-u"]) != "0"
        || !Command::new("setpriv").arg("--version").output().is_ok_and(|done| done.status.success())
        || !can_be_without_namespaces()
    {
        eprintln!("skipped: not root, no setpriv, or namespaces cannot be forbidden here");
        return;
    }
    for no_namespaces in [true, false] {
        let ended = pushed(&[("HOLDPOINT_MEASURE_AS", "nobody")], no_namespaces);
        let gate = &ended.jobs["gpu-perf-regression"];
        assert!(!gate.log.contains("WARNING"), "{}", gate.log);
        assert_eq!(fs::read_to_string(gate.evidence("exit-code")).unwrap(), "1\n", "{}", gate.log);
        assert!(ended.jobs["gpu-perf-regression"].log.contains("regressed"), "{:#?}", ended.jobs);
        assert_eq!(left_by_user(&id(&["-u", "nobody"])), Vec::<String>::new());
    }
}
