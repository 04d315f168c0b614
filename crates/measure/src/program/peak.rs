//! Peak memory of programs that use less of it than holdpoint itself.
//!
//! Linux counts a process's peak from that of the process which started it. So where a program stays below holdpoint's own peak, it
//! is called once more by a small process in between: holdpoint anew, which has done nothing yet.

use crate::machine;
use crate::program::resolve_program;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use wait4::Wait4;

/// The hidden command that calls a program and prints its peak memory.
pub const COMMAND: &str = "peak-memory";

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Sets the program that knows the hidden command: holdpoint itself.
pub fn launch_with(program: PathBuf) {
    // Only the first program counts.
    let _ = PROGRAM.set(program);
}

/// The peak of a process that this one started, if it can be told from our own.
pub(crate) fn own_peak(maxrss_bytes: u64) -> Option<u64> {
    let inherited_bytes = machine::peak_rss_bytes().unwrap_or(0);
    (maxrss_bytes > inherited_bytes).then_some(maxrss_bytes)
}

/// The command line that calls another one and prints its peak memory in bytes.
pub(crate) fn command_line(command: &[String], dir: Option<&Path>) -> Option<Vec<String>> {
    let (program, arguments) = command.split_first()?;
    // The process in between runs in that folder too, where its own path would not be found.
    let program = match dir {
        Some(dir) => resolve_program(dir, program).to_string_lossy().into_owned(),
        None => program.clone(),
    };
    let launcher = PROGRAM.get()?.to_str()?.to_owned();
    Some([launcher, COMMAND.to_owned(), program].into_iter().chain(arguments.iter().cloned()).collect())
}

/// Calls a program with its output discarded; its peak memory in bytes if it ends well.
pub fn call(command: &[String]) -> Option<u64> {
    let (program, arguments) = command.split_first()?;
    let mut command = holdpoint_process::command(program);
    let child = command.args(arguments).stdout(Stdio::null()).spawn().ok()?;
    let ended = child.wait4().ok()?;
    ended.status.success().then_some(ended.rusage.maxrss)
}
