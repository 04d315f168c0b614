//! The released files: found by the policy's patterns, hashed, and checked against the attestation.

use super::Problems;
use crate::folder::stays_below;
use crate::{EvidenceError, hash};
use holdpoint_model::attest::ReleaseFile;
use holdpoint_model::limits::clean_text;
use holdpoint_model::release_policy::{split_pattern, takes_file};
use holdpoint_model::{Attestation, ReleasePolicy};
use std::collections::BTreeSet;
use std::path::Path;

/// The paths below the release folder that match the policy's patterns.
///
/// # Errors
/// When a folder is there and cannot be listed.
pub fn find(policy: &ReleasePolicy, dir: &Path) -> Result<BTreeSet<String>, EvidenceError> {
    let mut found = BTreeSet::new();
    for pattern in &policy.files {
        let (folder, _) = split_pattern(pattern);
        for name in holdpoint_store::list_names(&dir.join(folder))? {
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            if takes_file(pattern, &path) {
                found.insert(path);
            }
        }
    }
    Ok(found)
}

/// Hashes a file below the release folder; `None` where there is no plain file.
pub fn read(dir: &Path, path: &str) -> Result<Option<ReleaseFile>, EvidenceError> {
    let file = dir.join(path);
    let is_plain = stays_below(Path::new(path)) && file.symlink_metadata().is_ok_and(|found| found.is_file());
    if !is_plain {
        return Ok(None);
    }
    let (sha256, size_bytes) = hash::file(&file)?;
    Ok(Some(ReleaseFile { path: path.to_owned(), sha256, size_bytes }))
}

/// Finds released files that are gone, have changed, or match the policy without being attested.
pub(super) fn check(
    attestation: &Attestation,
    policy: &ReleasePolicy,
    dir: &Path,
    problems: &mut Problems,
) -> Result<(), EvidenceError> {
    for was in &attestation.release_files {
        let text = match read(dir, &was.path)? {
            None => format!("released file {} is not in {}", was.path, dir.display()),
            Some(is) if is != *was => {
                format!(
                    "released file {} is another file: SHA-256 {}, attested {}",
                    was.path, is.sha256, was.sha256
                )
            }
            Some(_) => continue,
        };
        problems.push(clean_text(&text));
    }
    let is_attested = |path: &String| attestation.release_files.iter().any(|file| file.path == *path);
    let others = find(policy, dir)?.into_iter().filter(|path| !is_attested(path));
    problems.extend(others.map(|path| clean_text(&format!("released file {path} was not attested"))));
    Ok(())
}
