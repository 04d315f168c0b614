//! Mail by SMTP.

use super::{ATTEMPTS_MAX, Environment, Job, Message, NotifyError, Pause, wait_after};
use crate::http::Deadline;
use crate::redact::Secrets;
use holdpoint_model::notify::{MailSecurity, MailTarget};
use lettre::address::{Address, Envelope};
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::Credentials;
use lettre::{SmtpTransport, Transport};
use std::sync::Arc;

/// Everything needed to send a mail.
struct Mail {
    transport: SmtpTransport,
    envelope: Envelope,
    text: Vec<u8>,
    secrets: Secrets,
    pause: Pause,
}

pub(super) fn prepare(
    target: &MailTarget,
    message: Message<'_>,
    environment: &Environment<'_>,
) -> Result<Job, NotifyError> {
    let built = mail(target, message)?;
    let (transport, secrets) = transport(target, environment)?;
    let (envelope, text) = (built.envelope().clone(), built.formatted());
    let mail = Mail { transport, envelope, text, secrets, pause: Arc::clone(&environment.pause) };
    Ok(Box::new(move |deadline| mail.send(deadline)))
}

impl Mail {
    /// Sends it to all at once; where a server refuses one of several recipients, to each alone, so that the others get it.
    fn send(&self, deadline: Deadline) -> Result<(), NotifyError> {
        let envelope = &self.envelope;
        // A server may repeat what it was sent.
        let failed = |error: &Error| self.secrets.clean(&describe(error));
        match self.deliver(envelope, deadline) {
            Ok(()) => return Ok(()),
            Err(error) if error.is_permanent() && envelope.to().len() > 1 => {}
            Err(error) => return Err(NotifyError::Failed(failed(&error))),
        }
        let alone = |to: &Address| {
            let alone = Envelope::new(envelope.from().cloned(), vec![to.clone()]).map_err(|e| e.to_string());
            let outcome =
                alone.and_then(|alone| self.deliver(&alone, deadline).map_err(|error| failed(&error)));
            outcome.err().map(|what| format!("{to}: {what}"))
        };
        let failures: Vec<String> = envelope.to().iter().filter_map(alone).collect();
        match (failures.is_empty(), failures.len() < envelope.to().len()) {
            (true, _) => Ok(()),
            (_, true) => {
                Err(NotifyError::Failed(format!("{} (the others were notified)", failures.join("; "))))
            }
            (_, false) => Err(NotifyError::Failed(failures.join("; "))),
        }
    }

    /// Delivers it, with retries where the server calls the failure temporary and there is time.
    fn deliver(&self, to: &Envelope, deadline: Deadline) -> Result<(), Error> {
        let mut attempt = 1;
        loop {
            match self.transport.send_raw(to, &self.text) {
                Err(error)
                    if error.is_transient()
                        && attempt < ATTEMPTS_MAX
                        && wait_after(attempt) < deadline.left() =>
                {
                    (self.pause)(wait_after(attempt));
                    attempt += 1;
                }
                outcome => return outcome.map(|_| ()),
            }
        }
    }
}

/// Checks the settings of the file.
pub(super) fn check(target: &MailTarget, message: Message<'_>) -> Result<(), NotifyError> {
    mail(target, message).and_then(|_| refuse_clear(target))
}

/// A password goes over TLS, or stays on this machine.
fn refuse_clear(target: &MailTarget) -> Result<(), NotifyError> {
    let is_here = ["localhost", "127.0.0.1", "::1"].contains(&target.server.as_str());
    if target.security == MailSecurity::None && target.password_env.is_some() && !is_here {
        let what = "a password is not sent in the clear; choose security = \"starttls\" or \"tls\"";
        return Err(NotifyError::Setting(what.to_owned()));
    }
    Ok(())
}

/// The error with its causes.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        source = inner.source();
    }
    text
}

fn mail(target: &MailTarget, message: Message<'_>) -> Result<lettre::Message, NotifyError> {
    let address = |text: &str| {
        let hint = if text.is_ascii() { "" } else { "; write a domain beyond ASCII as xn--…" };
        text.parse::<Mailbox>()
            .map_err(|error| NotifyError::Setting(format!("{text:?} is no address: {error}{hint}")))
    };
    let mut builder = lettre::Message::builder().from(address(&target.from)?).subject(message.subject);
    for to in &target.to {
        builder = builder.to(address(to)?);
    }
    let built = builder.header(ContentType::TEXT_PLAIN).body(message.plain.to_owned());
    built.map_err(|error| NotifyError::Setting(format!("no mail can be made: {error}")))
}

fn transport(
    target: &MailTarget,
    environment: &Environment<'_>,
) -> Result<(SmtpTransport, Secrets), NotifyError> {
    let server = target.server.as_str();
    let unusable = |error| NotifyError::Setting(format!("server {server:?}: {}", describe(&error)));
    let builder = match target.security {
        MailSecurity::Tls => SmtpTransport::relay(server).map_err(unusable)?,
        MailSecurity::Starttls => SmtpTransport::starttls_relay(server).map_err(unusable)?,
        MailSecurity::None => SmtpTransport::builder_dangerous(server),
    };
    let mut secrets = Secrets::default();
    let mut builder = builder.timeout(Some(environment.limit));
    if let Some(port) = target.port {
        builder = builder.port(port);
    }
    if let (Some(username), Some(password)) = (&target.username_env, &target.password_env) {
        refuse_clear(target)?;
        let (username, password) = (environment.secret(username)?, environment.secret(password)?);
        secrets.add_login(&username, &password);
        builder = builder.credentials(Credentials::new(username, password));
    }
    Ok((builder.build(), secrets))
}
