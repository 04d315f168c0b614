//! A worker in a child process that speaks the protocol on stdin and stdout.
//!
//! Nothing it does is trusted: every answer has a timeout and a size limit, extra lines are a flood, and any violation
//! ends the process and puts its last stderr lines into the error.

use super::{Computed, Prepared, Worker};
use crate::jobs::{Job, Paused};
use crate::program::{Line, Tail, read_line, to_line};
use crate::program::{Place, WorkerError};
use crate::schedstat::ThreadWaits;
use holdpoint_cuda::trace;
use holdpoint_model::fuzz::{Evaluated, Evaluation};
use holdpoint_model::limits::{WORKLOADS_MAX, clean_text};
use holdpoint_model::machine::CudaVersions;
use holdpoint_model::protocol::{
    DeviceInfo, Message, PROTOCOL_VERSION, Request, Response, RunRequest, RunResult, WorkerInfo, WorkloadInfo,
};
use holdpoint_model::report::{Answer, KernelInfo};
use holdpoint_model::{FailureCause, FuzzCase};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::fs;
use std::io::{self, BufReader, Write};
use std::os::fd::AsRawFd;
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

pub struct Child {
    process: std::process::Child,
    /// The process that makes the calls.
    caller_id: u32,
    job: Job,
    stdin: Option<ChildStdin>,
    answers: Receiver<StdoutLine>,
    stderr: Option<Tail>,
    timeout: Duration,
    /// The last requests, oldest first.
    sent: VecDeque<SentRequest>,
    /// How long the reading thread waited for a CPU in order to read the last answer.
    reader_wait_ns: u64,
}

struct SentRequest {
    id: u64,
    name: &'static str,
    workload: Option<String>,
}

struct StdoutLine {
    line: io::Result<Line>,
    /// Whether more came with it.
    has_more: bool,
    /// How long the reading thread was ready to read it and had no CPU.
    wait_ns: u64,
}

