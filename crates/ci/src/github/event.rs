//! The event that started a workflow, from the file that the runner leaves. Only that file chooses a pull request, never the
//! measured files.

use serde_json::Value;

/// An event about a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// `pull_request`.
    PullRequest {
        number: u64,
        /// Its head when the event came.
        head_sha: String,
    },
    Comment {
        number: u64,
    },
    /// `workflow_run`: another workflow has ended; its pull request is looked up.
    WorkflowRun {
        head_sha: String,
        head_branch: String,
        head_owner: String,
        head_repository_id: u64,
    },
}

/// An event without a usable pull request.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    #[error("the event file is no payload of {event:?}: {what}")]
    Payload { event: String, what: String },
    /// An event of a pull request that must not be measured.
    #[error(
        "the event \"pull_request_target\" is not supported: its jobs hold the repository's secrets, and what they measure is a \
         stranger's code; measure in a pull_request job, comment in a workflow_run job (docs/comment.md)"
    )]
    Target,
    #[error("the event {0:?} has no pull request; give --pr N")]
    None(String),
}

impl Event {
    /// Reads the payload of an event.
    pub fn parse(event: &str, payload: &str) -> Result<Self, EventError> {
        let wrong = |what: String| EventError::Payload { event: event.to_owned(), what };
        if event == "pull_request_target" {
            return Err(EventError::Target);
        }
        if !["pull_request", "issue_comment", "workflow_run"].contains(&event) {
            return Err(EventError::None(event.to_owned()));
        }
        let value: Value = serde_json::from_str(payload).map_err(|error| wrong(error.to_string()))?;
        let text = |pointer: &str| {
            let text = value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
            text.map(str::to_owned).ok_or_else(|| wrong(format!("no text at {pointer}")))
        };
        let number = |pointer: &str| {
            let number = value.pointer(pointer).and_then(Value::as_u64).filter(|number| *number > 0);
            number.ok_or_else(|| wrong(format!("no number at {pointer}")))
        };
        let sha = |pointer: &str| {
            let sha = text(pointer)?;
            if is_sha(&sha) { Ok(sha) } else { Err(wrong(format!("no commit at {pointer}"))) }
        };
        match event {
            "pull_request" => Ok(Self::PullRequest {
                number: number("/pull_request/number")?,
                head_sha: sha("/pull_request/head/sha")?,
            }),
            "issue_comment" if value.pointer("/issue/pull_request").is_none_or(Value::is_null) => {
                Err(EventError::None("issue_comment on an issue".to_owned()))
            }
            "issue_comment" => Ok(Self::Comment { number: number("/issue/number")? }),
            _ => Ok(Self::WorkflowRun {
                head_sha: sha("/workflow_run/head_sha")?,
                head_branch: text("/workflow_run/head_branch")?,
                head_owner: text("/workflow_run/head_repository/owner/login")?,
                head_repository_id: number("/workflow_run/head_repository/id")?,
            }),
        }
    }
}

fn is_sha(text: &str) -> bool {
    [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
