//! Makes one plain call of a workload, alone or under a tool.
//!
//! All requests are written before the process starts, and the answers are read after it has ended: by then the tool's
//! log is complete, and the exit status is known.

use super::process::{Output, ProcessError, capture};
use crate::program::WorkerError;
use holdpoint_model::limits::clean_text;
use holdpoint_model::protocol::{DeviceInfo, Message, PROTOCOL_VERSION, Request, Response};
use holdpoint_model::report::KernelInfo;
use holdpoint_model::{Failure, FailureCause, Suite, Workload};
use std::process::ExitStatus;
use std::time::Duration;

#[derive(Default)]
pub(super) struct CallResult {
    pub stop: Option<Stop>,
    pub device: Option<DeviceInfo>,
    pub kernel: Option<KernelInfo>,
    /// If the process was not killed.
    pub status: Option<ExitStatus>,
}

/// Why a call did not complete.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stop {
    /// It cannot run here: a reason code.
    Skipped(String),
    Failed(Failure),
}

/// Starts the workload's process with a tool's command line before its own, makes one call and checks its answer.
pub(super) fn drive(suite: &Suite, spec: &Workload, tool: &[String], timeout: Duration) -> CallResult {
    let worker = suite.workers.get(spec.worker());
    let own = spec.task.call().map_or(&[][..], |call| &call.command);
    let program = worker.map_or(own, |worker| &worker.command);
    let command: Vec<String> = tool.iter().chain(program).cloned().collect();
    let requests = worker.map(|_| requests(spec, suite.seed_of(spec))).unwrap_or_default();
    let dir = worker.and_then(|worker| worker.dir.as_deref()).or(suite.dir.as_deref());
    match capture(&command, &requests, dir, timeout) {
        Ok(output) => {
            let mut called = CallResult { status: Some(output.status), ..CallResult::default() };
            let checked = match worker {
                Some(_) => called.read_answers(spec, &output),
                None => check_program(spec, &output),
            };
            called.stop = checked.err();
            called
        }
        Err(error) => {
            let cause = match error {
                ProcessError::NotStarted(_) => FailureCause::NotStarted,
                ProcessError::TimedOut(_) => FailureCause::TimedOut,
                ProcessError::Flooded => FailureCause::Flooded,
                ProcessError::Io(_) => FailureCause::WorkerError,
            };
            let program = program.first().map(String::as_str).unwrap_or_default();
            let stop = failed(cause, format!("{program:?} {error}"), &[]);
            CallResult { stop: Some(stop), ..CallResult::default() }
        }
    }
}

fn requests(spec: &Workload, seed: u64) -> String {
    let workload = || spec.name.clone();
    let requests = [
        Request::Hello { protocol: PROTOCOL_VERSION },
        Request::Prepare { workload: workload(), seed },
        Request::Verify { workload: workload() },
        Request::Bye {},
    ];
    // Requests can always be serialised.
    let messages = (1..).zip(requests).map(|(id, body)| Message { id, body });
    messages.filter_map(|message| serde_json::to_string(&message).ok()).map(|line| line + "\n").collect()
}

fn failed(cause: FailureCause, detail: impl Into<String>, stderr_tail: &[String]) -> Stop {
    let stderr_tail = stderr_tail.to_vec();
    Stop::Failed(WorkerError { stderr_tail, ..WorkerError::new(cause, detail) }.into())
}

/// A program is right if it ends with 0 and prints the expected text.
fn check_program(spec: &Workload, output: &Output) -> Result<(), Stop> {
    let Output { status, stdout, stderr_tail } = output;
    if !status.success() {
        return Err(failed(FailureCause::Crashed, format!("it ended with {status}"), stderr_tail));
    }
    match spec.task.command().and_then(|task| task.expect_stdout.as_ref()) {
        Some(expected) if stdout.trim_end() != expected.trim_end() => {
            Err(failed(FailureCause::WrongAnswer, "it printed something else", stderr_tail))
        }
        _ => Ok(()),
    }
}

impl CallResult {
    /// Reads a worker's answers to all requests.
    fn read_answers(&mut self, spec: &Workload, output: &Output) -> Result<(), Stop> {
        let fail = |cause, detail: String| Err(failed(cause, detail, &output.stderr_tail));
        let mut lines = output.stdout.lines();
        let mut next = || -> Result<Response, Stop> {
            let Some(line) = lines.next() else {
                let detail = format!("it ended before its last answer ({})", output.status);
                return fail(FailureCause::Crashed, detail);
            };
            match serde_json::from_str::<Message<Response>>(line).map(|message| message.body) {
                Ok(Response::Error { message, cause, .. }) => {
                    fail(cause.unwrap_or(FailureCause::WorkerError), message)
                }
                Ok(response) => Ok(response),
                Err(error) => fail(FailureCause::Garbage, format!("not an answer of the protocol ({error})")),
            }
        };
        let unexpected = |request: &str| {
            let detail = format!("it answered {request} with something else");
            Err(failed(FailureCause::Mismatch, detail, &[]))
        };
        match next()? {
            Response::Hello(info) if info.protocol == PROTOCOL_VERSION => self.device = info.device,
            _ => return unexpected("hello"),
        }
        match next()? {
            Response::Prepared { workload, kernel, .. } if workload == spec.name => self.kernel = kernel,
            Response::Skipped { workload, reason } if workload == spec.name => {
                return Err(Stop::Skipped(clean_text(&reason)));
            }
            _ => return unexpected("prepare"),
        }
        match next()? {
            Response::Verified { workload, answer } if workload == spec.name => match answer {
                // An unbounded error is a wrong answer, whatever the worker concluded.
                Some(answer) if !answer.passed || !answer.max_abs_err.is_finite() => {
                    Err(failed(FailureCause::WrongAnswer, answer.first_bad.unwrap_or_default(), &[]))
                }
                _ => Ok(()),
            },
            _ => unexpected("verify"),
        }
    }
}
