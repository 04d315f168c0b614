//! Tells people and programs how it came out: mail, Slack, webhooks. One that fails does not keep the others from being told.

mod mail;
mod webhook;

use holdpoint_model::Verdict;
use holdpoint_model::notice::Notice;
use holdpoint_model::notify::NotifyConfig;
use std::time::Duration;

/// What is sent, made elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// For programs.
    pub notice: &'a Notice,
    /// Subject of a mail.
    pub subject: &'a str,
    /// Text of a mail.
    pub plain: &'a str,
    /// Text for Slack.
    pub slack: &'a str,
}

/// What became of one target.
#[derive(Debug)]
pub struct Outcome {
    /// `mail team`, `slack room`, `webhook hook`.
    pub target: String,
    /// What happened.
    pub result: Result<Told, NotTold>,
}

/// Told, or not to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It has it.
    Sent,
    /// It is not told of such verdicts.
    NotWanted,
}

/// A target that could not be told. No secret is in it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTold {
    /// A variable that is not set, an address that is none.
    #[error("{0}")]
    Setting(String),
    /// Nobody there, or it refused.
    #[error("{0}")]
    Failed(String),
}

/// What the process has: variables and time.
pub struct World<'a> {
    /// The environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Waits before another attempt.
    pub pause: &'a dyn Fn(Duration),
}

impl World<'_> {
    /// What a variable holds, if anything.
    fn held(&self, name: &str) -> Option<String> {
        (self.variable)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn secret(&self, name: &str) -> Result<String, NotTold> {
        self.held(name).ok_or_else(|| NotTold::Setting(format!("the environment variable {name} is not set")))
    }
}

/// Tells every target that wants to know, in the order of the file.
#[must_use]
pub fn notify(config: &NotifyConfig, message: Message<'_>, world: &World<'_>) -> Vec<Outcome> {
    each(config, message.notice.verdict, |target| match target {
        Target::Mail(mail) => mail::send(mail, message, world),
        Target::Slack(slack) => webhook::slack(slack, message, world),
        Target::Webhook(webhook) => webhook::generic(webhook, message, world),
    })
}

/// The same without telling anybody: what the file says is checked, and what variables hold as far as they are set.
#[must_use]
pub fn rehearse(config: &NotifyConfig, message: Message<'_>, world: &World<'_>) -> Vec<Outcome> {
    let held = |name: &Option<String>| name.as_ref().and_then(|name| world.held(name));
    each(config, message.notice.verdict, |target| match target {
        Target::Mail(mail) => mail::check(mail, message),
        Target::Slack(slack) => webhook::check(world.held(&slack.url_env).as_deref(), None),
        Target::Webhook(webhook) => {
            let url = webhook.url.clone().or_else(|| held(&webhook.url_env));
            webhook::check(url.as_deref(), held(&webhook.token_env).as_deref())
        }
    })
}

/// How often it is tried.
const ATTEMPTS_MAX: u32 = 3;

/// How long to wait after an attempt that failed, where nothing else is asked for.
fn wait_after(attempt: u32) -> Duration {
    Duration::from_secs(1 << attempt)
}

enum Target<'a> {
    Mail(&'a holdpoint_model::notify::MailTarget),
    Slack(&'a holdpoint_model::notify::SlackTarget),
    Webhook(&'a holdpoint_model::notify::WebhookTarget),
}

fn each(
    config: &NotifyConfig,
    verdict: Verdict,
    tell: impl Fn(Target<'_>) -> Result<(), NotTold>,
) -> Vec<Outcome> {
    let outcome = |kind: &str, name: &str, on: Option<&Vec<Verdict>>, target: Target<'_>| Outcome {
        target: format!("{kind} {}", holdpoint_model::limits::clean_text(name)),
        result: match on.unwrap_or(&config.on).contains(&verdict) {
            true => tell(target).map(|()| Told::Sent),
            false => Ok(Told::NotWanted),
        },
    };
    let mail = config.mail.iter().map(|t| outcome("mail", &t.name, t.on.as_ref(), Target::Mail(t)));
    let slack = config.slack.iter().map(|t| outcome("slack", &t.name, t.on.as_ref(), Target::Slack(t)));
    let webhook =
        config.webhook.iter().map(|t| outcome("webhook", &t.name, t.on.as_ref(), Target::Webhook(t)));
    mail.chain(slack).chain(webhook).collect()
}
