//! A worker in a child process that speaks the protocol on stdin and stdout.
//!
//! Nothing it does is trusted: every answer has a time-out and a size, extra lines are a flood, and whatever
//! goes wrong ends the process and leaves its last stderr lines in the error.

use super::groups::Group;
use super::lines::{Line, read_line};
use super::tail::Tail;
use super::{Computed, Known, Place, Prepared, Worker, WorkerError};
use holdpoint_model::fuzz::{Evaluated, Evaluation, Finding};
use holdpoint_model::limits::{WORKLOADS_MAX, clean_text};
use holdpoint_model::machine::CudaVersions;
use holdpoint_model::protocol::{
    DeviceInfo, PROTOCOL_VERSION, Request, Response, RunResult, WorkerInfo, WorkloadInfo,
};
use holdpoint_model::report::{Answer, KernelInfo};
use holdpoint_model::suite::Work;
use holdpoint_model::{FailureCause, FuzzCase};
use std::io::{BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// A worker in a child process.
pub struct Child {
    process: std::process::Child,
    group: Group,
    stdin: Option<ChildStdin>,
    answers: Receiver<Answered>,
    stderr: Option<Tail>,
    timeout: Duration,
}

/// A line of stdout, and whether more had come with it.
struct Answered {
    line: std::io::Result<Line>,
    has_more: bool,
}

/// How long a worker may take to end after `bye`, or to let go of stderr after it was killed.
const GRACE: Duration = Duration::from_millis(500);
/// Answers that may wait unread. One is asked for at a time; a flood blocks in the pipe, not in our memory.
const ANSWERS_WAITING_MAX: usize = 2;

impl Child {
    /// Starts the program at a place; every answer must come within `timeout`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &[String], place: &Place, timeout: Duration) -> Result<Self, WorkerError> {
        let not_started = |what: String| WorkerError::fatal(FailureCause::NotStarted, what);
        let (program, arguments) =
            command.split_first().ok_or_else(|| not_started("empty command".to_owned()))?;
        let mut starting = place.command(program);
        starting.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = place.spawn(starting.process_group(0)).map_err(|e| {
            not_started(format!("cannot start {program:?}: {e}; is it built and on the path?"))
        })?;
        let (send, answers) = sync_channel(ANSWERS_WAITING_MAX);
        if let Some(stdout) = process.stdout.take() {
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stdout);
                loop {
                    let line = read_line(&mut reader);
                    let over = !matches!(line, Ok(Line::Text(_) | Line::NotText));
                    let has_more = !reader.buffer().is_empty();
                    if send.send(Answered { line, has_more }).is_err() || over {
                        break;
                    }
                }
            });
        }
        let stderr = process.stderr.take().map(Tail::of);
        let stdin = process.stdin.take();
        let group = Group::of(process.id());
        Ok(Self { process, group, stdin, answers, stderr, timeout })
    }

    fn ask(&mut self, request: &Request) -> Result<Response, WorkerError> {
        let response = self.exchange(request);
        match response {
            Ok(Response::Error { message, cause, fatal: true }) => {
                Err(self.end(cause.unwrap_or(FailureCause::WorkerError), clean_text(&message)))
            }
            Ok(Response::Error { message, cause, fatal: false }) => Err(WorkerError {
                stderr_tail: self.tail(),
                ..WorkerError::new(cause.unwrap_or(FailureCause::WorkerError), clean_text(&message))
            }),
            Ok(response) => Ok(response),
            Err((cause, detail)) => Err(self.end(cause, detail)),
        }
    }

    fn exchange(&mut self, request: &Request) -> Result<Response, (FailureCause, String)> {
        let flooded = || (FailureCause::Flooded, "it wrote more than one answer to a request".to_owned());
        let early = self.answers.try_recv().map(|answered| answered.line);
        if let Ok(Ok(Line::Text(_) | Line::NotText | Line::TooLong)) = early {
            return Err(flooded());
        }
        let mut line =
            serde_json::to_string(request).map_err(|e| (FailureCause::WorkerError, e.to_string()))?;
        line.push('\n');
        let sent =
            self.stdin.as_mut().map(|stdin| stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()));
        let answered = self.answers.recv_timeout(self.timeout);
        let has_more = answered.as_ref().is_ok_and(|answered| answered.has_more);
        match answered.map(|answered| answered.line) {
            Ok(Ok(Line::Text(text))) => match serde_json::from_str(&text) {
                Ok(_) if has_more => Err(flooded()),
                Ok(response) => Ok(response),
                Err(e) => {
                    let detail = format!("not an answer of the protocol ({e}): {}", excerpt(&text));
                    Err((FailureCause::Garbage, detail))
                }
            },
            Ok(Ok(Line::NotText)) => Err((FailureCause::Garbage, "its answer is not UTF-8 text".to_owned())),
            Ok(Ok(Line::TooLong)) => {
                Err((FailureCause::Flooded, "its answer is over the limit of 4 MiB".to_owned()))
            }
            Err(RecvTimeoutError::Timeout) => {
                let detail =
                    format!("no answer to {} within {} s", name_of(request), self.timeout.as_secs_f64());
                Err((FailureCause::TimedOut, detail))
            }
            Ok(Ok(Line::End)) | Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                let unsent = sent.is_none_or(|sent| sent.is_err());
                let when = if unsent { "before it read" } else { "while it worked on" };
                Err((FailureCause::Crashed, format!("it ended {when} {}", name_of(request))))
            }
        }
    }

    /// Ends the process and tells how it ended.
    fn end(&mut self, cause: FailureCause, mut detail: String) -> WorkerError {
        self.stdin = None;
        if cause == FailureCause::Crashed {
            let status = self.wait(GRACE).map(|status| status.to_string());
            let how = status.unwrap_or_else(|| "it closed its stdout and lived on".to_owned());
            detail.push_str(&format!(" ({how})"));
        }
        self.kill();
        WorkerError { stderr_tail: self.tail(), ..WorkerError::fatal(cause, detail) }
    }

    fn wait(&mut self, limit: Duration) -> Option<std::process::ExitStatus> {
        // Most end at once; a comparison starts and ends hundreds.
        let (mut step, mut waited) = (Duration::from_micros(100), Duration::ZERO);
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if waited < limit => std::thread::sleep(step),
                _ => return None,
            }
            waited += step;
            step = (step * 2).min(Duration::from_millis(5));
        }
    }

    fn kill(&mut self) {
        self.group.kill();
        let _ = self.process.wait();
    }

    fn tail(&mut self) -> Vec<String> {
        let has_ended = matches!(self.process.try_wait(), Ok(Some(_)));
        match &self.stderr {
            Some(stderr) if has_ended => stderr.last_lines(),
            Some(stderr) => stderr.lines(),
            None => Vec::new(),
        }
    }

    fn unexpected<T>(&mut self, request: &str, response: &Response) -> Result<T, WorkerError> {
        let text = serde_json::to_string(response).unwrap_or_default();
        Err(self.end(FailureCause::Mismatch, format!("answered {request} with {}", excerpt(&text))))
    }
}

