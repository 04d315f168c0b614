//! Slack and other programs that take JSON by HTTP.

use super::{ATTEMPTS_MAX, Message, NotTold, World, wait_after};
use crate::http::{self, Answer, NoAnswer};
use hmac::{Hmac, KeyInit, Mac};
use holdpoint_model::limits::clean_text;
use holdpoint_model::notify::{SlackTarget, WebhookTarget};
use serde_json::json;
use sha2::Sha256;
use std::time::Duration;

/// Characters of what a server says of itself.
const SAID_CHARS: usize = 200;
/// Characters of a part of an address that may be a secret.
const SECRET_CHARS_MIN: usize = 6;
/// The longest wait that is honoured.
const WAIT_MAX: Duration = Duration::from_secs(30);

pub(super) fn slack(target: &SlackTarget, message: Message<'_>, world: &World<'_>) -> Result<(), NotTold> {
    let url = world.secret(&target.url_env)?;
    let body =
        json!({"text": message.slack, "unfurl_links": false, "unfurl_media": false, "link_names": false});
    post(&url, &[], &body.to_string(), world)
}

pub(super) fn generic(
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
    check(Some(&url), target.token_env.as_ref().and_then(|name| world.held(name)).as_deref())?;
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    post(&url, &headers, &body, world)
}

/// HMAC-SHA-256 of the body, in hex.
fn signature(key: &str, body: &str) -> String {
    // A key of any length will do.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key.as_bytes()) else { return String::new() };
    mac.update(body.as_bytes());
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether an address and a token could be used, where they are known.
pub(super) fn check(url: Option<&str>, token: Option<&str>) -> Result<(), NotTold> {
    if url.is_some_and(|url| !http::is_private(url)) {
        return Err(NotTold::Setting("its address must begin with https://".to_owned()));
    }
    if url.is_some_and(|url| !url.bytes().all(|b| b.is_ascii_graphic())) {
        return Err(NotTold::Setting("its address is none".to_owned()));
    }
    if token.is_some_and(|token| !token.bytes().all(|b| b.is_ascii_graphic())) {
        return Err(NotTold::Setting("its token is none: there is a space or a line in it".to_owned()));
    }
    Ok(())
}

fn post(url: &str, headers: &[(&str, &str)], body: &str, world: &World<'_>) -> Result<(), NotTold> {
    check(Some(url), None)?;
    let agent = http::agent(url);
    // The address may be a secret, or a part of it, and a server may repeat what it was sent.
    let hidden = |text: &str| {
        let values = headers.iter().map(|(_, value)| value.strip_prefix("Bearer ").unwrap_or(value));
        let parts = url.split(['/', '?', '&', '=']).filter(|part| part.len() >= SECRET_CHARS_MIN);
        values.chain(parts).fold(text.replace(url, "its address"), |text, secret| text.replace(secret, "…"))
    };
    let answered = |answer: &Answer| match said(&hidden(&answer.body)) {
        Some(said) => format!("it answered {}: {said}", answer.status),
        None => format!("it answered {}", answer.status),
    };
    let mut attempt = 1;
    loop {
        let (what, retry_after_s) = match http::send(&agent, "POST", url, headers, Some(body)) {
            Ok(answer) if (200..300).contains(&answer.status) => return Ok(()),
            Ok(answer) if [429, 502, 503, 504].contains(&answer.status) => {
                (answered(&answer), answer.number("retry-after"))
            }
            Ok(answer) => return Err(NotTold::Failed(answered(&answer))),
            Err(NoAnswer::Setting(what)) => {
                return Err(NotTold::Setting(format!("its address or its token is none: {}", hidden(&what))));
            }
            Err(NoAnswer::Failed(what)) => (hidden(&what), None),
        };
        let wait = retry_after_s.map_or_else(|| wait_after(attempt), Duration::from_secs);
        if attempt >= ATTEMPTS_MAX || wait > WAIT_MAX {
            return Err(NotTold::Failed(what));
        }
        (world.pause)(wait);
        attempt += 1;
    }
}

/// What a server says, short, where it is no page.
fn said(body: &str) -> Option<String> {
    let said: String = clean_text(body.trim()).chars().take(SAID_CHARS).collect();
    Some(said).filter(|said| !said.is_empty() && said != "{}" && !said.starts_with('<'))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_signature_is_that_of_rfc_4231() {
        let wanted = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(super::signature("Jefe", "what do ya want for nothing?"), wanted);
    }
}
