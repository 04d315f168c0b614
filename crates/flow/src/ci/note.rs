//! The comment on a merge request of GitLab.

use super::ReportRequest;
use crate::ci_job::variable;
use crate::error::FlowError;
use holdpoint_ci::gitlab::{Client, GitLabError};
use holdpoint_render::markdown::comment;
use serde_json::{Value, json};

/// The variable with the token that comments.
const TOKEN: &str = "HOLDPOINT_GITLAB_TOKEN";

/// Writes the note of the merge request, and says what became of it.
pub fn post(request: &ReportRequest, body: &str) -> Result<Value, FlowError> {
    let wanted = |name: &str| {
        variable(name).ok_or_else(|| FlowError::Input(format!("the environment variable {name} is not set")))
    };
    let client =
        Client::new(&wanted("CI_API_V4_URL")?, &wanted("CI_PROJECT_ID")?, &wanted(TOKEN)?).map_err(of_api)?;
    let number =
        match (variable("CI_MERGE_REQUEST_IID").and_then(|number| number.parse().ok()), request.sha()) {
            (Some(number), _) => Some(number),
            // Started by hand: it goes where the commit is the head now.
            (None, Some(sha)) => client.merge_request_at(sha).map_err(of_api)?,
            (None, None) => None,
        };
    let Some(number) = number else {
        return Ok(
            json!({"posted": null, "said": "nothing was posted: no open merge request has this head"}),
        );
    };
    let word = if client.post(number, &comment::marker(&request.key), body).map_err(of_api)? {
        "created"
    } else {
        "updated"
    };
    Ok(
        json!({"posted": word, "merge_request": number, "said": format!("comment {word} on merge request {number}")}),
    )
}

fn of_api(error: GitLabError) -> FlowError {
    match error {
        GitLabError::Setting(what) => FlowError::Input(what),
        error => FlowError::Internal(error.to_string()),
    }
}
