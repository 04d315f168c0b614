//! Where a workload's process runs.

use crate::jobs::{self, Job};
use crate::program::resolve_program;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, OnceLock};

/// In which folder, on which CPU, and from which copy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// The folder; this process's own where absent. A program given by a relative path is looked up there.
    pub dir: Option<PathBuf>,
    /// The only CPU it may use; any where absent.
    pub cpu: Option<usize>,
    /// Programs that are run from a copy.
    pub copies: Copies,
}

/// Copies of executables, by the path of the original. They are there as long as anybody may run them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Copies(Arc<CopiedFiles>);

#[derive(Debug, Default, PartialEq)]
struct CopiedFiles {
    files: BTreeMap<OsString, CopiedFile>,
    changed: ChangedCopy,
}

/// The original of a copy that somebody wrote to.
pub(crate) type ChangedCopy = Arc<OnceLock<OsString>>;

/// A copy as it was made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CopiedFile {
    path: PathBuf,
    state: Option<[i64; 4]>,
}

impl CopiedFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { state: state_of(&path), path }
    }
}

/// Size, and what no program can set: number and time of change.
fn state_of(path: &Path) -> Option<[i64; 4]> {
    let file = std::fs::symlink_metadata(path).ok()?;
    Some([file.size() as i64, file.ino() as i64, file.ctime(), file.ctime_nsec()])
}

impl Copies {
    /// When the copies are removed, `changed` is told of one that is not as it was made.
    pub(crate) fn new(files: BTreeMap<OsString, CopiedFile>, changed: ChangedCopy) -> Self {
        Self(Arc::new(CopiedFiles { files, changed }))
    }

    #[cfg(test)]
    pub(crate) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.files.values().map(|file| &file.path)
    }
}

impl Drop for CopiedFiles {
    fn drop(&mut self) {
        for (original, copy) in &self.files {
            if state_of(&copy.path) != copy.state {
                // One is enough.
                let _ = self.changed.set(original.clone());
            }
            // What cannot be removed now is removed by the next comparison.
            let _ = std::fs::remove_file(&copy.path);
        }
    }
}

impl Place {
    /// A program at this place, with the variables that measured code may see and nothing that tells places apart: the length of the
    /// environment moves the stack, and that can show in times.
    pub(crate) fn command(&self, program: &str) -> Command {
        let path = self.resolve(program);
        let mut command = match self.copies.0.files.get(&path) {
            Some(copy) => {
                let mut command = holdpoint_process::measured(&copy.path);
                command.arg0(&path);
                command
            }
            None => holdpoint_process::measured(&path),
        };
        self.dir.iter().for_each(|dir| _ = command.current_dir(dir));
        command.env_remove("PWD").env_remove("OLDPWD");
        command
    }

    /// The program's path as it is started: one with a slash in it is looked up in the folder.
    pub(crate) fn resolve(&self, program: &str) -> OsString {
        match &self.dir {
            Some(dir) => resolve_program(dir, program),
            None => program.into(),
        }
    }

    /// Opens a file, looked up in the folder.
    pub(crate) fn open(&self, file: &str) -> io::Result<File> {
        File::open(self.dir.as_deref().unwrap_or(Path::new("")).join(file))
    }

    /// Starts it. A child inherits the CPUs of the thread that starts it.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<(Child, Job)> {
        let Some(cpu) = self.cpu else { return jobs::spawn(command) };
        let before = sched_getaffinity(None)?;
        sched_setaffinity(None, &only(cpu))?;
        let child = jobs::spawn(command);
        sched_setaffinity(None, &before)?;
        child
    }
}

fn only(cpu: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(cpu);
    set
}

/// Pins the first thread of a running process to a CPU. Where that fails, its times are noisier.
pub(crate) fn pin_first_thread(cpu: usize, process_id: u32) {
    let thread = i32::try_from(process_id).ok().and_then(Pid::from_raw);
    let _ = thread.map(|thread| sched_setaffinity(Some(thread), &only(cpu)));
}

/// The CPUs that this process may use; empty where that cannot be told.
pub(crate) fn cpus_allowed() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
}
