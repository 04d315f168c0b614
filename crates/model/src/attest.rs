//! Release attestations: which artifacts and which verdicts a release rests on, and the envelope that signs them. The keys of the
//! attestation are the first seed's; what is added stands beside them.

use crate::Revision;
use crate::seal::SealFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The evidence for a release: its artifacts and gates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "attestation")]
pub struct Attestation {
    pub schema_version: u32,
    pub generated_at_utc: String,
    pub release_metadata: ReleaseMetadata,
    /// The eight artifacts, in the seed's order.
    pub artifacts: Vec<AttestedArtifact>,
    /// The seven gates, in the seed's order.
    pub gates: Vec<AttestedGate>,
    pub summary: AttestationSummary,
    /// SHA-256 of the canonical JSON of path → SHA-256 of every file of artifacts and gates.
    pub inputs_sha256: String,
    /// The files that are released.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub release_files: Vec<ReleaseFile>,
    /// Version of holdpoint that made it.
    pub holdpoint: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseMetadata {
    /// The tag; `unversioned` where there is none.
    pub release_tag: String,
    pub commit_sha: String,
    /// The same moment as `generated_at_utc`.
    pub build_date_utc: String,
    /// The person responsible for the release.
    pub release_owner: String,
    pub runtime_target: RuntimeTarget,
    /// The CI run that made the evidence.
    pub ci_run_url: Option<String>,
    /// Whether tracked files differed from the commit; absent where git could not tell.
    pub dirty: Option<bool>,
    /// The hash of the commit's tree; absent where git could not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree_sha: Option<String>,
    /// The branch or tag that was built, where CI tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ref_name: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeTarget {
    #[default]
    Cpu,
    Torch,
    Triton,
    Tensorrt,
}

impl RuntimeTarget {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Torch => "torch",
            Self::Triton => "triton",
            Self::Tensorrt => "tensorrt",
        }
    }
}

/// The status of an artifact or a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GateStatus {
    #[serde(rename = "PASS")]
    Pass,
    /// Bad, missing, or not what it claims to be.
    #[serde(rename = "FAIL")]
    Fail,
    #[serde(rename = "PENDING")]
    Pending,
    /// Not of this release.
    #[serde(rename = "N/A")]
    NotApplicable,
}

impl GateStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Pending => "PENDING",
            Self::NotApplicable => "N/A",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttestedArtifact {
    /// The seed's key.
    pub key: String,
    pub label: String,
    /// Below the artifacts folder.
    pub path: String,
    pub producer: String,
    /// Whether the release needs it.
    pub required: bool,
    pub exists: bool,
    pub sha256: Option<String>,
    pub size_bytes: Option<u64>,
    pub status: GateStatus,
    /// How the file was read, or what is wrong with it.
    pub detail: String,
    /// Why the project does not have it, where that was declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<String>,
    /// The seal beside it, where one covers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<SealFacts>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttestedGate {
    /// The seed's key.
    pub key: String,
    pub label: String,
    /// The source of the status.
    pub evidence: String,
    pub status: GateStatus,
    /// Why the project does not have it, where that was declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<String>,
    /// The files it was read from.
    pub inputs: Vec<GateInput>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateInput {
    /// Below the artifacts folder.
    pub path: String,
    pub sha256: String,
    /// How the gate stands by it alone.
    pub status: GateStatus,
    /// The file's statement, or what is wrong with it.
    pub detail: String,
    /// The files that it was held against, below the artifacts folder, with their SHA-256.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rests_on: BTreeMap<String, String>,
    /// The seal beside it, where one covers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<SealFacts>,
    /// The revisions compared, if it is a verdict on times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseFile {
    /// Below the release folder.
    pub path: String,
    pub sha256: String,
    pub size_bytes: u64,
}

/// The two revisions that a verdict over times compares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// The revision of the base or of the baseline; absent where the file names none.
    pub base: Option<Revision>,
    /// The revision under test; absent where the file names none.
    pub head: Option<Revision>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttestationSummary {
    /// `pass`, `pending` or `fail`.
    pub overall_status: String,
    /// Artifacts that are needed.
    pub required_artifacts_total: usize,
    pub required_artifacts_passed: usize,
    pub required_artifacts_failed: usize,
    pub gates_total: usize,
    pub gates_passed: usize,
    pub gates_failed: usize,
    pub gates_pending: usize,
}

/// A person's sign-off in a file of its own: who, which gate, and for which commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignOff {
    pub schema_version: u32,
    pub gate: String,
    pub status: GateStatus,
    pub signed_off_by: String,
    /// The commit that was reviewed.
    pub commit_sha: String,
    /// Where the evidence can be read.
    pub evidence: String,
}

/// An in-toto statement of version 1. Unknown fields are ignored, as in-toto's parsing rules ask, here and below.
// It carries no `kind` beside in-toto's `_type` and `predicateType`; the attestation in it has its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Statement {
    /// Always `https://in-toto.io/Statement/v1`.
    #[serde(rename = "_type")]
    pub statement_type: String,
    pub subject: Vec<Subject>,
    #[serde(rename = "predicateType")]
    pub predicate_type: String,
    pub predicate: Attestation,
}

/// A file that a statement is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    /// Path below the artifacts folder.
    pub name: String,
    /// Hashes by name; ours is `sha256`.
    pub digest: BTreeMap<String, String>,
}

/// A DSSE envelope: bytes, what they are, and who signed them.
// It carries no `kind`: its keys are DSSE's, and `payloadType` says what it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// The statement's bytes, in Base64.
    pub payload: String,
    /// `application/vnd.in-toto+json`.
    #[serde(rename = "payloadType")]
    pub payload_type: String,
    pub signatures: Vec<EnvelopeSignature>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnvelopeSignature {
    /// A hint at the key, which anybody may write; ours is the name that securesystemslib gives the key.
    #[serde(default)]
    pub keyid: String,
    /// The signature, in Base64.
    pub sig: String,
}
