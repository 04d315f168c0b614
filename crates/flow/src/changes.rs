//! `holdpoint changes`: the change points of series.

use crate::done::Done;
use crate::error::FlowError;
use crate::history;
use crate::options::ChangesArgs;
use holdpoint_gate::history::{find_alerts, find_changes};
use holdpoint_model::{Changes, ExitCode, Track};

pub fn run(args: &ChangesArgs) -> Result<Done<Changes>, FlowError> {
    let tracks = read(args)?;
    let mut found = find_changes(&tracks);
    if args.alerts {
        for (series, track) in found.series.iter_mut().zip(&tracks) {
            series.alerts = Some(find_alerts(track));
        }
    }
    Ok(Done::new(found, ExitCode::Ok))
}

fn read(args: &ChangesArgs) -> Result<Vec<Track>, FlowError> {
    if args.files.is_empty() {
        return Ok(history::read(&args.store(), &args.select)?.iter().map(Track::from).collect());
    }
    let mut tracks = Vec::new();
    for file in &args.files {
        tracks.extend(holdpoint_store::read_tracks(file)?);
    }
    Ok(tracks)
}
