//! GitLab's predefined variables.

use super::{EventError, Filter, Guarded, Mode, Settings, plain, sha};

/// The predefined variables that a decision needs, under GitLab's names; empty where they are not set.
#[derive(Clone, Debug, Default)]
pub struct GitLab {
    /// `CI_PIPELINE_SOURCE`: what started the pipeline.
    pub pipeline_source: String,
    /// `CI_PROJECT_ID`.
    pub project_id: String,
    /// `CI_COMMIT_SHA`.
    pub commit_sha: String,
    /// `CI_COMMIT_BEFORE_SHA`: what the branch was before a push.
    pub commit_before_sha: String,
    /// `CI_COMMIT_BRANCH`.
    pub commit_branch: String,
    /// `CI_DEFAULT_BRANCH`.
    pub default_branch: String,
    /// `CI_MERGE_REQUEST_PROJECT_ID`: where the change would go.
    pub merge_request_project_id: String,
    /// `CI_MERGE_REQUEST_SOURCE_PROJECT_ID`: where it comes from; not set when that project is gone.
    pub merge_request_source_project_id: String,
    /// `CI_MERGE_REQUEST_SOURCE_BRANCH_SHA`: the head, where the pipeline is one of merged results.
    pub merge_request_source_branch_sha: String,
    /// `CI_MERGE_REQUEST_DIFF_BASE_SHA`: where the change left the target branch.
    pub merge_request_diff_base_sha: String,
    /// `CI_MERGE_REQUEST_TARGET_BRANCH_NAME`.
    pub merge_request_target_branch: String,
    /// `CI_MERGE_REQUEST_LABELS`, separated by commas.
    pub merge_request_labels: String,
}

/// Decides on a pipeline of GitLab.
///
/// # Errors
/// When the variables are not what GitLab sets. Nothing is allowed then.
pub fn gitlab(pipeline: &GitLab, settings: &Settings) -> Result<Guarded, EventError> {
    let head = sha("CI_COMMIT_SHA", &pipeline.commit_sha)?;
    match pipeline.pipeline_source.as_str() {
        "" => {
            Err(EventError::Missing("CI_PIPELINE_SOURCE is not set: is this a GitLab pipeline?".to_owned()))
        }
        "merge_request_event" => merge_request(pipeline, settings),
        "push" => {
            if pipeline.commit_branch.is_empty() || pipeline.commit_branch != pipeline.default_branch {
                return Ok(Guarded::skip("not a push to the default branch"));
            }
            let before = sha("CI_COMMIT_BEFORE_SHA", &pipeline.commit_before_sha)?;
            let base = if before.is_null() { head.clone() } else { before };
            let reason = "a push to the default branch".to_owned();
            Ok(Guarded::run(settings.mode_of_push(), head, base, reason).filtered(Filter::SinceBase))
        }
        "schedule" if !settings.scheduled && !settings.hosted => {
            Ok(Guarded::skip("scheduled runs are not enabled by the project's variable"))
        }
        "schedule"
            if pipeline.commit_branch.is_empty() || pipeline.commit_branch != pipeline.default_branch =>
        {
            Ok(Guarded::skip("not scheduled for the default branch"))
        }
        "schedule" => {
            Ok(Guarded::run(Mode::Baseline, head.clone(), head, "scheduled and enabled".to_owned()))
        }
        source => Ok(Guarded::refuse(format!(
            "pipelines started by {} are not trusted with the GPU",
            plain(source)
        ))),
    }
}

fn merge_request(pipeline: &GitLab, settings: &Settings) -> Result<Guarded, EventError> {
    let head = match pipeline.merge_request_source_branch_sha.as_str() {
        "" => sha("CI_COMMIT_SHA", &pipeline.commit_sha)?,
        text => sha("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", text)?,
    };
    let base = sha("CI_MERGE_REQUEST_DIFF_BASE_SHA", &pipeline.merge_request_diff_base_sha)?;
    let (to, default_branch) = (&pipeline.merge_request_target_branch, &pipeline.default_branch);
    if to.is_empty() || to != default_branch {
        return Ok(Guarded::refuse(format!(
            "the merge request goes to {}; only what goes to {} is judged",
            plain(to),
            plain(default_branch)
        )));
    }
    if settings.hosted {
        let reason = "a merge request, on a runner that is not yours".to_owned();
        return Ok(Guarded::run(Mode::Against, head, base, reason).filtered(Filter::SinceMergeBase));
    }
    let (target, source) = (&pipeline.merge_request_project_id, &pipeline.merge_request_source_project_id);
    if target.is_empty() || target != &pipeline.project_id {
        return Ok(Guarded::refuse("the pipeline does not run in the project that the change goes to"));
    }
    if source != target {
        return Ok(Guarded::refuse(format!("the change comes from another project, {}", plain(source))));
    }
    if let Some(label) = &settings.label
        && !pipeline.merge_request_labels.split(',').any(|has| has == label)
    {
        return Ok(Guarded::skip(format!("the merge request has no label {}", plain(label))));
    }
    let reason = "the merge request comes from a branch of this project".to_owned();
    Ok(Guarded::run(Mode::Against, head, base, reason).filtered(Filter::SinceMergeBase))
}
