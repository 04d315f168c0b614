//! The variables behind the wall. A process there can read those of the part that measures, whatever that hands on.

use holdpoint_process::{is_hidden, is_passed_on};
use std::path::{Path, PathBuf};

/// Files of a GitHub step by which it speaks to the runner, and the folder that they are in.
const STEP_FILES: [&str; 6] =
    ["GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY", "GITHUB_STATE", "RUNNER_TEMP"];

/// Variables about the job that measuring needs on GitLab, where a secret can have any name; what it starts does not get these.
const OF_JOB: [&str; 6] =
    ["CI", "CI_JOB_URL", "CI_COMMIT_TAG", "CI_COMMIT_REF_NAME", "GITLAB_USER_LOGIN", "GITLAB_CI"];

/// The folders of PATH by their full path only. One that is not there could be made later, by what is measured: it is made now.
pub(crate) fn clean_path() -> Vec<PathBuf> {
    let given = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&given).filter(|folder| folder.is_absolute());
    let made = folders.inspect(|folder| drop(std::fs::create_dir_all(folder)));
    made.filter(|folder| folder.is_dir()).collect()
}

/// All of the variables of measured code.
pub fn inside(
    is_gitlab: bool,
    path: &[PathBuf],
    cache: &Path,
    home: Option<PathBuf>,
) -> Vec<(String, String)> {
    let all = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let is_seen = |name: &str| match is_gitlab {
        true => is_passed_on(name) || OF_JOB.contains(&name),
        false => !STEP_FILES.contains(&name) && !is_hidden(name),
    };
    let mut env: Vec<(String, String)> = all.filter(|(name, _)| is_seen(name)).collect();
    let mut set = |name: &str, value: String| {
        env.retain(|(old, _)| old != name);
        env.push((name.to_owned(), value));
    };
    let path = std::env::join_paths(path).unwrap_or_default();
    set("PATH", path.to_string_lossy().into_owned());
    set("HOLDPOINT_CACHE", cache.to_string_lossy().into_owned());
    if let Some(home) = home {
        set("HOME", home.to_string_lossy().into_owned());
    }
    env
}
