use crate::common::{Repo, git, says, shell};
use crate::program::write_program;
use holdpoint_measure::builds::{BuildError, Builds};
use holdpoint_model::suite::BuildSpec;
use holdpoint_process::git::GitError;
use std::fs;

#[test]
fn a_build_that_fails_says_how_and_the_next_revision_still_builds() {
    let (repo, commits) = Repo::with_commits(2);
    let script = "seq 30; echo '\x1b[31mred' >&2; test $(cat src.txt) = 1 || exit 7";
    let (builds, build) = (repo.builds(), shell(script));
    let error = builds.get(&commits[0], Some(&build)).unwrap_err();
    says(&error, &[&commits[0], "exit status: 7", ".log"]);
    assert!(error.is_of_one_revision() && !error.is_input());
    let BuildError::Failed { log, last_lines, .. } = &error else { panic!("{error:?}") };
    let text = fs::read_to_string(log).unwrap();
    assert!(text.starts_with("1\n2\n") && text.lines().count() == 31, "{text}");
    // Both streams, in order, without what would paint on a terminal.
    assert_eq!(last_lines.len(), 20);
    assert_eq!((last_lines[0].as_str(), last_lines[19].as_str()), ("12", "[31mred"));
    assert_eq!(error.last_lines(), last_lines);

    assert_eq!(repo.cached(".built"), [""; 0]);
    assert!(!builds.get(&commits[1], Some(&build)).unwrap().cached);
    assert_eq!(repo.cached(".built").len(), 1);
    // What the failed one left has gone with the next, save its log.
    let folders = fs::read_dir(repo.cache()).unwrap().filter(|file| file.as_ref().unwrap().path().is_dir());
    assert_eq!((folders.count(), log.exists()), (1, true));
}

#[test]
fn a_build_that_failed_is_tried_again() {
    let (repo, _) = Repo::with_commits(1);
    let flag = repo.outside("flag");
    let build = shell(&format!("test -e '{}'", flag.display()));
    assert!(matches!(repo.builds().get("HEAD", Some(&build)), Err(BuildError::Failed { .. })));
    fs::write(flag, "").unwrap();
    assert!(!repo.builds().get("HEAD", Some(&build)).unwrap().cached);
}

#[test]
fn a_build_that_takes_too_long_is_killed() {
    let (repo, _) = Repo::with_commits(1);
    let builds = repo.builds();
    let build = BuildSpec { timeout_s: 0.2, ..shell("echo begun; sleep 60 & sleep 60") };
    for error in
        [builds.get("HEAD", Some(&build)).unwrap_err(), builds.build_in_place(Some(&build)).unwrap_err()]
    {
        says(&error, &["0.2 s", "timeout_s", ".log"]);
        assert!(matches!(error, BuildError::TimedOut { .. }), "{error:?}");
    }
    assert_eq!(repo.cached(".built"), [""; 0]);
}

