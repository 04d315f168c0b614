//! `holdpoint trend`: keep and show a suite's history.

use crate::Watch;
use crate::done::Done;
use crate::error::FlowError;
use crate::options::{TrendArgs, TrendCommand};
use crate::support::imports;
use holdpoint_model::{ExitCode, Trend};
use holdpoint_store::Appended;

/// Runs the command. Only `show` has points to show.
pub fn run(args: &TrendArgs, watch: &dyn Watch) -> Result<Done<Option<Vec<Trend>>>, FlowError> {
    match &args.command {
        TrendCommand::Append { trends, dir } => {
            for path in trends {
                let trend = imports::read_trend(path)?;
                let (file, appended) = holdpoint_store::append_trend(dir, &trend)?;
                let done = match appended {
                    Appended::Added => "appended to",
                    Appended::AddedAfterRepair => "appended, once a cut-off line had been moved aside, to",
                    Appended::Already => "already in",
                };
                watch.note(&format!("{} {done} {}", path.display(), file.display()));
            }
        }
        TrendCommand::Show { file, suite, dir } => {
            let path = file.clone().unwrap_or_else(|| holdpoint_store::trend_path(dir, suite));
            let points = holdpoint_store::read_trends(&path)?;
            return Ok(Done::new(Some(points), ExitCode::Ok));
        }
    }
    Ok(Done::new(None, ExitCode::Ok))
}
