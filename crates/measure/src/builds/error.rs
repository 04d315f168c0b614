//! Everything that can keep a revision from being built.

use holdpoint_process::git::GitError;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("both revisions are {commit}, nothing lies between them; name an older or a newer one")]
    SameCommit { commit: String },
    #[error("{good} comes after {bad}, so nothing lies between them; swap them")]
    Swapped { good: String, bad: String },
    #[error("{good} and {bad} have no common ancestor; name revisions of one history")]
    Unrelated { good: String, bad: String },
    #[error(
        "{}: commit {commit} cannot be checked out: {detail}; check the free space and the folder's owner",
        dir.display()
    )]
    Checkout { commit: String, dir: PathBuf, detail: String },
    #[error("{}: all folders for builds are in use; wait until another holdpoint has ended", root.display())]
    NoWorkshop { root: PathBuf },
    #[error(
        "{}: the submodules of commit {commit} cannot be checked out: {detail}; can this machine fetch them?",
        dir.display()
    )]
    Submodules { commit: String, dir: PathBuf, detail: String },
    #[error(
        "{}: the build command {program:?} cannot be started: {source}; check \"command\" under [build] in the suite",
        dir.display()
    )]
    NotStarted { program: String, dir: PathBuf, source: io::Error },
    #[error(
        "building {what} failed with {status}; read {}, or measure a revision that builds",
        log.display()
    )]
    Failed { what: String, status: ExitStatus, log: PathBuf, last_lines: Vec<String> },
    #[error(
        "building {what} took longer than {timeout_s} s; read {}, or raise \"timeout_s\" under [build] in the suite",
        log.display()
    )]
    TimedOut { what: String, timeout_s: f64, log: PathBuf, last_lines: Vec<String> },
    #[error("building {what} printed over {limit_bytes} bytes; make it quieter, see {}", log.display())]
    Flooded { what: String, limit_bytes: u64, log: PathBuf, last_lines: Vec<String> },
    #[error(
        "{file} in {} changed while {meanwhile}: that build is thrown away, and nothing is compared; let builds and benchmarks write to \
         their own folder or $TMPDIR, nowhere else",
        dir.display()
    )]
    Changed { dir: PathBuf, file: String, meanwhile: String },
    #[error(
        "{}: git's {what} changed while code ran, so files that are checked out from now on may not be those of their commit; if that was \
         you, run this again, else look at it with \"git config --list --show-origin\" and put it back",
        root.display()
    )]
    Settings { root: PathBuf, what: String },
    #[error(transparent)]
    Store(#[from] holdpoint_store::StoreError),
    #[error("{}: {source}; check the free space and the owner, or remove the folder", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl BuildError {
    /// The last lines that the build printed, oldest first.
    pub fn last_lines(&self) -> &[String] {
        match self {
            Self::Failed { last_lines, .. }
            | Self::TimedOut { last_lines, .. }
            | Self::Flooded { last_lines, .. } => last_lines,
            _ => &[],
        }
    }

    /// Whether the user named a wrong folder or revision, as opposed to a failed build or machine.
    pub fn is_input(&self) -> bool {
        match self {
            Self::Git(error) => error.is_input(),
            Self::SameCommit { .. } | Self::Swapped { .. } | Self::Unrelated { .. } => true,
            _ => false,
        }
    }

    /// Whether the build command ended by itself and said that it failed: nothing was cut short.
    pub(super) fn is_of_command(&self) -> bool {
        matches!(self, Self::Failed { status, .. } if status.code().is_some())
    }

    /// Whether only this revision does not build: a search can skip it.
    pub fn is_of_one_revision(&self) -> bool {
        matches!(
            self,
            Self::Submodules { .. }
                | Self::NotStarted { .. }
                | Self::Failed { .. }
                | Self::TimedOut { .. }
                | Self::Flooded { .. }
        )
    }
}
