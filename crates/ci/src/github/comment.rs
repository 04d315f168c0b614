//! One comment, found again and updated in place.

use super::{ApiError, Client, parse};
use serde_json::{Value, json};

/// The author of our comments: anybody can write the hidden line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Author {
    /// A user or an app.
    Login(String),
    /// The token of a workflow, which may not ask for its own name.
    Workflow,
}

/// The user that comments with a workflow's own token.
const WORKFLOW_LOGIN: &str = "github-actions[bot]";

impl Author {
    fn wrote(&self, comment: &Value) -> bool {
        let login = comment.pointer("/user/login").and_then(Value::as_str).unwrap_or_default();
        match self {
            Self::Login(own) => login.eq_ignore_ascii_case(own),
            Self::Workflow => {
                let kind = comment.pointer("/user/type").and_then(Value::as_str);
                login == WORKFLOW_LOGIN && kind == Some("Bot")
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Posted {
    Created,
    Updated,
    Unchanged,
}

/// A comment of ours, and how many others carry its mark.
struct Found {
    own: Option<(u64, String)>,
    forged_count: usize,
}

impl Client {
    /// The user that comments with this token.
    pub fn author(&self) -> Result<Author, ApiError> {
        match self.get("/user") {
            Ok(user) => match user.get("login").and_then(Value::as_str) {
                Some(login) => Ok(Author::Login(login.to_owned())),
                None => Ok(Author::Workflow),
            },
            // The token of an installation is nobody's.
            Err(error) if matches!(error.status(), Some(403 | 404)) && !error.is_temporary() => {
                Ok(Author::Workflow)
            }
            Err(error) => Err(error),
        }
    }

    /// Makes the comment that carries the marker say this: the one there is, or a new one. Also how many comments of others
    /// carry it.
    pub fn post(
        &self,
        number: u64,
        marker: &str,
        author: &Author,
        body: &str,
    ) -> Result<(Posted, usize), ApiError> {
        let mut attempt = 0;
        loop {
            // Looked for before each attempt: one that seemed to fail may have made it.
            let Found { own, forged_count } = self.find(number, marker, author)?;
            let (method, place, posted) = match own {
                Some((_, old)) if old == body => return Ok((Posted::Unchanged, forged_count)),
                Some((id, _)) => ("PATCH", format!("comments/{id}"), Posted::Updated),
                None => ("POST", format!("{number}/comments"), Posted::Created),
            };
            let place = format!("/repos/{}/issues/{place}", self.repository);
            let answer = self.ask(method, &place, Some(&json!({ "body": body })));
            let outcome = answer.and_then(|answer| {
                if posted == Posted::Created {
                    parse(&answer, &place)?;
                }
                Ok(posted)
            });
            match outcome {
                Err(error) if error.is_temporary() => self.wait_after(error, &mut attempt)?,
                outcome => return Ok((outcome?, forged_count)),
            }
        }
    }

    /// Finds our oldest comment that begins with the marker.
    fn find(&self, number: u64, marker: &str, author: &Author) -> Result<Found, ApiError> {
        let comments = self.list(&format!("/repos/{}/issues/{number}/comments", self.repository))?;
        let mut found = Found { own: None, forged_count: 0 };
        for comment in &comments {
            let body = comment.get("body").and_then(Value::as_str).unwrap_or_default();
            if !body.trim_start().starts_with(marker) {
                continue;
            }
            match comment.get("id").and_then(Value::as_u64) {
                Some(id) if author.wrote(comment) => {
                    found.own.get_or_insert((id, body.to_owned()));
                }
                _ => found.forged_count += 1,
            }
        }
        Ok(found)
    }
}
