//! Configuration of notifications: recipients and the verdicts they hear of, a TOML file of the user's. Secrets are not in it:
//! it names the environment variables that hold them.

use crate::judgement::Verdict;
use crate::toml_file::{TomlError, invalid, parse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most targets of one kind.
const TARGETS_MAX: usize = 100;
/// A part of an address with letters and digits is taken for a token from this length on.
const TOKEN_CHARS_MIN: usize = 16;

/// The configuration of notifications.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotifyConfig {
    pub schema_version: u32,
    /// The verdicts that are told, for targets that do not say otherwise.
    #[serde(default = "default_on")]
    pub on: Vec<Verdict>,
    /// Mail.
    #[serde(default)]
    pub mail: Vec<MailTarget>,
    /// Slack, and what takes the same messages.
    #[serde(default)]
    pub slack: Vec<SlackTarget>,
    /// Programs that take the document as JSON.
    #[serde(default)]
    pub webhook: Vec<WebhookTarget>,
}

fn default_on() -> Vec<Verdict> {
    vec![Verdict::Regressed, Verdict::Broken]
}

/// A mail by SMTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MailTarget {
    /// Its name in messages.
    pub name: String,
    /// The verdicts that are told.
    #[serde(default)]
    pub on: Option<Vec<Verdict>>,
    /// The mail server.
    pub server: String,
    /// Its port; 465 for `tls`, 587 for `starttls`, 25 for `none`.
    #[serde(default)]
    pub port: Option<u16>,
    /// How the connection is kept private.
    #[serde(default)]
    pub security: MailSecurity,
    /// Sender address.
    pub from: String,
    /// Recipient addresses.
    pub to: Vec<String>,
    /// Environment variable with the user's name.
    #[serde(default)]
    pub username_env: Option<String>,
    /// Environment variable with the password.
    #[serde(default)]
    pub password_env: Option<String>,
}

/// How a connection to a mail server is kept private.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MailSecurity {
    /// TLS from the first byte.
    Tls,
    /// TLS after a greeting; no mail where the server does not offer it.
    #[default]
    Starttls,
    /// Not at all; a password is then sent to this very machine only.
    None,
}

/// A message to an incoming webhook of Slack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlackTarget {
    /// Its name in messages.
    pub name: String,
    /// The verdicts that are told.
    #[serde(default)]
    pub on: Option<Vec<Verdict>>,
    /// Environment variable with the address, which is a secret.
    pub url_env: String,
}

/// The document as JSON to any address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookTarget {
    /// Its name in messages.
    pub name: String,
    /// The verdicts that are told.
    #[serde(default)]
    pub on: Option<Vec<Verdict>>,
    /// The address, where it is no secret.
    #[serde(default)]
    pub url: Option<String>,
    /// Environment variable with the address, where it is one.
    #[serde(default)]
    pub url_env: Option<String>,
    /// Environment variable with a token, sent as `Authorization: Bearer`.
    #[serde(default)]
    pub token_env: Option<String>,
    /// Environment variable with a key; the body's HMAC-SHA-256 is sent as `X-Holdpoint-Signature-256: sha256=…`.
    #[serde(default)]
    pub secret_env: Option<String>,
}

/// Keys that would hold a secret, and what to write instead.
const SECRETS: [(&str, &str); 8] = [
    ("password", "password_env"),
    ("pass", "password_env"),
    ("username", "username_env"),
    ("user", "username_env"),
    ("token", "token_env"),
    ("secret", "secret_env"),
    ("key", "secret_env"),
    ("credentials", "password_env"),
];

impl NotifyConfig {
    /// Reads and checks a configuration.
    pub fn parse(text: &str) -> Result<Self, TomlError> {
        refuse_secrets(text)?;
        let config: Self = parse(text)?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), TomlError> {
        if self.schema_version != crate::SCHEMA_VERSION {
            let what = format!(
                "{} is not known here; this holdpoint reads {}",
                self.schema_version,
                crate::SCHEMA_VERSION
            );
            return invalid("schema_version", &what);
        }
        let counts = [self.mail.len(), self.slack.len(), self.webhook.len()];
        if counts.iter().sum::<usize>() == 0 {
            return invalid("mail, slack, webhook", "nobody would be notified; add a target");
        }
        if counts.iter().any(|count| *count > TARGETS_MAX) {
            return invalid("mail, slack, webhook", format!("at most {TARGETS_MAX} of each"));
        }
        for (index, mail) in self.mail.iter().enumerate() {
            let place = format!("mail {}", index + 1);
            if mail.to.is_empty() {
                return invalid(&place, "to is empty; name somebody");
            }
            if mail.username_env.is_some() != mail.password_env.is_some() {
                return invalid(&place, "username_env and password_env go together");
            }
            check_variables(&place, [mail.username_env.as_ref(), mail.password_env.as_ref()])?;
        }
        for (index, slack) in self.slack.iter().enumerate() {
            check_variables(&format!("slack {}", index + 1), [Some(&slack.url_env)])?;
        }
        for (index, webhook) in self.webhook.iter().enumerate() {
            let place = format!("webhook {}", index + 1);
            if webhook.url.is_some() == webhook.url_env.is_some() {
                return invalid(&place, "give either url or url_env");
            }
            if webhook.url.as_ref().is_some_and(|url| holds_secret(url)) {
                return invalid(
                    &place,
                    "the address may hold a secret: put it into an environment variable and name that in url_env",
                );
            }
            let names = [&webhook.url_env, &webhook.token_env, &webhook.secret_env];
            check_variables(&place, names.map(Option::as_ref))?;
        }
        Ok(())
    }
}

