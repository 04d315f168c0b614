//! `holdpoint changes`: the change points of series.

use crate::Watch;
use crate::done::Done;
use crate::error::FlowError;
use crate::history;
use crate::options::ChangesArgs;
use holdpoint_gate::history::{Alerts, find_changes_in};
use holdpoint_history::StoreTracks;
use holdpoint_model::{Changes, ExitCode, Track};

pub fn run(args: &ChangesArgs, watch: &dyn Watch) -> Result<Done<Changes>, FlowError> {
    let alerts = if args.alerts { Alerts::Replay } else { Alerts::Leave };
    let found = if args.files.is_empty() { of_store(args, alerts, watch)? } else { of_files(args, alerts)? };
    Ok(Done::new(found, ExitCode::Ok))
}

/// Series by series: a store may hold more than fits into memory.
fn of_store(args: &ChangesArgs, alerts: Alerts, watch: &dyn Watch) -> Result<Changes, FlowError> {
    let (mut store, series) = history::find(&args.store(), &args.select, watch)?;
    Ok(find_changes_in(&mut StoreTracks::new(&mut *store, &series), alerts)?)
}

fn of_files(args: &ChangesArgs, alerts: Alerts) -> Result<Changes, FlowError> {
    let mut tracks: Vec<Track> = Vec::new();
    for file in &args.files {
        tracks.extend(holdpoint_store::read_tracks(file)?);
    }
    match find_changes_in(&mut tracks.as_slice(), alerts) {
        Ok(found) => Ok(found),
        Err(never) => match never {},
    }
}
