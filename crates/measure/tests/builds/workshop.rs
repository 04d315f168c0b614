//! Builds that start from the one before.

use crate::common::{Repo, shell};
use holdpoint_measure::builds::{BuildError, Built, KEPT_MAX};
use holdpoint_model::suite::BuildSpec;
use std::fs;
use std::path::Path;

/// Adds a line to a file that git does not know: as many as there were builds in the folder.
fn adding() -> BuildSpec {
    shell("cat src.txt >> built.txt; echo >> built.txt")
}

fn built(built: &Built) -> Vec<String> {
    let text = fs::read_to_string(built.dir.join("built.txt")).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_build_starts_from_the_one_before() {
    let (repo, commits) = Repo::with_commits(3);
    let builds = repo.builds();
    let mut dirs = Vec::new();
    for (n, lines) in [(2, vec!["2"]), (0, vec!["2", "0"]), (1, vec!["2", "0", "1"])] {
        let step = builds.get_in_workshop(&commits[n], Some(&adding())).unwrap();
        assert_eq!((built(&step), step.cached), (lines.into_iter().map(str::to_owned).collect(), false));
        assert!(builds.get_in_workshop(&commits[n], Some(&adding())).unwrap().cached);
        builds.release(&step);
        dirs.push(step.dir);
    }
    dirs.dedup();
    assert_eq!(dirs.len(), 1);
    // A verdict's builds have nothing of that, at a path of the same length.
    let clean = builds.get(&commits[1], Some(&adding())).unwrap();
    assert_eq!(
        (built(&clean), clean.dir.as_os_str().len()),
        (vec!["1".to_owned()], dirs[0].as_os_str().len())
    );
    // A step takes one of these where there is one.
    assert_eq!(builds.get_in_workshop(&commits[1], Some(&adding())).unwrap().dir, clean.dir);
}

#[test]
fn only_files_that_differ_are_written() {
    let (repo, _) = Repo::with_commits(1);
    repo.write("same.txt", "");
    repo.commit("1");
    repo.commit("2");
    let builds = repo.builds();
    let modified = |dir: &Path, name: &str| fs::metadata(dir.join(name)).unwrap().modified().unwrap();
    let first = builds.get_in_workshop("HEAD~1", Some(&shell("date > built.txt; echo x > src.txt"))).unwrap();
    let [same, built] = ["same.txt", "built.txt"].map(|name| modified(&first.dir, name));
    builds.release(&first);
    let second = builds.get_in_workshop("HEAD", Some(&shell("date > built.txt; echo x > src.txt"))).unwrap();
    assert_eq!((&second.dir, modified(&second.dir, "same.txt")), (&first.dir, same));
    assert!(modified(&second.dir, "src.txt") >= built);
}

#[test]
fn what_a_build_did_to_tracked_files_is_undone() {
    let (repo, commits) = Repo::with_commits(2);
    let builds = repo.builds();
    let build = shell("cp src.txt seen.txt; echo changed > src.txt; rm -f .gitignore");
    for (commit, text) in [(&commits[0], "0"), (&commits[1], "1")] {
        let step = builds.get_in_workshop(commit, Some(&build)).unwrap();
        assert_eq!(fs::read_to_string(step.dir.join("seen.txt")).unwrap(), text);
        builds.release(&step);
    }
}

#[test]
fn a_workshop_in_use_is_not_built_over() {
    let (repo, commits) = Repo::with_commits(3);
    let (mine, others) = (repo.builds(), repo.builds());
    let first = mine.get_in_workshop(&commits[0], Some(&adding())).unwrap();
    let second = others.get_in_workshop(&commits[1], Some(&adding())).unwrap();
    assert!(first.dir != second.dir && built(&first) == ["0"] && built(&second) == ["1"]);
    others.release(&second);
    let third = mine.get_in_workshop(&commits[2], Some(&adding())).unwrap();
    assert_eq!((third.dir, built(&first)), (second.dir, vec!["0".to_owned()]));
}

#[test]
fn another_command_has_another_workshop() {
    let (repo, commits) = Repo::with_commits(2);
    let builds = repo.builds();
    let first = builds.get_in_workshop(&commits[0], Some(&adding())).unwrap();
    builds.release(&first);
    let second = builds.get_in_workshop(&commits[1], Some(&shell("cp src.txt built.txt"))).unwrap();
    assert!(first.dir != second.dir && built(&first) == ["0"] && built(&second) == ["1"]);
}

#[test]
fn a_build_that_fails_on_leftovers_is_made_from_nothing() {
    let (repo, commits) = Repo::with_commits(2);
    let builds = repo.builds();
    let build = shell("test ! -e built.txt && cat src.txt > built.txt");
    let first = builds.get_in_workshop(&commits[0], Some(&build)).unwrap();
    builds.release(&first);
    let second = builds.get_in_workshop(&commits[1], Some(&build)).unwrap();
    assert_eq!((second.dir.clone(), built(&second)), (first.dir, vec!["1".to_owned()]));
}

#[test]
fn a_commit_that_does_not_build_leaves_its_workshop_to_the_next() {
    let (repo, commits) = Repo::with_commits(3);
    let builds = repo.builds();
    let build = shell("cat src.txt >> built.txt; echo >> built.txt; test $(cat src.txt) != 1");
    let error = builds.get_in_workshop(&commits[1], Some(&build)).unwrap_err();
    assert!(matches!(&error, BuildError::Failed { log, .. } if log.exists()), "{error:?}");
    let next = builds.get_in_workshop(&commits[2], Some(&build)).unwrap();
    assert_eq!(built(&next), ["1", "2"]);
    // That one is still not built.
    builds.release(&next);
    assert!(builds.get_in_workshop(&commits[1], Some(&build)).is_err());
    // A build that was cut short may have left half a file.
    let cut_short =
        BuildSpec { timeout_s: 0.2, ..shell("echo half > built.txt; test $(cat src.txt) != 1 || sleep 60") };
    assert!(matches!(
        builds.get_in_workshop(&commits[1], Some(&cut_short)),
        Err(BuildError::TimedOut { .. })
    ));
    assert_eq!(repo.cached(".built").len(), 1);
}

#[test]
fn a_broken_workshop_is_made_anew() {
    let (repo, commits) = Repo::with_commits(2);
    let builds = repo.builds();
    let first = builds.get_in_workshop(&commits[0], Some(&adding())).unwrap();
    builds.release(&first);
    fs::remove_dir_all(first.dir.join(".git")).unwrap();
    // The repository around it, which is the user's, is not taken for it.
    assert_eq!(built(&builds.get_in_workshop(&commits[0], Some(&adding())).unwrap()), ["0"]);
    assert_eq!(
        (repo.git(&["rev-parse", "HEAD"]), repo.git(&["status", "--porcelain"])),
        (commits[1].clone(), String::new())
    );
}

#[test]
fn workshops_that_are_all_in_use_are_named() {
    let (repo, commits) = Repo::with_commits(KEPT_MAX + 1);
    let builds = repo.builds();
    for commit in &commits[..KEPT_MAX] {
        builds.get_in_workshop(commit, None).unwrap();
    }
    let error = builds.get_in_workshop(&commits[KEPT_MAX], None).unwrap_err();
    assert!(error.to_string().contains("in use"), "{error}");
}
