use crate::common::{Repo, shell};
use holdpoint_measure::builds::KEPT_MAX;
use holdpoint_measure::program::resolve_program;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

#[test]
fn each_revision_is_built_in_a_folder_of_its_own() {
    let (repo, commits) = Repo::with_commits(3);
    let (builds, build) = (repo.builds(), repo.counted_build());
    for (n, commit) in commits.iter().enumerate() {
        let built = builds.get(commit, Some(&build)).unwrap();
        assert!(!built.cached);
        assert_eq!(fs::read_to_string(built.dir.join("built.txt")).unwrap(), n.to_string());
    }
    assert_eq!(repo.builds_count(), 3);
    assert!(!repo.dir().join("built.txt").exists());
}

#[test]
fn a_build_is_taken_from_the_cache_the_second_time() {
    let (repo, _) = Repo::with_commits(2);
    let build = repo.counted_build();
    let first = repo.builds().get("HEAD~1", Some(&build)).unwrap();
    let second = repo.builds().get("main~1", Some(&build)).unwrap();
    assert_eq!((first.cached, second.cached), (false, true));
    assert_eq!(first.dir, second.dir);
    assert_eq!(repo.builds_count(), 1);
}

#[test]
fn another_command_is_another_build_and_another_time_limit_is_not() {
    let (repo, _) = Repo::with_commits(1);
    let builds = repo.builds();
    let mut build = shell("true");
    let first = builds.get("HEAD", Some(&build)).unwrap();
    build.timeout_s = 5.0;
    assert!(builds.get("HEAD", Some(&build)).unwrap().cached);
    let others = [Some(shell("true ")), None];
    let dirs = others.map(|build| builds.get("HEAD", build.as_ref()).unwrap().dir);
    assert!(dirs[0] != dirs[1] && !dirs.contains(&first.dir), "{dirs:?}");
}

#[test]
fn a_suite_without_a_build_has_its_revisions_checked_out() {
    let (repo, _) = Repo::with_commits(2);
    let built = repo.builds().get("HEAD~1", None).unwrap();
    assert_eq!(fs::read_to_string(built.dir.join("src.txt")).unwrap(), "0");
    assert!(repo.builds().get("HEAD~1", None).unwrap().cached);
    assert_eq!(repo.cached(".log"), [""; 0]);
}

#[test]
fn all_paths_have_the_same_length() {
    let (repo, commits) = Repo::with_commits(3);
    let builds = repo.builds();
    let specs = [None, Some(shell("true")), Some(shell("echo a longer command"))];
    let length =
        |commit: &String, spec: &Option<_>| builds.get(commit, spec.as_ref()).unwrap().dir.as_os_str().len();
    let mut lengths: Vec<_> = commits.iter().flat_map(|c| specs.iter().map(move |s| length(c, s))).collect();
    lengths.dedup();
    assert_eq!(lengths.len(), 1, "{lengths:?}");
}

