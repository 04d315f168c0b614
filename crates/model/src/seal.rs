//! Seals: what was measured, of which code and where, fixed by hashes at the moment it was written, and signed where there is a key.

use crate::kind::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The hashes of a run's measurements and files. Stored as it is or signed, in a DSSE envelope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Seal {
    /// Always `seal`: a field of its own, because what is signed may hold nothing that is not known.
    #[serde(default = "kind")]
    pub kind: Kind,
    pub schema_version: u32,
    /// The command that measured: `run`, `gate`, `ab` and so on.
    pub command: String,
    /// When the files were written.
    pub sealed_at_utc: String,
    pub holdpoint: String,
    /// The commit that was measured; absent where git could not tell.
    pub commit: Option<String>,
    /// The hash of its tree.
    pub tree: Option<String>,
    /// Whether tracked files differed from it.
    pub dirty: Option<bool>,
    pub suite: SealedSuite,
    /// Names of all workloads, in their order.
    pub workloads: Vec<String>,
    /// File → SHA-256 of the canonical JSON of its raw samples, of the files that hold any.
    pub samples_sha256: BTreeMap<String, String>,
    /// File → SHA-256, of every file that the run wrote, all in the seal's folder.
    pub files: BTreeMap<String, String>,
    pub machine_fingerprint: Option<String>,
    /// The CI run, where there is one.
    pub ci_run_url: Option<String>,
    /// SHA-256 of what this builds on: a gate's baseline, or the seal of the part that a resumed comparison goes on from.
    pub builds_on: Option<String>,
    /// The public key that the seal is signed with, its 32 bytes in Base64; absent where it is not signed.
    pub public_key: Option<String>,
}

fn kind() -> Kind {
    Kind::Seal
}

/// A suite, by its name and its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SealedSuite {
    pub name: String,
    /// SHA-256 of its text.
    pub sha256: String,
}

/// Whether a file was sealed when it was measured, as found beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SealFacts {
    /// The seal, below the artifacts folder.
    pub path: String,
    pub sha256: String,
    /// SHA-256 of the public key that signed it; absent where it is not signed.
    pub keyid: Option<String>,
    /// Why the seal is invalid; if there is any problem, nothing in it can be trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// How far a seal can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealState<'a> {
    /// Signed by the key of this id, and all of it holds. Whether the key may seal is the reader's to say.
    SealedBy(&'a str),
    /// Hashes that hold, and no signature: whoever could write the files could write it.
    Unsealed,
    /// It does not hold; the first problem.
    Broken(&'a str),
}

impl SealFacts {
    /// How far it can be believed.
    pub fn state(&self) -> SealState<'_> {
        match (self.problems.first(), &self.keyid) {
            (Some(problem), _) => SealState::Broken(problem),
            (None, Some(keyid)) => SealState::SealedBy(keyid),
            (None, None) => SealState::Unsealed,
        }
    }
}

/// The state in a few words; a file without a seal is unsealed.
pub fn describe_seal(facts: Option<&SealFacts>) -> String {
    match facts.map(SealFacts::state) {
        Some(SealState::SealedBy(keyid)) => {
            format!("sealed by {}…", keyid.chars().take(16).collect::<String>())
        }
        Some(SealState::Broken(problem)) => format!("seal broken: {problem}"),
        Some(SealState::Unsealed) | None => "unsealed".to_owned(),
    }
}
