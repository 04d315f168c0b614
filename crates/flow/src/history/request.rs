//! What is asked of a history.

use holdpoint_history::Location;
use holdpoint_model::{RunFilter, SeriesFilter, Timestamp};
use std::path::PathBuf;

/// What to do with a history. Without a location it is that of the repository's suite, or the usual file.
#[derive(Clone, Debug)]
pub enum HistoryRequest {
    Add(AddRequest),
    List {
        store: Option<Location>,
        select: SeriesFilter,
    },
    Runs {
        store: Option<Location>,
        filter: RunFilter,
    },
    Show {
        store: Option<Location>,
        select: SeriesFilter,
        /// Newest points to show of each series.
        points: usize,
    },
    Export(ExportRequest),
    Prune(PruneRequest),
    Accept(AcceptRequest),
    Migrate {
        store: Option<Location>,
    },
}

/// Runs to be added.
#[derive(Clone, Debug)]
pub struct AddRequest {
    pub files: Vec<PathBuf>,
    pub store: Option<Location>,
    /// The commit of files that name none.
    pub revision: Option<String>,
    /// The remote that a ref is merged with and pushed to.
    pub push: Option<String>,
    /// The time of files that name none.
    pub at: Option<Timestamp>,
}

/// Series to be written as a table.
#[derive(Clone, Debug)]
pub struct ExportRequest {
    pub store: Option<Location>,
    pub select: SeriesFilter,
    pub form: HistoryForm,
    pub output: Option<PathBuf>,
}

/// The form of a table of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryForm {
    Csv,
    Json,
    Parquet,
}

/// Old runs to be removed.
#[derive(Clone, Debug)]
pub struct PruneRequest {
    pub store: Option<Location>,
    /// In days.
    pub older_than: Option<u32>,
    /// The newest runs of each suite that are kept.
    pub keep: Option<u32>,
    /// Whole runs, not only their raw samples.
    pub runs: bool,
    pub push: Option<String>,
}

/// A change to be accepted.
#[derive(Clone, Debug)]
pub struct AcceptRequest {
    pub store: Option<Location>,
    pub select: SeriesFilter,
    /// Whether all series are meant if nothing selects any.
    pub all: bool,
    /// The commit from whose first point on; the newest point if absent.
    pub revision: Option<String>,
    pub by: Option<String>,
    pub why: String,
}
