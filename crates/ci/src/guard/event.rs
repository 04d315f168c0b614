//! The fields of GitHub's events that a decision needs, under GitHub's names. Other fields are ignored.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub struct Repository {
    pub id: u64,
    pub full_name: String,
    pub default_branch: String,
}

#[derive(Debug, Deserialize)]
pub struct User {
    pub login: String,
    #[serde(rename = "type")]
    pub kind: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Label {
    pub name: String,
}

#[derive(Debug, Deserialize)]
pub struct End {
    #[serde(rename = "ref")]
    pub reference: String,
    pub sha: String,
    /// Null when the fork was deleted.
    pub repo: Option<EndRepository>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct EndRepository {
    pub id: u64,
    pub full_name: String,
}

#[derive(Debug, Deserialize)]
pub struct PullRequest {
    pub number: u64,
    pub state: String,
    pub head: End,
    pub base: End,
    pub labels: Vec<Label>,
    /// The author; null when the account is gone.
    pub user: Option<User>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PullRequestEvent {
    pub number: u64,
    pub pull_request: PullRequest,
    pub repository: Repository,
}

#[derive(Debug, Deserialize)]
pub(crate) struct MergeGroupEvent {
    pub merge_group: MergeGroup,
    pub repository: Repository,
}

/// The result that a merge queue would make of a branch.
#[derive(Debug, Deserialize)]
pub(crate) struct MergeGroup {
    pub head_sha: String,
    pub base_sha: String,
    pub base_ref: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PushEvent {
    #[serde(rename = "ref")]
    pub reference: String,
    pub before: String,
    pub after: String,
    pub deleted: bool,
    pub repository: Repository,
}

#[derive(Debug, Deserialize)]
pub(crate) struct DispatchEvent {
    /// Null for a workflow without inputs.
    pub inputs: Option<Inputs>,
    // That it is there shows that this is an event of a repository.
    #[serde(rename = "repository")]
    pub _repository: Repository,
}

#[derive(Debug, Default, Deserialize)]
pub struct Inputs {
    /// `skip` or `self-hosted-gpu`.
    #[serde(default)]
    pub run_mode: String,
    /// `true` or `false`; the weekly trend's.
    #[serde(default)]
    pub run_gpu: String,
    /// The commit to measure instead of the chosen branch.
    #[serde(default)]
    pub sha: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ScheduleEvent {
    #[serde(rename = "schedule")]
    pub _schedule: String,
    #[serde(rename = "repository")]
    pub _repository: Repository,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CommentEvent {
    pub action: String,
    pub issue: Issue,
    pub comment: Comment,
    pub repository: Repository,
    pub sender: User,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Issue {
    pub number: u64,
    pub state: String,
    /// Only there when the issue is a pull request.
    pub pull_request: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
pub struct Comment {
    pub body: String,
    pub user: User,
}

/// The answer of GitHub's "get repository permissions for a user".
#[derive(Debug, Deserialize)]
pub struct Permission {
    pub permission: String,
    pub user: User,
}
