//! Checking an attestation against a release policy, the repository and the clock.

use crate::attest::Document;
use crate::error::FlowError;
use holdpoint_evidence::EvidenceError;
use holdpoint_evidence::attest::{self, BaseRelation, Facts, Places, Problems, Signed, Signer};
use holdpoint_evidence::keys::{self, PublicKey};
use holdpoint_measure::{clock, machine};
use holdpoint_model::{Attestation, Date, ExitCode, ReleasePolicy};
use holdpoint_process::git::Repository;
use holdpoint_store::StoreError;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The release that an attestation is judged for.
#[derive(Clone, Debug)]
pub struct VerificationRequest {
    /// The folder with the files that the attestation names.
    pub artifacts: PathBuf,
    /// The key that it must be signed with; that of the environment, if absent.
    pub public_key: Option<PathBuf>,
    /// The commit that it must be for; the one that is checked out, if absent.
    pub commit_sha: Option<String>,
    /// Ids of keys that may seal measurements, besides the policy's.
    pub seal_keyid: Vec<String>,
    pub release: ReleaseRequest,
}

/// The files that are released, and the policy that they must meet.
#[derive(Clone, Debug)]
pub struct ReleaseRequest {
    /// Nothing may be missing, if absent.
    pub policy: Option<PathBuf>,
    pub release_dir: PathBuf,
}

/// Problems of an attestation or with a release, and the sentence about one without any.
#[derive(Debug)]
pub struct Verification {
    pub json: Value,
    pub problems: Problems,
    pub holds: String,
}

impl Verification {
    /// An attestation that is no evidence.
    pub fn broken(problems: Problems) -> Self {
        Self { json: json!(problems), problems, holds: String::new() }
    }

    pub fn new(problems: Problems, holds: String, attestation: Option<&Attestation>) -> Self {
        let json = json!({"verified": problems.is_empty(), "problems": problems, "attestation": attestation});
        Self { json, problems, holds }
    }

    pub fn exit_code(&self) -> ExitCode {
        if self.problems.is_empty() { ExitCode::Ok } else { ExitCode::Unverified }
    }
}

/// An attestation and its problems.
pub(crate) struct AttestationCheck {
    /// Contradictions: with any, it is no evidence.
    pub broken: Problems,
    /// Requirements of the policy that are not met.
    pub missing: Problems,
    /// Absent where it cannot be read.
    pub attestation: Option<Attestation>,
    pub signer: Signer,
}

impl AttestationCheck {
    fn unreadable(problem: String) -> Self {
        Self { broken: vec![problem], missing: Problems::new(), attestation: None, signer: Signer::Nobody }
    }

    /// Everything that stands against a release.
    pub fn problems(&self) -> Problems {
        [self.broken.as_slice(), self.missing.as_slice()].concat()
    }
}

/// The policy that was named, or the strictest.
pub(crate) fn read_policy(request: &ReleaseRequest) -> Result<ReleasePolicy, FlowError> {
    match &request.policy {
        Some(path) => Ok(holdpoint_store::read_release_policy(path)?),
        None => Ok(ReleasePolicy::default()),
    }
}

/// Holds a file against its signature, the files it speaks of and the policy.
pub(crate) fn check(path: &Path, request: &VerificationRequest) -> Result<AttestationCheck, FlowError> {
    let mut policy = read_policy(&request.release)?;
    policy.sealed_by.extend(request.seal_keyid.iter().cloned());
    let (document, key) = match read_signed(path, request)? {
        Ok(found) => found,
        Err(problem) => return Ok(AttestationCheck::unreadable(problem)),
    };
    let (document, signer) = match (document, &key) {
        (Document::Envelope(envelope), Some(key)) => {
            (Signed::Envelope(envelope, key), Signer::Key(key.key_id()))
        }
        (Document::Envelope(_), None) => {
            return Ok(AttestationCheck::unreadable("no public key was given".to_owned()));
        }
        (Document::Bare(attestation), _) => (Signed::Bare(attestation), Signer::Nobody),
    };
    let places = Places { artifacts: &request.artifacts, released: &request.release.release_dir };
    let (broken, attestation) = attest::verify(document, places, &policy)?;
    let missing = match &attestation {
        Some(found) => {
            let facts = facts(found, request.commit_sha.as_deref())?;
            attest::judge_release(found, &signer, &policy, &facts)
        }
        None => Problems::new(),
    };
    Ok(AttestationCheck { broken, missing, attestation, signer })
}

/// Reads a document and the public key that it is held against, or says why it cannot be verified. A file that cannot even be read as a
/// document was tampered with, or is another one.
fn read_signed(
    path: &Path,
    request: &VerificationRequest,
) -> Result<Result<(Document, Option<PublicKey>), String>, FlowError> {
    let document = match Document::read(path) {
        Ok(document) => document,
        Err(FlowError::Evidence(error @ EvidenceError::Format { .. })) => return Ok(Err(error.to_string())),
        Err(FlowError::Store(error @ StoreError::NotText { .. })) => return Ok(Err(error.to_string())),
        Err(error) => return Err(error),
    };
    match (&document, read_key(request)) {
        (_, Ok(key)) => Ok(Ok((document, Some(key)))),
        // Where nothing is signed no key is needed, but one that is given must be one.
        (Document::Bare(_), Err(EvidenceError::Key { .. })) if !is_key_given(request) => {
            Ok(Ok((document, None)))
        }
        (_, Err(error @ EvidenceError::Key { .. })) => Ok(Err(error.to_string())),
        (_, Err(error)) => Err(error.into()),
    }
}

fn read_key(request: &VerificationRequest) -> Result<PublicKey, EvidenceError> {
    keys::public(request.public_key.as_deref(), std::env::var(keys::PUBLIC_VARIABLE).ok().as_deref())
}

fn is_key_given(request: &VerificationRequest) -> bool {
    request.public_key.is_some() || std::env::var_os(keys::PUBLIC_VARIABLE).is_some()
}

/// Facts from the clock and the repository. A commit that was named takes precedence over the one that is checked out.
pub(crate) fn facts(attestation: &Attestation, commit: Option<&str>) -> Result<Facts, FlowError> {
    let today = Date::parse(&clock::timestamp_utc())
        .ok_or_else(|| FlowError::Internal("the clock names no day".to_owned()))?;
    let checked_out = || machine::revision(Path::new(".")).map(|revision| revision.commit);
    let commit = commit.map(str::to_owned).or_else(checked_out);
    let head = &attestation.release_metadata.commit_sha;
    let bases = attest::bases(attestation).into_iter();
    let bases = bases.map(|base| (base.to_owned(), relate(base, head))).collect();
    Ok(Facts { today, commit, bases })
}

/// How one commit stands to another, by the repository around this folder.
fn relate(base: &str, head: &str) -> BaseRelation {
    // They come from files: nothing but a hash is a question for git.
    let is_hash = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hash(base) || !is_hash(head) {
        return BaseRelation::Unknown;
    }
    let here = Repository::around(Path::new("."));
    let (Some(base_tree), Some(head_tree)) = (here.tree_of(base), here.tree_of(head)) else {
        return BaseRelation::Unknown;
    };
    if base_tree == head_tree {
        return BaseRelation::SameTree;
    }
    match here.is_ancestor(base, head) {
        Ok(true) => BaseRelation::Ancestor,
        Ok(false) => BaseRelation::Unrelated,
        Err(_) => BaseRelation::Unknown,
    }
}
