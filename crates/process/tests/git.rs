//! What is checked out, in repositories whose settings lie, run programs, or point elsewhere.

#![allow(clippy::unwrap_used)]
#[path = "support/program.rs"]
mod program;

use holdpoint_process::git::{BlobLimits, GitError, Head, Repository};
use program::write_program;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

struct Repo {
    dir: TempDir,
    /// For what must not appear in the work tree.
    outside: TempDir,
}

impl Repo {
    /// One commit with two files.
    fn new() -> Self {
        let repo = Self { dir: tempfile::tempdir().unwrap(), outside: tempfile::tempdir().unwrap() };
        repo.git(&["init", "--quiet", "--initial-branch", "main"]);
        repo.write("a.txt", "one\n");
        repo.write("b.txt", "two\n");
        repo.commit();
        repo
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    #[track_caller]
    fn git(&self, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.dir.path()).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
        git.args(["-c", "protocol.file.allow=always"]);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").args(arguments);
        let output = git.output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "a commit"]);
    }

    #[track_caller]
    fn head(&self) -> Head {
        Repository::around(self.dir.path()).head().unwrap().unwrap()
    }

    #[track_caller]
    fn changes(&self) -> Vec<String> {
        self.head().changes
    }

    /// A program that leaves a mark and passes its input on.
    fn program(&self) -> String {
        let file = self.outside.path().join("program");
        write_program(&file, format!("#!/bin/sh\ntouch '{}'\ncat\n", self.mark().display()));
        file.display().to_string()
    }

    fn mark(&self) -> PathBuf {
        self.outside.path().join("it-ran")
    }
}

/// Makes a file look older, so that git must look into it.
fn touch(path: &Path) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
}

#[test]
fn a_fresh_checkout_is_clean_and_a_changed_file_is_named() {
    let repo = Repo::new();
    let head = repo.head();
    assert_eq!(
        (head.commit, head.tree),
        (repo.git(&["rev-parse", "HEAD"]), repo.git(&["rev-parse", "HEAD^{tree}"]))
    );
    assert_eq!(head.changes, Vec::<String>::new());
    repo.write("untracked.txt", "x");
    assert_eq!(repo.changes(), Vec::<String>::new());
    repo.write("a.txt", "changed\n");
    fs::remove_file(repo.path("b.txt")).unwrap();
    assert_eq!(repo.changes(), ["a.txt", "b.txt"]);
    repo.git(&["add", "untracked.txt"]);
    assert_eq!(repo.changes(), ["a.txt", "b.txt", "untracked.txt"]);
}

#[test]
fn a_folder_without_a_repository_or_a_commit_has_no_head() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(Repository::around(dir.path()).head().unwrap(), None);
    let init = Command::new("git").arg("-C").arg(dir.path()).args(["init", "--quiet"]).status().unwrap();
    assert!(init.success());
    assert_eq!(Repository::around(dir.path()).head().unwrap(), None);
}

#[test]
fn no_program_of_the_repositorys_settings_runs() {
    let repo = Repo::new();
    let program = repo.program();
    for key in
        ["core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "diff.external", "filter.x.clean"]
    {
        repo.git(&["config", key, &program]);
    }
    for key in [
        "filter.x.smudge",
        "filter.x.process",
        "diff.x.command",
        "diff.x.textconv",
        "alias.rev-parse",
        "core.askPass",
    ] {
        repo.git(&["config", key, &program]);
    }
    repo.git(&["config", "filter.x.required", "true"]);
    fs::write(repo.path(".git/info/attributes"), "* filter=x diff=x\n").unwrap();
    let hook = repo.path(".git/hooks/post-index-change");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    write_program(&hook, fs::read(&program).unwrap());
    touch(&repo.path("a.txt"));
    assert_eq!(repo.changes(), Vec::<String>::new());
    Repository::around(repo.dir.path())
        .ask(&["diff", "--name-only", "--no-ext-diff", "HEAD", "HEAD"])
        .unwrap();
    assert!(!repo.mark().exists());
    // The trap is set: git itself walks into it.
    let _ = Command::new("git").arg("-C").arg(repo.dir.path()).arg("status").output().unwrap();
    assert!(repo.mark().exists());
}

#[test]
fn a_change_is_found_whatever_the_index_claims() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let repo = Repo::new();
        repo.git(&["update-index", flag, "a.txt"]);
        assert_eq!(repo.changes(), Vec::<String>::new(), "{flag}: a flag alone is no change");
        repo.write("a.txt", "changed\n");
        assert_eq!(repo.changes(), ["a.txt"], "{flag}");
    }
    // The same size at the same time, as the index has it, and git told not to look closer.
    let repo = Repo::new();
    repo.git(&["config", "core.checkStat", "minimal"]);
    repo.git(&["config", "core.trustctime", "false"]);
    touch(&repo.path("a.txt"));
    repo.git(&["update-index", "--refresh"]);
    repo.write("a.txt", "eno\n");
    touch(&repo.path("a.txt"));
    assert_eq!(repo.git(&["status", "--porcelain", "-uno"]), "", "git itself is fooled");
    assert_eq!(repo.changes(), ["a.txt"]);
}