impl Worker for Child {
    fn hello(&mut self) -> Result<WorkerInfo, WorkerError> {
        match self.ask(&Request::Hello { protocol: PROTOCOL_VERSION })? {
            Response::Hello(info) if info.protocol == PROTOCOL_VERSION => Ok(WorkerInfo {
                name: clean_text(&info.name),
                version: clean_text(&info.version),
                timer: clean_text(&info.timer),
                device: info.device.map(cleaned_device),
                environment_lock: info
                    .environment_lock
                    .iter()
                    .take(LOCKED_MAX)
                    .map(|(name, value)| (clean_text(name), clean_text(value)))
                    .collect(),
                ..info
            }),
            Response::Hello(info) => Err(self.end(
                FailureCause::Mismatch,
                format!("it speaks protocol {}, holdpoint speaks {PROTOCOL_VERSION}", info.protocol),
            )),
            other => self.unexpected("hello", &other),
        }
    }

    fn list(&mut self) -> Result<Vec<WorkloadInfo>, WorkerError> {
        match self.ask(&Request::List {})? {
            Response::Workloads { workloads } if workloads.len() > WORKLOADS_MAX => {
                let detail = format!("it lists {} workloads, at most {WORKLOADS_MAX}", workloads.len());
                Err(self.end(FailureCause::Flooded, detail))
            }
            Response::Workloads { workloads } => Ok(workloads),
            other => self.unexpected("list", &other),
        }
    }

    fn prepare(&mut self, workload: &str, seed: u64) -> Result<Prepared, WorkerError> {
        match self.ask(&Request::Prepare { workload: workload.to_owned(), seed })? {
            Response::Prepared { workload: name, work, kernel } if name == workload => {
                let work = work.map(|work| Work { item: clean_text(&work.item), ..work });
                Ok(Prepared::Ready(Box::new(Known { work, kernel: kernel.map(cleaned) })))
            }
            Response::Skipped { workload: name, reason } if name == workload => {
                Ok(Prepared::Skipped(clean_text(&reason)))
            }
            other => self.unexpected("prepare", &other),
        }
    }