#[test]
fn what_a_build_leaves_running_is_ended() {
    let (repo, _) = Repo::with_commits(1);
    // Once the shell has ended, the pipe is open for writing in the one left behind alone: its end ends the reading.
    let pipe = repo.outside("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let build = shell(&format!("exec 3> '{}'; sleep 600 & exit 0", pipe.display()));
    let reader = std::thread::spawn(move || fs::read(pipe).unwrap());
    repo.builds().get("HEAD", Some(&build)).unwrap();
    assert_eq!(reader.join().unwrap(), b"");
}

#[test]
fn a_command_that_cannot_be_started_is_named() {
    let (repo, _) = Repo::with_commits(1);
    let command = |words: &[&str]| BuildSpec {
        command: words.iter().map(|word| (*word).to_owned()).collect(),
        ..shell("")
    };
    for words in [&["./configure"] as &[&str], &["no-such-program-anywhere"], &[]] {
        let error = repo.builds().get("HEAD", Some(&command(words))).unwrap_err();
        says(&error, &[words.first().unwrap_or(&"\"\""), "[build]"]);
        assert!(matches!(error, BuildError::NotStarted { .. }), "{error:?}");
    }
}

#[test]
fn a_program_of_the_revision_builds_it() {
    let (repo, _) = Repo::with_commits(1);
    let make = repo.dir().join("make.sh");
    write_program(&make, "#!/bin/sh\npwd > where.txt\n");
    repo.commit("with a script");
    fs::remove_file(make).unwrap();
    let build = BuildSpec { command: vec!["./make.sh".to_owned()], ..shell("") };
    let dir = repo.builds().get("HEAD", Some(&build)).unwrap().dir;
    assert_eq!(fs::read_to_string(dir.join("where.txt")).unwrap(), format!("{}\n", dir.display()));
}

#[test]
fn a_suite_in_a_folder_is_built_and_run_in_that_folder() {
    let (repo, commits) = Repo::with_commits(1);
    fs::create_dir_all(repo.dir().join("perf/gpu")).unwrap();
    repo.write("perf/gpu/here.txt", "1");
    let head = repo.commit("with a folder");
    let builds = || repo.builds().in_folder(Some(&repo.dir().canonicalize().unwrap().join("perf/gpu")));
    let build = shell("ls > files.txt");
    let files = |revision: &str| {
        let dir = builds().get(revision, Some(&build)).unwrap().dir;
        assert!(dir.ends_with("perf/gpu"), "{dir:?}");
        fs::read_to_string(dir.join("files.txt")).unwrap()
    };
    assert_eq!(files(&head), "files.txt\nhere.txt\n");
    // A revision from before the suite has an empty folder in its place.
    assert_eq!(files(&commits[0]), "files.txt\n");
    assert!(builds().get(&commits[0], Some(&build)).unwrap().cached);
    // At the root it is another build.
    assert!(!repo.builds().get(&head, Some(&build)).unwrap().cached);
    assert_eq!(
        builds().build_in_place(None).unwrap().dir,
        repo.dir().canonicalize().unwrap().join("perf/gpu")
    );
}

#[test]
fn a_link_in_place_of_the_suites_folder_is_refused() {
    let repo = Repo::empty();
    fs::create_dir(repo.outside("elsewhere")).unwrap();
    std::os::unix::fs::symlink(repo.outside("elsewhere"), repo.dir().join("perf")).unwrap();
    let head = repo.commit("with a link");
    let builds = repo.builds().in_folder(Some(&repo.dir().canonicalize().unwrap().join("perf/gpu")));
    says(&builds.get(&head, None).unwrap_err(), &["perf/gpu", "no folder at this revision"]);
    assert!(!repo.outside("elsewhere/gpu").exists());
}

#[test]
fn a_build_is_not_told_of_the_folder_that_we_run_in() {
    let (repo, _) = Repo::with_commits(1);
    let build = BuildSpec { command: vec!["env".to_owned()], ..shell("") };
    let dir = repo.builds().get("HEAD", Some(&build)).unwrap().dir;
    let environment = fs::read_to_string(dir.with_extension("log")).unwrap();
    assert!(environment.contains("PATH="), "{environment}");
    let told = environment.lines().find(|line| line.starts_with("PWD=") || line.starts_with("OLDPWD="));
    assert_eq!(told, None);
}

#[test]
fn a_folder_that_is_in_no_repository_is_named() {
    let dir = tempfile::tempdir().unwrap();
    for dir in [dir.path().to_owned(), dir.path().join("not there")] {
        let error = Builds::open(&dir).unwrap_err();
        says(&error, &[dir.to_str().unwrap(), "inside the repository"]);
        assert!(
            matches!(error, BuildError::Git(GitError::NotARepository { .. })) && error.is_input(),
            "{error:?}"
        );
    }
    git(dir.path(), &["init", "--quiet", "--bare"]);
    assert!(matches!(Builds::open(dir.path()), Err(BuildError::Git(GitError::NotARepository { .. }))));
}

#[test]
fn a_checkout_that_cannot_be_made_is_named() {
    let (repo, commits) = Repo::with_commits(1);
    let blob = repo.git(&["rev-parse", "HEAD:src.txt"]);
    fs::remove_file(repo.dir().join(".git/objects").join(&blob[..2]).join(&blob[2..])).unwrap();
    let error = repo.builds().get("HEAD", None).unwrap_err();
    says(&error, &[&commits[0], ".holdpoint/builds/", "free space"]);
    assert!(matches!(error, BuildError::Checkout { .. }), "{error:?}");
}

#[test]
fn a_cache_that_cannot_be_written_is_named() {
    let (repo, _) = Repo::with_commits(1);
    repo.write(".holdpoint", "a file");
    let error = repo.builds().get("HEAD", None).unwrap_err();
    says(&error, &[".holdpoint/builds"]);
    assert!(matches!(error, BuildError::Io { .. }), "{error:?}");
}

#[test]
fn submodules_that_cannot_be_fetched_are_named() {
    let (repo, commits) = Repo::with_commits(1);
    let link = format!("160000,{},lib", commits[0]);
    repo.git(&["update-index", "--add", "--cacheinfo", &link]);
    repo.write(".gitmodules", "[submodule \"lib\"]\n\tpath = lib\n\turl = /nowhere/at/all\n");
    repo.git(&["add", ".gitmodules"]);
    repo.git(&["commit", "--quiet", "-m", "with a submodule"]);
    let error = repo.builds().get("HEAD", None).unwrap_err();
    says(&error, &["submodules", "fetch"]);
    assert!(matches!(error, BuildError::Submodules { .. }), "{error:?}");
    assert!(repo.builds().get("HEAD~1", None).is_ok());
}
