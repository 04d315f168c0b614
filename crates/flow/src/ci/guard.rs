//! `holdpoint ci guard`: may this run touch the GPU?

use super::CiResult;
use crate::done::Done;
use crate::error::FlowError;
use crate::options::{ForgeName, GuardArgs};
use holdpoint_ci::guard::{
    EventError, Filter, GitHub, GitLab, Ruling, Settings, Sha, find_path_problem, github, gitlab, plain,
};
use holdpoint_model::ExitCode;
use holdpoint_process::git;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Output;

pub fn run(args: &GuardArgs) -> Result<Done<CiResult>, FlowError> {
    let paths: Vec<&String> = args.path.iter().filter(|path| !path.is_empty()).collect();
    if let Some((path, why)) = paths.iter().find_map(|path| Some((path, find_path_problem(path)?))) {
        return Err(FlowError::Input(format!("--path {path:?} matches nothing: {why}")));
    }
    let label = Some(args.label.clone()).filter(|label| !label.is_empty());
    let branches = args.branch.iter().filter(|branch| !branch.is_empty()).cloned().collect();
    let settings = Settings { scheduled: args.scheduled == "true", label, hosted: args.hosted, branches };
    let is_gitlab = match args.forge {
        Some(forge) => forge == ForgeName::Gitlab,
        None => variable("GITLAB_CI") == "true",
    };
    let decided = if is_gitlab { of_gitlab(args, &settings) } else { of_github(args, &settings)? };
    let mut guarded = decided.map_err(|error| FlowError::Input(error.to_string()))?;
    if let (Some(repository), Some(filter)) = (&args.repository, guarded.filter)
        && let Some((head, base)) = guarded.compared.clone()
    {
        let clone = Checkout { repository, filter };
        // After a push by force, what was there before may be gone: then everything may have changed.
        if filter == Filter::SinceBase && clone.has(&head)? && !clone.has(&base)? {
            guarded = guarded.since_parent(clone.parent(&head)?.as_deref());
        } else if !paths.is_empty() && !clone.touches(&head, &base, &paths)? {
            guarded = guarded.without_changes();
        }
    }
    let file = args.output.clone().or_else(|| Some(PathBuf::from(variable("GITHUB_OUTPUT"))));
    if let Some(file) = file.filter(|file| !file.as_os_str().is_empty()) {
        append(&file, &guarded.outputs())
            .map_err(|error| FlowError::Internal(format!("cannot write to {}: {error}", file.display())))?;
    }
    Ok(Done::new(CiResult::Guarded(Box::new(guarded)), ExitCode::Ok))
}

fn of_github(args: &GuardArgs, settings: &Settings) -> Result<Result<Ruling, EventError>, FlowError> {
    let given = |flag: &str, value: Option<String>, name: &str| {
        let value = value.unwrap_or_else(|| variable(name));
        let missing = || FlowError::Input(format!("which event? Give {flag}, or set {name} as GitHub does"));
        if value.is_empty() { Err(missing()) } else { Ok(value) }
    };
    let event_name = given("--event-name", args.event_name.clone(), "GITHUB_EVENT_NAME")?;
    let path = args.event_path.as_ref().map(|path| path.display().to_string());
    let path = given("--event-path", path, "GITHUB_EVENT_PATH")?;
    let read = |path: &Path| holdpoint_store::read_text(path);
    let payload = read(Path::new(&path))?;
    let pull_request = args.pull_request.as_deref().map(read).transpose()?;
    let permission = args.permission.as_deref().map(read).transpose()?;
    let sha = args.sha.clone().unwrap_or_else(|| variable("GITHUB_SHA"));
    let event = GitHub {
        event_name: &event_name,
        payload: &payload,
        sha: &sha,
        pull_request: pull_request.as_deref(),
        permission: permission.as_deref(),
    };
    Ok(github(&event, settings))
}

fn of_gitlab(args: &GuardArgs, settings: &Settings) -> Result<Ruling, EventError> {
    let pipeline = GitLab {
        pipeline_source: variable("CI_PIPELINE_SOURCE"),
        project_id: variable("CI_PROJECT_ID"),
        commit_sha: variable("CI_COMMIT_SHA"),
        commit_before_sha: variable("CI_COMMIT_BEFORE_SHA"),
        commit_branch: variable("CI_COMMIT_BRANCH"),
        default_branch: variable("CI_DEFAULT_BRANCH"),
        merge_request_project_id: variable("CI_MERGE_REQUEST_PROJECT_ID"),
        merge_request_source_project_id: variable("CI_MERGE_REQUEST_SOURCE_PROJECT_ID"),
        merge_request_source_branch_sha: variable("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA"),
        merge_request_diff_base_sha: variable("CI_MERGE_REQUEST_DIFF_BASE_SHA"),
        merge_request_target_branch: variable("CI_MERGE_REQUEST_TARGET_BRANCH_NAME"),
        merge_request_labels: variable("CI_MERGE_REQUEST_LABELS"),
        run_mode: args.run_mode.clone(),
        wanted_sha: args.measure.clone(),
    };
    gitlab(&pipeline, settings)
}

/// A variable of the environment; empty where it is not set, or is no text.
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// A clone that is only looked at: nothing of it is run.
struct Checkout<'a> {
    repository: &'a Path,
    filter: Filter,
}

impl Checkout<'_> {
    /// Runs git. Files in the commits (`.gitmodules`, `.gitattributes`) do not influence it.
    fn ask(&self, arguments: &[&str]) -> Result<Output, FlowError> {
        git::ask(self.repository, arguments)
            .map_err(|error| FlowError::Internal(format!("cannot run git: {error}")))
    }

    /// Whether what has changed touches a path that matters.
    fn touches(&self, head: &Sha, base: &Sha, paths: &[&String]) -> Result<bool, FlowError> {
        let dots = if self.filter == Filter::SinceBase { ".." } else { "..." };
        let range = format!("{base}{dots}{head}");
        // A submodule has no files of its own here: dir/** means dir as well.
        let folders = paths.iter().filter_map(|path| path.strip_suffix("/**"));
        let all = paths.iter().map(|path| path.as_str()).chain(folders);
        let all: Vec<String> = all.map(|path| format!(":(glob,top){path}")).collect();
        let mut arguments =
            vec!["diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--no-renames"];
        arguments.extend(["--ignore-submodules=none", "--no-relative", &range, "--"]);
        arguments.extend(all.iter().map(String::as_str));
        let done = self.ask(&arguments)?;
        if !done.status.success() {
            let message = String::from_utf8_lossy(&done.stderr);
            let message = message.lines().last().unwrap_or_default();
            return Err(FlowError::Input(format!(
                "cannot tell what has changed between {base} and {head} in {}: {}; the clone needs both, with their history",
                self.repository.display(),
                plain(message)
            )));
        }
        Ok(!done.stdout.is_empty())
    }

    /// Whether the clone has the commit.
    fn has(&self, commit: &Sha) -> Result<bool, FlowError> {
        Ok(self.ask(&["cat-file", "-e", &format!("{commit}^{{commit}}")])?.status.success())
    }

    /// The commit's first parent, if it has any.
    fn parent(&self, commit: &Sha) -> Result<Option<String>, FlowError> {
        let done = self.ask(&["rev-parse", "--quiet", "--verify", &format!("{commit}^1")])?;
        Ok(done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned()))
    }
}

/// Adds to a file that others have begun.
fn append(path: &Path, text: &str) -> std::io::Result<()> {
    OpenOptions::new().create(true).append(true).open(path)?.write_all(text.as_bytes())
}
