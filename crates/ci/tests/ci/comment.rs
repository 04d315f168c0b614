//! The comment: created, updated in place, and everything that can come in between.

use crate::server::{Reply, Request, Server};
use holdpoint_ci::github::{ApiError, Author, Client, Event, Posted, Resolved, Unposted};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SHA: &str = "0123456789abcdef0123456789abcdef01234567";
const NEW_SHA: &str = "fedcba9876543210fedcba9876543210fedcba98";
/// The repository that a run's head is in.
const FORK: u64 = 9;
const MARKER: &str = "<!-- holdpoint:comment:x -->";
const COMMENTS: &str = "/repos/o/r/issues/7/comments";

/// GitHub, as far as it is needed: pull request 7 with its comments.
#[derive(Default)]
struct Hub {
    comments: Vec<Value>,
    per_page: usize,
}

impl Hub {
    fn answer(&mut self, request: &Request) -> Reply {
        match (request.method.as_str(), request.path()) {
            ("GET", "/user") => {
                Reply::json(403, json!({"message": "Resource not accessible by integration"}))
            }
            ("GET", "/repos/o/r/pulls/7") => Reply::json(200, pull(7, "open", SHA, "o/r")),
            ("GET", COMMENTS) => self.page(&request.target),
            ("POST", COMMENTS) => {
                let id = self.comments.len() as u64 + 1;
                self.comments.push(comment(
                    id,
                    "github-actions[bot]",
                    "Bot",
                    request.json()["body"].as_str().unwrap(),
                ));
                Reply::json(201, self.comments[id as usize - 1].clone())
            }
            ("PATCH", path) => {
                let id: u64 = path.rsplit('/').next().unwrap().parse().unwrap();
                let found = self.comments.iter_mut().find(|comment| comment["id"] == id).unwrap();
                found["body"] = request.json()["body"].clone();
                Reply::json(200, found.clone())
            }
            other => panic!("nobody asks for {other:?}"),
        }
    }

    fn page(&self, target: &str) -> Reply {
        let number = |key: &str| {
            let value = target.split(['?', '&']).find_map(|pair| pair.strip_prefix(key));
            value.and_then(|value| value.parse::<usize>().ok()).unwrap()
        };
        assert_eq!(number("per_page="), 100);
        let per_page = if self.per_page == 0 { 100 } else { self.per_page };
        let pages: Vec<&[Value]> = self.comments.chunks(per_page).collect();
        let page = number("page=");
        let reply = Reply::json(200, json!(pages.get(page - 1).copied().unwrap_or_default()));
        if page < pages.len() {
            // Not to be followed: it leads elsewhere.
            reply.with("Link", "<https://evil.example/?page=2>; rel=\"next\", <https://x>; rel=\"last\"")
        } else {
            reply
        }
    }
}

fn comment(id: u64, login: &str, kind: &str, body: &str) -> Value {
    json!({"id": id, "body": body, "user": {"login": login, "type": kind}})
}

fn pull(number: u64, state: &str, sha: &str, base: &str) -> Value {
    let head = json!({"sha": sha, "repo": {"id": FORK}});
    json!({"number": number, "state": state, "head": head, "base": {"repo": {"full_name": base}}})
}

/// The hub, with something in the way of some requests.
fn hub(
    hub: Hub,
    before: impl Fn(&Request, usize) -> Option<Reply> + Send + 'static,
) -> (Server, Arc<Mutex<Hub>>) {
    let hub = Arc::new(Mutex::new(hub));
    let shared = Arc::clone(&hub);
    let server = Server::start(move |request, count| {
        before(request, count).unwrap_or_else(|| shared.lock().unwrap().answer(request))
    });
    (server, hub)
}

/// A client that does not wait, and what it would have waited.
fn client(server: &Server) -> (Client, Rc<RefCell<Vec<u64>>>) {
    let waits: Rc<RefCell<Vec<u64>>> = Rc::default();
    let kept = Rc::clone(&waits);
    let pause = move |wait: Duration| kept.borrow_mut().push(wait.as_secs());
    (Client::new(&server.url, "o/r", "t0ken", pause).unwrap(), waits)
}

