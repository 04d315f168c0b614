//! Decisions on GitLab's pipelines, by their predefined variables.

use super::{EventError, Filter, Mode, Ruling, Settings, Sha, plain, sha};

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
    /// The wish of a pipeline started by hand: `self-hosted-gpu`, or anything else for nothing.
    pub run_mode: String,
    /// The commit that such a pipeline is to measure instead of its branch.
    pub wanted_sha: String,
}

impl GitLab {
    fn is_of_default_branch(&self) -> bool {
        !self.commit_branch.is_empty() && self.commit_branch == self.default_branch
    }
}

/// Decides on a pipeline of GitLab.
pub fn gitlab(pipeline: &GitLab, settings: &Settings) -> Result<Ruling, EventError> {
    let head = sha("CI_COMMIT_SHA", &pipeline.commit_sha)?;
    match pipeline.pipeline_source.as_str() {
        "" => {
            Err(EventError::Missing("CI_PIPELINE_SOURCE is not set: is this a GitLab pipeline?".to_owned()))
        }
        "merge_request_event" => merge_request(pipeline, settings),
        "push" => {
            if !pipeline.is_of_default_branch() {
                return Ok(Ruling::skip("not a push to the default branch"));
            }
            let before = sha("CI_COMMIT_BEFORE_SHA", &pipeline.commit_before_sha)?;
            Ok(Ruling::run_push(before, head, "a push to the default branch".to_owned(), settings))
        }
        "schedule" if !settings.scheduled && !settings.hosted => {
            Ok(Ruling::skip("scheduled runs are not enabled by the project's variable"))
        }
        "schedule" if !pipeline.is_of_default_branch() => {
            Ok(Ruling::skip("not scheduled for the default branch"))
        }
        "schedule" => Ok(Ruling::run(Mode::Baseline, head.clone(), head, "scheduled and enabled".to_owned())),
        "web" | "api" => by_hand(pipeline, head),
        source => {
            Ok(Ruling::refuse(format!("pipelines started by {} are not trusted with the GPU", plain(source))))
        }
    }
}

/// Only those who may run pipelines of a branch can start one by hand, and what it does is in the branch's file: on the
/// default branch, nothing of what is measured has a say in it.
fn by_hand(pipeline: &GitLab, own: Sha) -> Result<Ruling, EventError> {
    if pipeline.run_mode != "self-hosted-gpu" {
        return Ok(Ruling::skip("started by hand without asking for the GPU: the run mode is skip"));
    }
    if !pipeline.is_of_default_branch() {
        return Ok(Ruling::refuse(format!(
            "started by hand on {}; start it on {}",
            plain(&pipeline.commit_branch),
            plain(&pipeline.default_branch)
        )));
    }
    let ruling = Ruling::run_wanted(&pipeline.wanted_sha, own, ["started by hand", "somebody who may"]);
    Ok(ruling.unwrap_or_else(|| Ruling::refuse("what is to be measured is no full commit hash of 40 digits")))
}

fn merge_request(pipeline: &GitLab, settings: &Settings) -> Result<Ruling, EventError> {
    let head = match pipeline.merge_request_source_branch_sha.as_str() {
        "" => sha("CI_COMMIT_SHA", &pipeline.commit_sha)?,
        text => sha("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", text)?,
    };
    let base = sha("CI_MERGE_REQUEST_DIFF_BASE_SHA", &pipeline.merge_request_diff_base_sha)?;
    let (to, default_branch) = (&pipeline.merge_request_target_branch, &pipeline.default_branch);
    if to.is_empty() || to != default_branch {
        return Ok(Ruling::refuse(format!(
            "the merge request goes to {}; only what goes to {} is judged",
            plain(to),
            plain(default_branch)
        )));
    }
    if settings.hosted {
        let reason = "a merge request, on a runner that is not yours".to_owned();
        return Ok(Ruling::run(Mode::Against, head, base, reason).filtered(Filter::SinceMergeBase));
    }
    let (target, source) = (&pipeline.merge_request_project_id, &pipeline.merge_request_source_project_id);
    if source != target {
        return Ok(Ruling::refuse(format!(
            "the change comes from another project, {}; a maintainer who has read it may start a pipeline of {} for {head}",
            plain(source),
            plain(default_branch)
        )));
    }
    if target.is_empty() || target != &pipeline.project_id {
        return Ok(Ruling::refuse("the pipeline does not run in the project that the change goes to"));
    }
    if let Some(label) = &settings.label
        // GitLab's labels are others in small and in capital letters, and have no comma.
        && !pipeline.merge_request_labels.split(',').any(|has| has == label)
    {
        return Ok(Ruling::skip(format!("the merge request has no label {}", plain(label))));
    }
    let reason = "the merge request comes from a branch of this project".to_owned();
    Ok(Ruling::run(Mode::Against, head, base, reason).filtered(Filter::SinceMergeBase))
}
