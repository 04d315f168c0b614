//! Programs: where they run, from which copy, and one call of them.

mod error;
mod execute;
mod lines;
pub mod peak;
mod place;

pub use error::WorkerError;
pub(crate) use execute::{Finished, draw_hash_seed, execute, set_up};
pub(crate) use lines::{Line, Tail, read_line, to_line};
pub(crate) use place::{ChangedCopy, CopiedFile, cpus_allowed, pin_first_thread};
pub use place::{Copies, Place};

use std::ffi::OsString;
use std::path::Path;

/// Resolves a program as a shell in `dir` would: a relative path is looked up there, a bare name on the `PATH`.
pub fn resolve_program(dir: &Path, program: &str) -> OsString {
    if !program.contains('/') {
        return program.into();
    }
    let path = dir.join(program);
    std::path::absolute(&path).unwrap_or(path).into_os_string()
}
