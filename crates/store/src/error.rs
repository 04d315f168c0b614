//! Errors of files, each in one line: path, failure, remedy.

use holdpoint_model::FileError;
use holdpoint_model::json::JsonError;
use holdpoint_model::toml_file::TomlError;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{}: cannot be read: {}", path.display(), cause(source))]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: cannot be written: {}", path.display(), cause(source))]
    Write { path: PathBuf, source: io::Error },
    #[error("{}: {} bytes; at most {limit_bytes} are read; is this the right file?", path.display(), size(*.size_bytes))]
    TooLarge { path: PathBuf, size_bytes: Option<u64>, limit_bytes: u64 },
    #[error("{}: not UTF-8 text: bad byte at offset {offset_bytes}", path.display())]
    NotText { path: PathBuf, offset_bytes: usize },
    #[error("{}: {source}", path.display())]
    Format { path: PathBuf, source: FileError },
    /// One line of a history is not a trend point.
    #[error("{}: line {line}: {source}", path.display())]
    Line { path: PathBuf, line: usize, source: FileError },
    #[error("{}: {source}", path.display())]
    Toml { path: PathBuf, source: TomlError },
    #[error(
        "{}: another holdpoint is writing to this folder, and has not ended within {waited_s} s; wait for it, or choose another folder",
        folder.display()
    )]
    Busy { folder: PathBuf, waited_s: u64 },
    #[error("{}: cannot be written: {source}", path.display())]
    Unwritable { path: PathBuf, source: JsonError },
}

impl StoreError {
    /// Whether the user gave a wrong file (exit code 64), as opposed to a disk that failed (exit code 70).
    pub fn is_input(&self) -> bool {
        match self {
            Self::Read { source, .. } | Self::Write { source, .. } => is_wrong_path(source.kind()),
            Self::TooLarge { .. } | Self::NotText { .. } | Self::Busy { .. } => true,
            Self::Format { .. } | Self::Line { .. } | Self::Toml { .. } => true,
            Self::Unwritable { .. } => false,
        }
    }

    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Read { path: path.to_owned(), source }
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Write { path: path.to_owned(), source }
    }
}

/// Kinds of failure that another path would cure.
fn is_wrong_path(kind: ErrorKind) -> bool {
    use ErrorKind::{AlreadyExists, InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound};
    matches!(kind, AlreadyExists | NotFound | IsADirectory | NotADirectory | InvalidFilename | InvalidInput)
}

/// The failure and its remedy.
fn cause(error: &io::Error) -> String {
    let remedy = match error.kind() {
        ErrorKind::AlreadyExists => "it is there already and is never overwritten; choose another name",
        ErrorKind::NotFound => "no such file; check the path",
        ErrorKind::IsADirectory => "it is a directory; name a file",
        ErrorKind::NotADirectory => "a part of the path is a file, not a folder; choose another path",
        ErrorKind::PermissionDenied => {
            "permission denied; check the owner and mode of the file and its folder"
        }
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only; choose another folder",
        ErrorKind::StorageFull => "no space left on the device; free some or choose another folder",
        ErrorKind::QuotaExceeded => "the disk quota is used up; free some or choose another folder",
        ErrorKind::InvalidFilename => "the name is too long or not allowed here; choose a shorter one",
        _ => return error.to_string(),
    };
    remedy.to_owned()
}

fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "too many".to_owned(), |bytes| bytes.to_string())
}
