//! `holdpoint report`: render an existing report again.

use crate::args::ReportArgs;
use crate::error::CliError;
use crate::output::Output;
use holdpoint_model::{ExitCode, Judgement};
use holdpoint_render::{markdown, terminal};

/// Runs the command.
///
/// # Errors
/// When a file cannot be read, used or written.
pub fn run(args: &ReportArgs, output: &Output) -> Result<ExitCode, CliError> {
    let report = holdpoint_store::read_report(&args.report)?;
    let judgement: Option<Judgement> =
        args.comparison.as_ref().map(|path| holdpoint_store::read_judgement(path)).transpose()?;
    if let Some(path) = &args.markdown {
        holdpoint_store::write_text(path, &markdown::report(&report, judgement.as_ref()))?;
        output.note(&format!("markdown: {}", path.display()));
    }
    output.result(&report, |style| {
        let mut text = terminal::report(&report, style);
        if let Some(judgement) = &judgement {
            text.push('\n');
            text.push_str(&terminal::judgement(judgement, Some(&report), style));
        }
        text
    })?;
    Ok(ExitCode::Ok)
}
