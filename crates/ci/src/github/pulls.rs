//! Finds the pull request of an event, and checks that it is still the one that was measured.

use super::{ApiError, Client, Event};
use crate::redact::encode_percent;
use serde_json::Value;

/// A pull request that may be commented on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub number: u64,
    pub head_sha: String,
}

/// Why nothing is posted, which is no failure: the pull request is not, or no longer, the one that was measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unposted {
    #[error("pull request {0} is not open any more")]
    Closed(u64),
    #[error("pull request {number} has moved on: it is at {is}, measured was {was}")]
    Moved { number: u64, is: String, was: String },
    #[error("no open pull request of this repository is at {0}: it was closed or has moved on")]
    NoneAt(String),
    #[error("pull requests {numbers} are all at {sha}: it is not clear which one is meant")]
    Several { numbers: String, sha: String },
}

impl Client {
    /// The open pull request that an event is about, at the commit that was measured.
    pub fn resolve(
        &self,
        event: &Event,
        measured_sha: Option<&str>,
    ) -> Result<Result<Resolved, Unposted>, ApiError> {
        match event {
            Event::PullRequest { number, head_sha } => {
                self.pull(*number, Some(measured_sha.unwrap_or(head_sha)))
            }
            Event::Comment { number } => self.pull(*number, measured_sha),
            // Everything else comes from the job that ran a stranger's code.
            Event::WorkflowRun { head_sha, head_branch, head_owner, head_repository_id } => {
                let head = format!("{head_owner}:{head_branch}");
                self.pull_at(head_sha, &head, *head_repository_id)
            }
        }
    }

    /// One pull request, if it is open and at the commit.
    pub fn pull(&self, number: u64, sha: Option<&str>) -> Result<Result<Resolved, Unposted>, ApiError> {
        let place = format!("/repos/{}/pulls/{number}", self.repository);
        let pull = self.get(&place)?;
        let Some(is) = head_sha(&pull) else {
            return Err(ApiError::Strange { place, what: "a pull request without a head".to_owned() });
        };
        if !is_open(&pull) {
            return Ok(Err(Unposted::Closed(number)));
        }
        Ok(match sha.filter(|was| !was.eq_ignore_ascii_case(&is)) {
            Some(was) => Err(Unposted::Moved { number, is, was: was.to_owned() }),
            None => Ok(Resolved { number, head_sha: is }),
        })
    }

    /// The one open pull request into this repository whose head is the commit, found by the commit and by the branch: GitHub
    /// does not know the commits of forks by the first. Its head lies in the repository of the run: anybody can push somebody
    /// else's commit to a fork, have it measured there by files of their own, and close their pull request.
    fn pull_at(
        &self,
        sha: &str,
        head: &str,
        repository_id: u64,
    ) -> Result<Result<Resolved, Unposted>, ApiError> {
        let repository = &self.repository;
        let by_commit = self.list(&format!("/repos/{repository}/commits/{}/pulls", encode_percent(sha)));
        let mut pulls = match by_commit {
            Err(error) if matches!(error.status(), Some(404 | 422)) => Vec::new(),
            found => found?,
        };
        let head = encode_percent(head);
        pulls.extend(self.list(&format!("/repos/{repository}/pulls?state=open&head={head}"))?);
        let is_ours = |pull: &&Value| {
            let base = pull.pointer("/base/repo/full_name").and_then(Value::as_str).unwrap_or_default();
            is_open(pull)
                && base.eq_ignore_ascii_case(repository)
                && pull.pointer("/head/repo/id").and_then(Value::as_u64) == Some(repository_id)
                && head_sha(pull).is_some_and(|is| is.eq_ignore_ascii_case(sha))
        };
        let ours = pulls.iter().filter(is_ours);
        let mut numbers: Vec<u64> = ours.filter_map(|pull| pull.get("number")?.as_u64()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Ok(match numbers.as_slice() {
            [] => Err(Unposted::NoneAt(sha.to_owned())),
            [number] => Ok(Resolved { number: *number, head_sha: sha.to_owned() }),
            several => {
                let numbers: Vec<String> = several.iter().map(u64::to_string).collect();
                Err(Unposted::Several { numbers: numbers.join(", "), sha: sha.to_owned() })
            }
        })
    }
}

fn is_open(pull: &Value) -> bool {
    pull.get("state").and_then(Value::as_str) == Some("open")
}

/// A hash, and nothing else that a server could put there.
fn head_sha(pull: &Value) -> Option<String> {
    let sha = pull.pointer("/head/sha")?.as_str()?;
    sha.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| sha.to_owned())
}
