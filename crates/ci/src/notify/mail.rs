//! A mail by SMTP.

use super::{ATTEMPTS_MAX, Job, Message, NotTold, Pause, World, wait_after};
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

/// All that it takes to send a mail.
struct Mail {
    transport: SmtpTransport,
    envelope: Envelope,
    text: Vec<u8>,
    secrets: Secrets,
    pause: Pause,
}

pub(super) fn prepare(target: &MailTarget, message: Message<'_>, world: &World<'_>) -> Result<Job, NotTold> {
    let built = mail(target, message)?;
    let (transport, secrets) = transport(target, world)?;
    let (envelope, text) = (built.envelope().clone(), built.formatted());
    let mail = Mail { transport, envelope, text, secrets, pause: Arc::clone(&world.pause) };
    Ok(Box::new(move |deadline| mail.send(deadline)))
}

impl Mail {
    /// Sends it to all in one go; where a server does not take one of several, to each by itself, so that the others have it.
    fn send(&self, deadline: Deadline) -> Result<(), NotTold> {
        let envelope = &self.envelope;
        // A server may repeat what it was sent.
        let failed = |error: &Error| self.secrets.clean(&describe(error));
        match self.deliver(envelope, deadline) {
            Ok(()) => return Ok(()),
            Err(error) if error.is_permanent() && envelope.to().len() > 1 => {}
            Err(error) => return Err(NotTold::Failed(failed(&error))),
        }
        let alone = |to: &Address| {
            let alone = Envelope::new(envelope.from().cloned(), vec![to.clone()]).map_err(|e| e.to_string());
            let outcome =
                alone.and_then(|alone| self.deliver(&alone, deadline).map_err(|error| failed(&error)));
            outcome.err().map(|what| format!("{to}: {what}"))
        };
        let not_told: Vec<String> = envelope.to().iter().filter_map(alone).collect();
        match (not_told.is_empty(), not_told.len() < envelope.to().len()) {
            (true, _) => Ok(()),
            (_, true) => Err(NotTold::Failed(format!("{} (the others were told)", not_told.join("; ")))),
            (_, false) => Err(NotTold::Failed(not_told.join("; "))),
        }
    }

    /// Hands it over, and again after a while where the server says that this may help and there is time.
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

/// Whether what the file says could be used.
pub(super) fn check(target: &MailTarget, message: Message<'_>) -> Result<(), NotTold> {
    mail(target, message).and_then(|_| refuse_clear(target))
}

/// A password goes over TLS, or stays on this machine.
fn refuse_clear(target: &MailTarget) -> Result<(), NotTold> {
    let is_here = ["localhost", "127.0.0.1", "::1"].contains(&target.server.as_str());
    if target.security == MailSecurity::None && target.password_env.is_some() && !is_here {
        let what = "a password is not sent in the clear; choose security = \"starttls\" or \"tls\"";
        return Err(NotTold::Setting(what.to_owned()));
    }
    Ok(())
}

/// The error with what is behind it.
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

fn mail(target: &MailTarget, message: Message<'_>) -> Result<lettre::Message, NotTold> {
    let address = |text: &str| {
        text.parse::<Mailbox>().map_err(|error| NotTold::Setting(format!("{text:?} is no address: {error}")))
    };
    let mut builder = lettre::Message::builder().from(address(&target.from)?).subject(message.subject);
    for to in &target.to {
        builder = builder.to(address(to)?);
    }
    let built = builder.header(ContentType::TEXT_PLAIN).body(message.plain.to_owned());
    built.map_err(|error| NotTold::Setting(format!("no mail can be made: {error}")))
}

fn transport(target: &MailTarget, world: &World<'_>) -> Result<(SmtpTransport, Secrets), NotTold> {
    let server = target.server.as_str();
    let unusable = |error| NotTold::Setting(format!("server {server:?}: {}", describe(&error)));
    let builder = match target.security {
        MailSecurity::Tls => SmtpTransport::relay(server).map_err(unusable)?,
        MailSecurity::Starttls => SmtpTransport::starttls_relay(server).map_err(unusable)?,
        MailSecurity::None => SmtpTransport::builder_dangerous(server),
    };
    let mut secrets = Secrets::default();
    let mut builder = builder.timeout(Some(world.limit));
    if let Some(port) = target.port {
        builder = builder.port(port);
    }
    if let (Some(username), Some(password)) = (&target.username_env, &target.password_env) {
        refuse_clear(target)?;
        let (username, password) = (world.secret(username)?, world.secret(password)?);
        secrets.add_login(&username, &password);
        builder = builder.credentials(Credentials::new(username, password));
    }
    Ok((builder.build(), secrets))
}
