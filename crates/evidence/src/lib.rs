//! Evidence that can be checked again: replay manifests, release attestations, signatures, the release checklist.
//!
//! Runs nothing and prints nothing. Facts come from the files, never from the caller.

pub mod attest;
pub mod canonical;
pub mod checklist;
pub mod dsse;
mod error;
pub mod folder;
pub mod hash;
pub mod keys;
pub mod rejudge;
pub mod replay;
pub mod seal;

pub use ed25519_dalek::SigningKey;
pub use error::{EvidenceError, Problem};
