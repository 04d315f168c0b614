//! Everything that can go wrong with a file, each in one line: path, what failed, what to do.

use holdpoint_model::FileError;
use holdpoint_model::json::JsonError;
use holdpoint_model::toml_file::TomlError;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A file that could not be read, understood or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file could not be read.
    #[error("{}: cannot be read: {}", path.display(), cause(source))]
    Read { path: PathBuf, source: io::Error },
    /// The file could not be written; what was there before still is.
    #[error("{}: cannot be written: {}", path.display(), cause(source))]
    Write { path: PathBuf, source: io::Error },
    /// The file is larger than anything holdpoint writes.
    #[error("{}: {} bytes; at most {limit_bytes} are read; is this the right file?", path.display(), size(*.size_bytes))]
    TooLarge {
        path: PathBuf,
        /// Its size, where it has one.
        size_bytes: Option<u64>,
        /// The largest size read.
        limit_bytes: u64,
    },
    /// The file is not text.
    #[error("{}: not UTF-8 text: bad byte at offset {offset_bytes}", path.display())]
    NotText {
        path: PathBuf,
        /// Where the text ends.
        offset_bytes: usize,
    },
    /// The file is text, yet not what was wanted.
    #[error("{}: {source}", path.display())]
    Format { path: PathBuf, source: FileError },
    /// One line of a history is not a trend point.
    #[error("{}: line {line}: {source}", path.display())]
    Line {
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        source: FileError,
    },
    /// The suite or the waivers cannot be used.
    #[error("{}: {source}", path.display())]
    Toml { path: PathBuf, source: TomlError },
    /// Another process writes to the folder.
    #[error(
        "{}: another holdpoint is writing to this folder, and has not ended within {waited_s} s; wait for it, or choose another folder",
        folder.display()
    )]
    Busy {
        folder: PathBuf,
        /// How long it was waited for.
        waited_s: u64,
    },
    /// The value has no JSON form.
    #[error("{}: cannot be written: {source}", path.display())]
    Unwritable {
        /// The file that was to be.
        path: PathBuf,
        source: JsonError,
    },
}

impl StoreError {
    /// Whether the user gave a wrong file (exit code 64), as opposed to a disk that failed (exit code 70).
    #[must_use]
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

/// What failed and what to do about it.
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