fn post(client: &Client, body: &str) -> Result<(Posted, usize), ApiError> {
    let author = client.author()?;
    client.post(7, MARKER, &author, &format!("{MARKER}\n{body}"))
}

fn count(server: &Server, method: &str) -> usize {
    server.requests().iter().filter(|request| request.method == method).count()
}

#[test]
fn it_is_created_once_and_then_updated_in_place() {
    let (server, hub) = hub(Hub::default(), |_, _| None);
    let (client, waits) = client(&server);
    assert_eq!(post(&client, "one").unwrap(), (Posted::Created, 0));
    assert_eq!(post(&client, "two").unwrap(), (Posted::Updated, 0));
    assert_eq!(post(&client, "two").unwrap(), (Posted::Unchanged, 0));
    let comments = &hub.lock().unwrap().comments;
    assert_eq!(comments.len(), 1);
    assert_eq!(comments[0]["body"], format!("{MARKER}\ntwo"));
    assert_eq!((count(&server, "POST"), count(&server, "PATCH")), (1, 1));
    assert!(waits.borrow().is_empty());
    for request in server.requests() {
        assert_eq!(request.header("authorization"), Some("Bearer t0ken"));
        assert_eq!(request.header("x-github-api-version"), Some("2022-11-28"));
        assert!(request.header("user-agent").unwrap().starts_with("holdpoint/"));
    }
}

#[test]
fn it_is_found_on_a_later_page_and_the_oldest_counts() {
    let mut comments: Vec<Value> = (1..=5).map(|id| comment(id, "ada", "User", "hello")).collect();
    comments.push(comment(6, "github-actions[bot]", "Bot", &format!("\n{MARKER}\nold")));
    comments.push(comment(7, "github-actions[bot]", "Bot", &format!("{MARKER}\nnewer")));
    let (server, hub) = hub(Hub { comments, per_page: 2 }, |_, _| None);
    assert_eq!(post(&client(&server).0, "now").unwrap(), (Posted::Updated, 0));
    let comments = &hub.lock().unwrap().comments;
    assert_eq!((&comments[5]["body"], comments.len()), (&json!(format!("{MARKER}\nnow")), 7));
    assert_eq!(comments[6]["body"], format!("{MARKER}\nnewer"));
}

#[test]
fn a_forged_marker_is_left_alone() {
    let comments = vec![
        comment(1, "mallory", "User", &format!("{MARKER}\nall is well")),
        comment(2, "github-actions[bot]", "User", &format!("{MARKER}\na user of that name")),
        comment(3, "other[bot]", "Bot", &format!("{MARKER}\nanother app")),
        comment(4, "github-actions[bot]", "Bot", &format!("quoted: {MARKER}")),
        comment(5, "github-actions[bot]", "Bot", "<!-- holdpoint:comment:xx -->\nanother key"),
    ];
    let before = comments.clone();
    let (server, hub) = hub(Hub { comments, per_page: 0 }, |_, _| None);
    assert_eq!(post(&client(&server).0, "mine").unwrap(), (Posted::Created, 3));
    assert_eq!(hub.lock().unwrap().comments[..5], before);
}

#[test]
fn whoever_the_token_belongs_to_owns_the_comment() {
    let comments = vec![comment(1, "github-actions[bot]", "Bot", MARKER), comment(2, "Ada", "User", MARKER)];
    let (server, hub) = hub(Hub { comments, per_page: 0 }, |request, _| {
        (request.path() == "/user").then(|| Reply::json(200, json!({"login": "ada"})))
    });
    let (client, _) = client(&server);
    assert_eq!(client.author().unwrap(), Author::Login("ada".to_owned()));
    assert_eq!(post(&client, "mine").unwrap(), (Posted::Updated, 1));
    assert_eq!(hub.lock().unwrap().comments[0]["body"], MARKER);
}

