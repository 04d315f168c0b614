//! What holdpoint says to code hosts and to people: the comment on a pull request, mail, webhooks.
//!
//! The only crate that uses a network, and only when asked to. It decides nothing and makes no text: both come from elsewhere.
//! Secrets are taken from the caller and are in no error and no output.

pub mod github;
mod http;
pub mod notify;
