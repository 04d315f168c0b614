//! `holdpoint ci`: what pipelines call.

mod comment;
mod guard;
mod init;
mod notify;

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
        CiCommand::Comment(args) => comment::run(args, output),
        CiCommand::Notify(args) => notify::run(args, output),
    }
}

/// A variable of the environment, if it is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The page of this job, from what the runner says.
pub fn own_url() -> Option<String> {
    let github = || {
        let (server, repository, run) =
            (variable("GITHUB_SERVER_URL")?, variable("GITHUB_REPOSITORY")?, variable("GITHUB_RUN_ID")?);
        Some(format!("{server}/{repository}/actions/runs/{run}"))
    };
    // On GitLab, this job tells of another one: the pipeline has both.
    github().or_else(|| variable("CI_PIPELINE_URL"))
}
