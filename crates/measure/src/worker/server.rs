//! Servers that commands call.

use crate::jobs::Job;
use crate::program::{Place, Tail, WorkerError};
use holdpoint_model::FailureCause;
use holdpoint_model::suite::CommandTask;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Names the server's port, to the server and to the command that calls it.
pub(super) const PORT: &str = "HOLDPOINT_PORT";
/// How often a server is asked whether it is ready.
const ASK_EVERY: Duration = Duration::from_millis(5);
/// How long a killed server may take to end.
const KILL_MAX: Duration = Duration::from_secs(5);

/// A server that is running, and is ended with this.
pub(super) struct Server {
    child: Child,
    job: Job,
    stderr: Option<Tail>,
    pub(super) port: u16,
}

impl Server {
    /// Starts a command's server and waits until its port is open.
    pub(super) fn start(task: &CommandTask, place: &Place, timeout: Duration) -> Result<Self, WorkerError> {
        let not_started =
            |what: String| WorkerError::new(FailureCause::NotStarted, format!("server: {what}"));
        let (program, arguments) =
            task.server.split_first().ok_or_else(|| not_started("empty command".to_owned()))?;
        let port = free_port().map_err(|error| not_started(format!("no free port: {error}")))?;
        let mut starting = place.command(program);
        starting.args(arguments).envs(&task.env).env(PORT, port.to_string());
        starting.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let (mut child, job) = place.spawn(&mut starting).map_err(|e| {
            not_started(format!("cannot start {program:?}: {e}; is it built and on the path?"))
        })?;
        let stderr = child.stderr.take().map(Tail::new);
        let server = Self { child, job, stderr, port };
        let start = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if server.job.wait(ASK_EVERY) {
                return Err(server.failed(FailureCause::Crashed, "it ended before its port was open"));
            }
            if start.elapsed() > timeout {
                let what = format!("it did not open port {port} within {} s", timeout.as_secs_f64());
                return Err(server.failed(FailureCause::TimedOut, &what));
            }
        }
        Ok(server)
    }

    /// An error of a call, with the server's part in it where that has ended.
    pub(super) fn explain(&self, error: WorkerError) -> WorkerError {
        if !self.job.wait(Duration::ZERO) {
            return error;
        }
        self.failed(error.cause, &format!("it has ended; {}", error.detail))
    }

    fn failed(&self, cause: FailureCause, what: &str) -> WorkerError {
        let stderr_tail = self.stderr.as_ref().map(Tail::last_lines).unwrap_or_default();
        WorkerError { stderr_tail, ..WorkerError::new(cause, format!("server: {what}")) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.job.kill();
        if self.job.wait(KILL_MAX) {
            // Its exit status says that it was killed.
            let _ = self.child.wait();
        }
    }
}

/// A port that nobody listens at. Another program may take it before the server does, which then fails and says so.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
