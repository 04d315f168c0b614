//! The interface of a store, whatever holds it.

use crate::error::HistoryError;
use crate::record::RunRecord;
use holdpoint_model::metric::Better;
use holdpoint_model::{
    Acceptance, RunFilter, RunHash, RunPage, Series, SeriesFilter, SeriesKey, SeriesSummary, TimeRange,
    Timestamp, Versions,
};

/// Whether a store that is not there is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Existing,
    Create,
}

/// Runs, series and their points. Several threads may read and write at once.
pub trait Store: Send + Sync {
    /// Adds runs in one transaction: all or none. Tells of each whether it was new; one that is there already changes nothing.
    fn add(&self, runs: &[RunRecord]) -> Result<Vec<bool>, HistoryError>;

    /// Which of these documents are there.
    fn known(&self, hashes: &[RunHash]) -> Result<Vec<bool>, HistoryError>;

    /// The series that match, by suite, workload and metric.
    fn list(&self, filter: &SeriesFilter) -> Result<Vec<SeriesSummary>, HistoryError>;

    /// The runs that match, the newest first, a page at a time. Comparisons are no runs of their own: their verdicts are the runs'.
    fn runs(&self, filter: &RunFilter) -> Result<RunPage, HistoryError>;

    /// A series with its points of these times, in order of time.
    fn read(&self, id: &str, times: TimeRange) -> Result<Series, HistoryError>;

    /// The runs behind a series' points of these times.
    fn runs_at(&self, id: &str, times: &[Timestamp]) -> Result<Vec<RunAt>, HistoryError>;

    /// The times and values of a series, in order of time: all that finding changes needs of most points, and a small part of their bytes.
    fn values(&self, id: &str) -> Result<Values, HistoryError>;

    /// Records that a series has a new level from a point on. Accepting the same point again replaces who and why.
    fn accept(&self, id: &str, acceptance: &Acceptance) -> Result<(), HistoryError>;

    /// The document of a run as it was added, less what was pruned; `None` where it was not kept.
    fn document(&self, run: &RunHash) -> Result<Option<String>, HistoryError>;

    /// The runs that a pruning is about, whether or not they still have samples.
    fn old(&self, prune: &Prune) -> Result<Vec<RunHash>, HistoryError>;

    /// Removes these runs with their points. Accepted changes stay.
    fn forget(&self, runs: &[RunHash]) -> Result<Pruned, HistoryError>;

    /// Removes what is old.
    fn prune(&self, prune: &Prune) -> Result<Pruned, HistoryError>;

    /// Files of the history that were left out when it was opened, and why.
    fn left_out(&self) -> &[String] {
        &[]
    }
}

/// A series without the runs behind its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    pub key: SeriesKey,
    pub better: Better,
    pub points: Vec<(Timestamp, f64)>,
    pub accepted: Vec<Acceptance>,
}

/// The run behind a point.
#[derive(Clone, Debug, PartialEq)]
pub struct RunAt {
    pub at: Timestamp,
    pub commit: Option<String>,
    pub versions: Versions,
}

/// The part of a run that is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneWhat {
    /// Raw samples; documents keep their summaries, series their points.
    Samples,
    /// Whole runs with their points. Accepted changes stay.
    Runs,
}

/// When a run is old: every condition that is given says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prune {
    pub what: PruneWhat,
    /// Began before this.
    pub before: Option<Timestamp>,
    /// Not among so many newest runs of its suite.
    pub keep: Option<u32>,
}

/// How much was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Runs that were removed or lost their samples.
    pub runs_count: u64,
    pub points_count: u64,
}
