//! `holdpoint ci`: what pipelines call.

mod guard;
mod init;

use crate::args::{CiArgs, CiCommand};
use crate::error::CliError;
use crate::output::Output;
use holdpoint_model::ExitCode;

/// Runs the command.
///
/// # Errors
/// As each of them.
pub fn run(args: &CiArgs, output: &Output) -> Result<ExitCode, CliError> {
    match &args.command {
        CiCommand::Init(args) => init::run(args, output),
        CiCommand::Guard(args) => guard::run(args, output),
    }
}
