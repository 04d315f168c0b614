//! Runs a build command: in a process group of its own, within its time, what it prints kept in a file.

use super::error::BuildError;
use crate::jobs::{self, Job};
use holdpoint_model::limits::{STDERR_LINES_KEPT, clean_text};
use holdpoint_model::suite::BuildSpec;
use holdpoint_process::git::INHERITED;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often a build is looked at; small beside the shortest build.
const LOOK: Duration = Duration::from_millis(10);
/// Longest log: a build that prints more is caught in a loop, and must not fill the disk.
const LOG_BYTES_MAX: u64 = 256 << 20;
/// How much of a log's end is read for its last lines; longer lines are cut when shown anyway.
const LOG_TAIL_BYTES: u64 = 256 << 10;

/// The program of a command that is to run in `dir`: a relative path is looked up there, a bare name is left to
/// the `PATH`, as a shell in that folder would have it.
#[must_use]
pub fn resolve_program(dir: &Path, program: &str) -> OsString {
    if !program.contains('/') {
        return program.into();
    }
    let path = dir.join(program);
    std::path::absolute(&path).unwrap_or(path).into_os_string()
}

/// One build: what is built, where, and where its log goes.
pub(super) struct BuildJob<'a> {
    pub(super) what: String,
    pub(super) dir: &'a Path,
    pub(super) log: &'a Path,
}

/// How a process that is watched ended.
pub(crate) enum End {
    /// By itself.
    ByItself(ExitStatus),
    /// It took too long, and was killed.
    TimedOut,
    /// It printed too much, and was killed.
    Flooded,
}

impl BuildJob<'_> {
    /// Runs the command to its end.
    pub(super) fn run(self, build: &BuildSpec) -> Result<(), BuildError> {
        let io_error = |source| BuildError::Io { path: self.log.to_owned(), source };
        let log = File::create(self.log).map_err(io_error)?;
        let (child, job) = self.start(build, &log)?;
        let end = watch(child, &job, timeout(build), &log).map_err(io_error)?;
        let (what, log) = (self.what, self.log.to_owned());
        let last_lines = last_lines(&log);
        match end {
            End::ByItself(status) if status.success() => Ok(()),
            End::ByItself(status) => Err(BuildError::Failed { what, status, log, last_lines }),
            End::TimedOut => Err(BuildError::TimedOut { what, timeout_s: build.timeout_s, log, last_lines }),
            End::Flooded => Err(BuildError::Flooded { what, limit_bytes: LOG_BYTES_MAX, log, last_lines }),
        }
    }

    fn start(&self, build: &BuildSpec, log: &File) -> Result<(Child, Job), BuildError> {
        let program = build.command.first().cloned().unwrap_or_default();
        let spawned = self.command(&program, build, log).and_then(|mut command| jobs::spawn(&mut command));
        spawned.map_err(|source| BuildError::NotStarted { program, dir: self.dir.to_owned(), source })
    }

    fn command(&self, program: &str, build: &BuildSpec, log: &File) -> io::Result<Command> {
        let mut command = holdpoint_process::command(resolve_program(self.dir, program));
        command.args(build.command.iter().skip(1)).current_dir(self.dir);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
        // They name another folder than the one it runs in; one target folder for all would be one build for all.
        for name in ["PWD", "OLDPWD", "CARGO_TARGET_DIR"].iter().chain(&INHERITED) {
            command.env_remove(name);
        }
        Ok(command)
    }
}

/// Waits for a process that leads a group, and kills it where it takes or prints too much. Nothing it started is left running.
pub(crate) fn watch(mut child: Child, job: &Job, timeout: Duration, log: &File) -> io::Result<End> {
    let start = Instant::now();
    let cut_short = loop {
        if job.wait(LOOK) {
            break None;
        }
        if start.elapsed() >= timeout {
            break Some(End::TimedOut);
        }
        if log.metadata().is_ok_and(|log| log.len() > LOG_BYTES_MAX) {
            break Some(End::Flooded);
        }
    };
    job.kill();
    let status = child.wait()?;
    Ok(cut_short.unwrap_or(End::ByItself(status)))
}

/// A time that no clock can count is no limit.
fn timeout(build: &BuildSpec) -> Duration {
    Duration::try_from_secs_f64(build.timeout_s).unwrap_or(Duration::MAX)
}

/// The last lines of a log; none where it cannot be read, since its path is told anyway.
fn last_lines(log: &Path) -> Vec<String> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length_bytes = file.metadata()?.len();
        file.seek(SeekFrom::Start(length_bytes.saturating_sub(LOG_TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(STDERR_LINES_KEPT)..].iter().map(|line| clean_text(line)).collect()
}
