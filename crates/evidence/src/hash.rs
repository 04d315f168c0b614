//! SHA-256 of bytes, files and documents, in lower-case hex.

use crate::canonical::to_canonical;
use holdpoint_store::StoreError;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::path::Path;

pub fn bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// SHA-256 of a value's canonical JSON.
pub fn json<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    Ok(bytes(to_canonical(value)?.as_bytes()))
}

pub fn file(path: &Path) -> Result<(String, u64), StoreError> {
    let mut hasher = Sha256::new();
    let size_bytes = holdpoint_store::read_chunks(path, |chunk| hasher.update(chunk))?;
    Ok((hex(&hasher.finalize()), size_bytes))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
