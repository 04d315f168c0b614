//! Errors of commands, and their exit codes.

use holdpoint_evidence::EvidenceError;
use holdpoint_measure::builds::BuildError;
use holdpoint_model::ExitCode;
use holdpoint_model::toml_file::TomlError;
use holdpoint_store::StoreError;
use std::path::PathBuf;

/// A command that could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// A file that could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A report that could not be written where it was wanted, and where it is instead.
    #[error("{source}; the report was kept in {}", .refuge.display())]
    Kept {
        /// Why not.
        source: StoreError,
        /// Where it is.
        refuge: PathBuf,
    },
    /// A revision that cannot be had.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Evidence that could not be made or read.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// Input that cannot be used.
    #[error("{0}")]
    Input(String),
    /// A file of the user's that cannot be used, and why.
    #[error("{}: {what}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        what: String,
    },
    /// The evidence does not suffice; the text says what would.
    #[error("{0}")]
    Inconclusive(String),
    /// Something failed that should not.
    #[error("{0}")]
    Internal(String),
}

impl FlowError {
    /// Lines to print below it: the last that a build printed, or the place in a file.
    pub fn lines_below(&self) -> &[String] {
        match self {
            Self::Build(error) => error.last_lines(),
            Self::Store(StoreError::Toml { source: TomlError::Shown { lines, .. }, .. }) => lines,
            _ => &[],
        }
    }

    /// The exit code.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Store(error) | Self::Kept { source: error, .. } if !error.is_input() => ExitCode::Internal,
            Self::Evidence(EvidenceError::Store(error)) if !error.is_input() => ExitCode::Internal,
            Self::Evidence(EvidenceError::Json(_) | EvidenceError::Random(_)) => ExitCode::Internal,
            // Nothing of it could be measured, and that is the revision's doing.
            Self::Build(error) if error.is_of_one_revision() => ExitCode::Broken,
            // Which code would have been measured cannot be told.
            Self::Build(BuildError::Changed { .. } | BuildError::Settings { .. }) => ExitCode::Broken,
            Self::Build(error) if !error.is_input() => ExitCode::Internal,
            Self::Store(_)
            | Self::Kept { .. }
            | Self::Build(_)
            | Self::Evidence(_)
            | Self::Input(_)
            | Self::File { .. } => ExitCode::Usage,
            Self::Inconclusive(_) => ExitCode::Inconclusive,
            Self::Internal(_) => ExitCode::Internal,
        }
    }
}