#[test]
fn retry_after_is_honoured_up_to_a_bound() {
    let limited = |seconds: &'static str| {
        move |request: &Request, count: usize| {
            (request.path() == COMMENTS && request.method == "GET" && count < 2)
                .then(|| Reply::json(429, json!({"message": "slow down"})).with("Retry-After", seconds))
        }
    };
    let (server, _) = hub(Hub::default(), limited("7"));
    let (client_7, waits) = client(&server);
    assert_eq!(post(&client_7, "x").unwrap().0, Posted::Created);
    assert_eq!(*waits.borrow(), [7]);
    let (server, _) = hub(Hub::default(), limited("3600"));
    let (client_3600, waits) = client(&server);
    let error = post(&client_3600, "x").unwrap_err();
    assert!(error.to_string().contains("429") && error.to_string().contains("wait for 3600 s"), "{error}");
    assert!(waits.borrow().is_empty() && !error.is_input());
}

#[test]
fn a_403_for_the_rate_limit_is_waited_for_and_any_other_names_the_permission() {
    let (server, _) = hub(Hub::default(), |request, count| {
        (request.path() == COMMENTS && count < 2).then(|| {
            let reply = Reply::json(403, json!({"message": "You have exceeded a secondary rate limit"}));
            if count == 1 {
                reply
            } else {
                reply.with("x-ratelimit-remaining", "0").with("x-ratelimit-reset", "1")
            }
        })
    });
    let (limited, waits) = client(&server);
    assert_eq!(post(&limited, "x").unwrap().0, Posted::Created);
    assert_eq!(*waits.borrow(), [2]);
    let (server, _) = hub(Hub::default(), |request, _| {
        (request.method == "POST").then(|| {
            Reply::json(403, json!({"message": "Resource not accessible by integration"}))
                .with("x-accepted-github-permissions", "issues=write; pull_requests=write")
        })
    });
    let (refused, waits) = client(&server);
    let error = post(&refused, "x").unwrap_err();
    let text = error.to_string();
    for word in
        ["403", "Resource not accessible", "pull_requests=write", "pull-requests: write", "workflow_run"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(error.is_input() && waits.borrow().is_empty() && count(&server, "POST") == 1);
}

#[test]
fn other_refusals_say_what_to_do() {
    for (status, words) in
        [(401, "GITHUB_TOKEN is not valid"), (404, "GITHUB_REPOSITORY"), (301, "has moved")]
    {
        let (server, _) = hub(Hub::default(), move |request, _| {
            (request.path() == COMMENTS).then(|| {
                Reply::json(status, json!({"message": "no"})).with("Location", "http://127.0.0.1:9/")
            })
        });
        let (client, _) = client(&server);
        let error = client.post(7, MARKER, &Author::Workflow, "x").unwrap_err();
        assert!(error.to_string().contains(words) && error.is_input(), "{error}");
        assert!(!error.to_string().contains("t0ken"));
    }
}

#[test]
fn a_host_that_repeats_the_token_is_not_repeated() {
    // In JSON a letter may be written as its number.
    for said in
        [r#"{"message": "bad t0ken"}"#, r#"{"message": "bad t\u0030ken"}"#, r#"{"message": "bad dDBrZW4="}"#]
    {
        let (server, _) = hub(Hub::default(), move |_, _| Some(Reply::text(401, said)));
        let error = client(&server).0.post(7, MARKER, &Author::Workflow, "x").unwrap_err().to_string();
        assert!(error.contains("bad …") && !error.contains("t0ken") && !error.contains("dDBr"), "{error}");
    }
    let pull = json!({"state": "open", "head": {"sha": "the token is: t0ken"}});
    let (server, _) = hub(Hub::default(), move |_, _| Some(Reply::json(200, pull.clone())));
    assert!(matches!(client(&server).0.pull(7, Some("abc")), Err(ApiError::Strange { .. })));
}

#[test]
fn a_host_that_sends_a_byte_now_and_then_is_given_up() {
    let port = crate::smtp::drip(b"HTTP/1.1 200 X\r\ncontent-length: 99999\r\n\r\n");
    let client = Client::new(&format!("http://127.0.0.1:{port}"), "o/r", "t0ken", |_| ()).unwrap();
    let began = std::time::Instant::now();
    let error = client.within(Duration::from_secs(1)).pull(7, None).unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(20), "it hangs");
    assert!(matches!(error, ApiError::Unreachable { .. }), "{error}");
}

#[test]
fn a_422_says_what_is_wrong() {
    let errors =
        json!([{"field": "body", "code": "invalid"}, "too\u{1b} long", {"message": "Body is too long"}]);
    let (server, _) = hub(Hub::default(), move |request, _| {
        let answer = json!({"message": "Validation Failed", "errors": errors});
        (request.method == "POST").then(|| Reply::json(422, answer))
    });
    let error = client(&server).0.post(7, MARKER, &Author::Workflow, "x").unwrap_err().to_string();
    assert!(error.contains("Validation Failed; body: invalid; too long; Body is too long"), "{error}");
}

#[test]
fn a_500_is_tried_again_and_never_makes_two_comments() {
    // It says 500, and yet the comment was made.
    let hub = Arc::new(Mutex::new(Hub::default()));
    let shared = Arc::clone(&hub);
    let server = Server::start(move |request, _| {
        let reply = shared.lock().unwrap().answer(request);
        if request.method == "POST" { Reply::json(500, json!({"message": "oops"})) } else { reply }
    });
    let (flaky, waits) = client(&server);
    assert_eq!(post(&flaky, "x").unwrap().0, Posted::Unchanged);
    assert_eq!((hub.lock().unwrap().comments.len(), waits.borrow().len()), (1, 1));
}

#[test]
fn five_times_500_is_given_up_with_growing_waits() {
    let (server, _) = hub(Hub::default(), |request, _| {
        (request.path() == COMMENTS).then(|| Reply::json(503, json!({"message": "tired"})))
    });
    let (client, waits) = client(&server);
    let error = client.post(7, MARKER, &Author::Workflow, "x").unwrap_err();
    assert!(error.to_string().contains("503") && error.to_string().contains("tired"), "{error}");
    assert_eq!((waits.borrow().clone(), error.is_input()), (vec![2, 4, 8, 16], false));
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn a_host_that_is_not_there_or_talks_nonsense_is_told_of() {
    let mut nowhere = Server::start(|_, _| unreachable!());
    nowhere.url = "http://127.0.0.1:1".to_owned();
    let (client, waits) = client(&nowhere);
    let error = client.author().unwrap_err();
    assert!(error.to_string().contains("could not be reached") && !error.is_input(), "{error}");
    assert_eq!(waits.borrow().len(), 4);
    let server = Server::start(|_, _| Reply::json(200, json!({"not": "a list"})));
    let (client, _) = self::client(&server);
    assert!(matches!(client.post(7, MARKER, &Author::Workflow, "x"), Err(ApiError::Strange { .. })));
}

#[test]
fn a_pull_request_that_moved_on_or_was_closed_is_not_commented_on() {
    let answer = Arc::new(Mutex::new(pull(7, "open", SHA, "o/r")));
    let shared = Arc::clone(&answer);
    let server = Server::start(move |_, _| Reply::json(200, shared.lock().unwrap().clone()));
    let (client, _) = client(&server);
    let event = Event::PullRequest { number: 7, head_sha: SHA.to_owned() };
    assert_eq!(client.resolve(&event, None).unwrap(), Ok(Resolved { number: 7, head_sha: SHA.to_owned() }));
    *answer.lock().unwrap() = pull(7, "open", NEW_SHA, "o/r");
    let moved = Unposted::Moved { number: 7, is: NEW_SHA.to_owned(), was: SHA.to_owned() };
    assert_eq!(client.resolve(&event, None).unwrap(), Err(moved.clone()));
    assert_eq!(client.resolve(&Event::Comment { number: 7 }, Some(SHA)).unwrap(), Err(moved));
    assert!(client.resolve(&Event::Comment { number: 7 }, None).unwrap().is_ok());
    *answer.lock().unwrap() = pull(7, "closed", SHA, "o/r");
    assert_eq!(client.resolve(&event, None).unwrap(), Err(Unposted::Closed(7)));
}

/// What GitHub knows of the commit, and of the branch of a fork.
fn resolve_run(by_commit: Reply, by_branch: Value) -> (Result<Resolved, Unposted>, Vec<Request>) {
    let by_commit = Mutex::new(Some(by_commit));
    let server = Server::start(move |request, _| match request.path() {
        "/repos/o/r/pulls" => Reply::json(200, by_branch.clone()),
        _ => by_commit.lock().unwrap().take().unwrap(),
    });
    let event = Event::WorkflowRun {
        head_sha: SHA.to_owned(),
        head_branch: "feature/a&b=c".to_owned(),
        head_owner: "mallory".to_owned(),
        head_repository_id: FORK,
    };
    let resolved = client(&server).0.resolve(&event, None).unwrap();
    (resolved, server.requests())
}

#[test]
fn the_pull_request_of_a_run_is_looked_up_by_commit_and_branch() {
    let resolved = || Ok(Resolved { number: 7, head_sha: SHA.to_owned() });
    let open = || pull(7, "open", SHA, "o/r");
    assert_eq!(resolve_run(Reply::json(200, json!([open()])), json!([])).0, resolved());
    // A fork's commit is not known by itself.
    let (found, requests) =
        resolve_run(Reply::json(422, json!({"message": "No commit found"})), json!([open()]));
    assert_eq!(found, resolved());
    assert_eq!(
        requests[1].target,
        "/repos/o/r/pulls?state=open&head=mallory%3Afeature%2Fa%26b%3Dc&per_page=100&page=1"
    );
    assert_eq!(resolve_run(Reply::json(200, json!([open()])), json!([open()])).0, resolved());
}

#[test]
fn a_run_without_one_open_pull_request_at_its_commit_posts_nothing() {
    let none = || Reply::json(404, json!({}));
    for others in [
        json!([]),
        json!([pull(7, "open", NEW_SHA, "o/r")]),
        json!([pull(7, "closed", SHA, "o/r")]),
        json!([pull(7, "open", SHA, "mallory/r")]),
    ] {
        assert_eq!(resolve_run(none(), others).0, Err(Unposted::NoneAt(SHA.to_owned())));
    }
    // Somebody else's pull request at the same commit: the run was started by one that is closed by now.
    for repository in [json!({"id": 1}), Value::Null] {
        let mut victim = pull(7, "open", SHA, "o/r");
        victim["head"]["repo"] = repository;
        let found = resolve_run(Reply::json(200, json!([victim])), json!([])).0;
        assert_eq!(found, Err(Unposted::NoneAt(SHA.to_owned())));
    }
    let two = json!([pull(7, "open", SHA, "o/r"), pull(8, "open", SHA, "O/R")]);
    assert!(matches!(resolve_run(none(), two).0, Err(Unposted::Several { .. })));
}

#[test]
fn a_token_is_not_sent_in_the_clear_nor_to_a_strange_place() {
    for (url, repository, token) in [
        ("http://api.github.com", "o/r", "t"),
        ("https://api.github.com", "o", "t"),
        ("https://api.github.com", "../r", "t"),
        ("https://api.github.com", "o/r/../x", "t"),
        ("https://api.github.com", "o/r", ""),
        ("https://api.github.com", "o/r", "a\nb"),
    ] {
        assert!(Client::new(url, repository, token, |_| ()).is_err(), "{url} {repository}");
    }
}
