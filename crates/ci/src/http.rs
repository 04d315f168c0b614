//! One request, one answer; both bounded, and the answer without secrets.

use crate::redact::Secrets;
use std::time::{Duration, Instant};
use ureq::Agent;

const TIMEOUT: Duration = Duration::from_secs(30);
/// Largest answer read: a hundred comments of GitHub's largest size.
const ANSWER_BYTES_MAX: u64 = 32 << 20;

/// A request without an answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// A bad address or header: trying again is of no use.
    #[error("{0}")]
    Setting(String),
    /// Nobody there, or an answer that could not be read.
    #[error("{0}")]
    Failed(String),
}

/// The moment by which requests, waits and further attempts must be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn after(limit: Duration) -> Self {
        Self(Instant::now() + limit)
    }

    /// The time that is left; none is too little for anything.
    pub(crate) fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// A response of any status. Secrets are hidden in it in the forms they were sent; text parsed out of the body must be redacted again.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
    headers: Vec<(String, String)>,
}

impl Answer {
    /// A header by its name in small letters.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.header(name)?.trim().parse().ok()
    }
}

/// An agent that takes no status for an error and follows no redirection: a token goes only to its host. Plain HTTP to this
/// machine uses no proxy, which would read it.
pub(crate) fn agent(url: &str) -> Agent {
    let mut config = Agent::config_builder();
    if !is_tls(url) {
        config = config.proxy(None);
    }
    let config = config
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("holdpoint/", env!("CARGO_PKG_VERSION")));
    config.build().into()
}

/// One request; a body is sent as JSON.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) url: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: Option<&'a str>,
    /// Secrets that the server may repeat in its answers.
    pub(crate) secrets: &'a Secrets,
    pub(crate) deadline: Deadline,
}

/// Sends a request. The limit covers all of it, from the look-up of the name to the last byte of the answer.
pub(crate) fn send(agent: &Agent, request: &Request<'_>) -> Result<Answer, NoAnswer> {
    let Request { method, url, headers, body, secrets, deadline } = *request;
    let describe = |error: &dyn std::fmt::Display| secrets.clean(&error.to_string());
    let limit = deadline.left().min(TIMEOUT);
    if limit.is_zero() {
        return Err(NoAnswer::Failed("no time is left for it".to_owned()));
    }
    let failed = |error: ureq::Error| match error {
        ureq::Error::BadUri(_) | ureq::Error::Http(_) | ureq::Error::InvalidProxyUrl => {
            NoAnswer::Setting(describe(&error))
        }
        error => NoAnswer::Failed(describe(&error)),
    };
    let unusable = |error: ureq::http::Error| NoAnswer::Setting(describe(&error));
    let mut request = ureq::http::Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut response = match body {
        Some(body) => {
            let request = request.header("content-type", "application/json").body(body);
            let request = agent.configure_request(request.map_err(unusable)?);
            agent.run(request.timeout_global(Some(limit)).build())
        }
        None => {
            let request = agent.configure_request(request.body(()).map_err(unusable)?);
            agent.run(request.timeout_global(Some(limit)).build())
        }
    }
    .map_err(failed)?;
    let text = |value: &ureq::http::HeaderValue| secrets.hide(value.to_str().unwrap_or_default());
    let headers =
        response.headers().iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
    Ok(Answer { status, headers, body: secrets.hide(&body.map_err(failed)?) })
}

/// Whether a secret may be sent there: over TLS, or to this very machine.
pub(crate) fn is_private(url: &str) -> bool {
    let rest = match url.split_once("://") {
        Some((_, rest)) if is_tls(url) => return !rest.is_empty(),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
        _ => return false,
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // A user before the host could make it look like this machine.
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    !authority.contains('@') && ["localhost", "127.0.0.1", "[::1]"].contains(&host)
}

fn is_tls(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("https"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_goes_over_tls_or_stays_on_the_machine() {
        for good in [
            "https://api.github.com",
            "HTTPS://api.github.com",
            "http://127.0.0.1:8080/x",
            "http://localhost",
            "http://[::1]:1",
        ] {
            assert!(is_private(good), "{good}");
        }
        for bad in [
            "http://api.github.com",
            "http://localhost@evil.example",
            "http://127.0.0.1.evil",
            "ftp://x",
            "",
            "https://",
        ] {
            assert!(!is_private(bad), "{bad}");
        }
    }
}
