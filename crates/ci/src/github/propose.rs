//! A pull request from a branch of this repository.

use super::{ApiError, Client, parse};
use crate::redact::encode_percent;
use serde_json::{Value, json};

impl Client {
    /// Makes the open pull request of a branch say this: the one there is, or a new one into the default branch. Its number.
    pub fn propose(&self, branch: &str, title: &str, body: &str) -> Result<u64, ApiError> {
        let repository = &self.repository;
        let owner = repository.split('/').next().unwrap_or_default();
        let head = encode_percent(&format!("{owner}:{branch}"));
        let open = self.list(&format!("/repos/{repository}/pulls?state=open&head={head}"))?;
        let is_ours = |pull: &&Value| pull.pointer("/head/ref").and_then(Value::as_str) == Some(branch);
        let old = open.iter().find(is_ours).and_then(|pull| pull.get("number")?.as_u64());
        let (method, place, text) = match old {
            Some(number) => (
                "PATCH",
                format!("/repos/{repository}/pulls/{number}"),
                json!({"title": title, "body": body}),
            ),
            None => {
                let place = format!("/repos/{repository}");
                let about = self.get(&place)?;
                let Some(base) = about.get("default_branch").and_then(Value::as_str) else {
                    return Err(ApiError::Strange { place, what: "no default branch".to_owned() });
                };
                let text = json!({"title": title, "body": body, "head": branch, "base": base});
                ("POST", format!("/repos/{repository}/pulls"), text)
            }
        };
        let answer = parse(&self.ask(method, &place, Some(&text))?, &place)?;
        let number = answer.get("number").and_then(Value::as_u64);
        number.ok_or_else(|| ApiError::Strange { place, what: "no number".to_owned() })
    }
}