/// Looks for secrets by their keys, before anything else can complain about them.
fn refuse_secrets(text: &str) -> Result<(), TomlError> {
    let Ok(table) = text.parse::<toml::Table>() else { return Ok(()) };
    for (kind, targets) in &table {
        for (index, target) in targets.as_array().into_iter().flatten().enumerate() {
            let Some(target) = target.as_table() else { continue };
            let place = format!("{kind} {}", index + 1);
            for key in target.keys() {
                let secret = SECRETS.iter().find(|(secret, _)| key.eq_ignore_ascii_case(secret));
                let instead = if kind == "slack" && key == "url" {
                    Some("url_env")
                } else {
                    secret.map(|(_, instead)| *instead)
                };
                if let Some(instead) = instead {
                    let what = format!(
                        "{key} is refused: a secret has no place in a file; put it into an environment variable and name that in {instead}"
                    );
                    return invalid(&place, &what);
                }
            }
        }
    }
    Ok(())
}

/// A value that is not the name of a variable is most likely the secret itself, and is not repeated.
fn check_variables<'a>(
    place: &str,
    names: impl IntoIterator<Item = Option<&'a String>>,
) -> Result<(), TomlError> {
    let is_name = |name: &str| {
        let is_usable = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        (1..=100).contains(&name.len())
            && name.chars().all(is_usable)
            && !name.starts_with(|c: char| c.is_ascii_digit())
    };
    match names.into_iter().flatten().all(|name| is_name(name)) {
        true => Ok(()),
        false => invalid(
            place,
            "a key ending in _env names an environment variable, such as SMTP_PASSWORD; the secret itself has no place in a file",
        ),
    }
}

/// Addresses with a user or a query, of services whose addresses let their holder in, or with a part that looks like a token.
fn holds_secret(url: &str) -> bool {
    let is_token = |part: &str| {
        let has = |is: fn(&char) -> bool| part.chars().any(|c| is(&c));
        part.len() >= TOKEN_CHARS_MIN && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
    };
    let path = url.split_once("://").map_or(url, |(_, rest)| rest).split('/').skip(1);
    url.contains(['@', '?', '#'])
        || ["hooks.slack.com", "/api/webhooks/", "webhook.office.com", "/hooks/"]
            .iter()
            .any(|p| url.contains(p))
        || path.into_iter().any(is_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIL: &str = "[[mail]]\nname = \"team\"\nserver = \"smtp.example.org\"\nfrom = \"a@example.org\"\nto = [\"b@example.org\"]\n";
    const SLACK: &str = "[[slack]]\nname = \"room\"\nurl_env = \"SLACK_URL\"\n";
    const HOOK: &str = "[[webhook]]\nname = \"hook\"\nurl = \"https://example.org/hook\"\n";

    fn parse(text: &str) -> Result<NotifyConfig, String> {
        NotifyConfig::parse(&format!("schema_version = 1\n{text}")).map_err(|error| error.to_string())
    }

    #[test]
    fn targets_are_told_of_regressions_and_breakage_unless_they_say_otherwise() {
        let config = parse(&format!("{MAIL}on = [\"improved\"]\n{SLACK}{HOOK}")).unwrap();
        assert_eq!(config.on, [Verdict::Regressed, Verdict::Broken]);
        assert_eq!(config.mail[0].on, Some(vec![Verdict::Improved]));
        assert_eq!((config.slack[0].on.clone(), config.mail[0].security), (None, MailSecurity::Starttls));
    }

    #[test]
    fn a_secret_in_the_file_is_refused_and_not_repeated() {
        for (text, words) in [
            (format!("{MAIL}password = \"hunter2\""), "mail 1: password is refused"),
            (format!("{MAIL}username = \"hunter2\""), "name that in username_env"),
            (format!("{SLACK}url = \"https://hunter2\""), "slack 1: url is refused"),
            (SLACK.replace("SLACK_URL", "https://hunter2"), "names an environment variable"),
            (format!("{HOOK}token = \"hunter2\""), "webhook 1: token is refused"),
            (format!("{HOOK}secret_env = \"hunter2\""), "names an environment variable"),
            (HOOK.replace("example.org/", "u:hunter2@example.org/"), "may hold a secret"),
            (HOOK.replace("/hook\"", "/hook?key=hunter2\""), "may hold a secret"),
            (HOOK.replace("/hook\"", "/hooks/hunter2\""), "may hold a secret"),
            (HOOK.replace("/hook\"", "/in/hunter2hunter2hunter2\""), "may hold a secret"),
        ] {
            let error = parse(&text).expect_err(&text);
            assert!(error.contains(words) && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, words) in [
            (String::new(), "nobody would be notified"),
            (format!("{HOOK}url_env = \"X\""), "either url or url_env"),
            ("[[webhook]]\nname = \"x\"".to_owned(), "either url or url_env"),
            (MAIL.replace("[\"b@example.org\"]", "[]"), "to is empty"),
            (format!("{MAIL}username_env = \"X\""), "go together"),
            (format!("{MAIL}on = [\"slower\"]"), "unknown variant `slower`"),
            (format!("{MAIL}colour = 1"), "unknown field `colour`"),
        ] {
            let error = parse(&text).expect_err(&text);
            assert!(error.contains(words) && !error.contains('\n'), "{error}");
        }
        assert!(NotifyConfig::parse("schema_version = 2\n").is_err());
    }
}
