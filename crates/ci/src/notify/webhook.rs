//! Slack and other programs that take JSON by HTTP.

use super::{Message, NotTold, World};
use crate::http;
use hmac::{Hmac, KeyInit, Mac};
use holdpoint_model::notify::{SlackTarget, WebhookTarget};
use serde_json::json;
use sha2::Sha256;
use std::time::Duration;
use ureq::Agent;

/// How often it is tried.
const ATTEMPTS_MAX: u32 = 3;
/// The longest wait that is honoured.
const WAIT_MAX: Duration = Duration::from_secs(30);

pub(super) fn slack(
    agent: &Agent,
    target: &SlackTarget,
    message: Message<'_>,
    world: &World<'_>,
) -> Result<(), NotTold> {
    let url = world.secret(&target.url_env)?;
    let body =
        json!({"text": message.slack, "unfurl_links": false, "unfurl_media": false, "link_names": false});
    post(agent, &url, &[], &body.to_string(), world)
}

pub(super) fn generic(
    agent: &Agent,
    target: &WebhookTarget,
    message: Message<'_>,
    world: &World<'_>,
) -> Result<(), NotTold> {
    let url = match (&target.url, &target.url_env) {
        (Some(url), _) => url.clone(),
        (None, Some(name)) => world.secret(name)?,
        (None, None) => return Err(NotTold::Setting("it has no address".to_owned())),
    };
    let body = serde_json::to_string(message.notice).map_err(|error| NotTold::Failed(error.to_string()))?;
    let mut headers = Vec::new();
    if let Some(name) = &target.token_env {
        headers.push(("authorization", format!("Bearer {}", world.secret(name)?)));
    }
    if let Some(name) = &target.secret_env {
        headers.push((
            "x-holdpoint-signature-256",
            format!("sha256={}", signature(&world.secret(name)?, &body)),
        ));
    }
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    post(agent, &url, &headers, &body, world)
}

/// HMAC-SHA-256 of the body, in hex.
fn signature(key: &str, body: &str) -> String {
    // A key of any length will do.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key.as_bytes()) else { return String::new() };
    mac.update(body.as_bytes());
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn post(
    agent: &Agent,
    url: &str,
    headers: &[(&str, &str)],
    body: &str,
    world: &World<'_>,
) -> Result<(), NotTold> {
    if !http::is_private(url) {
        return Err(NotTold::Setting("its address must begin with https://".to_owned()));
    }
    let mut attempt = 1;
    loop {
        let (what, retry_after_s) = match http::send(agent, "POST", url, headers, Some(body)) {
            Ok(answer) if (200..300).contains(&answer.status) => return Ok(()),
            Ok(answer) if [429, 502, 503, 504].contains(&answer.status) => {
                (format!("it answered {}", answer.status), answer.number("retry-after"))
            }
            Ok(answer) => return Err(NotTold::Failed(format!("it answered {}", answer.status))),
            // The address may be a secret.
            Err(error) => (error.to_string().replace(url, "its address"), None),
        };
        let wait = Duration::from_secs(retry_after_s.unwrap_or(1 << attempt));
        if attempt >= ATTEMPTS_MAX || wait > WAIT_MAX {
            return Err(NotTold::Failed(what));
        }
        (world.pause)(wait);
        attempt += 1;
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