/// How long a worker may take to end after `bye`, or to close stderr after it was killed.
const GRACE: Duration = Duration::from_millis(500);
/// How long a killed process may take to end; one stuck in the kernel is left there.
const KILL_MAX: Duration = Duration::from_secs(5);
/// Requests remembered in order to recognise a late answer.
const SENT_KEPT: usize = 64;
/// Answers that may wait unread. Requests are sent one at a time; a flood blocks in the pipe, not in our memory.
const ANSWERS_WAITING_MAX: usize = 2;
/// Files of a process that are looked at, at most.
const FILES_MAX: usize = 4_096;
/// Most entries of a worker's environment lock.
const LOCKED_MAX: usize = 100;

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
                let (mut reader, waits) = (BufReader::new(stdout), ThreadWaits::of_this_thread());
                let waited_ns = || waits.as_ref().and_then(ThreadWaits::total_ns).unwrap_or(0);
                loop {
                    let before_ns = waited_ns();
                    let line = read_line(&mut reader);
                    let wait_ns = waited_ns().saturating_sub(before_ns);
                    let over = !matches!(line, Ok(Line::Text(_) | Line::NotText));
                    let has_more = !reader.buffer().is_empty();
                    if send.send(StdoutLine { line, has_more, wait_ns }).is_err() || over {
                        break;
                    }
                }
            });
        }
        let stderr = process.stderr.take().map(Tail::new);
        let stdin = process.stdin.take();
        if let Some(stdin) = &stdin {
            // A worker that does not read must not block us: see `send`.
            rustix::io::ioctl_fionbio(stdin, true).map_err(|e| not_started(e.to_string()))?;
        }
        let (sent, reader_wait_ns) = (VecDeque::new(), 0);
        let caller_id = process.id();
        Ok(Self { process, caller_id, job, stdin, answers, stderr, timeout, sent, reader_wait_ns })
    }

    fn ask(&mut self, request: &Request) -> Result<Response, WorkerError> {
        let (name, workload) = describe(request);
        let about = workload.unwrap_or_default();
        match trace::step(name, about, || self.exchange(request)) {
            Ok(Response::Error { message, cause, fatal }) => {
                let error = WorkerError::new(cause.unwrap_or(FailureCause::WorkerError), message);
                Err(if fatal { self.end(error) } else { WorkerError { stderr_tail: self.tail(), ..error } })
            }
            Ok(response) => Ok(response),
            Err(error) => Err(self.end(error)),
        }
    }

    fn exchange(&mut self, request: &Request) -> Result<Response, WorkerError> {
        let deadline = Instant::now() + self.timeout;
        if let Ok(StdoutLine { line: Ok(line @ (Line::Text(_) | Line::NotText | Line::TooLong)), .. }) =
            self.answers.try_recv()
        {
            return Err(self.unrequested(&line));
        }
        let id = self.remember(request);
        let line = to_line(id, request)
            .map_err(|error| WorkerError::new(FailureCause::WorkerError, error.to_string()))?;
        let sent = self.send(&line, deadline);
        let (name, _) = describe(request);
        let late = |what: &str| {
            let detail = format!("{what} {name} within {} s", self.timeout.as_secs_f64());
            WorkerError::new(FailureCause::TimedOut, detail)
        };
        if sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            return Err(late("it did not read"));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let StdoutLine { line, has_more, wait_ns } = match self.answers.recv_timeout(left) {
            Ok(answered) => answered,
            Err(RecvTimeoutError::Timeout) => return Err(late("no answer to")),
            Err(RecvTimeoutError::Disconnected) => {
                StdoutLine { line: Ok(Line::End), has_more: false, wait_ns: 0 }
            }
        };
        self.reader_wait_ns = wait_ns;
        match line {
            Ok(Line::Text(text)) => self.parse(id, &text, has_more),
            Ok(Line::NotText) => Err(WorkerError::new(FailureCause::Garbage, "its answer is not UTF-8 text")),
            Ok(Line::TooLong) => {
                Err(WorkerError::new(FailureCause::Flooded, "its answer is over the limit of 4 MiB"))
            }
            Ok(Line::End) | Err(_) => {
                let when = if sent.is_err() { "before it read" } else { "while it worked on" };
                Err(WorkerError::new(FailureCause::Crashed, format!("it ended {when} {name}")))
            }
        }
    }

    fn parse(&self, id: u64, text: &str, has_more: bool) -> Result<Response, WorkerError> {
        let message: Message<Response> = serde_json::from_str(text).map_err(|error| {
            let detail = format!("not an answer of the protocol ({error}): {}", excerpt(text));
            WorkerError::new(FailureCause::Garbage, detail)
        })?;
        // Workers of older protocol versions send no number; report their version instead.
        let is_older = matches!(&message.body, Response::Hello(info) if info.protocol != PROTOCOL_VERSION);
        if message.id != id && !is_older {
            Err(self.wrong_id(message.id, id))
        } else if has_more {
            Err(WorkerError::new(FailureCause::Flooded, "it wrote more than one answer to a request"))
        } else {
            Ok(message.body)
        }
    }

    /// A line that came before it was asked for.
    fn unrequested(&self, line: &Line) -> WorkerError {
        let last = self.sent.back();
        if let Line::Text(text) = line
            && let Ok(message) = serde_json::from_str::<Message<Response>>(text)
        {
            return self.wrong_id(message.id, last.map_or(0, |last| last.id) + 1);
        }
        WorkerError {
            blamed: last.and_then(|last| last.workload.clone()),
            ..WorkerError::new(FailureCause::Flooded, "it wrote something that was not asked for")
        }
    }

    /// An answer to another request: that request's workload is to blame, not the current one.
    fn wrong_id(&self, answered: u64, id: u64) -> WorkerError {
        let earlier = self.sent.iter().find(|earlier| earlier.id == answered && answered != id);
        let Some(SentRequest { name, workload, .. }) = earlier else {
            let detail = format!("it answered request {answered}; request {id} was asked");
            return WorkerError::new(FailureCause::Mismatch, detail);
        };
        let of = workload.as_ref().map(|workload| format!(" of {workload:?}")).unwrap_or_default();
        let detail = format!("it answered {name}{of} (request {answered}) more than once");
        WorkerError { blamed: workload.clone(), ..WorkerError::new(FailureCause::Flooded, detail) }
    }

    /// Numbers a request and remembers it.
    fn remember(&mut self, request: &Request) -> u64 {
        let id = self.sent.back().map_or(1, |last| last.id + 1);
        if self.sent.len() == SENT_KEPT {
            self.sent.pop_front();
        }
        let (name, workload) = describe(request);
        self.sent.push_back(SentRequest { id, name, workload: workload.map(str::to_owned) });
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

    /// Kills the process and adds to the error how it ended.
    fn end(&mut self, mut error: WorkerError) -> WorkerError {
        self.stdin = None;
        if error.cause == FailureCause::Crashed {
            let status = self.wait(GRACE).map(|status| status.to_string());
            let how = status.unwrap_or_else(|| "it closed its stdout and lived on".to_owned());
            error.detail = clean_text(&format!("{} ({how})", error.detail));
        }
        self.kill();
        WorkerError { stderr_tail: self.tail(), fatal: true, ..error }
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

    /// Ends a worker whose answer does not belong to the last request.
    fn reject<T>(&mut self, response: &Response) -> Result<T, WorkerError> {
        let text = serde_json::to_string(response).unwrap_or_default();
        let name = self.sent.back().map_or("", |last| last.name);
        let detail = format!("answered {name} with {}", excerpt(&text));
        Err(self.end(WorkerError::new(FailureCause::Mismatch, detail)))
    }
}

impl Worker for Child {
    fn hello(&mut self) -> Result<WorkerInfo, WorkerError> {
        match self.ask(&Request::Hello { protocol: PROTOCOL_VERSION })? {
            Response::Hello(mut info) if info.protocol == PROTOCOL_VERSION => {
                clean_all([&mut info.name, &mut info.version, &mut info.timer]);
                if let Some(DeviceInfo { name, uuid, compute_capability, versions, .. }) = &mut info.device {
                    let CudaVersions { driver, cuda, nvrtc } = versions;
                    clean_all([name, uuid, compute_capability, driver, cuda].into_iter().chain(nvrtc));
                }
                let locked = info.environment_lock.iter().take(LOCKED_MAX);
                info.environment_lock =
                    locked.map(|(name, value)| (clean_text(name), clean_text(value))).collect();
                if let (Some(id), Some(stdin)) = (info.process_id, &self.stdin)
                    && has_open(id, stdin)
                {
                    self.caller_id = id;
                }
                Ok(info)
            }
            Response::Hello(info) => {
                let theirs = info.protocol;
                let detail = format!("it speaks protocol {theirs}, holdpoint speaks {PROTOCOL_VERSION}");
                Err(self.end(WorkerError::new(FailureCause::Mismatch, detail)))
            }
            other => self.reject(&other),
        }
    }

    fn list(&mut self) -> Result<Vec<WorkloadInfo>, WorkerError> {
        match self.ask(&Request::List {})? {
            Response::Workloads { workloads } if workloads.len() > WORKLOADS_MAX => {
                let detail = format!("it lists {} workloads, at most {WORKLOADS_MAX}", workloads.len());
                Err(self.end(WorkerError::new(FailureCause::Flooded, detail)))
            }
            Response::Workloads { workloads } => Ok(workloads),
            other => self.reject(&other),
        }
    }

    fn prepare(&mut self, workload: &str, seed: u64) -> Result<Prepared, WorkerError> {
        match self.ask(&Request::Prepare { workload: workload.to_owned(), seed })? {
            Response::Prepared { workload: name, mut work, mut kernel } if name == workload => {
                clean_all(work.as_mut().map(|work| &mut work.item));
                kernel.as_mut().map(clean_kernel);
                Ok(Prepared::ready(work, kernel))
            }
            Response::Skipped { workload: name, reason } if name == workload => {
                Ok(Prepared::Skipped(clean_text(&reason)))
            }
            other => self.reject(&other),
        }
    }

    fn run(&mut self, request: &RunRequest) -> Result<RunResult, WorkerError> {
        match self.ask(&Request::Run(request.clone()))? {
            Response::Samples(result) if result.workload == request.workload => Ok(result),
            other => self.reject(&other),
        }
    }

    fn verify(&mut self, workload: &str) -> Result<Option<Answer>, WorkerError> {
        match self.ask(&Request::Verify { workload: workload.to_owned() })? {
            Response::Verified { workload: name, mut answer } if name == workload => {
                clean_all(answer.as_mut().and_then(|answer| answer.first_bad.as_mut()));
                Ok(answer)
            }
            other => self.reject(&other),
        }
    }

    fn release(&mut self, workload: &str) -> Result<(), WorkerError> {
        match self.ask(&Request::Release { workload: workload.to_owned() })? {
            Response::Released { workload: name } if name == workload => Ok(()),
            other => self.reject(&other),
        }
    }

    fn fuzz(&mut self, case: &FuzzCase) -> Result<Evaluated, WorkerError> {
        match self.ask(&Request::Fuzz { case: case.clone() })? {
            Response::Evaluated(mut evaluated) => {
                clean_all(evaluated.finding.as_mut().map(|finding| &mut finding.detail));
                clean_all(&mut evaluated.skipped);
                Ok(evaluated)
            }
            other => self.reject(&other),
        }
    }

    fn evaluate(&mut self, evaluation: &Evaluation) -> Result<Computed, WorkerError> {
        match self.ask(&Request::Evaluate(evaluation.clone()))? {
            Response::Computed { elapsed_ns } => Ok(Computed::Timed(elapsed_ns)),
            Response::Skipped { reason, .. } => Ok(Computed::Skipped(clean_text(&reason))),
            other => self.reject(&other),
        }
    }

    fn pause(&self) -> io::Result<Paused> {
        self.job.pause()
    }

    fn process_id(&self) -> Option<u32> {
        Some(self.process.id())
    }

    fn caller_id(&self) -> Option<u32> {
        Some(self.caller_id)
    }

    fn reader_wait_ns(&self) -> u64 {
        self.reader_wait_ns
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.stdin.is_some() {
            let id = self.remember(&Request::Bye {});
            // The worker may already be gone.
            if let Ok(line) = to_line(id, &Request::Bye {}) {
                let _ = self.send(&line, Instant::now() + GRACE);
            }
            self.stdin = None;
            trace::step("end", "", || self.wait(GRACE));
        }
        self.kill();
    }
}

/// Whether a process has the other end of this pipe open: what a worker says of its process is believed only where it could be
/// the one that answers.
fn has_open(process_id: u32, pipe: &ChildStdin) -> bool {
    let Ok(own) = fs::read_link(format!("/proc/self/fd/{}", pipe.as_raw_fd())) else { return false };
    let files = fs::read_dir(format!("/proc/{process_id}/fd")).into_iter().flatten().flatten();
    let is_another = process_id != std::process::id();
    is_another && files.take(FILES_MAX).any(|file| fs::read_link(file.path()).is_ok_and(|name| name == own))
}

/// A worker's text must neither flood a report nor paint on a terminal.
fn clean_all<'a>(texts: impl IntoIterator<Item = &'a mut String>) {
    texts.into_iter().for_each(|text| *text = clean_text(text));
}

