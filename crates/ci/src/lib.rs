//! What a forge (GitHub, GitLab) and people are told, and what a forge is believed: workflows, who may use the GPU, the comment on a
//! pull request, mail, webhooks.
//!
//! The only crate that uses a network, and only when asked to. It decides nothing about speed and makes no text: both come from
//! elsewhere. Secrets are taken from the caller and are in no error and no output.

pub mod github;
pub mod guard;
mod http;
pub mod notify;
mod redact;
pub mod workflows;
