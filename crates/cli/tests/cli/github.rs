//! GitHub with one pull request, its comments, and what else is written there.

use crate::server::{Reply, Server};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

pub type Kept = Arc<Mutex<Vec<Value>>>;

/// Everything that was written.
#[derive(Clone, Default)]
pub struct Written {
    /// The comments that are there.
    pub comments: Kept,
    /// Checks that were set.
    pub checks: Kept,
    /// Pull requests that were opened or changed.
    #[allow(dead_code, reason = "one of the two tests that share this looks at it")]
    pub proposals: Kept,
}

/// A server that has the pull request `pull` in `repository`.
pub fn github(repository: &str, pull: Value) -> (Server, Written) {
    let written = Written::default();
    let kept = written.clone();
    let about = format!("/repos/{repository}");
    let (pulls, checks) = (format!("{about}/pulls"), format!("{about}/check-runs"));
    let one = format!("{pulls}/{}", pull["number"]);
    let comments_path = format!("{about}/issues/{}/comments", pull["number"]);
    let server = Server::start(move |request, _| {
        let mut comments = kept.comments.lock().unwrap();
        match (request.method.as_str(), request.path()) {
            ("GET", "/user") => {
                Reply::json(403, json!({"message": "Resource not accessible by integration"}))
            }
            ("GET", path) if path == about => Reply::json(200, json!({"default_branch": "main"})),
            ("GET", path) if path == one => Reply::json(200, pull.clone()),
            ("GET", path) if path == pulls => Reply::json(200, json!([pull])),
            ("GET", path) if path == comments_path => Reply::json(200, json!(*comments)),
            ("GET", _) => Reply::json(404, json!({"message": "Not Found"})),
            ("POST", path) if path == checks => {
                kept.checks.lock().unwrap().push(request.json());
                Reply::json(201, json!({"id": 5}))
            }
            ("POST", path) if path == pulls => {
                kept.proposals.lock().unwrap().push(request.json());
                Reply::json(201, json!({"number": 43}))
            }
            (method, _) => {
                let user = json!({"login": "github-actions[bot]", "type": "Bot"});
                let comment = json!({"id": 1, "user": user, "body": request.json()["body"]});
                assert_eq!(method == "POST", comments.is_empty());
                *comments = vec![comment.clone()];
                Reply::json(if method == "POST" { 201 } else { 200 }, comment)
            }
        }
    });
    (server, written)
}
