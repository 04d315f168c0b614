//! Makes one plain call of a workload, alone or under a tool.
//!
//! All requests are written before the process starts, and the answers are read after it has ended: by then the tool's
//! log is complete, and the exit status is known.

use super::process::{Output, ProcessError, captured};
use holdpoint_model::limits::clean_text;
use holdpoint_model::protocol::{DeviceInfo, Message, PROTOCOL_VERSION, Request, Response};
use holdpoint_model::report::{Answer, KernelInfo};
use holdpoint_model::{Failure, FailureCause, Suite, WorkloadSpec};
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

#[derive(Default)]
pub(super) struct Driven {
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
pub(super) fn drive(
    suite: &Suite,
    spec: &WorkloadSpec,
    tool: &[String],
    dir: Option<&Path>,
    timeout: Duration,
) -> Driven {
    let worker = suite.workers.get(&spec.worker);
    let program = worker.map_or(&spec.command, |worker| &worker.command);
    let command: Vec<String> = tool.iter().chain(program).cloned().collect();
    let requests = worker.map(|_| requests(spec, suite.seed_of(spec))).unwrap_or_default();
    match captured(&command, &requests, dir, timeout) {
        Ok(output) if worker.is_none() => of_program(spec, output),
        Ok(output) => of_worker(spec, output),
        Err(error) => {
            let cause = match error {
                ProcessError::NotStarted(_) => FailureCause::NotStarted,
                ProcessError::TimedOut(_) => FailureCause::TimedOut,
                ProcessError::Flooded => FailureCause::Flooded,
                ProcessError::Io(_) => FailureCause::WorkerError,
            };
            let program = program.first().map(String::as_str).unwrap_or_default();
            failed(cause, format!("{program:?} {error}"), Vec::new())
        }
    }
}

fn requests(spec: &WorkloadSpec, seed: u64) -> String {
    let workload = || spec.name.clone();
    let requests = [
        Request::Hello { protocol: PROTOCOL_VERSION },
        Request::Prepare { workload: workload(), seed },
        Request::Verify { workload: workload() },
        Request::Bye {},
    ];
    // A request can always be written.
    let messages = (1..).zip(requests).map(|(id, body)| Message { id, body });
    messages.filter_map(|message| serde_json::to_string(&message).ok()).map(|line| line + "\n").collect()
}

fn failed(cause: FailureCause, detail: String, stderr_tail: Vec<String>) -> Driven {
    let failure = Failure { cause, detail: clean_text(&detail), stderr_tail, samples: None };
    Driven { stop: Some(Stop::Failed(failure)), ..Driven::default() }
}

/// A program is right if it ends with 0 and prints the expected text.
fn of_program(spec: &WorkloadSpec, output: Output) -> Driven {
    let Output { status, stdout, stderr_tail } = output;
    let wrong = spec.expect_stdout.as_ref().is_some_and(|expected| stdout.trim_end() != expected.trim_end());
    let driven = match (status.success(), wrong) {
        (true, false) => Driven::default(),
        (true, true) => {
            failed(FailureCause::WrongAnswer, "it printed something else".to_owned(), stderr_tail)
        }
        (false, _) => failed(FailureCause::Crashed, format!("it ended with {status}"), stderr_tail),
    };
    Driven { status: Some(status), ..driven }
}

fn of_worker(spec: &WorkloadSpec, output: Output) -> Driven {
    let Output { status, stdout, stderr_tail } = output;
    let mut driven = Driven { status: Some(status), ..Driven::default() };
    let mut lines = stdout.lines();
    let mut next = || -> Result<Response, Failure> {
        let fail = |cause, detail: String| Failure {
            cause,
            detail: clean_text(&detail),
            stderr_tail: stderr_tail.clone(),
            samples: None,
        };
        let Some(line) = lines.next() else {
            return Err(fail(FailureCause::Crashed, format!("it ended before its last answer ({status})")));
        };
        match serde_json::from_str::<Message<Response>>(line).map(|message| message.body) {
            Ok(Response::Error { message, cause, .. }) => {
                Err(fail(cause.unwrap_or(FailureCause::WorkerError), message))
            }
            Ok(response) => Ok(response),
            Err(error) => {
                Err(fail(FailureCause::Garbage, format!("not an answer of the protocol ({error})")))
            }
        }
    };
    let mut talk = || -> Result<Option<Stop>, Failure> {
        let unexpected = |asked: &str| {
            let detail = format!("it answered {asked} with something else");
            Err(Failure { cause: FailureCause::Mismatch, detail, stderr_tail: Vec::new(), samples: None })
        };
        match next()? {
            Response::Hello(info) if info.protocol == PROTOCOL_VERSION => driven.device = info.device,
            _ => return unexpected("hello"),
        }
        match next()? {
            Response::Prepared { workload, kernel, .. } if workload == spec.name => driven.kernel = kernel,
            Response::Skipped { workload, reason } if workload == spec.name => {
                return Ok(Some(Stop::Skipped(clean_text(&reason))));
            }
            _ => return unexpected("prepare"),
        }
        match next()? {
            Response::Verified { workload, answer } if workload == spec.name => match answer {
                Some(answer) if !is_right(&answer) => {
                    let detail = clean_text(&answer.first_bad.unwrap_or_default());
                    let cause = FailureCause::WrongAnswer;
                    Err(Failure { cause, detail, stderr_tail: Vec::new(), samples: None })
                }
                _ => Ok(None),
            },
            _ => unexpected("verify"),
        }
    };
    driven.stop = talk().unwrap_or_else(|failure| Some(Stop::Failed(failure)));
    driven
}

/// An unbounded error is a wrong answer, whatever the worker concluded.
fn is_right(answer: &Answer) -> bool {
    answer.passed && answer.max_abs_err.is_finite()
}
