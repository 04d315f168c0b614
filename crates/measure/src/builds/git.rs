//! Revisions of a repository, and worktrees of them. Knows nothing about builds or the cache. Uses git's plumbing and
//! machine-readable formats only, so that no user setting changes an answer.

use super::error::BuildError;
use crate::machine::hex;
use holdpoint_model::limits::clean_text;
use holdpoint_process::git::{self, GitError};
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// One line per commit: hash, author's date, subject.
const RECORD: &str = "--format=%H%x00%aI%x00%s";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub hash: String,
    /// Author's date in ISO 8601.
    pub date: String,
    /// First line of the message, without control characters.
    pub subject: String,
}

#[derive(Debug)]
pub(super) struct Git {
    /// Root of the work tree.
    pub(super) root: PathBuf,
}

impl Git {
    pub(super) fn open(dir: &Path) -> Result<Self, BuildError> {
        let output = ask(dir, &["rev-parse", "--git-dir"])?;
        match git::root(dir) {
            Some(root) if output.status.success() => Ok(Self { root }),
            _ => Err(BuildError::NotARepository { dir: dir.to_owned(), detail: complaint(&output) }),
        }
    }

    pub(super) fn resolve(&self, revision: &str) -> Result<String, BuildError> {
        let unknown = || self.out_of_reach(revision).unwrap_or_else(|error| error);
        if revision.is_empty() || revision.contains('\0') {
            return Err(unknown());
        }
        let name = format!("{revision}^{{commit}}");
        let output = self.ask(&["rev-parse", "--verify", "--end-of-options", &name])?;
        let hash = text(&output);
        // For "^main" git prints a hash with a sign before it.
        let is_hash = !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        if output.status.success() && is_hash { Ok(hash) } else { Err(unknown()) }
    }

    fn out_of_reach(&self, revision: &str) -> Result<BuildError, BuildError> {
        let (revision, root) = (clean_text(revision), self.root.clone());
        Ok(if self.is_shallow()? {
            BuildError::Shallow { revision, root }
        } else {
            BuildError::UnknownRevision { revision, root }
        })
    }

    fn is_shallow(&self) -> Result<bool, BuildError> {
        Ok(text(&self.ask(&["rev-parse", "--is-shallow-repository"])?) == "true")
    }

    pub(super) fn changes(&self) -> Result<Vec<String>, BuildError> {
        Ok(self.changed_paths()?.iter().map(|path| clean_text(path)).collect())
    }

    pub(super) fn changes_sha256(&self) -> Result<String, BuildError> {
        let mut hash = Sha256::new();
        for path in self.changed_paths()? {
            // A removed file has no content.
            let content = std::fs::read(self.root.join(&path)).unwrap_or_default();
            hash.update(format!("{path}\0{}\0", content.len()));
            hash.update(content);
        }
        Ok(hex(&hash.finalize()))
    }

    fn changed_paths(&self) -> Result<Vec<String>, BuildError> {
        let head = git::head(&self.root).map_err(|error| match error {
            GitError::NotStarted(source) => BuildError::GitMissing { source },
            error => BuildError::Git {
                action: "status",
                detail: clean_text(&error.to_string()),
                root: self.root.clone(),
            },
        })?;
        Ok(head.map(|head| head.changes).unwrap_or_default())
    }

    /// Fails unless `good` is an ancestor of `bad`; both are full hashes.
    pub(super) fn check_range(&self, good: &str, bad: &str) -> Result<(), BuildError> {
        if good == bad {
            return Err(BuildError::SameCommit { commit: good.to_owned() });
        }
        let output = self.ask(&["merge-base", "--is-ancestor", good, bad])?;
        match output.status.code() {
            Some(0) => Ok(()),
            Some(1) if self.is_shallow()? => Err(self.out_of_reach(good)?),
            Some(1) => Err(BuildError::NotAnAncestor { good: good.to_owned(), bad: bad.to_owned() }),
            _ => Err(self.refused("merge-base", &output)),
        }
    }

