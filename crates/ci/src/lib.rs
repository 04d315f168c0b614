//! CI integration: events, workflows, comments, notifications, for GitHub and GitLab.
//!
//! The only crate that uses a network, and only when asked to. It decides nothing about speed and makes no text: both come from
//! elsewhere. Secrets are taken from the caller and are in no error and no output.

pub mod github;
pub mod gitlab;
pub mod guard;
mod http;
pub mod notify;
pub mod outcome;
mod redact;
pub mod workflows;
