//! Processes that holdpoint starts: each in its own group, none of them left running.
//!
//! A process may leave its group and its session. Holdpoint adopts what such a process leaves behind (as a child
//! subreaper) and kills it: [`sweep`]. If holdpoint itself is killed, its [`watchdog`] does.

mod pause;
mod proc;
mod stray;
pub mod watchdog;

pub use pause::Paused;
pub use stray::sweep;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process, kill_process_group,
    pidfd_open, set_child_subreaper, set_parent_process_death_signal, waitid,
};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Environment variable of every job: which holdpoint process started it, and its number. Always of the same length:
/// the length of the environment moves the stack, and that can show in times.
const TAG: &str = "HOLDPOINT_JOB";

/// Living jobs: process id to job number.
static ALIVE: LazyLock<Mutex<HashMap<Pid, u32>>> = LazyLock::new(Mutex::default);
/// Set before `ALIVE` is read and read after `ALIVE` is changed, so that no job is missed.
static IS_OVER: AtomicBool = AtomicBool::new(false);
static STARTED: AtomicU32 = AtomicU32::new(0);
/// Distinguishes the jobs of this process from those of another.
static SESSION: LazyLock<String> = LazyLock::new(|| {
    let random = RandomState::new().hash_one(std::process::id());
    format!("{random:016x}")
});

/// A process and the group that it leads. Drop it after the process has been reaped.
pub(crate) struct Job(Pid);

/// Starts a process as a job. After [`end_all`] it is killed at once: its caller may not know yet.
pub(crate) fn spawn(command: &mut Command) -> io::Result<(Child, Job)> {
    static ADOPTS: OnceLock<bool> = OnceLock::new();
    ADOPTS.get_or_init(|| set_child_subreaper(Some(getpid())).is_ok());
    watchdog::start();
    // Held while it starts: a process that is not yet known here would be taken for a stray.
    let mut alive = ALIVE.lock().unwrap_or_else(PoisonError::into_inner);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let tag = format!("{}.{number:08x}", *SESSION);
    let child = command.process_group(0).env(TAG, tag).spawn()?;
    let job = Job(Pid::from_child(&child));
    alive.insert(job.0, number);
    watchdog::tell('+', job.0);
    if IS_OVER.load(Ordering::SeqCst) {
        job.kill();
    }
    Ok((child, job))
}

impl Job {
    /// Kills it and the rest of its group, without reaping it.
    pub(crate) fn kill(&self) {
        kill(self.0);
    }

    /// Waits until it has ended, at most for `limit`; returns whether it has. Does not reap it, so its process id stays
    /// its own.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let Ok(process) = pidfd_open(self.0, PidfdFlags::empty()) else { return poll_end(self.0, limit) };
        let deadline = Instant::now().checked_add(limit);
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut [PollFd::new(&process, PollFlags::IN)], left.as_ref()) {
                Ok(0) => return false,
                Err(rustix::io::Errno::INTR) => {}
                _ => return true,
            }
        }
    }
}

/// For kernels before 5.3.
fn poll_end(pid: Pid, limit: Duration) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let start = Instant::now();
    while matches!(waitid(WaitId::Pid(pid), options), Ok(None)) {
        if start.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

fn kill(pid: Pid) {
    let _ = kill_process_group(pid, Signal::KILL);
    let _ = kill_process(pid, Signal::KILL);
}

impl Drop for Job {
    fn drop(&mut self) {
        ALIVE.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
        watchdog::tell('-', self.0);
        stray::sweep_if_due();
    }
}

/// Kills every living job, and from now on every new one: for a process that is ended from outside.
pub fn end_all() {
    IS_OVER.store(true, Ordering::SeqCst);
    kill_all();
}

pub fn kill_all() {
    let alive = ALIVE.lock().unwrap_or_else(PoisonError::into_inner);
    alive.keys().for_each(|pid| kill(*pid));
}

/// Makes this process die with its parent, which must be this one. Fails when the parent has already ended.
pub fn end_with_parent(parent_id: u32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() == i32::try_from(parent_id).ok().and_then(Pid::from_raw) {
        Ok(())
    } else {
        Err(io::Error::other("the command that wanted this run has ended"))
    }
}
