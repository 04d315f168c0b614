//! Starts other programs. Every child process of holdpoint is made by [`command`], so that none inherits a secret; builds and measured
//! programs by [`measured`], so that they see only the variables of a stated list;
//! every question to git goes through [`git`], so that no setting of the repository runs a program or changes the answer.

pub mod git;
mod memory;
mod secrets;
mod variables;

pub use memory::hide_from_children;
pub use secrets::is_secret;
pub use variables::{is_hidden, is_passed_on, pass_on, withheld};

use std::ffi::OsStr;
use std::process::Command;

/// Files by which a step of GitHub Actions speaks to its runner: nothing that it starts speaks for it.
const STEP_FILES: [&str; 5] =
    ["GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"];

/// A program to start, with this process's environment less its secrets and the files of the CI step.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_secret(name)) {
        command.env_remove(name);
    }
    for name in STEP_FILES {
        command.env_remove(name);
    }
    command
}

/// A build or a measured program to start, with the variables that these may see.
pub fn measured(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| is_passed_on(name)));
    command
}
