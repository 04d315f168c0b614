//! GitLab's API, as far as a comment on a merge request needs it.

use crate::http::{self, Deadline, NoAnswer, Request};
use crate::redact::Secrets;
use serde_json::{Value, json};
use std::time::Duration;
use ureq::Agent;

/// Limit for all requests.
const TOTAL_MAX: Duration = Duration::from_secs(120);
const PAGES_MAX: u32 = 50;

/// A failed request. No text in it has the token.
#[derive(Debug, thiserror::Error)]
pub enum GitLabError {
    #[error("{0}")]
    Setting(String),
    #[error("GitLab could not be asked ({place}): {what}")]
    Failed { place: String, what: String },
}

pub struct Client {
    project: String,
    api_url: String,
    token: String,
    agent: Agent,
    secrets: Secrets,
    deadline: Deadline,
}

impl Client {
    /// A client for a project, by its number, at an address such as `https://gitlab.com/api/v4`.
    pub fn new(api_url: &str, project_id: &str, token: &str) -> Result<Self, GitLabError> {
        let setting = |what: &str| Err(GitLabError::Setting(what.to_owned()));
        let token = token.trim();
        if !http::is_private(api_url) {
            return setting("CI_API_V4_URL must begin with https://");
        }
        if project_id.is_empty() || !project_id.bytes().all(|byte| byte.is_ascii_digit()) {
            return setting("CI_PROJECT_ID must be a number");
        }
        if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
            return setting("the token is empty, or no token");
        }
        let mut secrets = Secrets::default();
        secrets.add(token);
        let api_url = api_url.trim_end_matches('/').to_owned();
        Ok(Self {
            project: format!("/projects/{project_id}"),
            agent: http::agent(&api_url),
            api_url,
            token: token.to_owned(),
            secrets,
            deadline: Deadline::after(TOTAL_MAX),
        })
    }

    fn ask(&self, method: &str, place: &str, body: Option<&Value>) -> Result<Value, GitLabError> {
        let failed = |what: String| GitLabError::Failed { place: place.to_owned(), what };
        let (url, body) = (format!("{}{place}", self.api_url), body.map(Value::to_string));
        let request = Request {
            method,
            url: &url,
            headers: &[("private-token", self.token.as_str())],
            body: body.as_deref(),
            secrets: &self.secrets,
            deadline: self.deadline,
        };
        let answer = http::send(&self.agent, &request).map_err(|error| match error {
            NoAnswer::Setting(what) => GitLabError::Setting(format!("CI_API_V4_URL cannot be used: {what}")),
            NoAnswer::Failed(what) => failed(what),
        })?;
        match answer.status {
            200..300 => serde_json::from_str(&answer.body).map_err(|error| failed(error.to_string())),
            401 | 403 | 404 => Err(GitLabError::Setting(format!(
                "GitLab answered {} ({place}): the token needs the scope \"api\" of this project",
                answer.status
            ))),
            status => Err(failed(format!("it answered {status}"))),
        }
    }

    /// Every element of a list, page by page.
    fn list(&self, place: &str) -> Result<Vec<Value>, GitLabError> {
        let mut all = Vec::new();
        for page in 1..=PAGES_MAX {
            let and = if place.contains('?') { '&' } else { '?' };
            let place = format!("{place}{and}per_page=100&page={page}");
            let Value::Array(elements) = self.ask("GET", &place, None)? else {
                return Err(GitLabError::Failed { place, what: "the answer is no list".to_owned() });
            };
            let is_last = elements.len() < 100;
            all.extend(elements);
            if is_last {
                break;
            }
        }
        Ok(all)
    }

    /// The open merge request that has this head now.
    pub fn merge_request_at(&self, sha: &str) -> Result<Option<u64>, GitLabError> {
        let open = self.list(&format!("{}/merge_requests?state=opened", self.project))?;
        let found = open.iter().find(|request| request["sha"].as_str() == Some(sha));
        Ok(found.and_then(|request| request["iid"].as_u64()))
    }

    /// Makes the note that begins with the marker say this: our own, or a new one; whether it is new. Anybody can write the marker: only a
    /// note of the token's own user is written over.
    pub fn post(&self, number: u64, marker: &str, body: &str) -> Result<bool, GitLabError> {
        let own = self.ask("GET", "/user", None)?["id"].as_u64();
        let notes = format!("{}/merge_requests/{number}/notes", self.project);
        let is_ours = |note: &&Value| {
            own.is_some()
                && note.pointer("/author/id").and_then(Value::as_u64) == own
                && note["body"].as_str().is_some_and(|body| body.trim_start().starts_with(marker))
        };
        let all = self.list(&notes)?;
        let old = all.iter().find(is_ours).and_then(|note| note["id"].as_u64());
        let text = json!({ "body": body });
        match old {
            Some(id) => self.ask("PUT", &format!("{notes}/{id}"), Some(&text))?,
            None => self.ask("POST", &notes, Some(&text))?,
        };
        Ok(old.is_none())
    }
}
