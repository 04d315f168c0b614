//! Processes as `/proc` shows them.

use super::TAG;
use rustix::process::Pid;
use std::fs;

pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) parent: Option<Pid>,
    pub(super) group: i32,
    /// Ended, but not yet reaped.
    pub(super) is_dead: bool,
}

/// All visible processes; none without `/proc`.
pub(super) fn all() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?))
}

/// This process. Its group is 0 if it is outside this process's namespace.
pub(super) fn own() -> Option<Process> {
    read(i32::try_from(std::process::id()).ok()?)
}

/// Parses `pid (name) state parent group …`, where the name may hold anything.
fn read(number: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    let (parent, group) = (Pid::from_raw(fields.next()?.parse().ok()?), fields.next()?.parse().ok()?);
    Some(Process { pid: Pid::from_raw(number)?, parent, group, is_dead })
}

impl Process {
    /// Whether none of its threads runs any more, or will before it is continued.
    pub(super) fn is_still(&self) -> bool {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid.as_raw_nonzero()));
        tasks.into_iter().flatten().flatten().all(|task| {
            let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().next());
            matches!(state, None | Some("T" | "t" | "Z" | "X"))
        })
    }

    /// The tag of its job; `None` if it has none or hides it.
    pub(super) fn tag(&self) -> Option<String> {
        let path = format!("/proc/{}/environ", self.pid.as_raw_nonzero());
        let environment = fs::read(path).ok()?;
        let mut variables = environment.split(|byte| *byte == 0);
        let value = variables.find_map(|entry| entry.strip_prefix(TAG.as_bytes())?.strip_prefix(b"="))?;
        String::from_utf8(value.to_vec()).ok()
    }
}
