//! `holdpoint trend`: keep and show a suite's history.

use crate::args::{TrendArgs, TrendCommand};
use crate::error::CliError;
use crate::output::Output;
use holdpoint_model::{ExitCode, Trend};
use holdpoint_render::terminal;
use holdpoint_store::Appended;

/// Runs the command.
///
/// # Errors
/// When a file cannot be read, used or written.
pub fn run(args: &TrendArgs, output: &Output) -> Result<ExitCode, CliError> {
    match &args.command {
        TrendCommand::Append { trends, dir } => {
            for path in trends {
                let trend = holdpoint_store::read_document::<Trend>(path)?;
                let (file, appended) = holdpoint_store::append_trend(dir, &trend)?;
                let done = match appended {
                    Appended::Added => "appended to",
                    Appended::AddedAfterRepair => "appended, once a cut-off line had been moved aside, to",
                    Appended::Already => "already in",
                };
                output.note(&format!("{} {done} {}", path.display(), file.display()));
            }
        }
        TrendCommand::Show { file, suite, dir } => {
            let path = file.clone().unwrap_or_else(|| holdpoint_store::trend_path(dir, suite));
            let points = holdpoint_store::read_trends(&path)?;
            output.result(&points, |style| terminal::trend(&points, style))?;
        }
    }
    Ok(ExitCode::Ok)
}
