//! `holdpoint completions`: a completion script for a shell.

use crate::args::{self, CompletionsArgs};
use crate::error::CliError;
use crate::output::{Output, print};
use holdpoint_model::ExitCode;

/// Runs the command.
///
/// # Errors
/// When stdout cannot be written to.
pub fn run(completions: &CompletionsArgs, _output: &Output) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut args::command(), "holdpoint", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::Ok)
}
