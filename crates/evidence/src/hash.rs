//! SHA-256 of bytes, files and documents, in lower-case hex.

use crate::canonical::to_canonical;
use holdpoint_store::StoreError;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::path::Path;

/// Of some bytes.
#[must_use]
pub fn bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Of a value's canonical JSON.
///
/// # Errors
/// When the value has no JSON form.
pub fn json<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    Ok(bytes(to_canonical(value)?.as_bytes()))
}

/// Of a file, with its size.
pub fn file(path: &Path) -> Result<(String, u64), StoreError> {
    let mut hasher = Sha256::new();
    let size_bytes = holdpoint_store::read_chunks(path, |chunk| hasher.update(chunk))?;
    Ok((hex(&hasher.finalize()), size_bytes))
}

/// Bytes as hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