#[test]
fn the_cache_does_not_show_in_git_status_and_nothing_of_the_users_moves() {
    let (repo, commits) = Repo::with_commits(2);
    repo.write("src.txt", "changed");
    let before = repo.git(&["status", "--porcelain"]);
    repo.builds().get("HEAD~1", Some(&repo.counted_build())).unwrap();
    assert_eq!(repo.git(&["status", "--porcelain"]), before);
    assert_eq!(repo.git(&["rev-parse", "main"]), commits[1]);
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_build_that_was_never_finished_is_made_anew() {
    let (repo, _) = Repo::with_commits(1);
    let build = repo.counted_build();
    let dir = repo.builds().get("HEAD", Some(&build)).unwrap().dir;
    fs::write(dir.join("half.o"), "half").unwrap();
    fs::remove_file(dir.with_extension("built")).unwrap();
    assert!(!repo.builds().get("HEAD", Some(&build)).unwrap().cached);
    assert!(!dir.join("half.o").exists());
    assert_eq!(repo.builds_count(), 2);
}

#[test]
fn a_marker_without_its_worktree_is_not_believed() {
    let (repo, _) = Repo::with_commits(1);
    let build = repo.counted_build();
    let dir = repo.builds().get("HEAD", Some(&build)).unwrap().dir;
    // By hand, as a user who needs the space would.
    fs::remove_dir_all(&dir).unwrap();
    assert!(!repo.builds().get("HEAD", Some(&build)).unwrap().cached);
    // An empty folder would pass for a part of the repository around it, whose HEAD is the same.
    fs::remove_dir_all(&dir).unwrap();
    fs::create_dir(&dir).unwrap();
    assert!(!repo.builds().get("HEAD", Some(&build)).unwrap().cached);
    assert!(dir.join("built.txt").exists());
}

#[test]
fn worktrees_of_earlier_versions_are_removed() {
    let (repo, commits) = Repo::with_commits(2);
    let former = repo.cache().join(format!("{}-00000000", &commits[0][..16]));
    repo.git(&["worktree", "add", "--quiet", "--detach", former.to_str().unwrap(), &commits[0]]);
    fs::write(former.with_extension("built"), "{}").unwrap();
    let own = repo.outside("own");
    repo.git(&["worktree", "add", "--quiet", "--detach", own.to_str().unwrap(), &commits[0]]);
    repo.builds().get("HEAD", None).unwrap();
    assert!(!former.exists() && !former.with_extension("built").exists());
    let listed = repo.git(&["worktree", "list"]);
    assert!(listed.lines().count() == 2 && listed.contains("own"), "{listed}");
}

#[test]
fn a_marker_of_something_else_is_not_believed() {
    let (repo, _) = Repo::with_commits(1);
    let dir = repo.builds().get("HEAD", None).unwrap().dir;
    fs::write(dir.with_extension("built"), "{}").unwrap();
    assert!(!repo.builds().get("HEAD", None).unwrap().cached);
}

#[test]
fn a_repository_that_was_moved_builds_anew() {
    let (repo, _) = Repo::with_commits(1);
    let build = repo.counted_build();
    repo.builds().get("HEAD", Some(&build)).unwrap();
    fs::rename(repo.dir(), repo.outside("moved")).unwrap();
    let builds = holdpoint_measure::builds::Builds::open_with(
        &repo.outside("moved"),
        &repo.outside("moved").join(".holdpoint/builds"),
    )
    .unwrap();
    let built = builds.get("HEAD", Some(&build)).unwrap();
    assert!(!built.cached && built.dir.join("built.txt").exists());
    assert!(builds.get("HEAD", Some(&build)).unwrap().cached);
}

#[test]
fn two_who_want_the_same_build_share_one() {
    let (repo, _) = Repo::with_commits(1);
    let build = repo.counted_build();
    let dirs = std::thread::scope(|scope| {
        let get = || repo.builds().get("HEAD", Some(&build)).unwrap().dir;
        let threads = [scope.spawn(get), scope.spawn(get)];
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(dirs[0], dirs[1]);
    assert_eq!(repo.builds_count(), 1);
}

#[test]
fn the_least_recently_used_build_goes_first() {
    let (repo, commits) = Repo::with_commits(KEPT_MAX + 1);
    let mut dirs = Vec::new();
    for (age, commit) in commits[..KEPT_MAX].iter().enumerate() {
        let dir = repo.builds().get(commit, Some(&repo.counted_build())).unwrap().dir;
        let marker = File::options().append(true).open(dir.with_extension("built")).unwrap();
        marker.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(age as u64)).unwrap();
        dirs.push(dir);
    }
    // The oldest is used once more, so the next one goes.
    assert!(repo.builds().get(&commits[0], Some(&repo.counted_build())).unwrap().cached);
    repo.builds().get(&commits[KEPT_MAX], Some(&repo.counted_build())).unwrap();
    let there: Vec<bool> = dirs.iter().map(|dir| dir.exists()).collect();
    assert_eq!(there.iter().filter(|there| !**there).count(), 1);
    assert!(!there[1], "{there:?}");
    assert_eq!((repo.cached(".built").len(), repo.cached(".log").len()), (KEPT_MAX, KEPT_MAX));
}

#[test]
fn a_build_that_was_handed_out_is_not_evicted_by_anyone() {
    let (repo, commits) = Repo::with_commits(KEPT_MAX + 3);
    let (mine, others) = (repo.builds(), repo.builds());
    let mut dirs: Vec<_> = commits[..2].iter().map(|commit| mine.get(commit, None).unwrap().dir).collect();
    dirs.extend(commits[2..].iter().map(|commit| others.get(commit, None).unwrap().dir));
    assert!(dirs.iter().all(|dir| dir.exists()));
    // Once nobody holds the others, all that is over the limit goes, and still none of mine.
    drop(others);
    repo.builds().get(&commits[0], Some(&shell("true"))).unwrap();
    assert_eq!(repo.cached(".built").len(), KEPT_MAX);
    assert!(dirs[..2].iter().all(|dir| dir.exists()));
}

#[test]
fn the_work_tree_is_built_as_it_is_every_time() {
    let (repo, _) = Repo::with_commits(1);
    repo.write("src.txt", "changed");
    let builds = repo.builds();
    for count in 1..=2 {
        let built = builds.build_in_place(Some(&repo.counted_build())).unwrap();
        assert_eq!((built.cached, built.dir.as_path()), (false, builds.root()));
        assert_eq!(fs::read_to_string(built.dir.join("built.txt")).unwrap(), "changed");
        assert_eq!(repo.builds_count(), count);
    }
    assert!(!builds.build_in_place(None).unwrap().cached);
    assert_eq!(repo.cached(".built"), [""; 0]);
}

#[test]
fn a_program_is_looked_up_where_it_runs() {
    let dir = Path::new("/some/where");
    assert_eq!(resolve_program(dir, "target/release/tool"), "/some/where/target/release/tool");
    assert_eq!(resolve_program(dir, "./tool"), "/some/where/tool");
    assert_eq!(resolve_program(dir, "/bin/sh"), "/bin/sh");
    assert_eq!(resolve_program(dir, "sh"), "sh");
    let here = std::env::current_dir().unwrap().join("sub/tool");
    assert_eq!(resolve_program(Path::new("sub"), "./tool"), here);
}

#[test]
fn a_checkout_that_was_killed_is_made_anew() {
    let (repo, _) = Repo::with_commits(1);
    let dir = repo.builds().get("HEAD", None).unwrap().dir;
    fs::remove_file(dir.with_added_extension("built")).unwrap();
    fs::write(dir.join(".git/index.lock"), "").unwrap();
    fs::remove_file(dir.join("src.txt")).unwrap();
    assert!(!repo.builds().get("HEAD", None).unwrap().cached);
}

#[test]
fn what_a_killed_build_left_goes_when_another_is_taken_from_the_cache() {
    let (repo, _) = Repo::with_commits(2);
    let half = repo.builds().get("HEAD", None).unwrap().dir;
    repo.builds().get("HEAD~1", None).unwrap();
    fs::remove_file(half.with_added_extension("built")).unwrap();
    assert!(repo.builds().get("HEAD~1", None).unwrap().cached);
    assert!(!half.exists());
}
