//! Replay manifests: what was computed from which seed and configuration, and the hashes of the answers. The hashed keys are the
//! originals'; what is added stands beside them and outside the hash.

use crate::machine::{EnvironmentLock, Machine, Revision, Toolchain};
use crate::{FuzzCase, Values};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Hashes of computed answers, and everything needed to compute them again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "replay_manifest")]
pub struct ReplayManifest {
    /// Always 1; the originals' own manifests do not say.
    #[serde(default = "crate::schema_version")]
    pub schema_version: u32,
    /// The suite: a built-in one, or its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// Inputs and weights are drawn from it.
    pub seed: u64,
    /// The configuration; ours is a [`ReplayConfig`].
    pub config: Map<String, Value>,
    /// SHA-256 of the configuration's canonical JSON.
    pub config_sha256: String,
    /// The files with the answers.
    pub artifact_hashes: BTreeMap<String, ArtifactHash>,
    /// These hashes alone.
    pub artifact_sha256: BTreeMap<String, String>,
    /// SHA-256 of the canonical JSON of `seed`, `config_sha256` and `artifact_sha256`.
    pub manifest_sha256: String,
    /// The outcome of each workload.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub workloads: IndexMap<String, ReplayedWorkload>,
    /// When the answers were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp_utc: Option<String>,
    /// The revision of the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// Where and with what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<ReplayEnvironment>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactHash {
    /// Where it lies, beside the manifest.
    pub path: String,
    pub sha256: String,
}

/// Where and with what answers were computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayEnvironment {
    pub machine: Machine,
    /// Instructions of its CPU that the built-in ops use where it has them.
    pub cpu_features: Vec<String>,
    pub toolchain: Toolchain,
    /// Settings that may change answers.
    #[serde(default)]
    pub environment_lock: EnvironmentLock,
}

impl ReplayEnvironment {
    /// Whether the same code gives the same bits there: the same instructions, and the same device where one is used.
    pub fn gives_the_same_bits(&self, other: &Self) -> bool {
        let of = |env: &Self| {
            (
                env.machine.arch.clone(),
                env.machine.os.clone(),
                env.machine.devices.clone(),
                env.cpu_features.clone(),
            )
        };
        of(self) == of(other)
    }
}

/// The configuration in a manifest of ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayConfig {
    pub suite: String,
    /// The computations, in order.
    pub workloads: Vec<ReplayCase>,
}

/// A workload and its inputs. Who computes it is not part of it, so that another worker can be asked for the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayCase {
    pub name: String,
    pub op: String,
    /// Sizes of the main input.
    pub shape: Vec<usize>,
    pub dtype: String,
    #[serde(default)]
    pub params: Map<String, Value>,
    pub seed: u64,
    pub values: Values,
}

impl From<ReplayCase> for FuzzCase {
    fn from(case: ReplayCase) -> Self {
        let ReplayCase { op, shape, dtype, params, seed, values, .. } = case;
        Self { op, shape, dtype, params, seed, values, offset: 0, kernel: None, declared: None }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayedWorkload {
    pub worker: String,
    /// SHA-256 of all inputs, one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs_sha256: Option<String>,
    /// Whether a second call gave the same bits.
    #[serde(default)]
    pub deterministic: bool,
    /// Its answers, in the op's order; the artifact of each is called `workload.output`.
    #[serde(default)]
    pub outputs: Vec<ReplayedOutput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayedOutput {
    pub name: String,
    /// The last size varies fastest.
    pub shape: Vec<usize>,
    /// Element type, little-endian in the file.
    pub dtype: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplayCompared {
    /// Bit by bit.
    Exact,
    /// By the tolerance of the element type.
    Tolerance,
    /// Not at all: the manifest or its files are not what was recorded, or hold nothing that could be run again.
    Nothing,
}

/// The result of running a manifest again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "replay_verification")]
pub struct ReplayVerification {
    pub schema_version: u32,
    /// The manifest that was run again.
    pub manifest_sha256: String,
    /// The revision that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// How answers were compared: bit by bit only where all were.
    pub compared: ReplayCompared,
    /// Answers that were compared bit by bit; the others were by tolerance.
    #[serde(default)]
    pub exact_count: u64,
    /// Whether all is as it was.
    pub same: bool,
    /// The differences, in order.
    pub differences: Vec<String>,
    /// Workloads that could not be run again, and why.
    pub skipped: BTreeMap<String, String>,
    /// Answers that were compared.
    pub outputs_count: u64,
    /// Values in them.
    pub values_count: u64,
    pub timestamp_utc: String,
}

/// Name of an answer among a manifest's artifacts.
pub fn artifact_name(workload: &str, output: &str) -> String {
    format!("{workload}.{output}")
}
