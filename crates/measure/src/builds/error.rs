//! Everything that can keep a revision from being built, each in one line: what, where, what to do.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// A revision that cannot be found, checked out or built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Git is not installed, or may not be started.
    #[error("git cannot be started: {source}; install it and see that it is on the PATH")]
    GitMissing {
        /// Why not.
        source: io::Error,
    },
    /// The folder is not in a work tree of git's.
    #[error("{}: no git work tree ({detail}); run this inside the repository", dir.display())]
    NotARepository {
        /// The folder.
        dir: PathBuf,
        /// Git's words.
        detail: String,
    },
    /// No commit goes by that name.
    #[error(
        "{revision:?} is no commit of {}; check the spelling, or fetch it with \"git fetch --all --tags\"",
        root.display()
    )]
    UnknownRevision {
        /// The name as it was given.
        revision: String,
        /// The repository.
        root: PathBuf,
    },
    /// The clone's history was cut off before that commit, or the name is wrong.
    #[error(
        "{revision:?} is not within reach in {}, a shallow clone; run \"git fetch --unshallow\" there",
        root.display()
    )]
    Shallow {
        /// The name as it was given.
        revision: String,
        /// The repository.
        root: PathBuf,
    },
    /// A range from a commit to itself.
    #[error("both revisions are {commit}, nothing lies between them; name an older or a newer one")]
    SameCommit {
        /// The commit.
        commit: String,
    },
    /// A range whose ends are not on one line of history.
    #[error("{good} is no ancestor of {bad}; swap them, or start from \"git merge-base {good} {bad}\"")]
    NotAnAncestor {
        /// Where the range was to begin.
        good: String,
        /// Where it was to end.
        bad: String,
    },
    /// Git refused something that it does not refuse in a healthy repository.
    #[error("{}: \"git {action}\" failed: {detail}; does \"git fsck\" find anything?", root.display())]
    Git {
        /// What was asked of it.
        action: &'static str,
        /// Git's words.
        detail: String,
        /// The repository.
        root: PathBuf,
    },
    /// The revision cannot be checked out.
    #[error(
        "{}: commit {commit} cannot be checked out: {detail}; check the free space and the folder's owner",
        dir.display()
    )]
    Worktree {
        /// The commit.
        commit: String,
        /// Where it was to be.
        dir: PathBuf,
        /// Git's words, or the system's.
        detail: String,
    },
    /// The revision's submodules cannot be checked out.
    #[error(
        "{}: the submodules of commit {commit} cannot be checked out: {detail}; can this machine fetch them?",
        dir.display()
    )]
    Submodules {
        /// The commit.
        commit: String,
        /// Where it is.
        dir: PathBuf,
        /// Git's words.
        detail: String,
    },
    /// The build command cannot be started.
    #[error(
        "{}: the build command {program:?} cannot be started: {source}; check \"command\" under [build] in the suite",
        dir.display()
    )]
    NotStarted {
        /// The program.
        program: String,
        /// Where it was to run.
        dir: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The build command ended, and not well.
    #[error(
        "building {what} failed with {status}; read {}, or measure a revision that builds",
        log.display()
    )]
    Failed {
        /// What was built.
        what: String,
        /// How the command ended.
        status: ExitStatus,
        /// All it printed.
        log: PathBuf,
        /// The last of it.
        last_lines: Vec<String>,
    },
    /// The build command took too long and was killed.
    #[error(
        "building {what} took longer than {timeout_s} s; read {}, or raise \"timeout_s\" under [build] in the suite",
        log.display()
    )]
    TimedOut {
        /// What was built.
        what: String,
        /// How long it may take.
        timeout_s: f64,
        /// All it printed.
        log: PathBuf,
        /// The last of it.
        last_lines: Vec<String>,
    },
    /// The build command printed without end and was killed.
    #[error("building {what} printed over {limit_bytes} bytes; make it quieter, see {}", log.display())]
    Flooded {
        /// What was built.
        what: String,
        /// How much it may print.
        limit_bytes: u64,
        /// All it printed.
        log: PathBuf,
        /// The last of it.
        last_lines: Vec<String>,
    },
    /// A file of the cache cannot be written.
    #[error(transparent)]
    Store(#[from] holdpoint_store::StoreError),
    /// A file of the cache cannot be read or written.
    #[error("{}: {source}; check the free space and the owner, or remove the folder", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl BuildError {
    /// The last lines that the build printed, oldest first; none where no build ran.
    #[must_use]
    pub fn last_lines(&self) -> &[String] {
        match self {
            Self::Failed { last_lines, .. }
            | Self::TimedOut { last_lines, .. }
            | Self::Flooded { last_lines, .. } => last_lines,
            _ => &[],
        }
    }

    /// Whether the user named a wrong folder or revision, as opposed to a build or a machine that failed.
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Self::NotARepository { .. } | Self::UnknownRevision { .. } | Self::Shallow { .. } => true,
            Self::SameCommit { .. } | Self::NotAnAncestor { .. } => true,
            Self::GitMissing { .. } | Self::Git { .. } | Self::Io { .. } | Self::Store(_) => false,
            Self::Worktree { .. } | Self::Submodules { .. } | Self::NotStarted { .. } => false,
            Self::Failed { .. } | Self::TimedOut { .. } | Self::Flooded { .. } => false,
        }
    }

    /// Whether this revision does not build, while another one may: a search can pass it over.
    #[must_use]
    pub fn is_of_one_revision(&self) -> bool {
        match self {
            Self::Submodules { .. } | Self::NotStarted { .. } => true,
            Self::Failed { .. } | Self::TimedOut { .. } | Self::Flooded { .. } => true,
            Self::NotARepository { .. } | Self::UnknownRevision { .. } | Self::Shallow { .. } => false,
            Self::SameCommit { .. } | Self::NotAnAncestor { .. } => false,
            Self::GitMissing { .. } | Self::Git { .. } | Self::Io { .. } | Self::Worktree { .. } => false,
            Self::Store(_) => false,
        }
    }
}
