//! `holdpoint run`: measure a suite and write its report.

use crate::args::RunArgs;
use crate::error::CliError;
use crate::output::Output;
use crate::progress::Progress;
use crate::suites;
use holdpoint_measure::run_suite;
use holdpoint_model::{ExitCode, Report, RunStatus, Suite};
use holdpoint_render::terminal;
use serde::Serialize;
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// When the suite cannot be used or the report cannot be written.
pub fn run(args: &RunArgs, output: &Output) -> Result<ExitCode, CliError> {
    let suite = suites::runnable(&args.suite)?;
    holdpoint_store::check_writable(&args.output)?;
    let report = measure(&suite, output);
    save(&args.output, &report)?;
    output.result(&report, |style| terminal::report(&report, style))?;
    output.note(&format!("report: {}", args.output.display()));
    Ok(exit_code(&report))
}

/// Measures with progress on a terminal.
pub fn measure(suite: &Suite, output: &Output) -> Report {
    let progress = Progress::new(suite.workloads.len(), output);
    run_suite(suite, Path::new("."), &mut |event| progress.on(event))
}

/// Writes a report; where that fails, into the folder for temporary files: what was measured is not lost.
///
/// # Errors
/// With the first failure, after the report has been put elsewhere if at all possible.
pub fn save(path: &Path, report: &impl Serialize) -> Result<(), CliError> {
    let Err(source) = holdpoint_store::write_json(path, report) else {
        return Ok(());
    };
    let refuge = std::env::temp_dir().join(format!("holdpoint-report-{}.json", std::process::id()));
    match holdpoint_store::write_json(&refuge, report) {
        Ok(()) => Err(CliError::Kept { source, refuge }),
        Err(_) => Err(source.into()),
    }
}

/// How a run ends that is not compared with anything.
pub fn exit_code(report: &Report) -> ExitCode {
    match report.status {
        RunStatus::Ok | RunStatus::Partial => ExitCode::Ok,
        RunStatus::Skipped => ExitCode::Skipped,
        RunStatus::Failed => ExitCode::Broken,
    }
}
