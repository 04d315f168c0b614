//! A worker in a child process that speaks the protocol on stdin and stdout.
//!
//! Nothing it does is trusted: every answer has a timeout and a size limit, extra lines are a flood, and any violation
//! ends the process and puts its last stderr lines into the error.

use super::lines::{Line, read_line};
use super::tail::Tail;
use super::{Computed, Known, Place, Prepared, Worker, WorkerError};
use crate::jobs::Job;
use holdpoint_model::fuzz::{Evaluated, Evaluation, Finding};
use holdpoint_model::limits::{WORKLOADS_MAX, clean_text};
use holdpoint_model::machine::CudaVersions;
use holdpoint_model::protocol::{
    DeviceInfo, Message, PROTOCOL_VERSION, Request, Response, RunRequest, RunResult, WorkerInfo, WorkloadInfo,
};
use holdpoint_model::report::{Answer, KernelInfo};
use holdpoint_model::suite::Work;
use holdpoint_model::{FailureCause, FuzzCase};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::{self, BufReader, Write};
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

pub struct Child {
    process: std::process::Child,
    job: Job,
    stdin: Option<ChildStdin>,
    answers: Receiver<Answered>,
    stderr: Option<Tail>,
    timeout: Duration,
    /// The last requests that were sent.
    asked: VecDeque<Asked>,
}

struct Asked {
    id: u64,
    name: &'static str,
    workload: Option<String>,
}

/// Why there is no answer; `blamed` is another workload than the one asked about.
struct NoAnswer {
    cause: FailureCause,
    detail: String,
    blamed: Option<String>,
}

impl NoAnswer {
    fn new(cause: FailureCause, detail: impl Into<String>) -> Self {
        Self { cause, detail: detail.into(), blamed: None }
    }
}

/// A line of stdout, and whether more came with it.
struct Answered {
    line: std::io::Result<Line>,
    has_more: bool,
}

/// How long a worker may take to end after `bye`, or to close stderr after it was killed.
const GRACE: Duration = Duration::from_millis(500);
/// How long a killed process may take to end; one stuck in the kernel is left there.
const KILL_MAX: Duration = Duration::from_secs(5);
/// Requests remembered in order to recognise a late answer.
const ASKED_KEPT: usize = 64;
/// Answers that may wait unread. Requests are sent one at a time; a flood blocks in the pipe, not in our memory.
const ANSWERS_WAITING_MAX: usize = 2;

impl Child {
    /// Every answer must come within `timeout`.
    pub fn start(command: &[String], place: &Place, timeout: Duration) -> Result<Self, WorkerError> {
        let not_started = |what: String| WorkerError::fatal(FailureCause::NotStarted, what);
        let (program, arguments) =
            command.split_first().ok_or_else(|| not_started("empty command".to_owned()))?;
        let mut starting = place.command(program);
        starting.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut process, job) = place.spawn(&mut starting).map_err(|e| {
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
        if let Some(stdin) = &stdin {
            // A worker that does not read must not keep us: see `send`.
            rustix::io::ioctl_fionbio(stdin, true).map_err(|e| not_started(e.to_string()))?;
        }
        Ok(Self { process, job, stdin, answers, stderr, timeout, asked: VecDeque::new() })
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
            Err(NoAnswer { cause, detail, blamed }) => Err(WorkerError { blamed, ..self.end(cause, detail) }),
        }
    }

    fn exchange(&mut self, request: &Request) -> Result<Response, NoAnswer> {
        let deadline = Instant::now() + self.timeout;
        // A line that nobody has asked for yet.
        if let Ok(Answered { line: Ok(line @ (Line::Text(_) | Line::NotText | Line::TooLong)), .. }) =
            self.answers.try_recv()
        {
            return Err(self.unasked(&line));
        }
        let id = self.remember(request);
        let message = Message { id, body: request };
        let mut line = serde_json::to_vec(&message)
            .map_err(|error| NoAnswer::new(FailureCause::WorkerError, error.to_string()))?;
        line.push(b'\n');
        let sent = self.send(&line, deadline);
        let name = name_of(request);
        let late = |what: &str| {
            let detail = format!("{what} {name} within {} s", self.timeout.as_secs_f64());
            NoAnswer::new(FailureCause::TimedOut, detail)
        };
        if sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            return Err(late("it did not read"));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let Answered { line, has_more } = match self.answers.recv_timeout(left) {
            Ok(answered) => answered,
            Err(RecvTimeoutError::Timeout) => return Err(late("no answer to")),
            Err(RecvTimeoutError::Disconnected) => Answered { line: Ok(Line::End), has_more: false },
        };
        match line {
            Ok(Line::Text(text)) => self.parse(id, &text, has_more),
            Ok(Line::NotText) => Err(NoAnswer::new(FailureCause::Garbage, "its answer is not UTF-8 text")),
            Ok(Line::TooLong) => {
                Err(NoAnswer::new(FailureCause::Flooded, "its answer is over the limit of 4 MiB"))
            }
            Ok(Line::End) | Err(_) => {
                let when = if sent.is_err() { "before it read" } else { "while it worked on" };
                Err(NoAnswer::new(FailureCause::Crashed, format!("it ended {when} {name}")))
            }
        }
    }

