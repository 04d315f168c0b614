//! A mail by SMTP.

use super::{Message, NotTold, World};
use holdpoint_model::limits::clean_text;
use holdpoint_model::notify::{MailSecurity, MailTarget};
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::Credentials;
use lettre::{SmtpTransport, Transport};
use std::time::Duration;

/// How long a server may take over one step.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn send(target: &MailTarget, message: Message<'_>, world: &World<'_>) -> Result<(), NotTold> {
    let mail = mail(target, message)?;
    let transport = transport(target, world)?;
    let failed = |error: lettre::transport::smtp::Error| NotTold::Failed(clean_text(&describe(&error)));
    transport.send(&mail).map(|_| ()).map_err(failed)
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
        let is_here = ["localhost", "127.0.0.1", "::1"].contains(&server);
        if target.security == MailSecurity::None && !is_here {
            let what = "a password is not sent in the clear; choose security = \"starttls\" or \"tls\"";
            return Err(NotTold::Setting(what.to_owned()));
        }
        builder = builder.credentials(Credentials::new(world.secret(username)?, world.secret(password)?));
    }
    Ok(builder.build())
}
