//! Slack and other programs that take JSON by HTTP.

use super::{ATTEMPTS_MAX, Environment, Job, Message, NotifyError, Pause, wait_after};
use crate::http::{self, Answer, Deadline, NoAnswer, Request};
use crate::redact::Secrets;
use hmac::{Hmac, KeyInit, Mac};
use holdpoint_model::notify::{SlackTarget, WebhookTarget};
use serde_json::json;
use sha2::Sha256;
use std::sync::Arc;
use std::time::Duration;

/// Characters of a server's answer that are shown.
const ANSWER_CHARS: usize = 200;

struct Post {
    url: String,
    headers: Vec<(&'static str, String)>,
    body: String,
    secrets: Secrets,
    pause: Pause,
}

pub(super) fn prepare_slack(
    target: &SlackTarget,
    message: Message<'_>,
    environment: &Environment<'_>,
) -> Result<Job, NotifyError> {
    let url = environment.secret(&target.url_env)?;
    let body =
        json!({"text": message.slack, "unfurl_links": false, "unfurl_media": false, "link_names": false});
    post(url, Vec::new(), body.to_string(), Secrets::default(), environment)
}

pub(super) fn prepare(
    target: &WebhookTarget,
    message: Message<'_>,
    environment: &Environment<'_>,
) -> Result<Job, NotifyError> {
    let url = match (&target.url, &target.url_env) {
        (Some(url), _) => url.clone(),
        (None, Some(name)) => environment.secret(name)?,
        (None, None) => return Err(NotifyError::Setting("it has no address".to_owned())),
    };
    let body =
        serde_json::to_string(message.notice).map_err(|error| NotifyError::Failed(error.to_string()))?;
    let (mut headers, mut secrets) = (Vec::new(), Secrets::default());
    if let Some(name) = &target.token_env {
        let token = environment.secret(name)?;
        check(None, Some(&token))?;
        secrets.add(&token);
        headers.push(("authorization", format!("Bearer {token}")));
    }
    if let Some(name) = &target.secret_env {
        let key = environment.secret(name)?;
        let signature = signature(&key, &body);
        [&key, &signature].into_iter().for_each(|secret| secrets.add(secret));
        headers.push(("x-holdpoint-signature-256", format!("sha256={signature}")));
    }
    post(url, headers, body, secrets, environment)
}

fn post(
    url: String,
    headers: Vec<(&'static str, String)>,
    body: String,
    mut secrets: Secrets,
    environment: &Environment<'_>,
) -> Result<Job, NotifyError> {
    check(Some(&url), None)?;
    // The address may be a secret, or a part of it.
    secrets.add_url(&url);
    let post = Post { url, headers, body, secrets, pause: Arc::clone(&environment.pause) };
    Ok(Box::new(move |deadline| post.send(deadline)))
}

/// HMAC-SHA-256 of the body, in hex.
fn signature(key: &str, body: &str) -> String {
    // A key of any length will do.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key.as_bytes()) else { return String::new() };
    mac.update(body.as_bytes());
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Checks an address and a token, where they are known.
pub(super) fn check(url: Option<&str>, token: Option<&str>) -> Result<(), NotifyError> {
    if url.is_some_and(|url| !http::is_private(url)) {
        return Err(NotifyError::Setting("its address must begin with https://".to_owned()));
    }
    if url.is_some_and(|url| !url.bytes().all(|b| b.is_ascii_graphic())) {
        return Err(NotifyError::Setting("its address is not valid".to_owned()));
    }
    if token.is_some_and(|token| !token.bytes().all(|b| b.is_ascii_graphic())) {
        return Err(NotifyError::Setting(
            "its token is not valid: it contains a space or a line break".to_owned(),
        ));
    }
    Ok(())
}

impl Post {
    fn send(&self, deadline: Deadline) -> Result<(), NotifyError> {
        let agent = http::agent(&self.url);
        let headers: Vec<(&str, &str)> = self.headers.iter().map(|(name, value)| (*name, &**value)).collect();
        let request = Request {
            method: "POST",
            url: &self.url,
            headers: &headers,
            body: Some(&self.body),
            secrets: &self.secrets,
            deadline,
        };
        let mut attempt = 1;
        loop {
            let (what, retry_after_s) = match http::send(&agent, &request) {
                Ok(answer) if (200..300).contains(&answer.status) => return Ok(()),
                Ok(answer) if [429, 502, 503, 504].contains(&answer.status) => {
                    (self.describe(&answer), answer.number("retry-after"))
                }
                Ok(answer) => return Err(NotifyError::Failed(self.describe(&answer))),
                Err(NoAnswer::Setting(what)) => {
                    return Err(NotifyError::Setting(format!(
                        "its address or its token is not valid: {what}"
                    )));
                }
                Err(NoAnswer::Failed(what)) => (what, None),
            };
            let wait = retry_after_s.map_or_else(|| wait_after(attempt), Duration::from_secs);
            if attempt >= ATTEMPTS_MAX || wait >= deadline.left() {
                return Err(NotifyError::Failed(what));
            }
            (self.pause)(wait);
            attempt += 1;
        }
    }

    /// The server's answer, cut short; nothing where it is a web page.
    fn describe(&self, answer: &Answer) -> String {
        let text: String = self.secrets.clean(answer.body.trim()).chars().take(ANSWER_CHARS).collect();
        match text.as_str() {
            "" | "{}" => format!("it answered {}", answer.status),
            page if page.starts_with('<') => format!("it answered {}", answer.status),
            text => format!("it answered {}: {text}", answer.status),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_signature_is_that_of_rfc_4231() {
        let wanted = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(super::signature("Jefe", "what do ya want for nothing?"), wanted);
    }
}
