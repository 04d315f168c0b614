//! Processes that outlive their job: they left its group, and their parent has ended.

use super::proc::{self, Process};
use super::{ALIVE, SESSION, STARTED, kill, watchdog};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A sweep takes half a millisecond, as long as a small program: not after every job.
const PERIOD: Duration = Duration::from_millis(50);
/// Gives up on a program that starts processes as fast as they are killed.
const SWEEP_MAX: Duration = Duration::from_secs(2);

static LAST: Mutex<Option<Instant>> = Mutex::new(None);

/// Sweeps, unless that was done a moment ago.
pub(super) fn sweep_if_due() {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.is_some_and(|last| last.elapsed() < PERIOD) {
        return;
    }
    *last = Some(Instant::now());
    drop(last);
    sweep();
}

/// Kills all processes that jobs have left behind, and waits until they are gone.
pub fn sweep() {
    if STARTED.load(Ordering::Relaxed) == 0 {
        return;
    }
    let alive = ALIVE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(own) = proc::own() else { return };
    let start = Instant::now();
    loop {
        let strays: Vec<Process> = proc::all().filter(|process| is_stray(process, &own, &alive)).collect();
        if strays.is_empty() || start.elapsed() > SWEEP_MAX {
            return;
        }
        // We adopt its children when it ends, and find them in the next pass.
        strays.iter().filter(|stray| !stray.is_dead).for_each(|stray| kill(stray.pid));
        strays.iter().for_each(|stray| reap(stray.pid));
    }
}

/// A process that we adopted, and that is not a job. If its job is alive, it belongs to that. If it hides its origin,
/// it may belong to any living job or, in our own group, be a program that we run ourselves.
fn is_stray(process: &Process, own: &Process, alive: &HashMap<Pid, u32>) -> bool {
    let is_child = process.parent == Some(own.pid);
    if !is_child || alive.contains_key(&process.pid) || watchdog::pid() == Some(process.pid) {
        return false;
    }
    let is_apart = process.group != own.group;
    match job_number(process) {
        Some(job) => !alive.values().any(|alive| *alive == job),
        None => is_apart && (process.is_dead || alive.is_empty()),
    }
}

/// Takes the processes of a living job: it and its group, those with its tag, and those that we adopted and that hide their origin.
pub(super) fn take_suspects(job: Pid, all: &mut Vec<Process>) -> Vec<Process> {
    let alive = ALIVE.lock().unwrap_or_else(PoisonError::into_inner);
    let (number, own) = (alive.get(&job), proc::own());
    let is_suspect = |process: &Process| {
        let is_adopted = own.as_ref().is_some_and(|own| {
            process.parent == Some(own.pid)
                && process.group != own.group
                && !alive.contains_key(&process.pid)
                && watchdog::pid() != Some(process.pid)
        });
        process.pid == job
            || process.group == job.as_raw_nonzero().get()
            || match job_number(process) {
                Some(other) => Some(&other) == number,
                None => is_adopted,
            }
    };
    all.extract_if(.., |process| is_suspect(process)).collect()
}

/// The number of the job that a process belongs to.
fn job_number(process: &Process) -> Option<u32> {
    let tag = process.tag()?;
    u32::from_str_radix(tag.strip_prefix(SESSION.as_str())?.strip_prefix('.')?, 16).ok()
}

fn reap(pid: Pid) {
    let start = Instant::now();
    // An error means that it is gone, or never was our child.
    while let Ok(None) = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
        if start.elapsed() > PERIOD {
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}
