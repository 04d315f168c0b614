//! Which variables of the environment are secrets.

use std::ffi::OsStr;

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

#[cfg(test)]
mod tests {
    use super::*;

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
