//! `holdpoint ci guard`: may this run touch the GPU?

use super::CiResult;
use super::commits;
use super::event::{self, EventFacts, EventRequest, variable};
use crate::command_result::CommandResult;
use crate::error::FlowError;
use holdpoint_model::ExitCode;
use holdpoint_process::git::Repository;
use holdpoint_store::Scratch;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// An event to decide about.
#[derive(Clone, Debug)]
pub struct GuardRequest {
    pub event: EventRequest,
    /// Of a comment: its pull request, and its author's permission, as the API has them now.
    pub pull_request: Option<PathBuf>,
    pub permission: Option<PathBuf>,
    /// The runner is the forge's.
    pub hosted: bool,
    /// A clone with head and base, to list the changed files.
    pub repository: Option<PathBuf>,
    /// A file of the repository, whose `[gate] paths` at the base say which changes are measured.
    pub suite: Option<String>,
    /// Where the outputs are appended; where the environment says, if absent.
    pub output: Option<PathBuf>,
}

pub fn run(args: &GuardRequest) -> Result<CommandResult<CiResult>, FlowError> {
    // A workflow names them for every event, and asks for them where it is a comment.
    let is_there = |path: &&Path| path.exists();
    let asked = EventFacts {
        hosted: args.hosted,
        pull_request: args.pull_request.as_deref().filter(is_there),
        permission: args.permission.as_deref().filter(is_there),
    };
    let mut ruling = event::decide(&args.event, &asked)?;
    if let Some(repository) = &args.repository {
        let clone = Repository::around(repository);
        let scratch = Scratch::new()?;
        let compared = ruling.compared.clone();
        let suite = match (&args.suite, &compared) {
            (Some(file), Some((head, base))) => {
                commits::read_suite(&clone, &[base, head], file, scratch.path())?
            }
            _ => None,
        };
        let matters = args.suite.as_ref().zip(suite.as_ref()).map(|(file, suite)| suite.matters(file));
        ruling = event::filtered(ruling, &clone, matters.as_ref())?;
    }
    let file = args.output.clone().or_else(|| Some(PathBuf::from(variable("GITHUB_OUTPUT"))));
    if let Some(file) = file.filter(|file| !file.as_os_str().is_empty()) {
        append(&file, &ruling.outputs())
            .map_err(|error| FlowError::Internal(format!("cannot write to {}: {error}", file.display())))?;
    }
    Ok(CommandResult::new(CiResult::Guarded(Box::new(ruling)), ExitCode::Ok))
}

/// Adds to a file that others have begun.
fn append(path: &Path, text: &str) -> std::io::Result<()> {
    OpenOptions::new().create(true).append(true).open(path)?.write_all(text.as_bytes())
}
