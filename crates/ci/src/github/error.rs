//! Errors of GitHub's API, and remedies.

use crate::http::Answer;
use crate::redact::Secrets;
use holdpoint_model::limits::clean_text;
use serde_json::Value;
use std::time::Duration;

/// Problems shown of one answer.
const ERRORS_SHOWN: usize = 3;

/// A failed request. No text in it has the token.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    #[error("{0}")]
    Setting(String),
    #[error("GitHub could not be reached ({place}): {what}")]
    Unreachable { place: String, what: String },
    #[error("GitHub answered {status} ({place}): {what}{}", describe_wait(.retry_after_s))]
    Busy {
        status: u16,
        place: String,
        what: String,
        retry_after_s: Option<u64>,
        /// When the limit is lifted, in seconds since 1970.
        reset_s: Option<u64>,
    },
    #[error("GitHub answered {status} ({place}): {what}; {remedy}")]
    Refused { status: u16, place: String, what: String, remedy: String },
    #[error("GitHub's answer is not understood ({place}): {what}")]
    Strange { place: String, what: String },
}

fn describe_wait(retry_after_s: &Option<u64>) -> String {
    retry_after_s.map(|seconds| format!("; it asked to wait for {seconds} s")).unwrap_or_default()
}

impl ApiError {
    /// Whether the same request may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Busy { .. })
    }

    /// Whether the user's settings or permissions are to blame, and not a network or a host.
    pub fn is_input(&self) -> bool {
        matches!(self, Self::Setting(_) | Self::Refused { .. })
    }

    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Busy { status, .. } | Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The wait that the answer asks for, if any.
    pub(super) fn requested_wait(&self, now_s: u64) -> Option<Duration> {
        let Self::Busy { retry_after_s, reset_s, .. } = self else { return None };
        let reset_s = reset_s.map(|reset_s| reset_s.saturating_sub(now_s).max(1));
        retry_after_s.or(reset_s).map(Duration::from_secs)
    }
}

/// Turns an answer that is not a success into an error.
pub(super) fn check(answer: Answer, place: &str, secrets: &Secrets) -> Result<Answer, ApiError> {
    let status = answer.status;
    if (200..300).contains(&status) {
        return Ok(answer);
    }
    let (place, what) = (place.to_owned(), message(&answer, secrets));
    let is_spent = answer.number("x-ratelimit-remaining") == Some(0);
    let retry_after_s = answer.number("retry-after");
    let is_limited = is_spent || retry_after_s.is_some() || what.contains("rate limit");
    match status {
        403 | 429 if status == 429 || is_limited => {
            let reset_s = answer.number("x-ratelimit-reset").filter(|_| is_spent);
            Err(ApiError::Busy { status, place, what, retry_after_s, reset_s })
        }
        500.. => Err(ApiError::Busy { status, place, what, retry_after_s, reset_s: None }),
        _ => {
            let remedy = remedy(&answer);
            Err(ApiError::Refused { status, place, what, remedy })
        }
    }
}

/// The error message of an answer, on one line, with its list of problems. In JSON a secret may be written in ways that show only now.
fn message(answer: &Answer, secrets: &Secrets) -> String {
    let body: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let message = body.get("message").and_then(Value::as_str).unwrap_or("no message");
    let errors = body.get("errors").and_then(Value::as_array).into_iter().flatten();
    let errors = errors.filter_map(|error| {
        let text = |key: &str| error.get(key).and_then(Value::as_str);
        let code = || Some(format!("{}: {}", text("field")?, text("code")?));
        error.as_str().or_else(|| text("message")).map(str::to_owned).or_else(code)
    });
    let all: Vec<String> = std::iter::once(message.to_owned()).chain(errors.take(ERRORS_SHOWN)).collect();
    secrets.clean(&all.join("; ")).chars().take(300).collect()
}

fn remedy(answer: &Answer) -> String {
    // Tells which permissions would have done.
    let accepted = answer.header("x-accepted-github-permissions").map(clean_text);
    match answer.status {
        300..=399 => "the repository has moved: set GITHUB_REPOSITORY to its new name".to_owned(),
        401 => "GITHUB_TOKEN is not valid, or has expired".to_owned(),
        403 => format!(
            "the token lacks a permission{}; in a workflow: permissions: pull-requests: write (a pull request from a fork \
             has a token that may only read: comment from a workflow_run job)",
            accepted.map(|accepted| format!(" ({accepted})")).unwrap_or_default()
        ),
        404 => "there is no such thing, or the token may not see it: check GITHUB_REPOSITORY and the token's permissions \
                (pull-requests: write)"
            .to_owned(),
        _ => "look at what it says".to_owned(),
    }
}