    fn run(
        &mut self,
        workload: &str,
        samples_count: u64,
        calls_per_sample: u64,
    ) -> Result<RunResult, WorkerError> {
        let request = Request::Run { workload: workload.to_owned(), samples_count, calls_per_sample };
        match self.ask(&request)? {
            Response::Samples(result) if result.workload == workload => Ok(result),
            other => self.unexpected("run", &other),
        }
    }

    fn verify(&mut self, workload: &str) -> Result<Option<Answer>, WorkerError> {
        match self.ask(&Request::Verify { workload: workload.to_owned() })? {
            Response::Verified { workload: name, answer } if name == workload => Ok(answer
                .map(|answer| Answer { first_bad: answer.first_bad.as_deref().map(clean_text), ..answer })),
            other => self.unexpected("verify", &other),
        }
    }

    fn release(&mut self, workload: &str) -> Result<(), WorkerError> {
        match self.ask(&Request::Release { workload: workload.to_owned() })? {
            Response::Released { workload: name } if name == workload => Ok(()),
            other => self.unexpected("release", &other),
        }
    }

    fn fuzz(&mut self, case: &FuzzCase) -> Result<Evaluated, WorkerError> {
        match self.ask(&Request::Fuzz { case: case.clone() })? {
            Response::Evaluated(evaluated) => Ok(Evaluated {
                finding: evaluated
                    .finding
                    .map(|finding| Finding { detail: clean_text(&finding.detail), ..finding }),
                skipped: evaluated.skipped.as_deref().map(clean_text),
                ..evaluated
            }),
            other => self.unexpected("fuzz", &other),
        }
    }

    fn evaluate(&mut self, evaluation: &Evaluation) -> Result<Computed, WorkerError> {
        match self.ask(&Request::Evaluate(evaluation.clone()))? {
            Response::Computed { elapsed_ns } => Ok(Computed::Timed(elapsed_ns)),
            Response::Skipped { reason, .. } => Ok(Computed::Skipped(clean_text(&reason))),
            other => self.unexpected("evaluate", &other),
        }
    }

    fn process_id(&self) -> Option<u32> {
        Some(self.process.id())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(mut stdin) = self.stdin.take() {
            // A worker that is already gone needs no farewell.
            let _ = serde_json::to_writer(&mut stdin, &Request::Bye {}).map(|()| stdin.write_all(b"\n"));
            drop(stdin);
            self.wait(GRACE);
        }
        self.kill();
    }
}

/// Entries of a worker's environment lock.
const LOCKED_MAX: usize = 100;

fn cleaned_device(device: DeviceInfo) -> DeviceInfo {
    DeviceInfo {
        name: clean_text(&device.name),
        uuid: clean_text(&device.uuid),
        compute_capability: clean_text(&device.compute_capability),
        versions: CudaVersions {
            driver: clean_text(&device.versions.driver),
            cuda: clean_text(&device.versions.cuda),
            nvrtc: device.versions.nvrtc.as_deref().map(clean_text),
        },
        ..device
    }
}

/// Words of a worker's, harmless.
fn cleaned(kernel: KernelInfo) -> KernelInfo {
    KernelInfo {
        op_name: clean_text(&kernel.op_name),
        kernel_name: clean_text(&kernel.kernel_name),
        shape_bucket: clean_text(&kernel.shape_bucket),
        selection_source: clean_text(&kernel.selection_source),
        selected_config: kernel
            .selected_config
            .iter()
            .map(|(name, value)| (clean_text(name), *value))
            .collect(),
        code_sha256: kernel.code_sha256.as_deref().map(clean_text),
        launches: kernel.launches.iter().map(|launch| clean_text(launch)).collect(),
        functions: kernel.functions.iter().map(|name| clean_text(name)).collect(),
        ..kernel
    }
}

fn name_of(request: &Request) -> &'static str {
    match request {
        Request::Hello { .. } => "hello",
        Request::List {} => "list",
        Request::Prepare { .. } => "prepare",
        Request::Run { .. } => "run",
        Request::Verify { .. } => "verify",
        Request::Release { .. } => "release",
        Request::Evaluate(_) => "evaluate",
        Request::Fuzz { .. } => "fuzz",
        Request::Bye {} => "bye",
    }
}

fn excerpt(text: &str) -> String {
    clean_text(text).chars().take(120).collect()
}
