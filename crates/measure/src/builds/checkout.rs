//! Checkouts of a repository in folders of their own: made, moved to another commit, removed.
//!
//! A checkout shares the repository's objects, branches and settings as a worktree does, but the repository does not know it: its
//! `.git` folder has a head and an index, and names the repository in `commondir`. So it is not in `git worktree list`, and
//! removing the folder removes all of it.

use super::cache::Taken;
use super::error::BuildError;
use super::settings::Settings;
use holdpoint_process::git::{self, Repository, complaint};
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A repository whose revisions are checked out.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) repository: Repository,
    /// As they were before any code of the change ran.
    pub(super) settings: Settings,
}

impl Source {
    pub(super) fn open(dir: &Path) -> Result<Self, BuildError> {
        let repository = Repository::open(dir)?;
        Ok(Self { settings: Settings::read(&repository)?, repository })
    }

    /// Checks a commit out into a new folder.
    pub(super) fn add_checkout(&self, dir: &Path, commit: &str) -> Result<(), BuildError> {
        let common = self.repository.common_dir()?;
        let git_dir = dir.join(".git");
        let prepare = || {
            fs::create_dir_all(&git_dir)?;
            fs::write(git_dir.join("commondir"), [common.as_os_str().as_encoded_bytes(), b"\n"].concat())?;
            // Where heads are not in files, git wants a folder for this one.
            if common.join("reftable").is_dir() {
                fs::create_dir(git_dir.join("reftable"))?;
            }
            fs::write(git_dir.join("HEAD"), format!("{commit}\n"))
        };
        prepare().map_err(|error| failed(dir, commit, error.to_string()))?;
        self.move_checkout(dir, commit)
    }

    /// Checks another commit out in place. Only files that differ are written, so their times are newer than whatever
    /// was built from the old ones; files that git does not track stay.
    pub(super) fn move_checkout(&self, dir: &Path, commit: &str) -> Result<(), BuildError> {
        self.check_settings()?;
        let output =
            git::output(&mut command_in(dir, &["checkout", "--quiet", "--force", "--detach", commit]))?;
        if output.status.success() { Ok(()) } else { Err(failed(dir, commit, complaint(&output))) }
    }

    pub(super) fn update_submodules(&self, dir: &Path, commit: &str) -> Result<(), BuildError> {
        if !dir.join(".gitmodules").is_file() {
            return Ok(());
        }
        self.check_settings()?;
        let arguments = ["submodule", "--quiet", "update", "--init", "--recursive", "--force"];
        let output = git::output(&mut command_in(dir, &arguments))?;
        let (commit, dir) = (commit.to_owned(), dir.to_owned());
        let failed = || BuildError::Submodules { commit, dir, detail: complaint(&output) };
        output.status.success().then_some(()).ok_or_else(failed)
    }

    /// Files of another commit that these patterns name, as far as `commit` has them otherwise or not at all.
    pub(super) fn differing(
        &self,
        commit: &str,
        from: &str,
        patterns: &[String],
    ) -> Result<Option<Taken>, BuildError> {
        let options =
            ["diff", "--raw", "-z", "--no-abbrev", "--no-renames", "--diff-filter=AMT", commit, from, "--"];
        let arguments: Vec<&str> = options.into_iter().chain(patterns.iter().map(String::as_str)).collect();
        let listed = self.repository.answer(&arguments)?;
        // What became of a file, then its path.
        let parts = listed.split(|byte| *byte == 0).skip(1).step_by(2);
        let paths: Vec<String> = parts.map(|path| String::from_utf8_lossy(path).into_owned()).collect();
        let sha256 = Sha256::digest(&listed).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((!paths.is_empty()).then(|| Taken { commit: from.to_owned(), paths, sha256 }))
    }

    /// Puts files of another commit into a checkout.
    pub(super) fn take(&self, dir: &Path, taken: &Taken) -> Result<(), BuildError> {
        self.check_settings()?;
        let arguments = ["--literal-pathspecs", "checkout", "--quiet", &taken.commit, "--"];
        let output = git::output(command_in(dir, &arguments).args(&taken.paths))?;
        if output.status.success() { Ok(()) } else { Err(failed(dir, &taken.commit, complaint(&output))) }
    }

    /// Whether a folder is a checkout of its own with that commit.
    pub(super) fn is_checked_out(&self, dir: &Path, commit: &str) -> Result<bool, BuildError> {
        // Otherwise git would answer for a repository around the folder.
        if !dir.join(".git").exists() {
            return Ok(false);
        }
        Ok(Repository::around(dir).find("HEAD")?.as_deref() == Some(commit))
    }

    /// Worktrees below a folder that the repository knows: earlier versions of holdpoint left their builds there.
    pub(super) fn known_worktrees(&self, below: &Path) -> Result<Vec<PathBuf>, BuildError> {
        if !self.repository.common_dir()?.join("worktrees").is_dir() {
            return Ok(Vec::new());
        }
        let below = fs::canonicalize(below).unwrap_or_else(|_| below.to_owned());
        let listed = self.repository.answer(&["worktree", "list", "--porcelain"])?;
        let paths = String::from_utf8_lossy(&listed);
        let paths = paths.lines().filter_map(|line| line.strip_prefix("worktree ")).map(PathBuf::from);
        Ok(paths.filter(|path| path.starts_with(&below)).collect())
    }

    pub(super) fn remove_worktree(&self, dir: &Path) {
        // What git refuses to remove is removed as a folder, and forgotten by git in time.
        let _ = git::output(self.repository.command(&["worktree", "remove", "--force", "--force"]).arg(dir));
        let _ = remove_folder(dir);
    }
}

/// Git in a checkout, and nowhere else: without its `.git` it must not find a repository around it, which may be the user's.
fn command_in(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Repository::around(dir).command(arguments);
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    command.env("GIT_CEILING_DIRECTORIES", dir.parent().unwrap_or(&dir));
    command
}

pub(super) fn remove_folder(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn failed(dir: &Path, commit: &str, detail: String) -> BuildError {
    BuildError::Checkout { commit: commit.to_owned(), dir: dir.to_owned(), detail }
}
