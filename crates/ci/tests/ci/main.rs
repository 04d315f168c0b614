//! Against servers on this machine that play GitHub, a mail server and receivers of webhooks.

#![allow(clippy::unwrap_used)]

mod comment;
mod events;
mod notify;
mod server;
mod smtp;
