//! The process groups that workloads and workers run in, so that none outlives a run that is ended from outside.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

static ALIVE: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
/// Set before `ALIVE` is gone through and read after it was added to: no group is missed by both.
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// A group from its start to its end.
pub(crate) struct Group(Option<Pid>);

impl Group {
    /// The group that a process leads. After [`end_all`] it is killed at once: whoever started it may not know yet.
    pub(crate) fn of(process_id: u32) -> Self {
        let group = Self(i32::try_from(process_id).ok().and_then(Pid::from_raw));
        if let Some(pid) = group.0 {
            let mut alive = ALIVE.lock().unwrap_or_else(PoisonError::into_inner);
            alive.insert(pid.as_raw_nonzero().get());
            if IS_OVER.load(Ordering::SeqCst) {
                group.kill();
            }
        }
        group
    }

    /// Its leader's number.
    pub(crate) fn pid(&self) -> Option<Pid> {
        self.0
    }

    /// Kills all that is left of it. Nobody left to kill is what we want.
    pub(crate) fn kill(&self) {
        if let Some(pid) = self.0 {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            ALIVE.lock().unwrap_or_else(PoisonError::into_inner).remove(&pid.as_raw_nonzero().get());
        }
    }
}

/// Kills every group alive, and from now on every new one: for a process that is ended from outside.
pub fn end_all() {
    IS_OVER.store(true, Ordering::SeqCst);
    kill_all();
}

/// Kills every group alive: for a run that is ended from outside.
pub fn kill_all() {
    let alive = ALIVE.lock().unwrap_or_else(PoisonError::into_inner);
    for pid in alive.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}