#[test]
fn settings_that_point_elsewhere_hide_nothing() {
    let (repo, clean) = (Repo::new(), Repo::new());
    repo.git(&["config", "core.worktree", clean.dir.path().to_str().unwrap()]);
    repo.write("a.txt", "changed\n");
    assert_eq!(repo.changes(), ["a.txt"], "another work tree");
    let repo = Repo::new();
    repo.git(&["config", "filter.x.clean", "echo one"]);
    fs::write(repo.path(".git/info/attributes"), "a.txt filter=x\n").unwrap();
    repo.write("a.txt", "changed\n");
    assert_eq!(repo.changes(), ["a.txt"], "a filter that turns it back");
}

#[test]
fn replaced_objects_do_not_change_what_the_commit_is() {
    let repo = Repo::new();
    let tree = repo.head().tree;
    let blob = repo.git(&["rev-parse", "HEAD:a.txt"]);
    repo.write("other", "changed\n");
    let other = repo.git(&["hash-object", "-w", "other"]);
    repo.git(&["replace", &blob, &other]);
    repo.write("a.txt", "changed\n");
    assert_eq!((repo.changes(), repo.head().tree), (vec!["a.txt".to_owned()], tree));
}

#[test]
fn submodules_count_with_their_commit_and_their_files() {
    let (repo, library) = (Repo::new(), Repo::new());
    repo.git(&["submodule", "--quiet", "add", library.dir.path().to_str().unwrap(), "lib"]);
    repo.git(&["config", "-f", ".gitmodules", "submodule.lib.ignore", "all"]);
    repo.commit();
    repo.git(&["config", "submodule.lib.ignore", "all"]);
    repo.git(&["config", "diff.ignoreSubmodules", "all"]);
    assert_eq!(repo.changes(), Vec::<String>::new());
    repo.git(&["-C", "lib", "config", "core.fsmonitor", &repo.program()]);
    repo.write("lib/a.txt", "changed\n");
    assert_eq!(repo.changes(), ["lib/a.txt"]);
    assert!(!repo.mark().exists());
    repo.git(&["-C", "lib", "commit", "--quiet", "--all", "--message", "moved"]);
    assert_eq!(repo.changes(), ["lib"]);
    fs::remove_dir_all(repo.path("lib")).unwrap();
    assert_eq!(repo.changes(), Vec::<String>::new(), "one that was never checked out is no change");
    repo.write("lib/a.txt", "something else\n");
    assert_eq!(repo.changes(), ["lib"], "files where nothing was checked out");
    fs::remove_dir_all(repo.path("lib")).unwrap();
    std::os::unix::fs::symlink(".", repo.path("lib")).unwrap();
    assert_eq!(repo.changes(), ["lib"], "a link back to the work tree");
}

#[test]
fn files_left_out_of_a_sparse_checkout_and_linked_worktrees_are_clean() {
    let repo = Repo::new();
    repo.write("deep/c.txt", "three\n");
    repo.commit();
    repo.git(&["sparse-checkout", "set", "--no-cone", "a.txt"]);
    assert!(!repo.path("b.txt").exists());
    assert_eq!(repo.changes(), Vec::<String>::new());
    let linked = repo.outside.path().join("linked");
    repo.git(&["worktree", "add", "--quiet", "--detach", linked.to_str().unwrap()]);
    assert_eq!(Repository::around(&linked).head().unwrap().unwrap().changes, Vec::<String>::new());
    fs::write(linked.join("a.txt"), "changed\n").unwrap();
    assert_eq!(Repository::around(&linked).head().unwrap().unwrap().changes, ["a.txt"]);
    assert_eq!(repo.changes(), Vec::<String>::new());
}

