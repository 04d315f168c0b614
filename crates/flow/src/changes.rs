//! `holdpoint changes`: the change points of series.

use crate::Watch;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::history;
use holdpoint_gate::history::{Alerts, find_changes_in};
use holdpoint_history::{Location, StoreTracks};
use holdpoint_model::{Changes, ExitCode, SeriesFilter, Track};
use std::path::PathBuf;

/// The series to look at.
#[derive(Clone, Debug, Default)]
pub struct ChangesRequest {
    /// Trends, tables or arrays of numbers; without any, the history.
    pub files: Vec<PathBuf>,
    /// That of the repository's suite, or the usual file, if absent.
    pub history: Option<Location>,
    pub select: SeriesFilter,
    /// Whether the rule of a gate with a history is replayed.
    pub alerts: bool,
}

pub fn run(request: &ChangesRequest, watch: &dyn Watch) -> Result<CommandResult<Changes>, FlowError> {
    let alerts = if request.alerts { Alerts::Replay } else { Alerts::Leave };
    let found =
        if request.files.is_empty() { of_store(request, alerts, watch)? } else { of_files(request, alerts)? };
    Ok(CommandResult::new(found, ExitCode::Ok))
}

/// Series by series: a store may hold more than fits into memory.
fn of_store(request: &ChangesRequest, alerts: Alerts, watch: &dyn Watch) -> Result<Changes, FlowError> {
    let (store, series) = history::find(request.history.as_ref(), &request.select, watch)?;
    Ok(find_changes_in(&mut StoreTracks::new(&*store, &series), alerts)?)
}

fn of_files(request: &ChangesRequest, alerts: Alerts) -> Result<Changes, FlowError> {
    let mut tracks: Vec<Track> = Vec::new();
    for file in &request.files {
        tracks.extend(holdpoint_store::read_tracks(file)?);
    }
    match find_changes_in(&mut tracks.as_slice(), alerts) {
        Ok(found) => Ok(found),
        Err(never) => match never {},
    }
}
