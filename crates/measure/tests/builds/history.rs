use crate::common::{Repo, git, says};
use holdpoint_measure::builds::{BuildError, Builds, Range};
use holdpoint_process::git::{Commit, GitError};

fn subjects(commits: &[Commit]) -> Vec<&str> {
    commits.iter().map(|commit| commit.subject.as_str()).collect()
}

#[test]
fn a_revision_goes_by_many_names() {
    let (repo, commits) = Repo::with_commits(3);
    repo.git(&["tag", "-a", "v1", "-m", "one", "HEAD~1"]);
    repo.git(&["branch", "side", "HEAD~2"]);
    let builds = repo.builds();
    let cases = [("HEAD", 2), ("main", 2), ("@", 2), ("v1", 1), ("side", 0), ("HEAD~2", 0), ("main^", 1)];
    for (name, n) in cases {
        assert_eq!(builds.repository().resolve(name).unwrap(), commits[n], "{name}");
    }
    assert_eq!(builds.repository().resolve(&commits[0][..10]).unwrap(), commits[0]);
    assert_eq!(builds.repository().resolve(&commits[0].to_uppercase()).unwrap(), commits[0]);
}

#[test]
fn what_names_no_commit_is_refused_and_never_taken_for_an_option() {
    let (repo, _) = Repo::with_commits(2);
    let builds = repo.builds();
    let zeros = "0".repeat(40);
    let names = [
        "",
        " ",
        "no-such",
        "--help",
        "-h",
        "--git-dir",
        "--all",
        "--",
        "-",
        "^HEAD",
        "HEAD~1..HEAD",
        "HEAD~9",
        "HEAD:src.txt",
        "HEAD^{tree}",
        "a\0b",
        "a\nb",
        "main main",
        "$(id)",
        "@{u}",
        &zeros,
    ];
    for name in names {
        let error = builds.repository().resolve(name).unwrap_err();
        assert!(matches!(error, GitError::UnknownRevision { .. }) && error.is_input(), "{name:?}: {error:?}");
        assert!(error.to_string().contains("git fetch"), "{error}");
        assert!(builds.get(name, None).is_err() && builds.repository().describe(name).is_err(), "{name:?}");
    }
    assert!(!repo.cache().exists());
}

#[test]
fn a_repository_without_a_commit_has_no_head() {
    let repo = Repo::empty();
    assert!(matches!(repo.builds().repository().resolve("HEAD"), Err(GitError::UnknownRevision { .. })));
    assert_eq!(repo.builds().changes().unwrap(), [""; 0]);
}

#[test]
fn a_folder_deep_inside_belongs_to_its_repository() {
    let (repo, commits) = Repo::with_commits(1);
    let deep = repo.dir().join("a/b");
    std::fs::create_dir_all(&deep).unwrap();
    let builds = Builds::open(&deep).unwrap();
    assert_eq!(builds.root(), repo.dir().canonicalize().unwrap());
    assert_eq!(builds.repository().resolve("HEAD").unwrap(), commits[0]);
}

#[test]
fn changes_are_tracked_files_that_differ() {
    let (repo, _) = Repo::with_commits(1);
    ["a b.txt", "gone.txt", "old.txt"].iter().for_each(|name| repo.write(name, "some text\nand more\n"));
    repo.commit("more");
    let builds = repo.builds();
    repo.write("untracked.txt", "");
    assert_eq!(builds.changes().unwrap(), [""; 0]);
    repo.write("a b.txt", "changed");
    repo.write("staged.txt", "new");
    repo.git(&["add", "staged.txt"]);
    repo.git(&["mv", "old.txt", "näw.txt"]);
    std::fs::remove_file(repo.dir().join("gone.txt")).unwrap();
    let mut changes = builds.changes().unwrap();
    changes.sort();
    assert_eq!(changes, ["a b.txt", "gone.txt", "näw.txt", "old.txt", "staged.txt"]);
}

#[test]
fn a_commit_is_described_without_control_characters() {
    let (repo, _) = Repo::with_commits(1);
    let date = "--date=2024-02-29T12:34:56+02:00";
    let message = "make \u{1b}[31mit\u{7} faster\n\nThe body.";
    repo.git(&["commit", "--quiet", "--allow-empty", date, "-m", message]);
    let commit = repo.builds().repository().describe("HEAD").unwrap();
    assert_eq!(commit.hash, repo.git(&["rev-parse", "HEAD"]));
    assert_eq!(commit.date, "2024-02-29T12:34:56+02:00");
    assert_eq!(commit.subject, "make [31mit faster");
}

