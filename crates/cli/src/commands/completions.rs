//! `holdpoint completions`: a completion script for a shell.

use crate::args::{Args, CompletionsArgs};
use crate::error::CliError;
use crate::output::{Output, print};
use clap::CommandFactory;
use holdpoint_model::ExitCode;

/// Runs the command.
///
/// # Errors
/// When stdout cannot be written to.
pub fn run(args: &CompletionsArgs, _output: &Output) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "holdpoint", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::Ok)
}