#[test]
fn a_file_that_lfs_keeps_is_held_against_its_pointer() {
    let repo = Repo::new();
    let sha256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize 6\n");
    repo.write("large.bin", &pointer);
    repo.commit();
    repo.write("large.bin", "hello\n");
    assert_eq!(repo.changes(), Vec::<String>::new());
    repo.write("large.bin", "hallo\n");
    assert_eq!(repo.changes(), ["large.bin"]);
}

#[test]
fn line_ends_are_those_of_the_committed_attributes() {
    let repo = Repo::new();
    repo.write(".gitattributes", "*.bat text eol=crlf\n");
    repo.write("run.bat", "echo\r\n");
    repo.commit();
    assert_eq!(repo.changes(), Vec::<String>::new());
    assert_eq!(repo.git(&["cat-file", "blob", "HEAD:run.bat"]), "echo");
}

#[test]
fn blobs_trees_and_refs_are_written_and_read() {
    let repo = Repo::new();
    let (repository, name) = (Repository::around(repo.dir.path()), "refs/holdpoint/test");
    let files = ["x/a.json", "x/b.json"].map(|path| (path.to_owned(), format!("text of {path}")));
    let written = repository.write_blobs(&files).unwrap();
    let tree = repository.tree_with(None, &written, &[]).unwrap();
    let first = repository.commit_tree(&tree, &[], "both").unwrap();
    let tree = repository.tree_with(Some(&first), &[], &["x/a.json".to_owned()]).unwrap();
    let second = repository.commit_tree(&tree, &[&first], "one").unwrap();
    assert_eq!(repository.files(&first, 2, 1000).unwrap(), written);
    assert_eq!(repository.files(&second, 2, 1000).unwrap(), written[1..]);
    assert!(matches!(repository.files(&first, 1, 1000), Err(GitError::TooManyFiles { .. })));
    assert!(
        repository.is_ancestor(&first, &second).unwrap() && !repository.is_ancestor(&second, &first).unwrap()
    );
    assert!(
        repository.move_ref(name, &second, None).unwrap()
            && !repository.move_ref(name, &first, None).unwrap()
    );
    assert_eq!(repository.find(name).unwrap(), Some(second));
    let mut limits = BlobLimits { file_bytes: 100, batch_bytes: 100, left_bytes: 100 };
    let blobs = [written[0].1.as_str(), &"0".repeat(40)];
    let read = |texts: Vec<(usize, Result<String, String>)>| -> Result<(), GitError> {
        assert_eq!(texts[0], (0, Ok("text of x/a.json".to_owned())));
        assert!(texts[1].1.is_err());
        Ok(())
    };
    repository.read_blobs(&blobs, &mut limits, read).unwrap();
}

#[test]
fn a_ref_goes_to_a_remote_and_back_unless_somebody_was_first() {
    let (repo, other) = (Repo::new(), Repo::new());
    let url = repo.dir.path().to_str().unwrap();
    let (here, commit) = (Repository::around(other.dir.path()), other.head().commit);
    let name = "refs/holdpoint/test";
    assert_eq!(here.fetch_ref(url, name).unwrap(), None);
    assert_eq!(here.push_ref(url, &commit, name, None).unwrap(), None);
    assert_eq!(here.fetch_ref(url, name).unwrap(), Some(commit.clone()));
    other.write("a.txt", "newer\n");
    other.commit();
    let newer = other.head().commit;
    assert!(here.push_ref(url, &newer, name, Some(&newer)).unwrap().is_some());
    assert_eq!(here.push_ref(url, &newer, name, Some(&commit)).unwrap(), None);
    let error = here.fetch_ref("/nowhere", name).unwrap_err();
    assert!(matches!(error, GitError::Remote { .. }) && error.is_input(), "{error}");
}
