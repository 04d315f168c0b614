//! The secret variables of the environment, and how they are kept from other processes of the same user.

use crate::variables::is_hidden;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::ffi::OsStr;
use std::io;

/// Tokens that GitHub and GitLab hand to jobs, and what the generated workflows hand to notifications.
const NAMES: [&str; 19] = [
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_URL",
    "ACTIONS_RUNTIME_TOKEN",
    "CI_BUILD_TOKEN",
    "CI_DEPENDENCY_PROXY_PASSWORD",
    "CI_DEPLOY_PASSWORD",
    "CI_JOB_JWT",
    "CI_JOB_JWT_V1",
    "CI_JOB_JWT_V2",
    "CI_JOB_TOKEN",
    "CI_REGISTRY_PASSWORD",
    "GH_ENTERPRISE_TOKEN",
    "GH_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "GITHUB_TOKEN",
    "HOOK_KEY",
    "HOOK_TOKEN",
    "SLACK_WEBHOOK_URL",
    "SMTP_PASSWORD",
];
/// Parts of the names of holdpoint's own secrets.
const PARTS: [&str; 4] = ["KEY", "PASSWORD", "SECRET", "TOKEN"];
/// Ends of the names of GitLab's tokens, whose beginning `ci init` lets users choose.
const ENDS: [&str; 2] = ["_GITLAB_TOKEN", "_PUSH_TOKEN"];
/// The one key that everybody may see.
const PUBLIC: &str = "HOLDPOINT_PUBLIC_KEY";

/// Whether a variable holds a secret of holdpoint's or a well-known token of CI.
pub fn is_secret(name: impl AsRef<OsStr>) -> bool {
    let Some(name) = name.as_ref().to_str() else { return false };
    let is_own = name.starts_with("HOLDPOINT_") && PARTS.iter().any(|part| name.contains(part));
    NAMES.contains(&name) || ENDS.iter().any(|end| name.ends_with(end)) || is_own && name != PUBLIC
}

/// Keeps other processes of this user from reading this one's memory and first environment, where there is a secret in it.
///
/// # Errors
/// When the system refuses; then nothing that is not trusted may be started.
pub fn hide_from_children(has_key: bool) -> io::Result<()> {
    if has_key || std::env::vars_os().any(|(name, _)| is_hidden(name)) {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::dumpable_behavior;

    #[test]
    fn a_process_with_a_key_cannot_be_read_by_others_of_its_user() {
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::Dumpable);
        hide_from_children(true).unwrap();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }

    #[test]
    fn secrets_are_told_from_what_programs_need() {
        for name in
            ["HOLDPOINT_SIGNING_KEY", "HOLDPOINT_SEAL_KEY", "HOLDPOINT_GITLAB_TOKEN", "PERF_PUSH_TOKEN"]
        {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PATH", "HOLDPOINT_PUBLIC_KEY", "HOLDPOINT_CACHE", "CARGO_REGISTRY_TOKEN", "KEYBOARD"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
