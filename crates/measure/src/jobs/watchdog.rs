//! A process beside holdpoint that ends its jobs where holdpoint is killed and cannot.
//!
//! It reads a pipe of which only holdpoint holds the other end: which jobs begin (`+123`) and end (`-123`). When the pipe
//! closes, holdpoint has ended, however it came.

use super::{SESSION, kill, proc};
use rustix::process::Pid;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The command line of the watchdog; the session's tag is added to it.
static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();
static RUNNING: OnceLock<Option<Running>> = OnceLock::new();

struct Running {
    pipe: Mutex<ChildStdin>,
    process_id: u32,
}

/// From now on jobs are watched over by this program, which must call [`watch`] with its last argument.
pub fn guard_with(program: Vec<OsString>) {
    // The first one stays.
    let _ = PROGRAM.set(program);
}

/// Starts it before the first job.
pub(super) fn start() {
    RUNNING.get_or_init(|| {
        let (program, arguments) = PROGRAM.get()?.split_first()?;
        let mut command = holdpoint_process::command(program);
        command.args(arguments).arg(SESSION.as_str()).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Without one, jobs still end whenever holdpoint ends by itself or by a signal that it can catch.
        let mut child = command.spawn().ok()?;
        Some(Running { pipe: Mutex::new(child.stdin.take()?), process_id: child.id() })
    });
}

pub(super) fn process_id() -> Option<u32> {
    Some(RUNNING.get()?.as_ref()?.process_id)
}

/// Tells it that a job has begun (`+`) or ended (`-`).
pub(super) fn tell(what: char, pid: Pid) {
    if let Some(Some(running)) = RUNNING.get() {
        let mut pipe = running.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        // One that was killed watches no more.
        let _ = pipe.write_all(format!("{what}{}\n", pid.as_raw_nonzero()).as_bytes());
    }
}

/// Looks again after this: a process that was just starting another one shows up late.
const AGAIN: Duration = Duration::from_millis(20);
/// Looks without a find before it ends.
const QUIET_LOOKS: u32 = 2;
/// Most looks: a program that starts processes as fast as they are killed is left to its machine.
const LOOKS_MAX: u32 = 200;

/// Watches until the pipe closes; then ends the jobs it was told of and every process that carries the session's tag.
pub fn watch(session: &str, pipe: impl BufRead) {
    let mut jobs = BTreeSet::new();
    for line in pipe.lines().map_while(Result::ok) {
        match line.parse::<i32>() {
            Ok(pid) if pid < 0 => _ = jobs.remove(&-pid),
            Ok(pid) => _ = jobs.insert(pid),
            Err(_) => {}
        }
    }
    jobs.iter().filter_map(|pid| Pid::from_raw(*pid)).for_each(kill);
    let mut quiet = 0;
    for _ in 0..LOOKS_MAX {
        let left: Vec<Pid> = proc::all().filter(|process| is_of(process, session)).map(|p| p.pid).collect();
        left.iter().for_each(|pid| kill(*pid));
        quiet = if left.is_empty() { quiet + 1 } else { 0 };
        if quiet == QUIET_LOOKS {
            return;
        }
        std::thread::sleep(AGAIN);
    }
}

fn is_of(process: &proc::Process, session: &str) -> bool {
    let is_self = process.pid == rustix::process::getpid();
    !process.is_dead && !is_self && process.tag().is_some_and(|tag| tag.starts_with(session))
}
