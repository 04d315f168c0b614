//! What comes from around the process: its environment, and whoever ends it. Each test runs itself again in a process
//! of its own, because all of them share this one's.

use crate::common::{Repo, git, shell};
use crate::program::write_program;
use holdpoint_measure::builds::{BuildError, Builds};
use holdpoint_measure::jobs;
use holdpoint_process::git::GitError;
use std::fs;
use std::process::Command;

/// Set in the second process.
const AGAIN: &str = "HOLDPOINT_TEST_AGAIN";

/// Runs one test again, alone, in another environment; false in that process.
fn runs_again(test: &str, environment: &[(&str, &str)]) -> bool {
    if std::env::var_os(AGAIN).is_some() {
        return false;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(AGAIN, "1").envs(environment.iter().copied());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
    true
}

#[test]
fn a_missing_git_is_named() {
    if !runs_again("outside::a_missing_git_is_named", &[("PATH", "/nowhere")]) {
        let error = Builds::open("/".as_ref()).unwrap_err();
        assert!(matches!(error, BuildError::Git(GitError::NotStarted(_))), "{error:?}");
        assert!(error.to_string().contains("install it"), "{error}");
    }
}

#[test]
fn a_hook_of_another_repository_leads_nobody_astray() {
    let environment =
        [("GIT_DIR", "/nowhere/.git"), ("GIT_INDEX_FILE", "/nowhere/index"), ("GIT_WORK_TREE", "/nowhere")];
    if runs_again("outside::a_hook_of_another_repository_leads_nobody_astray", &environment) {
        return;
    }
    let (repo, commits) = Repo::with_commits(2);
    let build = shell("git rev-parse HEAD > head.txt; git status --porcelain -uno > status.txt");
    let dir = repo.builds().get("HEAD~1", Some(&build)).unwrap().dir;
    assert_eq!(fs::read_to_string(dir.join("head.txt")).unwrap().trim(), commits[0]);
    assert_eq!(fs::read_to_string(dir.join("status.txt")).unwrap(), "");
}

#[test]
fn a_hook_of_this_repository_does_not_run() {
    let (repo, _) = Repo::with_commits(1);
    let hook = repo.dir().join(".git/hooks/post-checkout");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    write_program(&hook, format!("#!/bin/sh\ntouch '{}'\n", repo.outside("hooked").display()));
    repo.builds().get("HEAD", None).unwrap();
    assert!(!repo.outside("hooked").exists());
}

#[test]
fn a_build_that_is_ended_from_outside_is_made_anew() {
    if runs_again("outside::a_build_that_is_ended_from_outside_is_made_anew", &[]) {
        return;
    }
    let (repo, _) = Repo::with_commits(1);
    let (pipe, flag) = (repo.outside("pipe"), repo.outside("flag"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let script = "test -e FLAG && exit 0; touch half.o; echo begun > PIPE; sleep 600";
    let script = script.replace("FLAG", flag.to_str().unwrap()).replace("PIPE", pipe.to_str().unwrap());
    let build = shell(&script);
    let error = std::thread::scope(|scope| {
        let builder = scope.spawn(|| repo.builds().get("HEAD", Some(&build)));
        assert_eq!(fs::read_to_string(&pipe).unwrap(), "begun\n");
        jobs::kill_all();
        builder.join().unwrap().unwrap_err()
    });
    assert!(matches!(error, BuildError::Failed { .. }), "{error:?}");
    assert!(error.to_string().contains("signal: 9"), "{error}");
    fs::write(flag, "").unwrap();
    let built = repo.builds().get("HEAD", Some(&build)).unwrap();
    assert!(!built.cached && !built.dir.join("half.o").exists());
}

#[test]
fn submodules_are_checked_out_with_their_revision() {
    // Git fetches from files in tests alone.
    let allow = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "protocol.file.allow"),
        ("GIT_CONFIG_VALUE_0", "always"),
        ("GIT_ALLOW_PROTOCOL", "file"),
    ];
    if runs_again("outside::submodules_are_checked_out_with_their_revision", &allow) {
        return;
    }
    let (library, _) = Repo::with_commits(1);
    let (repo, _) = Repo::with_commits(1);
    repo.git(&["submodule", "--quiet", "add", library.dir().to_str().unwrap(), "lib"]);
    repo.commit("with a library");
    let build = shell("cp lib/src.txt built.txt");
    let built = repo.builds().get("HEAD", Some(&build)).unwrap();
    assert_eq!(fs::read_to_string(built.dir.join("built.txt")).unwrap(), "0");
    fs::remove_file(built.dir.with_extension("built")).unwrap();
    assert!(!repo.builds().get("HEAD", Some(&build)).unwrap().cached);
    // A workshop takes them along from commit to commit.
    library.commit("1");
    git(&repo.dir().join("lib"), &["pull", "--quiet"]);
    repo.commit("with a newer library");
    for (revision, text) in [("HEAD", "1"), ("HEAD~1", "0")] {
        let other = shell("cp  lib/src.txt built.txt");
        let built = repo.builds().get_in_workshop(revision, Some(&other)).unwrap();
        assert_eq!(fs::read_to_string(built.dir.join("built.txt")).unwrap(), text);
    }
}
