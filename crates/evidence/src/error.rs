//! Errors before anything can be verified.

use holdpoint_model::FileError;
use holdpoint_model::json::JsonError;
use holdpoint_model::limits::clean_text;
use holdpoint_store::StoreError;
use std::path::PathBuf;

/// Evidence that could not be made or read. Evidence that was read and does not hold is a finding, not an error.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{}: {source}", path.display())]
    Format { path: PathBuf, source: FileError },
    #[error("{}: a link that leads out of the folder is not followed; copy the file into the folder", path.display())]
    Outside { path: PathBuf },
    #[error("no seal could be made: {0}")]
    Seal(String),
    #[error("{place}: {what}")]
    Key {
        /// The file or the environment variable.
        place: String,
        what: String,
    },
    #[error("line {line}: {what}")]
    Marker {
        /// From 1.
        line: usize,
        what: String,
    },
    #[error("cannot be hashed: {0}")]
    Json(#[from] serde_json::Error),
    #[error("no random bytes: {0}")]
    Random(String),
}

/// Why evidence does not hold, in one line: a finding that is kept and shown, where an [`EvidenceError`] ends the command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Problem(String);

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self(clean_text(&text))
    }
}

macro_rules! problem_from {
    ($($source:ty),*) => {
        $(impl From<$source> for Problem {
            fn from(source: $source) -> Self {
                source.to_string().into()
            }
        })*
    };
}

problem_from!(&str, EvidenceError, FileError, JsonError, StoreError, serde_json::Error);
