//! Revisions of a repository. Knows nothing about builds or the cache. Uses git's plumbing and machine-readable formats
//! only, so that no user setting changes an answer.

use super::error::BuildError;
use super::settings::Settings;
use crate::machine::hex;
use holdpoint_model::limits::clean_text;
use holdpoint_process::git::{self, GitError};
use sha2::{Digest, Sha256};
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
    /// As they were before any code of the change ran.
    pub(super) settings: Settings,
}

impl Git {
    pub(super) fn open(dir: &Path) -> Result<Self, BuildError> {
        let output = ask(dir, &["rev-parse", "--git-dir"])?;
        match git::root(dir) {
            Some(root) if output.status.success() => {
                let git = Self { root, settings: Settings::default() };
                Ok(Self { settings: git.read_settings()?, ..git })
            }
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

    /// The newest commit that both come from: `good` itself where it is an ancestor of `bad`. Both are full hashes.
    pub(super) fn merge_base(&self, good: &str, bad: &str) -> Result<String, BuildError> {
        let output = self.ask(&["merge-base", good, bad])?;
        match output.status.code() {
            Some(0) => Ok(text(&output)),
            Some(1) if self.is_shallow()? => Err(self.out_of_reach(good)?),
            Some(1) => Err(BuildError::Unrelated { good: good.to_owned(), bad: bad.to_owned() }),
            _ => Err(self.refused("merge-base", &output)),
        }
    }

    /// The first parent of a commit, if it has any.
    pub(super) fn parent(&self, commit: &str) -> Result<Option<String>, BuildError> {
        let output = self.ask(&["rev-parse", "--quiet", "--verify", &format!("{commit}^1")])?;
        match output.status.success() {
            true => Ok(Some(text(&output))),
            false if self.is_shallow()? => Err(self.out_of_reach(&format!("{commit}^1"))?),
            false => Ok(None),
        }
    }

    /// Whether any of these paths below the root is tracked, or a folder with tracked files.
    pub(super) fn tracks_any(&self, paths: &[PathBuf]) -> Result<bool, BuildError> {
        if paths.is_empty() {
            return Ok(false);
        }
        let names: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
        let mut arguments = vec!["--literal-pathspecs", "ls-files", "-z", "--full-name", "--"];
        arguments.extend(names.iter().map(|name| if name.is_empty() { "." } else { name.as_ref() }));
        Ok(!self.succeed("ls-files", &arguments)?.stdout.is_empty())
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

    fn ask(&self, arguments: &[&str]) -> Result<Output, BuildError> {
        ask(&self.root, arguments)
    }

    pub(super) fn succeed(&self, action: &'static str, arguments: &[&str]) -> Result<Output, BuildError> {
        let output = self.ask(arguments)?;
        if output.status.success() { Ok(output) } else { Err(self.refused(action, &output)) }
    }

    fn refused(&self, action: &'static str, output: &Output) -> BuildError {
        BuildError::Git { action, detail: complaint(output), root: self.root.clone() }
    }
}

pub(super) fn ask(dir: &Path, arguments: &[&str]) -> Result<Output, BuildError> {
    git::ask(dir, arguments).map_err(|source| BuildError::GitMissing { source })
}

pub(super) fn finish(command: &mut Command) -> Result<Output, BuildError> {
    command.output().map_err(|source| BuildError::GitMissing { source })
}

pub(super) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub(super) fn complaint(output: &Output) -> String {
    clean_text(&git::complaint(output))
}

fn record(line: &str) -> Option<Commit> {
    let mut fields = line.splitn(3, '\0');
    let (hash, date, subject) = (fields.next()?, fields.next()?, fields.next()?);
    Some(Commit { hash: hash.to_owned(), date: date.to_owned(), subject: clean_text(subject) })
}
