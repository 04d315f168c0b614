//! `holdpoint ci`: the commands that pipelines call.

mod comment;
mod guard;
mod init;
mod notify;

use holdpoint_ci::guard::Ruling;
pub use init::Files;

use crate::Watch;
use crate::done::{Done, Message};
use crate::error::FlowError;
use crate::options::{CiArgs, CiCommand};

/// The result of a subcommand.
#[derive(Debug)]
pub enum CiResult {
    Message(Message),
    Guarded(Box<Ruling>),
    Files(Files),
    /// The comment itself, to be printed as it is.
    Page(String),
}

pub fn run(args: &CiArgs, watch: &dyn Watch) -> Result<Done<CiResult>, FlowError> {
    match &args.command {
        CiCommand::Init(args) => init::run(args),
        CiCommand::Guard(args) => guard::run(args),
        CiCommand::Comment(args) => comment::run(args, watch),
        CiCommand::Notify(args) => notify::run(args),
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
