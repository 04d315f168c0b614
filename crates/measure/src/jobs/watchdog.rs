//! A process beside holdpoint that kills its jobs if holdpoint itself is killed.
//!
//! It reads from a pipe which jobs begin (`+123`) and end (`-123`). Only holdpoint holds the other end: when the pipe
//! closes, holdpoint has ended.

use super::{SESSION, kill, proc};
use rustix::process::Pid;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The watchdog's command line; the session's tag is appended.
static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();
static RUNNING: OnceLock<Option<Running>> = OnceLock::new();

struct Running {
    pipe: Mutex<ChildStdin>,
    pid: Pid,
}

/// Sets the program that watches over jobs; it must call [`watch`] with its last argument.
pub fn guard_with(program: Vec<OsString>) {
    // Only the first program counts.
    let _ = PROGRAM.set(program);
}

/// Starts the watchdog before the first job.
pub(super) fn start() {
    RUNNING.get_or_init(|| {
        let (program, arguments) = PROGRAM.get()?.split_first()?;
        let mut command = holdpoint_process::command(program);
        command.args(arguments).arg(SESSION.as_str()).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Without a watchdog, jobs still end if holdpoint ends by itself or by a signal that it can catch.
        let mut child = command.spawn().ok()?;
        Some(Running { pipe: Mutex::new(child.stdin.take()?), pid: Pid::from_child(&child) })
    });
}

pub(super) fn pid() -> Option<Pid> {
    Some(RUNNING.get()?.as_ref()?.pid)
}

/// Reports that a job has begun (`+`) or ended (`-`).
pub(super) fn tell(what: char, pid: Pid) {
    if let Some(Some(running)) = RUNNING.get() {
        let mut pipe = running.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        // The watchdog may have been killed.
        let _ = pipe.write_all(format!("{what}{}\n", pid.as_raw_nonzero()).as_bytes());
    }
}

/// Pause between looks: a process that was just starting another shows up late.
const AGAIN: Duration = Duration::from_millis(20);
/// Looks in a row that must find nothing.
const QUIET_LOOKS: u32 = 2;
/// Gives up on a program that starts processes as fast as they are killed.
const LOOKS_MAX: u32 = 200;

/// Waits until the pipe closes; then kills the jobs it knows and every process with the session's tag.
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
        let left: Vec<Pid> =
            proc::all().filter(|process| is_tagged(process, session)).map(|p| p.pid).collect();
        left.iter().for_each(|pid| kill(*pid));
        quiet = if left.is_empty() { quiet + 1 } else { 0 };
        if quiet == QUIET_LOOKS {
            return;
        }
        std::thread::sleep(AGAIN);
    }
}

fn is_tagged(process: &proc::Process, session: &str) -> bool {
    let is_self = process.pid == rustix::process::getpid();
    !process.is_dead && !is_self && process.tag().is_some_and(|tag| tag.starts_with(session))
}
