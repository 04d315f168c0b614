//! Seals: made when something is measured, and checked against the files beside them later.
//!
//! A seal names the key that signed it; that key's signature is checked here. The caller decides whether the key may seal: anybody can
//! make a key.

use crate::canonical::to_canonical;
use crate::folder::sibling;
use crate::keys::PublicKey;
use crate::{EvidenceError, Problem, dsse, folder, hash};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{SigningKey, VerifyingKey};
use holdpoint_model::limits::clean_text;
use holdpoint_model::seal::{Seal, SealFacts};
use holdpoint_model::{Kind, document, json};
use serde_json::Value;
use std::path::Path;

/// The payload type of a seal, so that it cannot be taken for an attestation.
pub const PAYLOAD_TYPE: &str = "application/vnd.holdpoint.seal+json";
/// The seal of `run` and `gate`, over all files that they write.
const OF_REPORT: &str = "report.seal.json";
/// The seal of `ab` and `gate --against`.
const OF_SIDES: &str = "ab.seal.json";

/// Stands for the commit of measurements outside a repository.
pub const UNKNOWN_COMMIT: &str = "unknown";

/// The path of a file's seal: `ab.json` has `ab.seal.json`.
pub fn seal_path(file: &Path) -> std::path::PathBuf {
    file.with_extension("seal.json")
}

/// The names of a file's workloads, and the hash of their raw samples in order; nothing for files without samples.
pub fn sealed_samples(text: &str) -> Result<Option<(Vec<String>, String)>, EvidenceError> {
    let (list, samples) = match document::kind(text) {
        Ok(Some(Kind::Report)) => ("benchmarks", "samples"),
        Ok(Some(Kind::Ab)) => ("workloads", "units"),
        _ => return Ok(None),
    };
    let Ok(value) = json::parse::<Value>(text) else { return Ok(None) };
    let Some(workloads) = value.get(list).and_then(Value::as_object) else { return Ok(None) };
    let raw: Vec<Option<(&String, &Value)>> =
        workloads.iter().map(|(name, workload)| Some((name, workload.get(samples)?))).collect();
    if raw.iter().all(Option::is_none) {
        return Ok(None);
    }
    Ok(Some((workloads.keys().cloned().collect(), hash::json(&raw)?)))
}

/// The text of a seal's file: an envelope signed by the key, or the seal alone where there is none.
pub fn seal_text(mut seal: Seal, key: Option<&SigningKey>) -> Result<String, EvidenceError> {
    seal.public_key = key.map(|key| STANDARD.encode(key.verifying_key().as_bytes()));
    let text = match key {
        Some(key) => json::to_pretty(&dsse::sign_as(PAYLOAD_TYPE, to_canonical(&seal)?.as_bytes(), key)),
        None => json::to_pretty(&seal),
    };
    text.map_err(|error| EvidenceError::Seal(error.to_string()))
}

/// The revision that a file of the folder must be of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin<'a> {
    pub commit: &'a str,
    /// The hash of its tree, where it is known.
    pub tree: Option<&'a str>,
}

/// Finds the seal of a file, below a folder, and checks it against the files and the commit; absent where no seal covers the file.
///
/// # Errors
/// When a seal is there and cannot be read at all.
pub fn seal_facts(dir: &Path, file: &str, origin: Origin<'_>) -> Result<Option<SealFacts>, EvidenceError> {
    for path in seal_places(file) {
        let Some(found) = folder::find_file(dir, &path)? else { continue };
        let text = holdpoint_store::read_text(&found)?;
        let sha256 = hash::bytes(text.as_bytes());
        match open_seal(&text) {
            Ok((seal, keyid)) if seal.files.contains_key(name_of(file)) => {
                let problems = seal_problems(&seal, dir, &path, origin)?;
                return Ok(Some(SealFacts { path, sha256, keyid, problems }));
            }
            Ok(_) => {}
            Err(problem) => {
                return Ok(Some(SealFacts {
                    path,
                    sha256,
                    keyid: None,
                    problems: vec![problem.to_string()],
                }));
            }
        }
    }
    Ok(None)
}

/// `gpu/comparison.json` may be sealed by its own seal, or by that of the samples that it judges.
fn seal_places(file: &str) -> [String; 3] {
    let own = seal_path(Path::new(file)).display().to_string();
    [own, sibling(file, OF_REPORT), sibling(file, OF_SIDES)]
}

fn name_of(file: &str) -> &str {
    file.rsplit_once('/').map_or(file, |(_, name)| name)
}

/// Reads a seal, checks its signature where it has one, and returns the id of its key.
pub fn open_seal(text: &str) -> Result<(Seal, Option<String>), Problem> {
    let Ok(envelope) = document::read_envelope(text) else {
        let seal = document::read::<Seal>(text)?;
        let is_signed = seal.public_key.is_some();
        return if is_signed { Err("its signature is missing".into()) } else { Ok((seal, None)) };
    };
    let payload =
        String::from_utf8(dsse::payload(&envelope)?).map_err(|_| "its payload is not UTF-8 text")?;
    let seal = document::read::<Seal>(&payload)?;
    let key = seal.public_key.as_deref().and_then(|text| STANDARD.decode(text).ok());
    let key: Option<[u8; 32]> = key.and_then(|bytes| bytes.try_into().ok());
    let key = key.and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok()).ok_or("it names no key")?;
    let key = PublicKey::from(key);
    dsse::open_as(PAYLOAD_TYPE, &envelope, &key)?;
    Ok((seal, Some(key.key_id())))
}

/// Finds differences between a seal and the files in its folder, or the commit.
fn seal_problems(
    seal: &Seal,
    dir: &Path,
    path: &str,
    origin: Origin<'_>,
) -> Result<Vec<String>, EvidenceError> {
    let mut problems = Vec::new();
    let measured_at = seal.commit.as_deref().unwrap_or(UNKNOWN_COMMIT);
    if measured_at != origin.commit {
        problems.push(format!("it was measured at {measured_at}, not at {}", origin.commit));
    }
    if let (Some(sealed), Some(tree)) = (&seal.tree, origin.tree)
        && sealed != tree
    {
        problems.push(format!("it was measured with tree {sealed}, the commit has tree {tree}"));
    }
    for (name, sha256) in &seal.files {
        match folder::find_file(dir, &sibling(path, name))? {
            None => problems.push(format!("{name}, which was sealed with it, is not there")),
            Some(_) if name.contains('/') => problems.push(format!("{name} is not in its folder")),
            Some(file) => match hash::file(&file)? {
                (is, _) if is != *sha256 => problems.push(format!("{name} is not the file that was sealed")),
                _ => problems.extend(samples_problem(seal, name, &file)?),
            },
        }
    }
    Ok(problems.iter().map(|problem| clean_text(problem)).collect())
}

/// Samples are also sealed by themselves, so that the seal covers them whatever the layout of the file.
fn samples_problem(seal: &Seal, name: &str, file: &Path) -> Result<Option<String>, EvidenceError> {
    let Some(sealed) = seal.samples_sha256.get(name) else { return Ok(None) };
    let found = sealed_samples(&holdpoint_store::read_text(file)?)?;
    let is_same = found.is_some_and(|(names, sha256)| {
        sha256 == *sealed && names.iter().all(|name| seal.workloads.contains(name))
    });
    Ok((!is_same).then(|| format!("the samples of {name} are not those that were sealed")))
}
