//! `holdpoint ci wall`: the first process of the namespaces. It mounts, runs the command, and takes everything with it when it ends.

use crate::error::FlowError;
use rustix::process::{WaitOptions, wait};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The command, its environment, and the folders around it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Mounted on themselves: what is mounted can be neither renamed nor removed.
    pub held: Vec<PathBuf>,
    /// Made read-only.
    pub shut: Vec<PathBuf>,
    /// Made empty.
    pub hidden: Vec<PathBuf>,
    /// The folder that the command runs in.
    pub dir: PathBuf,
    /// All of the command's variables.
    pub env: Vec<(String, String)>,
    pub command: Vec<String>,
}

impl Plan {
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The command without any mounts.
    pub fn command(&self, is_quiet: bool) -> Command {
        let program = self.command.first().map_or("", String::as_str);
        // The machine's own, and not what the command's PATH finds.
        let mut command = super::system(program).unwrap_or_else(|| holdpoint_process::command(program));
        command.args(self.command.iter().skip(1)).current_dir(&self.dir).stdin(Stdio::null());
        command.env_clear().envs(self.env.iter().map(|(name, value)| (name, value)));
        if is_quiet {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        command
    }

    fn mount(&self) -> Result<(), String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        for path in &self.held {
            mount(&["--rbind", &text(path), &text(path)])?;
        }
        for path in &self.shut {
            mount(&["-o", "remount,bind,ro", &text(path)])?;
        }
        for path in &self.hidden {
            match path.metadata() {
                Ok(metadata) if metadata.is_dir() => mount(&["-t", "tmpfs", "none", &text(path)])?,
                Ok(_) => mount(&["--bind", "/dev/null", &text(path)])?,
                Err(_) => {}
            }
        }
        Ok(())
    }
}

fn mount(arguments: &[&str]) -> Result<(), String> {
    let mut command = super::system("mount").ok_or("there is no mount")?;
    let done = command.args(arguments).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if done.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&done.stderr).trim().to_owned())
}

/// Reads the plan from stdin and ends as its command does.
pub fn run() -> Result<i32, FlowError> {
    let mut text = String::new();
    let read = std::io::stdin().lock().read_to_string(&mut text);
    let plan: Plan = match read {
        Ok(_) => serde_json::from_str(&text)
            .map_err(|error| FlowError::Input(format!("no plan on stdin: {error}")))?,
        Err(error) => return Err(FlowError::Input(format!("no plan on stdin: {error}"))),
    };
    plan.mount().map_err(FlowError::Internal)?;
    let child = plan.command(false).spawn().map_err(|error| FlowError::Internal(error.to_string()))?;
    // Orphans become children of the first process: they are taken in, and die with it.
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_pid() as u32 == child.id() => {
                return Ok(super::code_of(ExitStatus::from_raw(status.as_raw())));
            }
            Ok(_) => {}
            Err(error) => return Err(FlowError::Internal(format!("the measuring process is lost: {error}"))),
        }
    }
}
