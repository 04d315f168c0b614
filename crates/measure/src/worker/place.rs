//! Where a workload's process runs.

use crate::builds::resolve_program;
use crate::jobs::{self, Job};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};

/// In which folder, and on which CPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// The folder; this process's own where absent. A program given by a relative path is looked up there.
    pub dir: Option<PathBuf>,
    /// The only CPU it may use; any where absent.
    pub cpu: Option<usize>,
}

impl Place {
    /// A program at this place, with no secret of ours in its environment and nothing that tells places apart: the length of the environment
    /// moves the stack, and that can show in times.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = match &self.dir {
            Some(dir) => {
                let mut command = holdpoint_process::command(resolve_program(dir, program));
                command.current_dir(dir);
                command
            }
            None => holdpoint_process::command(program),
        };
        command.env_remove("PWD").env_remove("OLDPWD");
        command
    }

    /// Starts it. A child inherits the CPUs of the thread that starts it.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<(Child, Job)> {
        let Some(cpu) = self.cpu else { return jobs::spawn(command) };
        let before = sched_getaffinity(None)?;
        let mut only = CpuSet::new();
        only.set(cpu);
        sched_setaffinity(None, &only)?;
        let child = jobs::spawn(command);
        sched_setaffinity(None, &before)?;
        child
    }
}

/// The CPUs that this process may use; empty where that cannot be told.
pub(crate) fn cpus_allowed() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
}
