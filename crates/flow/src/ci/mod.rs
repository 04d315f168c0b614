//! `holdpoint ci`: the commands that pipelines call.

mod annotate;
mod decided;
mod event;
mod gate;
mod guard;
mod history;
mod init;
mod isolate;
mod measure;
mod note;
mod notify;
mod promote;
mod report;

pub use gate::GateEnd;
use holdpoint_ci::guard::Ruling;
pub use init::Files;

use crate::Watch;
use crate::done::{Done, Message};
use crate::error::FlowError;
use crate::gate::Gated;
use crate::options::{CiArgs, CiCommand};
use holdpoint_model::ExitCode;

/// The result of a subcommand.
#[derive(Debug)]
pub enum CiResult {
    Message(Message),
    Guarded(Box<Ruling>),
    Files(Files),
    Gate(Box<GateEnd>),
    Gated(Box<Gated>),
    /// The comment itself, to be printed as it is.
    Page(String),
    Nothing,
}

pub fn run(args: &CiArgs, watch: &dyn Watch) -> Result<Done<CiResult>, FlowError> {
    match &args.command {
        CiCommand::Init(args) => init::run(args),
        CiCommand::Gate(args) => gate::run(args, watch),
        CiCommand::Report(args) => report::run(args, watch),
        CiCommand::Guard(args) => guard::run(args),
        CiCommand::Promote(args) => promote::run(args, watch),
        CiCommand::Notify(args) => notify::run(args),
        CiCommand::Measure(args) => measure::run(args, watch),
        CiCommand::Wall => {
            let code = ExitCode::from_number(isolate::run_wall()?).unwrap_or(ExitCode::Internal);
            Ok(Done::new(CiResult::Nothing, code))
        }
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
