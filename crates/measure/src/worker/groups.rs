//! The process groups that workloads and workers run in, so that none outlives a run that is ended from outside.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

static ALIVE: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// A group from its start to its end.
pub(crate) struct Group(Option<Pid>);

impl Group {
    /// The group that a process leads.
    pub(crate) fn of(process_id: u32) -> Self {
        let pid = i32::try_from(process_id).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            ALIVE.lock().unwrap_or_else(PoisonError::into_inner).insert(pid.as_raw_nonzero().get());
        }
        Self(pid)
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

/// Kills every group alive: for a run that is ended from outside.
pub fn kill_all() {
    for pid in
        ALIVE.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(|pid| Pid::from_raw(*pid))
    {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}