#[test]
fn a_commit_without_a_message_has_an_empty_subject() {
    let (repo, _) = Repo::with_commits(1);
    repo.git(&["commit", "--quiet", "--allow-empty", "--allow-empty-message", "-m", ""]);
    assert_eq!(repo.builds().repository().describe("HEAD").unwrap().subject, "");
    assert_eq!(repo.builds().range("HEAD~1", "HEAD").unwrap().commits.len(), 1);
}

#[test]
fn a_line_of_commits_is_listed_oldest_first() {
    let (repo, commits) = Repo::with_commits(5);
    let Range { base, commits: between } = repo.builds().range("HEAD~3", "main").unwrap();
    assert_eq!(subjects(&between), ["2", "3", "4"]);
    assert_eq!((&base.hash, &between[0].hash), (&commits[1], &commits[2]));
    assert_eq!(between[2], repo.builds().repository().describe("main").unwrap());
}

/// ```text
/// 0 ── 1 ── 2 ── merge ── 3   main
///  └── a ── b ──┘
/// ```
fn merged() -> Repo {
    let (repo, _) = Repo::with_commits(1);
    repo.git(&["switch", "--quiet", "-c", "side"]);
    ["a", "b"].iter().for_each(|subject| drop(repo.git(&["commit", "--allow-empty", "-m", subject])));
    repo.git(&["switch", "--quiet", "main"]);
    ["1", "2"].iter().for_each(|subject| drop(repo.commit(subject)));
    repo.git(&["merge", "--quiet", "--no-ff", "-m", "merge", "side"]);
    repo.commit("3");
    repo
}

#[test]
fn a_merged_branch_is_one_step() {
    let repo = merged();
    let commits = |good: &str, bad: &str| repo.builds().range(good, bad).unwrap().commits;
    assert_eq!(subjects(&commits("main~4", "main")), ["1", "2", "merge", "3"]);
    // From within the branch: the line that leads to main, from where the branch left it.
    assert_eq!(subjects(&commits("side", "main")), ["1", "2", "merge", "3"]);
    assert_eq!(subjects(&commits("main~4", "side")), ["a", "b"]);
}

#[test]
fn a_range_begins_where_both_ends_come_from() {
    let repo = merged();
    let builds = repo.builds();
    for (good, bad, commits) in [("main~2", "side", ["a", "b"]), ("side", "main~2", ["1", "2"])] {
        let range = builds.range(good, bad).unwrap();
        assert_eq!((range.base.subject.as_str(), subjects(&range.commits)), ("0", commits.to_vec()));
    }
}

#[test]
fn a_range_needs_something_between_its_ends() {
    let repo = merged();
    let builds = repo.builds();
    let error = builds.range("main", "main~1").unwrap_err();
    assert!(matches!(error, BuildError::Swapped { .. }) && error.is_input(), "{error:?}");
    says(&error, &["comes after", "swap them"]);
    let error = builds.range("main", "HEAD").unwrap_err();
    assert!(matches!(error, BuildError::SameCommit { .. }), "{error:?}");
    assert!(matches!(builds.range("nope", "HEAD"), Err(BuildError::Git(GitError::UnknownRevision { .. }))));
    repo.git(&["switch", "--quiet", "--orphan", "other"]);
    repo.commit("other");
    let error = builds.range("main", "other").unwrap_err();
    assert!(matches!(error, BuildError::Unrelated { .. }) && error.is_input(), "{error:?}");
}

#[test]
fn a_shallow_clone_says_what_it_lacks() {
    let (repo, commits) = Repo::with_commits(4);
    let url = format!("file://{}", repo.dir().display());
    git(&repo.outside(""), &["clone", "--quiet", "--depth=2", &url, "shallow"]);
    let builds = Builds::open(&repo.outside("shallow")).unwrap();
    assert!(builds.get("HEAD~1", None).is_ok());
    let of_range = {
        git(&repo.outside("shallow"), &["fetch", "--quiet", "--depth=1", "origin", &commits[0]]);
        builds.range(&commits[0], "HEAD").unwrap_err()
    };
    for error in
        [builds.get(&commits[1], None).unwrap_err(), builds.get("HEAD~2", None).unwrap_err(), of_range]
    {
        says(&error, &["shallow", "git fetch --unshallow"]);
        assert!(matches!(error, BuildError::Git(GitError::Shallow { .. })), "{error:?}");
    }
}

#[test]
fn changes_have_a_hash_that_tells_them_apart() {
    let (repo, _) = Repo::with_commits(1);
    let mut hash = |text: &str| {
        repo.write("src.txt", text);
        repo.builds().changes_sha256().unwrap()
    };
    let [clean, one, other, again] = ["0", "one", "other", "one"].map(&mut hash);
    assert_eq!(one, again);
    assert!(clean != one && clean != other && one != other);
}
