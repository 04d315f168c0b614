//! A mail by SMTP.

use super::{ATTEMPTS_MAX, Message, NotTold, World, wait_after};
use holdpoint_model::limits::clean_text;
use holdpoint_model::notify::{MailSecurity, MailTarget};
use lettre::address::{Address, Envelope};
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::Credentials;
use lettre::{SmtpTransport, Transport};
use std::time::Duration;

/// How long a server may take over one step.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Sends it to all in one go; where a server does not take one of several, to each by itself, so that the others have it.
pub(super) fn send(target: &MailTarget, message: Message<'_>, world: &World<'_>) -> Result<(), NotTold> {
    let mail = mail(target, message)?;
    let transport = transport(target, world)?;
    let (envelope, text) = (mail.envelope(), mail.formatted());
    let failed = |error: &Error| clean_text(&describe(error));
    match deliver(&transport, envelope, &text, world) {
        Ok(()) => return Ok(()),
        Err(error) if error.is_permanent() && envelope.to().len() > 1 => {}
        Err(error) => return Err(NotTold::Failed(failed(&error))),
    }
    let alone = |to: &Address| {
        let alone = Envelope::new(envelope.from().cloned(), vec![to.clone()]).map_err(|e| e.to_string());
        let outcome =
            alone.and_then(|alone| deliver(&transport, &alone, &text, world).map_err(|error| failed(&error)));
        outcome.err().map(|what| format!("{to}: {what}"))
    };
    let not_told: Vec<String> = envelope.to().iter().filter_map(alone).collect();
    match (not_told.is_empty(), not_told.len() < envelope.to().len()) {
        (true, _) => Ok(()),
        (_, true) => Err(NotTold::Failed(format!("{} (the others were told)", not_told.join("; ")))),
        (_, false) => Err(NotTold::Failed(not_told.join("; "))),
    }
}

/// Hands it over, and again after a while where the server says that this may help.
fn deliver(transport: &SmtpTransport, to: &Envelope, text: &[u8], world: &World<'_>) -> Result<(), Error> {
    let mut attempt = 1;
    loop {
        match transport.send_raw(to, text) {
            Err(error) if error.is_transient() && attempt < ATTEMPTS_MAX => {
                (world.pause)(wait_after(attempt));
                attempt += 1;
            }
            outcome => return outcome.map(|_| ()),
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

fn transport(target: &MailTarget, world: &World<'_>) -> Result<SmtpTransport, NotTold> {
    let server = target.server.as_str();
    let unusable = |error| NotTold::Setting(format!("server {server:?}: {}", describe(&error)));
    let builder = match target.security {
        MailSecurity::Tls => SmtpTransport::relay(server).map_err(unusable)?,
        MailSecurity::Starttls => SmtpTransport::starttls_relay(server).map_err(unusable)?,
        MailSecurity::None => SmtpTransport::builder_dangerous(server),
    };
    let mut builder = builder.timeout(Some(TIMEOUT));
    if let Some(port) = target.port {
        builder = builder.port(port);
    }
    if let (Some(username), Some(password)) = (&target.username_env, &target.password_env) {
        refuse_clear(target)?;
        builder = builder.credentials(Credentials::new(world.secret(username)?, world.secret(password)?));
    }
    Ok(builder.build())
}