fn clean_kernel(kernel: &mut KernelInfo) {
    let KernelInfo { op_name, kernel_name, shape_bucket, selection_source, selected_config, .. } = kernel;
    let config = selected_config.iter().map(|(name, value)| (clean_text(name), *value)).collect();
    *selected_config = config;
    clean_all([op_name, kernel_name, shape_bucket, selection_source]);
    clean_all(kernel.code_sha256.iter_mut().chain(&mut kernel.launches).chain(&mut kernel.functions));
}

/// A request's name, and the workload it is about.
fn describe(request: &Request) -> (&'static str, Option<&str>) {
    match request {
        Request::Hello { .. } => ("hello", None),
        Request::List {} => ("list", None),
        Request::Prepare { workload, .. } => ("prepare", Some(workload)),
        Request::Run(run) => ("run", Some(&run.workload)),
        Request::Verify { workload } => ("verify", Some(workload)),
        Request::Release { workload } => ("release", Some(workload)),
        Request::Evaluate(_) => ("evaluate", None),
        Request::Fuzz { .. } => ("fuzz", None),
        Request::Bye {} => ("bye", None),
    }
}

fn excerpt(text: &str) -> String {
    clean_text(text).chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_a_workers_if_it_has_its_pipe_open() {
        let start = || {
            let mut command = holdpoint_process::command("cat");
            command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
        };
        let (mut one, mut other) = (start(), start());
        let pipe = one.stdin.take().unwrap();
        assert!(has_open(one.id(), &pipe));
        assert!(!has_open(other.id(), &pipe), "of another worker");
        assert!(!has_open(std::process::id(), &pipe), "our own");
        drop((pipe, other.stdin.take()));
        one.wait().unwrap();
        other.wait().unwrap();
    }
}
