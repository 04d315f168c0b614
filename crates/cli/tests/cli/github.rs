//! GitHub with one pull request and its comments.

use crate::server::{Reply, Server};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// The comments that are there.
pub type Comments = Arc<Mutex<Vec<Value>>>;

/// A server that has the pull request `pull` in `repository`.
pub fn github(repository: &str, pull: Value) -> (Server, Comments) {
    let comments = Comments::default();
    let kept = Arc::clone(&comments);
    let pulls = format!("/repos/{repository}/pulls");
    let one = format!("{pulls}/{}", pull["number"]);
    let comments_path = format!("/repos/{repository}/issues/{}/comments", pull["number"]);
    let server = Server::start(move |request, _| {
        let mut comments = kept.lock().unwrap();
        match (request.method.as_str(), request.path()) {
            ("GET", "/user") => {
                Reply::json(403, json!({"message": "Resource not accessible by integration"}))
            }
            ("GET", path) if path == one => Reply::json(200, pull.clone()),
            ("GET", path) if path == pulls => Reply::json(200, json!([pull])),
            ("GET", path) if path == comments_path => Reply::json(200, json!(*comments)),
            ("GET", _) => Reply::json(404, json!({"message": "Not Found"})),
            (method, _) => {
                let user = json!({"login": "github-actions[bot]", "type": "Bot"});
                let comment = json!({"id": 1, "user": user, "body": request.json()["body"]});
                assert_eq!(method == "POST", comments.is_empty());
                *comments = vec![comment.clone()];
                Reply::json(if method == "POST" { 201 } else { 200 }, comment)
            }
        }
    });
    (server, comments)
}
