//! Runs a program to its end, with limits on time and output.

use crate::builds::{End, watch};
use crate::program::{Place, Tail};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tempfile::tempfile;

/// Most bytes of output that are read: a page of a hundred thousand launches has fewer.
const TEXT_BYTES_MAX: u64 = 64 << 20;

pub(crate) struct Output {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr_tail: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessError {
    #[error("cannot be started: {0}")]
    NotStarted(io::Error),
    #[error("took longer than {0} s")]
    TimedOut(f64),
    #[error("printed too much")]
    Flooded,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Runs a command with this text on its stdin, and captures its output.
pub(crate) fn capture(
    command: &[String],
    stdin: &str,
    dir: Option<&Path>,
    timeout: Duration,
) -> Result<Output, ProcessError> {
    run(command, stdin, dir, &tempfile()?, timeout)
}

/// Runs a command and keeps its output in a file as well.
pub(super) fn capture_to_file(
    command: &[String],
    path: &Path,
    timeout: Duration,
) -> Result<Output, ProcessError> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
    let output = run(command, "", None, &file, timeout);
    if matches!(output, Err(ProcessError::Flooded)) {
        // Truncated output is useless, and large.
        let _ = std::fs::remove_file(path);
    }
    output
}

fn run(
    command: &[String],
    stdin: &str,
    dir: Option<&Path>,
    stdout: &File,
    timeout: Duration,
) -> Result<Output, ProcessError> {
    let (program, arguments) = command.split_first().ok_or(io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut input = tempfile()?;
    input.write_all(stdin.as_bytes())?;
    input.rewind()?;
    let place = Place { dir: dir.map(Path::to_owned), ..Place::default() };
    let mut starting = place.command(program);
    starting
        .args(arguments)
        // Otherwise tools format numbers in the user's locale.
        .env("LC_ALL", "C")
        .stdin(input)
        .stdout(stdout.try_clone()?)
        .stderr(Stdio::piped());
    let (mut child, job) = place.spawn(&mut starting).map_err(ProcessError::NotStarted)?;
    let stderr = child.stderr.take().map(Tail::new);
    match watch(child, &job, timeout, stdout)? {
        End::ByItself(status) => {
            let stderr_tail = stderr.map(|stderr| stderr.last_lines()).unwrap_or_default();
            Ok(Output { status, stdout: read(stdout)?, stderr_tail })
        }
        End::TimedOut => Err(ProcessError::TimedOut(timeout.as_secs_f64())),
        End::Flooded => Err(ProcessError::Flooded),
    }
}

fn read(mut file: &File) -> Result<String, ProcessError> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(ProcessError::Flooded);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The text of a tool's log; empty if there is none.
pub(super) fn read_log(path: &Path) -> String {
    File::open(path).map_err(ProcessError::from).and_then(|file| read(&file)).unwrap_or_default()
}
