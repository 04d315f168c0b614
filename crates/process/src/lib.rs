//! Starts other programs. Every child process of holdpoint is made by [`command`], so that none inherits a secret;
//! every question to git goes through [`git`], so that no setting of the repository runs a program or changes the answer.

pub mod git;
mod secrets;

pub use secrets::{hide_from_children, is_secret};

use std::ffi::OsStr;
use std::process::Command;

/// A program to start, with this process's environment less its secrets.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_secret(name)) {
        command.env_remove(name);
    }
    command
}
