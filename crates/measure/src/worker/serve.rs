//! The worker's end of the protocol: serves a worker of this process on a pair of streams.

use super::{Computed, Prepared, Worker};
use crate::program::WorkerError;
use crate::program::{Line, read_line, to_line};
use holdpoint_model::FailureCause;
use holdpoint_model::limits::{CALLS_PER_SAMPLE_MAX, SAMPLES_PER_RUN_MAX};
use holdpoint_model::protocol::{Message, PROTOCOL_VERSION, Request, Response};
use std::io::{self, BufRead, Write};

/// Answers requests until `bye` or the end of the input. A request that cannot be read gets an `error`; a line over the
/// limit ends the conversation.
pub fn serve(worker: &mut dyn Worker, mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    loop {
        let (id, response) = match read_line(&mut input)? {
            Line::End => return Ok(()),
            Line::Text(text) => match serde_json::from_str::<Message<Request>>(&text) {
                Ok(message) => (message.id, answer(worker, &message.body)),
                Err(error) => {
                    (read_id(&text), error_response(format!("not a request of the protocol: {error}")))
                }
            },
            Line::NotText => (0, error_response("not UTF-8 text".to_owned())),
            Line::TooLong => {
                return write(&mut output, 0, &error_response("line over the limit".to_owned()));
            }
        };
        write(&mut output, id, &response)?;
        if matches!(response, Response::Bye {} | Response::Error { fatal: true, .. }) {
            return Ok(());
        }
    }
}

/// The number of a request that is otherwise unreadable.
fn read_id(text: &str) -> u64 {
    let object: Option<serde_json::Value> = serde_json::from_str(text).ok();
    object.and_then(|object| object.get("id")?.as_u64()).unwrap_or(0)
}

fn error_response(message: String) -> Response {
    Response::Error { message, cause: None, fatal: false }
}

fn write(output: &mut impl Write, id: u64, response: &Response) -> io::Result<()> {
    output.write_all(&to_line(id, response)?)?;
    output.flush()
}

fn answer(worker: &mut dyn Worker, request: &Request) -> Response {
    respond(worker, request).unwrap_or_else(|error| Response::Error {
        message: error.detail,
        cause: Some(error.cause).filter(|cause| *cause != FailureCause::WorkerError),
        fatal: error.fatal,
    })
}

fn respond(worker: &mut dyn Worker, request: &Request) -> Result<Response, WorkerError> {
    Ok(match request {
        Request::Hello { protocol } if *protocol == PROTOCOL_VERSION => Response::Hello(worker.hello()?),
        Request::Hello { protocol } => error_response(format!(
            "protocol {protocol} is not spoken here; this worker speaks {PROTOCOL_VERSION}"
        )),
        Request::List {} => Response::Workloads { workloads: worker.list()? },
        Request::Prepare { workload, seed } => match worker.prepare(workload, *seed)? {
            Prepared::Ready(info) => {
                Response::Prepared { workload: workload.clone(), work: info.work, kernel: info.kernel }
            }
            Prepared::Skipped(reason) => Response::Skipped { workload: workload.clone(), reason },
        },
        Request::Run(run)
            if !(1..=SAMPLES_PER_RUN_MAX).contains(&run.samples_count)
                || !(1..=CALLS_PER_SAMPLE_MAX).contains(&run.calls_per_sample) =>
        {
            error_response("samples_count or calls_per_sample is out of range".to_owned())
        }
        Request::Run(run) => Response::Samples(worker.run(run)?),
        Request::Verify { workload } => {
            Response::Verified { workload: workload.clone(), answer: worker.verify(workload)? }
        }
        Request::Release { workload } => {
            worker.release(workload)?;
            Response::Released { workload: workload.clone() }
        }
        Request::Evaluate(evaluation) => match worker.evaluate(evaluation)? {
            Computed::Timed(elapsed_ns) => Response::Computed { elapsed_ns },
            Computed::Skipped(reason) => Response::Skipped { workload: evaluation.op.clone(), reason },
        },
        Request::Fuzz { case } => Response::Evaluated(worker.fuzz(case)?),
        Request::Bye {} => Response::Bye {},
    })
}
