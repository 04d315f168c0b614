//! Why git gave no answer.

use holdpoint_store::StoreError;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git cannot be started: {0}; install it and see that it is on the PATH")]
    NotStarted(#[source] io::Error),
    #[error("{}: no git work tree ({detail}); run this inside the repository", dir.display())]
    NotARepository { dir: PathBuf, detail: String },
    #[error(
        "{revision:?} is no commit of {}; check the spelling, or fetch it with \"git fetch --all --tags\"",
        dir.display()
    )]
    UnknownRevision { revision: String, dir: PathBuf },
    /// The history was cut off before that commit, or the name is wrong.
    #[error(
        "{revision:?} is not within reach in {}, a shallow clone; run \"git fetch --unshallow\" there",
        dir.display()
    )]
    Shallow { revision: String, dir: PathBuf },
    /// Git refused something that it accepts in a healthy repository.
    #[error("{}: \"git {action}\" failed: {detail}; does \"git fsck\" find anything?", dir.display())]
    Failed { dir: PathBuf, action: String, detail: String },
    #[error("{}: \"git {action}\" failed: {detail}; can this machine reach the remote, and may it?", dir.display())]
    Remote { dir: PathBuf, action: String, detail: String },
    /// A handful of trees can list millions of files.
    #[error(
        "{}: commit {commit} lists more than {files_max} files, or paths of more than {bytes_max} bytes; find who wrote it with \
         \"git log {commit}\", and set the ref back to the commit before it",
        dir.display()
    )]
    TooManyFiles { dir: PathBuf, commit: String, files_max: usize, bytes_max: u64 },
    #[error(transparent)]
    Temporary(#[from] StoreError),
    #[error("{}: {source}; check the free space and the file's owner", path.display())]
    File { path: PathBuf, source: io::Error },
}

impl GitError {
    /// Whether the user named a wrong folder, revision or remote.
    pub fn is_input(&self) -> bool {
        match self {
            Self::NotARepository { .. }
            | Self::UnknownRevision { .. }
            | Self::Shallow { .. }
            | Self::Remote { .. }
            | Self::TooManyFiles { .. } => true,
            Self::NotStarted(_) | Self::Failed { .. } | Self::Temporary(_) | Self::File { .. } => false,
        }
    }
}
