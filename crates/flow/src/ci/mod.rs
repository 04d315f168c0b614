//! `holdpoint ci`: the commands that pipelines call.

mod annotate;
mod commits;
mod event;
mod gate;
mod guard;
mod init;
mod isolate;
mod measure;
mod note;
mod notify;
mod promote;
mod report;
mod stated_ruling;

pub use event::EventRequest;
pub use gate::{GateEnd, GateRequest, PriorRuling};
pub use guard::GuardRequest;
pub use holdpoint_ci::guard::Mode;
use holdpoint_ci::guard::Ruling;
pub use holdpoint_ci::workflows::Forge;
pub use init::{Files, WorkflowsRequest};
pub use notify::NotifyRequest;
pub use promote::ProposalRequest;
pub use report::ReportRequest;

use crate::Watch;
use crate::command_result::{CommandResult, Message};
use crate::error::FlowError;
use crate::gate::GateResult;
use crate::request::MeasureRequest;
use holdpoint_model::ExitCode;

/// What a pipeline asks for.
#[derive(Clone, Debug)]
pub enum CiRequest {
    Init(WorkflowsRequest),
    Gate(GateRequest),
    Report(ReportRequest),
    Guard(GuardRequest),
    Promote(ProposalRequest),
    Notify(NotifyRequest),
    Measure(MeasureRequest),
    /// What measured code may not write to is mounted; the plan is read from stdin.
    Wall,
}

/// The result of a subcommand.
#[derive(Debug)]
pub enum CiResult {
    Message(Message),
    Guarded(Box<Ruling>),
    Files(Files),
    Gate(Box<GateEnd>),
    Measure(Box<GateResult>),
    /// The comment itself, to be printed as it is.
    Page(String),
    Nothing,
}

pub fn run(request: &CiRequest, watch: &dyn Watch) -> Result<CommandResult<CiResult>, FlowError> {
    match request {
        CiRequest::Init(args) => init::run(args),
        CiRequest::Gate(args) => gate::run(args, watch),
        CiRequest::Report(args) => report::run(args, watch),
        CiRequest::Guard(args) => guard::run(args),
        CiRequest::Promote(args) => promote::run(args, watch),
        CiRequest::Notify(args) => notify::run(args),
        CiRequest::Measure(args) => measure::run(args, watch),
        CiRequest::Wall => {
            let code = ExitCode::from_number(isolate::run_wall()?).unwrap_or(ExitCode::Internal);
            Ok(CommandResult::new(CiResult::Nothing, code))
        }
    }
}
