//! Tells people and programs how it came out: mail, Slack, webhooks. One that fails does not keep the others from being told.

mod mail;
mod webhook;

use crate::http::Deadline;
use holdpoint_model::Verdict;
use holdpoint_model::notice::Notice;
use holdpoint_model::notify::NotifyConfig;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How long telling one target may take as a whole, and, as all are told at the same time, telling all of them.
pub const LIMIT: Duration = Duration::from_secs(30);
/// Lets whoever notices by itself that the time is up say at what.
const GRACE: Duration = Duration::from_secs(1);

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
    pub pause: Pause,
    /// How long it may take; [`LIMIT`] but in tests.
    pub limit: Duration,
}

/// Waits.
pub type Pause = Arc<dyn Fn(Duration) + Send + Sync>;

/// Tells one target, by the deadline. It holds all it needs: a server that never ends keeps it, and nobody else.
type Job = Box<dyn FnOnce(Deadline) -> Result<(), NotTold> + Send>;

impl World<'_> {
    /// What a variable holds, if anything.
    fn held(&self, name: &str) -> Option<String> {
        (self.variable)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn secret(&self, name: &str) -> Result<String, NotTold> {
        self.held(name).ok_or_else(|| NotTold::Setting(format!("the environment variable {name} is not set")))
    }
}

/// Tells every target that wants to know, all at the same time; what became of them is in the order of the file.
#[must_use]
pub fn notify(config: &NotifyConfig, message: Message<'_>, world: &World<'_>) -> Vec<Outcome> {
    let jobs = each(config, message.notice.verdict, |target| match target {
        Target::Mail(mail) => mail::prepare(mail, message, world),
        Target::Slack(slack) => webhook::prepare_slack(slack, message, world),
        Target::Webhook(webhook) => webhook::prepare(webhook, message, world),
    });
    let deadline = Deadline::after(world.limit);
    let begun: Vec<_> =
        jobs.map(|(target, job)| (target, job.map(|job| job.and_then(|job| begin(job, deadline))))).collect();
    let outcome = |(target, begun): (String, Option<Result<_, NotTold>>)| {
        let result = match begun {
            Some(begun) => begun.and_then(|end| wait(&end, deadline, world.limit)),
            None => Ok(Told::NotWanted),
        };
        Outcome { target, result }
    };
    begun.into_iter().map(outcome).collect()
}

fn begin(job: Job, deadline: Deadline) -> Result<Receiver<Result<(), NotTold>>, NotTold> {
    let (sender, receiver) = channel();
    let thread = std::thread::Builder::new().spawn(move || drop(sender.send(job(deadline))));
    thread.map_err(|error| NotTold::Failed(format!("no thread can be started: {error}")))?;
    Ok(receiver)
}

/// Time-outs of single reads are no limit: a server may send a byte now and then.
fn wait(end: &Receiver<Result<(), NotTold>>, deadline: Deadline, limit: Duration) -> Result<Told, NotTold> {
    match end.recv_timeout(deadline.left() + GRACE) {
        Ok(result) => result.map(|()| Told::Sent),
        Err(RecvTimeoutError::Timeout) => Err(NotTold::Failed(format!(
            "it did not end within {} s; whether it arrived is not known",
            limit.as_secs()
        ))),
        Err(RecvTimeoutError::Disconnected) => Err(NotTold::Failed("it ended without a word".to_owned())),
    }
}

/// The same without telling anybody: what the file says is checked, and what variables hold as far as they are set.
#[must_use]
pub fn rehearse(config: &NotifyConfig, message: Message<'_>, world: &World<'_>) -> Vec<Outcome> {
    let held = |name: &Option<String>| name.as_ref().and_then(|name| world.held(name));
    let checks = each(config, message.notice.verdict, |target| match target {
        Target::Mail(mail) => mail::check(mail, message),
        Target::Slack(slack) => webhook::check(world.held(&slack.url_env).as_deref(), None),
        Target::Webhook(webhook) => {
            let url = webhook.url.clone().or_else(|| held(&webhook.url_env));
            webhook::check(url.as_deref(), held(&webhook.token_env).as_deref())
        }
    });
    let told = |check: Option<Result<(), NotTold>>| {
        check.map_or(Ok(Told::NotWanted), |check| check.map(|()| Told::Sent))
    };
    checks.map(|(target, check)| Outcome { target, result: told(check) }).collect()
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

/// Every target by its name, and what is to be done for it if it wants to know.
fn each<T>(
    config: &NotifyConfig,
    verdict: Verdict,
    tell: impl Fn(Target<'_>) -> Result<T, NotTold>,
) -> impl Iterator<Item = (String, Option<Result<T, NotTold>>)> {
    let of = |kind: &str, name: &str, on: Option<&Vec<Verdict>>, target: Target<'_>| {
        let is_wanted = on.unwrap_or(&config.on).contains(&verdict);
        (format!("{kind} {}", holdpoint_model::limits::clean_text(name)), is_wanted.then(|| tell(target)))
    };
    let mail = config.mail.iter().map(|t| of("mail", &t.name, t.on.as_ref(), Target::Mail(t)));
    let slack = config.slack.iter().map(|t| of("slack", &t.name, t.on.as_ref(), Target::Slack(t)));
    let webhook = config.webhook.iter().map(|t| of("webhook", &t.name, t.on.as_ref(), Target::Webhook(t)));
    mail.chain(slack).chain(webhook).collect::<Vec<_>>().into_iter()
}
