//! Notifications: mail, Slack, webhooks. One that fails does not stop the others.

mod mail;
mod webhook;

use crate::http::Deadline;
use holdpoint_model::Verdict;
use holdpoint_model::notice::Notice;
use holdpoint_model::notify::NotifyConfig;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Limit for one target and, as all are notified at the same time, for all of them.
pub const LIMIT: Duration = Duration::from_secs(30);
/// Lets a target that notices the timeout itself say what it was doing.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub notice: &'a Notice,
    pub subject: &'a str,
    pub plain: &'a str,
    pub slack: &'a str,
}

#[derive(Debug)]
pub struct Outcome {
    /// `mail team`, `slack room`, `webhook hook`.
    pub target: String,
    pub result: Result<Delivery, NotifyError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    Sent,
    NotWanted,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotifyError {
    #[error("{0}")]
    Setting(String),
    #[error("{0}")]
    Failed(String),
}

/// The parts of the process that notifications use: variables and time.
pub struct Environment<'a> {
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Waits before another attempt.
    pub pause: Pause,
    /// Time limit; [`LIMIT`] except in tests.
    pub limit: Duration,
}

pub type Pause = Arc<dyn Fn(Duration) + Send + Sync>;

/// Notifies one target, by the deadline. It owns all it needs: a server that never ends holds up nobody else.
type Job = Box<dyn FnOnce(Deadline) -> Result<(), NotifyError> + Send>;

impl Environment<'_> {
    /// The value of a variable, if it is set and not empty.
    fn value(&self, name: &str) -> Option<String> {
        (self.variable)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn secret(&self, name: &str) -> Result<String, NotifyError> {
        self.value(name)
            .ok_or_else(|| NotifyError::Setting(format!("the environment variable {name} is not set")))
    }
}

/// Notifies every target that wants this verdict, all at the same time; outcomes are in the order of the file.
pub fn notify(config: &NotifyConfig, message: Message<'_>, environment: &Environment<'_>) -> Vec<Outcome> {
    let jobs = each(config, message.notice.verdict, |target| match target {
        Target::Mail(mail) => mail::prepare(mail, message, environment),
        Target::Slack(slack) => webhook::prepare_slack(slack, message, environment),
        Target::Webhook(webhook) => webhook::prepare(webhook, message, environment),
    });
    let deadline = Deadline::after(environment.limit);
    let begun: Vec<_> =
        jobs.map(|(target, job)| (target, job.map(|job| job.and_then(|job| begin(job, deadline))))).collect();
    let outcome = |(target, begun): (String, Option<Result<_, NotifyError>>)| {
        let result = match begun {
            Some(begun) => begun.and_then(|end| wait(&end, deadline, environment.limit)),
            None => Ok(Delivery::NotWanted),
        };
        Outcome { target, result }
    };
    begun.into_iter().map(outcome).collect()
}

fn begin(job: Job, deadline: Deadline) -> Result<Receiver<Result<(), NotifyError>>, NotifyError> {
    let (sender, receiver) = channel();
    let thread = std::thread::Builder::new().spawn(move || drop(sender.send(job(deadline))));
    thread.map_err(|error| NotifyError::Failed(format!("no thread can be started: {error}")))?;
    Ok(receiver)
}

/// Waits for a target. Time-outs of single reads are no limit: a server may send a byte now and then.
fn wait(
    end: &Receiver<Result<(), NotifyError>>,
    deadline: Deadline,
    limit: Duration,
) -> Result<Delivery, NotifyError> {
    match end.recv_timeout(deadline.left() + GRACE) {
        Ok(result) => result.map(|()| Delivery::Sent),
        Err(RecvTimeoutError::Timeout) => Err(NotifyError::Failed(format!(
            "it did not end within {} s; whether it arrived is not known",
            limit.as_secs()
        ))),
        Err(RecvTimeoutError::Disconnected) => Err(NotifyError::Failed("it ended without a word".to_owned())),
    }
}

/// The same without sending anything: checks the file's settings, and those variables that are set.
pub fn rehearse(config: &NotifyConfig, message: Message<'_>, environment: &Environment<'_>) -> Vec<Outcome> {
    let value = |name: &Option<String>| name.as_ref().and_then(|name| environment.value(name));
    let checks = each(config, message.notice.verdict, |target| match target {
        Target::Mail(mail) => mail::check(mail, message),
        Target::Slack(slack) => webhook::check(environment.value(&slack.url_env).as_deref(), None),
        Target::Webhook(webhook) => {
            let url = webhook.url.clone().or_else(|| value(&webhook.url_env));
            webhook::check(url.as_deref(), value(&webhook.token_env).as_deref())
        }
    });
    let outcome = |check: Option<Result<(), NotifyError>>| {
        check.map_or(Ok(Delivery::NotWanted), |check| check.map(|()| Delivery::Sent))
    };
    checks.map(|(target, check)| Outcome { target, result: outcome(check) }).collect()
}

const ATTEMPTS_MAX: u32 = 3;

/// The wait after a failed attempt, where the answer asks for none.
fn wait_after(attempt: u32) -> Duration {
    Duration::from_secs(1 << attempt)
}

enum Target<'a> {
    Mail(&'a holdpoint_model::notify::MailTarget),
    Slack(&'a holdpoint_model::notify::SlackTarget),
    Webhook(&'a holdpoint_model::notify::WebhookTarget),
}

/// Calls `notify` for every target that wants this verdict.
fn each<T>(
    config: &NotifyConfig,
    verdict: Verdict,
    notify: impl Fn(Target<'_>) -> Result<T, NotifyError>,
) -> impl Iterator<Item = (String, Option<Result<T, NotifyError>>)> {
    let call = |kind: &str, name: &str, on: Option<&Vec<Verdict>>, target: Target<'_>| {
        let is_wanted = on.unwrap_or(&config.on).contains(&verdict);
        (format!("{kind} {}", holdpoint_model::limits::clean_text(name)), is_wanted.then(|| notify(target)))
    };
    let mail = config.mail.iter().map(|t| call("mail", &t.name, t.on.as_ref(), Target::Mail(t)));
    let slack = config.slack.iter().map(|t| call("slack", &t.name, t.on.as_ref(), Target::Slack(t)));
    let webhook = config.webhook.iter().map(|t| call("webhook", &t.name, t.on.as_ref(), Target::Webhook(t)));
    mail.chain(slack).chain(webhook).collect::<Vec<_>>().into_iter()
}
