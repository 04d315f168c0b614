//! Shared by several commands: folders of evidence, seals, suites, waivers, ceilings.

pub mod artifacts;
pub mod ceilings;
pub mod engines;
pub mod exports;
pub mod histories;
pub mod imports;
pub mod links;
pub mod sealing;
pub mod suites;
pub mod tensors;
pub mod waivers;

use crate::error::FlowError;
use holdpoint_process::git;
use serde::Serialize;
use std::path::Path;
use std::process::Command;

/// Writes what was measured; where that fails, into the folder for temporary files: it is not lost.
pub fn save(path: &Path, document: &impl Serialize) -> Result<(), FlowError> {
    let Err(source) = holdpoint_store::write_json(path, document) else {
        return Ok(());
    };
    let refuge = std::env::temp_dir().join(format!("holdpoint-report-{}.json", std::process::id()));
    match holdpoint_store::write_json(&refuge, document) {
        Ok(()) => Err(FlowError::Kept { source, refuge }),
        Err(_) => Err(source.into()),
    }
}

/// Git that shows a token to whoever asks for a password; it stands in no command and in no file.
pub fn git_with_token(dir: &Path, token: &str) -> Command {
    let helper =
        "credential.helper=!echo username=x-access-token; echo \"password=$HOLDPOINT_PUSH_SECRET\"; :";
    let mut git = git::checkout_command(dir);
    git.args(["-c", "credential.helper=", "-c", helper]).env("HOLDPOINT_PUSH_SECRET", token);
    git
}

/// The person who does something that is recorded: the one named, or whoever runs the pipeline or is logged in.
pub fn person(named: Option<&str>, does: &str) -> Result<String, FlowError> {
    let from = |name: &str| std::env::var(name).ok();
    let of_ci = || from("GITHUB_ACTOR").or_else(|| from("GITLAB_USER_LOGIN"));
    let named = named.map(str::to_owned).or_else(of_ci).or_else(|| from("USER"));
    named
        .map(|name| holdpoint_model::limits::clean_text(name.trim()))
        .filter(|name| !name.is_empty())
        .ok_or_else(|| FlowError::Input(format!("who {does} it? Give --by NAME")))
}
