//! Files of other tools in the place of documents of ours.

use crate::error::FlowError;
use holdpoint_measure::clock;
use holdpoint_model::{FileError, Report, Timestamp, Trend};
use holdpoint_store::StoreError;
use std::path::Path;

/// A file of another tool as a report, and what its reader should know.
pub(crate) fn read_report(path: &Path) -> Result<(Report, Vec<String>), StoreError> {
    read_report_at(path, None)
}

/// The same of a run that began at `at` where its file does not say.
pub(crate) fn read_report_at(
    path: &Path,
    at: Option<Timestamp>,
) -> Result<(Report, Vec<String>), StoreError> {
    let imported = holdpoint_store::read_imported(path)?;
    let notes = imported.current.notes.clone();
    Ok((imported.into_report(at.map_or_else(|| modified_utc(path), |at| at.to_string())), notes))
}

/// A trend point, or a run that becomes one: a report of ours or a file of another tool.
pub(crate) fn read_trend(path: &Path) -> Result<Trend, FlowError> {
    holdpoint_store::read_document(path).or_else(|error| {
        let current = holdpoint_store::read_current(path).map_err(|other| clearer(error, other))?;
        Ok(Trend::unjudged(&current, &modified_utc(path)))
    })
}

/// Which of two errors tells more: that about a document of ours, unless the file is one of another tool.
pub(crate) fn clearer(own: StoreError, foreign: StoreError) -> StoreError {
    let is_unknown = |error: &StoreError| {
        let source = if let StoreError::Format { source, .. } = error { Some(source) } else { None };
        matches!(source, Some(FileError::Unknown { .. } | FileError::OtherKind { .. } | FileError::Json(_)))
    };
    if is_unknown(&foreign) && !matches!(own, StoreError::Read { .. }) { own } else { foreign }
}

/// When a file was last changed: the time of a run whose file does not say.
fn modified_utc(path: &Path) -> String {
    let modified = std::fs::metadata(path).and_then(|file| file.modified());
    modified.map_or_else(|_| clock::timestamp_utc(), clock::format_utc)
}
