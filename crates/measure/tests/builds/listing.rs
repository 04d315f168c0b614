//! The cache of all repositories: `holdpoint cache`.

use crate::common::{Repo, shell};
use holdpoint_measure::builds::{Builds, clean, list};
use std::fs::{self, File};
use std::time::{Duration, SystemTime};

#[test]
fn builds_are_listed_with_what_they_are_of() {
    let (repo, commits) = Repo::with_commits(2);
    let cache = repo.outside("cache");
    assert!(list(&cache).unwrap().builds.is_empty());
    let builds = Builds::open_with(&repo.dir(), &cache.join("0123abcd")).unwrap();
    let built = builds.get("HEAD~1", Some(&shell("head -c 100000 /dev/zero > built.txt"))).unwrap();
    drop(builds.get_in_workshop("HEAD", Some(&shell("exit 1"))));
    // Another folder of the cache, and a file.
    fs::create_dir(cache.join("kernels")).unwrap();
    fs::write(cache.join("kernels/a.built"), "").unwrap();
    let listing = list(&cache).unwrap();
    let [failed, first] = listing.builds.as_slice() else { panic!("{listing:?}") };
    let root = repo.dir().canonicalize().unwrap();
    assert_eq!(first.repository.as_deref(), root.to_str());
    assert_eq!((first.commit.as_ref(), failed.commit.as_ref()), (Some(&commits[0]), None));
    assert_eq!(first.command.as_ref().unwrap()[0], "sh");
    assert_eq!(first.path, built.dir.display().to_string());
    assert!(first.size_bytes >= 100_000 && first.size_bytes < 1_000_000, "{first:?}");
    assert!(first.in_use && !failed.in_use);
}

#[test]
fn builds_in_use_and_those_not_selected_are_not_removed() {
    let (repo, commits) = Repo::with_commits(3);
    let cache = repo.outside("cache");
    let open = || Builds::open_with(&repo.dir(), &cache.join("0123abcd")).unwrap();
    let used = open();
    let dirs = [&used, &open(), &open()].map(|builds| builds.get("HEAD", None).unwrap().dir);
    assert_eq!(dirs[0], dirs[1]);
    let old = open().get(&commits[0], None).unwrap().dir;
    let new = open().get(&commits[1], None).unwrap().dir;
    for dir in [&dirs[0], &old] {
        let marker = File::options().append(true).open(dir.with_extension("built")).unwrap();
        marker.set_modified(SystemTime::now() - Duration::from_secs(8 * 86_400)).unwrap();
    }
    let cleaned = clean(&cache, |build| build.unused_s > 7.0 * 86_400.0).unwrap();
    assert_eq!((cleaned.removed.len(), cleaned.builds.len()), (1, 2));
    assert_eq!(cleaned.removed[0].commit.as_ref(), Some(&commits[0]));
    assert!(!old.exists() && new.exists() && dirs[0].exists());
    let cleaned = clean(&cache, |_| true).unwrap();
    assert_eq!((cleaned.removed.len(), cleaned.builds.len()), (1, 1));
    assert!(!new.exists() && dirs[0].exists() && cleaned.builds[0].in_use);
    drop(used);
    assert_eq!(clean(&cache, |_| true).unwrap().builds.len(), 0);
    assert!(list(&cache).unwrap().builds.is_empty());
}
