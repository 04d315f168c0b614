//! `holdpoint doctor`: what this machine can measure, and why not.

use crate::error::CliError;
use crate::output::Output;
use holdpoint_measure::doctor;
use holdpoint_model::ExitCode;
use holdpoint_render::terminal;

/// Runs the command.
///
/// # Errors
/// When stdout cannot be written to.
pub fn run(output: &Output) -> Result<ExitCode, CliError> {
    let caps = doctor::runtime_caps();
    output.result(&caps, |style| terminal::caps(&caps, style))?;
    Ok(ExitCode::Ok)
}
