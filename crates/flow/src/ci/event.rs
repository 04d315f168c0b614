//! The event that started this job, and what may be done about it.

use super::commits::{self, Matters};
use crate::error::FlowError;
use holdpoint_ci::guard::{EventError, Filter, GitHub, GitLab, Ruling, Settings, github, gitlab};
use holdpoint_ci::workflows::Forge;
use holdpoint_process::git::Repository;
use std::path::{Path, PathBuf};

/// The event that a decision is about. What is absent is taken from the environment.
#[derive(Clone, Debug, Default)]
pub struct EventRequest {
    pub forge: Option<Forge>,
    pub event_name: Option<String>,
    /// The file with the event.
    pub event_path: Option<PathBuf>,
    /// The commit of events that name none.
    pub sha: Option<String>,
    /// Branches to gate besides the default one.
    pub branch: Vec<String>,
    /// The label that a pull request must have to be measured; empty: none.
    pub label: String,
    /// Scheduled runs may use the GPU if this is `true`.
    pub scheduled: String,
    /// Of a GitLab pipeline that was started by hand: the GPU is used if this is `self-hosted-gpu`.
    pub run_mode: String,
    /// Of such a pipeline: the full hash of a commit to compare with the branch; empty: the branch itself.
    pub measure: String,
}

/// The rest of what a decision about an event needs.
#[derive(Default)]
pub(crate) struct EventFacts<'a> {
    /// The runner belongs to the forge and is thrown away afterwards.
    pub hosted: bool,
    /// For a comment: the pull request and the author's permission, as the API has them now.
    pub pull_request: Option<&'a Path>,
    pub permission: Option<&'a Path>,
}

/// Whether this job is one of GitLab's.
pub fn is_gitlab(request: &EventRequest) -> bool {
    match request.forge {
        Some(forge) => forge == Forge::GitLab,
        None => variable("GITLAB_CI") == "true",
    }
}

/// Decides by the event alone.
pub fn decide(request: &EventRequest, asked: &EventFacts) -> Result<Ruling, FlowError> {
    let label = Some(request.label.clone()).filter(|label| !label.is_empty());
    let branches = request.branch.iter().filter(|branch| !branch.is_empty()).cloned().collect();
    let settings = Settings { scheduled: request.scheduled == "true", label, hosted: asked.hosted, branches };
    let decided = if is_gitlab(request) {
        of_gitlab(request, &settings)
    } else {
        of_github(request, asked, &settings)?
    };
    decided.map_err(|error| FlowError::Input(error.to_string()))
}

/// The decision in the light of what has changed.
pub fn filtered(ruling: Ruling, clone: &Repository, matters: Option<&Matters>) -> Result<Ruling, FlowError> {
    let (Some(filter), Some((head, base))) = (ruling.filter, ruling.compared.clone()) else {
        return Ok(ruling);
    };
    let (has_head, has_base) = (clone.has(head.as_str())?, clone.has(base.as_str())?);
    // After a push by force, what was there before may be gone: then everything may have changed.
    if filter == Filter::SinceBase && has_head && !has_base {
        let parent = clone.find(&format!("{head}^1"))?;
        return Ok(ruling.since_parent(parent.as_deref()));
    }
    // A head of another project may have to be fetched first.
    if !has_base || !has_head {
        return Err(FlowError::Input(format!(
            "cannot tell what has changed between {base} and {head} in {}: the clone needs both, with their history",
            clone.dir().display()
        )));
    }
    match matters {
        Some(matters) if !commits::touches(clone, (&head, &base), filter, matters)? => {
            Ok(ruling.without_changes())
        }
        _ => Ok(ruling),
    }
}

fn of_github(
    request: &EventRequest,
    asked: &EventFacts,
    settings: &Settings,
) -> Result<Result<Ruling, EventError>, FlowError> {
    let given = |flag: &str, value: Option<String>, name: &str| {
        let value = value.unwrap_or_else(|| variable(name));
        let missing = || FlowError::Input(format!("which event? Give {flag}, or set {name} as GitHub does"));
        if value.is_empty() { Err(missing()) } else { Ok(value) }
    };
    let event_name = given("--event-name", request.event_name.clone(), "GITHUB_EVENT_NAME")?;
    let path = request.event_path.as_ref().map(|path| path.display().to_string());
    let path = PathBuf::from(given("--event-path", path, "GITHUB_EVENT_PATH")?);
    let read = |path: &Path| holdpoint_store::read_text(path);
    let payload = read(&path)?;
    let pull_request = asked.pull_request.map(read).transpose()?;
    let permission = asked.permission.map(read).transpose()?;
    let sha = request.sha.clone().unwrap_or_else(|| variable("GITHUB_SHA"));
    let event = GitHub {
        event_name: &event_name,
        payload: &payload,
        sha: &sha,
        pull_request: pull_request.as_deref(),
        permission: permission.as_deref(),
    };
    Ok(github(&event, settings))
}

fn of_gitlab(request: &EventRequest, settings: &Settings) -> Result<Ruling, EventError> {
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
        run_mode: request.run_mode.clone(),
        wanted_sha: request.measure.clone(),
    };
    gitlab(&pipeline, settings)
}

/// A variable of the environment; empty where it is not set, or is no text.
pub fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