    fn parse(&self, id: u64, text: &str, has_more: bool) -> Result<Response, NoAnswer> {
        let message: Message<Response> = serde_json::from_str(text).map_err(|error| {
            let detail = format!("not an answer of the protocol ({error}): {}", excerpt(text));
            NoAnswer::new(FailureCause::Garbage, detail)
        })?;
        // One that speaks an older version repeats no number; its version is what is wrong with it.
        let is_older = matches!(&message.body, Response::Hello(info) if info.protocol != PROTOCOL_VERSION);
        match message {
            message if message.id != id && !is_older => Err(self.wrong_id(message.id, id)),
            _ if has_more => {
                Err(NoAnswer::new(FailureCause::Flooded, "it wrote more than one answer to a request"))
            }
            message => Ok(message.body),
        }
    }

    /// A line that came before it was asked for.
    fn unasked(&self, line: &Line) -> NoAnswer {
        let answered = match line {
            Line::Text(text) => serde_json::from_str::<Message<Response>>(text).ok(),
            _ => None,
        };
        let newest = self.asked.back().map_or(0, |asked| asked.id);
        match answered {
            Some(message) => self.wrong_id(message.id, newest + 1),
            None => NoAnswer {
                blamed: self.asked.back().and_then(|asked| asked.workload.clone()),
                ..NoAnswer::new(FailureCause::Flooded, "it wrote something that was not asked for")
            },
        }
    }

    /// An answer to another request: that request's workload is to blame, not the current one.
    fn wrong_id(&self, answered: u64, asked: u64) -> NoAnswer {
        let earlier = self.asked.iter().find(|earlier| earlier.id == answered && answered != asked);
        match earlier {
            Some(Asked { name, workload, .. }) => NoAnswer {
                blamed: workload.clone(),
                ..NoAnswer::new(FailureCause::Flooded, {
                    let of =
                        workload.as_ref().map(|workload| format!(" of {workload:?}")).unwrap_or_default();
                    format!("it answered {name}{of} (request {answered}) more than once")
                })
            },
            None => NoAnswer::new(
                FailureCause::Mismatch,
                format!("it answered request {answered}; request {asked} was asked"),
            ),
        }
    }

    /// Numbers a request and remembers it.
    fn remember(&mut self, request: &Request) -> u64 {
        let id = self.asked.back().map_or(1, |asked| asked.id + 1);
        if self.asked.len() == ASKED_KEPT {
            self.asked.pop_front();
        }
        let workload = workload_of(request).map(str::to_owned);
        self.asked.push_back(Asked { id, name: name_of(request), workload });
        id
    }

    /// Writes a line before the deadline: a request may be longer than the pipe's buffer.
    fn send(&mut self, mut line: &[u8], deadline: Instant) -> io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        while !line.is_empty() {
            match stdin.write(line) {
                Ok(count) => line = &line[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    let left = Timespec::try_from(left).ok();
                    let _ = poll(&mut [PollFd::new(stdin, PollFlags::OUT)], left.as_ref());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Kills the process and reports how it ended.
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
        if self.job.wait(limit) { self.process.try_wait().ok().flatten() } else { None }
    }

    fn kill(&mut self) {
        self.job.kill();
        self.wait(KILL_MAX);
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

    fn run(&mut self, request: &RunRequest) -> Result<RunResult, WorkerError> {
        match self.ask(&Request::Run(request.clone()))? {
            Response::Samples(result) if result.workload == request.workload => Ok(result),
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
        if self.stdin.is_some() {
            let message = Message { id: self.remember(&Request::Bye {}), body: Request::Bye {} };
            let mut line = serde_json::to_vec(&message).unwrap_or_default();
            line.push(b'\n');
            // A worker that is already gone needs no farewell.
            let _ = self.send(&line, Instant::now() + GRACE);
            self.stdin = None;
            self.wait(GRACE);
        }
        self.kill();
    }
}

/// Most entries of a worker's environment lock.
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
        Request::Run(_) => "run",
        Request::Verify { .. } => "verify",
        Request::Release { .. } => "release",
        Request::Evaluate(_) => "evaluate",
        Request::Fuzz { .. } => "fuzz",
        Request::Bye {} => "bye",
    }
}

fn workload_of(request: &Request) -> Option<&str> {
    match request {
        Request::Prepare { workload, .. } | Request::Verify { workload } | Request::Release { workload } => {
            Some(workload)
        }
        Request::Run(run) => Some(&run.workload),
        Request::Hello { .. }
        | Request::List {}
        | Request::Evaluate(_)
        | Request::Fuzz { .. }
        | Request::Bye {} => None,
    }
}

fn excerpt(text: &str) -> String {
    clean_text(text).chars().take(120).collect()
}
