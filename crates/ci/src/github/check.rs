//! The check of a commit.

use super::{ApiError, Client};
use crate::outcome::Conclusion;
use serde_json::json;

pub struct Check<'a> {
    pub name: &'a str,
    pub head_sha: &'a str,
    pub conclusion: Conclusion,
    pub summary: &'a str,
    pub details_url: Option<&'a str>,
}

impl Client {
    /// Sets the check; the newest of a name is the one that counts.
    pub fn set_check(&self, check: &Check) -> Result<(), ApiError> {
        let mut body = json!({
            "name": check.name,
            "head_sha": check.head_sha,
            "status": "completed",
            "conclusion": check.conclusion,
            "output": {"title": check.summary, "summary": check.summary},
        });
        if let Some(url) = check.details_url {
            body["details_url"] = url.into();
        }
        let place = format!("/repos/{}/check-runs", self.repository);
        self.ask_with_retries("POST", &place, Some(&body)).map(|_| ())
    }
}
