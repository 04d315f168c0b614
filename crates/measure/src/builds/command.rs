//! Runs a build command in its own process group, with a time limit and a log.

use super::error::BuildError;
use super::wall::Wall;
use crate::jobs::{self, Job};
use crate::program::resolve_program;
use holdpoint_model::limits::{STDERR_LINES_KEPT, clean_text};
use holdpoint_model::suite::BuildSpec;
use holdpoint_process::git::INHERITED;
use rustix::fs::{Access, access};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Characters that separate words in a shell.
pub(crate) const SEPARATORS: &[char] =
    &[' ', '\t', '\n', ';', '|', '&', '<', '>', '(', ')', '"', '\'', '$', '`', '=', '{', '}'];

const LOOK: Duration = Duration::from_millis(10);
/// A build that prints more is in a loop, and must not fill the disk.
const LOG_BYTES_MAX: u64 = 256 << 20;
/// Bytes at the end of a log that are searched for its last lines.
const LOG_TAIL_BYTES: u64 = 256 << 10;

pub(super) struct BuildJob<'a> {
    pub(super) what: String,
    pub(super) dir: &'a Path,
    pub(super) log: &'a Path,
    pub(super) wall: Wall<'a>,
}

pub(crate) enum End {
    ByItself(ExitStatus),
    TimedOut,
    /// It printed too much.
    Flooded,
}

impl BuildJob<'_> {
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
        let program = resolve_program(self.dir, program);
        // One that is not there is named by the system, and not by the shell behind the wall.
        let before = if is_there(&program) { self.wall.words(self.dir) } else { None };
        let words: Vec<OsString> = before.into_iter().flatten().chain([program]).collect();
        let mut command = holdpoint_process::measured(&words[0]);
        command.args(&words[1..]).args(build.command.iter().skip(1)).current_dir(self.dir);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
        // They name other folders; with a common target folder, all revisions would share one build.
        for name in ["PWD", "OLDPWD", "CARGO_TARGET_DIR"].iter().chain(&INHERITED) {
            command.env_remove(name);
        }
        Ok(command)
    }
}

/// Whether there is such a program, by its path or on the `PATH`.
fn is_there(program: &OsStr) -> bool {
    let is_program = |path: PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if Path::new(program).is_absolute() {
        return is_program(program.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| is_program(folder.join(program)))
}

/// Waits for a process that leads a group, and kills it if it takes too long or prints too much. Nothing it started is
/// left running.
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

/// Empty if the log cannot be read: its path is shown anyway.
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