    pub(super) fn between(&self, good: &str, bad: &str) -> Result<Vec<Commit>, BuildError> {
        self.commits(&["--first-parent", "--reverse", &format!("{good}..{bad}")])
    }

    pub(super) fn describe(&self, commit: &str) -> Result<Commit, BuildError> {
        let found = self.commits(&["--max-count=1", commit])?.pop();
        found.ok_or_else(|| BuildError::UnknownRevision {
            revision: commit.to_owned(),
            root: self.root.clone(),
        })
    }

    fn commits(&self, which: &[&str]) -> Result<Vec<Commit>, BuildError> {
        let arguments = [&["rev-list", RECORD, "--encoding=UTF-8"], which, &["--"]].concat();
        let output = self.succeed("rev-list", &arguments)?;
        // Git prints a line with the hash alone before each record.
        Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(record).collect())
    }

    pub(super) fn add_worktree(&self, dir: &Path, commit: &str) -> Result<(), BuildError> {
        let mut command = git::checkout_command(&self.root);
        // Forced, because git may still know the folder after it was removed by hand; twice, because it locks a
        // checkout that was killed.
        command.args(["worktree", "add", "--quiet", "--detach", "--force", "--force"]).arg(dir).arg(commit);
        let output = finish(&mut command)?;
        let (commit, dir) = (commit.to_owned(), dir.to_owned());
        let failed = || BuildError::Worktree { commit, dir, detail: complaint(&output) };
        output.status.success().then_some(()).ok_or_else(failed)
    }

    pub(super) fn update_submodules(&self, dir: &Path, commit: &str) -> Result<(), BuildError> {
        if !dir.join(".gitmodules").is_file() {
            return Ok(());
        }
        let mut command = git::checkout_command(dir);
        let output = finish(command.args(["submodule", "--quiet", "update", "--init", "--recursive"]))?;
        let (commit, dir) = (commit.to_owned(), dir.to_owned());
        let failed = || BuildError::Submodules { commit, dir, detail: complaint(&output) };
        output.status.success().then_some(()).ok_or_else(failed)
    }

    /// Removes a worktree, or what is left of it, from the disk and from git's records.
    pub(super) fn remove_worktree(&self, dir: &Path) -> io::Result<()> {
        let mut command = git::checkout_command(&self.root);
        // Git refuses unknown or incomplete worktrees; the folder is removed below.
        let _ = finish(command.args(["worktree", "remove", "--force", "--force"]).arg(dir));
        match std::fs::remove_dir_all(dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether a folder is a worktree of its own with that commit checked out.
    pub(super) fn is_checked_out(&self, dir: &Path, commit: &str) -> Result<bool, BuildError> {
        // Otherwise git would answer for a repository around the folder.
        if !dir.join(".git").exists() {
            return Ok(false);
        }
        let output = ask(dir, &["rev-parse", "--verify", "HEAD"])?;
        Ok(output.status.success() && text(&output) == commit)
    }

    fn ask(&self, arguments: &[&str]) -> Result<Output, BuildError> {
        ask(&self.root, arguments)
    }

    fn succeed(&self, action: &'static str, arguments: &[&str]) -> Result<Output, BuildError> {
        let output = self.ask(arguments)?;
        if output.status.success() { Ok(output) } else { Err(self.refused(action, &output)) }
    }

    fn refused(&self, action: &'static str, output: &Output) -> BuildError {
        BuildError::Git { action, detail: complaint(output), root: self.root.clone() }
    }
}

fn ask(dir: &Path, arguments: &[&str]) -> Result<Output, BuildError> {
    git::ask(dir, arguments).map_err(|source| BuildError::GitMissing { source })
}

fn finish(command: &mut Command) -> Result<Output, BuildError> {
    command.output().map_err(|source| BuildError::GitMissing { source })
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn complaint(output: &Output) -> String {
    clean_text(&git::complaint(output))
}

fn record(line: &str) -> Option<Commit> {
    let mut fields = line.splitn(3, '\0');
    let (hash, date, subject) = (fields.next()?, fields.next()?, fields.next()?);
    Some(Commit { hash: hash.to_owned(), date: date.to_owned(), subject: clean_text(subject) })
}
