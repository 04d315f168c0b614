//! GitHub's API, with retries, and with the missing permission named in errors.

mod check;
mod comment;
mod error;
mod event;
mod propose;
mod pulls;

pub use check::Check;
pub use comment::{Author, Posted};
pub use error::ApiError;
pub use event::{Event, EventError};
pub use pulls::{Resolved, Unposted};

use crate::http::{self, Answer, Deadline, NoAnswer, Request};
use crate::redact::Secrets;
use serde_json::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use ureq::Agent;

const ATTEMPTS_MAX: u32 = 5;
/// The longest wait that is accepted; a host that asks for more is given up on.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(60);
/// Limit for all requests of a client, waits included: four waits of a minute, and a minute for the answers.
const TOTAL_MAX: Duration = Duration::from_secs(300);
const PAGES_MAX: u32 = 100;

pub struct Client {
    api_url: String,
    repository: String,
    token: String,
    agent: Agent,
    secrets: Secrets,
    deadline: Deadline,
    pause: Box<dyn Fn(Duration)>,
}

impl Client {
    /// A client for `owner/name` at an address such as `https://api.github.com`. Waiting is the caller's business.
    pub fn new(
        api_url: &str,
        repository: &str,
        token: &str,
        pause: impl Fn(Duration) + 'static,
    ) -> Result<Self, ApiError> {
        let is_part = |part: &str| {
            let is_usable = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
            !part.is_empty() && part.chars().all(is_usable) && !part.chars().all(|c| c == '.')
        };
        let is_repository =
            repository.split_once('/').is_some_and(|(owner, name)| is_part(owner) && is_part(name));
        let token = token.trim();
        if !http::is_private(api_url) {
            return Err(ApiError::Setting("GITHUB_API_URL must begin with https://".to_owned()));
        }
        if !is_repository {
            return Err(ApiError::Setting("GITHUB_REPOSITORY must be owner/name".to_owned()));
        }
        if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
            return Err(ApiError::Setting("GITHUB_TOKEN is empty, or no token".to_owned()));
        }
        let mut secrets = Secrets::default();
        secrets.add(token);
        Ok(Self {
            secrets,
            deadline: Deadline::after(TOTAL_MAX),
            api_url: api_url.trim_end_matches('/').to_owned(),
            repository: repository.to_owned(),
            token: token.to_owned(),
            agent: http::agent(api_url),
            pause: Box::new(pause),
        })
    }

    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The same client with another limit for all its requests.
    pub fn within(self, limit: Duration) -> Self {
        Self { deadline: Deadline::after(limit), ..self }
    }

    /// Sends one request to a place below the API's root.
    fn ask(&self, method: &str, place: &str, body: Option<&Value>) -> Result<Answer, ApiError> {
        let (url, bearer) = (format!("{}{place}", self.api_url), format!("Bearer {}", self.token));
        let headers = [
            ("accept", "application/vnd.github+json"),
            ("x-github-api-version", "2022-11-28"),
            ("authorization", bearer.as_str()),
        ];
        let body = body.map(Value::to_string);
        let request = Request {
            method,
            url: &url,
            headers: &headers,
            body: body.as_deref(),
            secrets: &self.secrets,
            deadline: self.deadline,
        };
        let answer = http::send(&self.agent, &request).map_err(|error| match error {
            NoAnswer::Setting(what) => ApiError::Setting(format!("GITHUB_API_URL cannot be used: {what}")),
            NoAnswer::Failed(what) => ApiError::Unreachable { place: place.to_owned(), what },
        })?;
        error::check(answer, place, &self.secrets)
    }

    /// Sends a request that may be sent twice, with retries.
    fn ask_with_retries(&self, method: &str, place: &str, body: Option<&Value>) -> Result<Answer, ApiError> {
        let mut attempt = 0;
        loop {
            match self.ask(method, place, body) {
                Err(error) if error.is_temporary() => self.wait_after(error, &mut attempt)?,
                outcome => return outcome,
            }
        }
    }

    /// Waits as long as the answer asks for, or longer each time; gives up where that is too long or was tried often enough.
    fn wait_after(&self, error: ApiError, attempt: &mut u32) -> Result<(), ApiError> {
        *attempt += 1;
        if *attempt >= ATTEMPTS_MAX {
            return Err(error);
        }
        let wait = error.requested_wait(now_s()).unwrap_or(Duration::from_secs(1 << *attempt));
        if wait > WAIT_MAX.min(self.deadline.left()) {
            return Err(error);
        }
        (self.pause)(wait);
        Ok(())
    }

    fn get(&self, place: &str) -> Result<Value, ApiError> {
        parse(&self.ask_with_retries("GET", place, None)?, place)
    }

    /// Reads every element of a list, page by page.
    fn list(&self, place: &str) -> Result<Vec<Value>, ApiError> {
        let mut all = Vec::new();
        for page in 1..=PAGES_MAX {
            let and = if place.contains('?') { '&' } else { '?' };
            let place = format!("{place}{and}per_page=100&page={page}");
            let answer = self.ask_with_retries("GET", &place, None)?;
            let Value::Array(elements) = parse(&answer, &place)? else {
                return Err(ApiError::Strange { place, what: "not a list".to_owned() });
            };
            all.extend(elements);
            // The address in the header is not followed: the next page is this list's.
            if !answer.header("link").is_some_and(|link| link.contains("rel=\"next\"")) {
                break;
            }
        }
        Ok(all)
    }
}

fn parse(answer: &Answer, place: &str) -> Result<Value, ApiError> {
    serde_json::from_str(&answer.body)
        .map_err(|error| ApiError::Strange { place: place.to_owned(), what: error.to_string() })
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
