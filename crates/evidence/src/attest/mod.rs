//! Release attestations: the evidence of a release, read from files and checked against them again. The user names only who,
//! what for, and what a project does not have.

mod base;
mod policy;
mod read;
pub mod released;
mod requirements;
mod times;
mod verdict;
mod verify;

pub use policy::{BaseRelation, Facts, Signer, bases, judge_release};
pub use requirements::known_keys;
pub use verify::{Places, Problems, Signed, read_statement, verify};

use crate::seal::{Origin, seal_facts};
use crate::{EvidenceError, hash};
use holdpoint_model::attest::{
    AttestationSummary, AttestedArtifact, AttestedGate, GateStatus, ReleaseFile, ReleaseMetadata,
    RuntimeTarget, Subject,
};
use holdpoint_model::{Attestation, Date, SCHEMA_VERSION, SealFacts, Statement};
use requirements::REQUIREMENTS;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The type of every in-toto statement of version 1.
pub(crate) const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The type of our predicate.
pub(crate) const PREDICATE_TYPE: &str =
    "https://github.com/holdpoint/holdpoint/blob/main/docs/attest.md#predicate-v1";

/// A request for an attestation.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub dir: &'a Path,
    /// The release and its owner; its date is the attestation's.
    pub metadata: ReleaseMetadata,
    /// Artifacts that lie at another place in the folder, by key.
    pub artifact_paths: BTreeMap<String, String>,
    /// Further verdict files, by the key of their gate.
    pub gate_files: Vec<(String, String)>,
    /// Artifacts and gates that the project does not have, by key, and why.
    pub without: BTreeMap<String, String>,
    pub release_files: Vec<ReleaseFile>,
    pub holdpoint: String,
}

/// The release that files are checked against.
#[derive(Clone, Copy)]
struct Release<'a> {
    dir: &'a Path,
    commit: &'a str,
    tree: Option<&'a str>,
    target: RuntimeTarget,
    /// The day of the attestation: waivers that have expired by then do not count.
    day: Option<Date>,
}

impl<'a> Release<'a> {
    fn new(dir: &'a Path, metadata: &'a ReleaseMetadata) -> Self {
        let day = metadata.build_date_utc.get(..10).and_then(Date::parse);
        let tree = metadata.tree_sha.as_deref();
        Self { dir, commit: &metadata.commit_sha, tree, target: metadata.runtime_target, day }
    }

    /// The seal of a file, checked against the files and the commit.
    fn seal(&self, path: &str) -> Result<Option<SealFacts>, EvidenceError> {
        seal_facts(self.dir, path, Origin { commit: self.commit, tree: self.tree })
    }
}

/// Makes an attestation from the files of a folder.
pub fn create(request: &Request<'_>) -> Result<Attestation, EvidenceError> {
    let release = Release::new(request.dir, &request.metadata);
    let artifacts = REQUIREMENTS.artifacts.iter().map(|kind| {
        let place = request.artifact_paths.get(&kind.key).map(String::as_str);
        let without = request.without.get(&kind.key).map(String::as_str);
        read::artifact(kind, release, place, without)
    });
    let artifacts: Vec<AttestedArtifact> = artifacts.collect::<Result<_, _>>()?;
    let given: Vec<(&str, &str)> =
        request.gate_files.iter().map(|(key, path)| (key.as_str(), path.as_str())).collect();
    let gates = REQUIREMENTS.gates.iter().map(|kind| {
        let without = request.without.get(&kind.key).map(String::as_str);
        read::gate(kind, release, &given, without)
    });
    let gates: Vec<AttestedGate> = gates.collect::<Result<_, _>>()?;
    Ok(Attestation {
        schema_version: SCHEMA_VERSION,
        generated_at_utc: request.metadata.build_date_utc.clone(),
        release_metadata: request.metadata.clone(),
        summary: summary(&artifacts, &gates),
        inputs_sha256: inputs_sha256(&artifacts, &gates)?,
        artifacts,
        gates,
        release_files: request.release_files.clone(),
        holdpoint: request.holdpoint.clone(),
    })
}

/// The artifacts and gates that the user declared the project does not have.
pub fn without(attestation: &Attestation) -> Vec<&str> {
    let artifacts = attestation.artifacts.iter().map(|a| (&a.key, &a.without, &a.detail));
    let gates = attestation.gates.iter().map(|gate| (&gate.key, &gate.without, &gate.evidence));
    let all =
        artifacts.chain(gates).filter(|(_, without, text)| read::declared_away(without, text).is_some());
    all.map(|(key, ..)| key.as_str()).collect()
}

/// Every file about times, with the key of its artifact or gate, and its seal.
pub(crate) fn seals(attestation: &Attestation) -> Vec<(&str, &str, Option<&SealFacts>)> {
    let is_report = |a: &&AttestedArtifact| a.exists && REQUIREMENTS.is_about_times(&a.key);
    let reports = attestation.artifacts.iter().filter(is_report);
    let reports = reports.map(|a| (a.key.as_str(), a.path.as_str(), a.seal.as_ref()));
    let gates = attestation.gates.iter().filter(|gate| REQUIREMENTS.is_about_times(&gate.key));
    let inputs = gates.flat_map(|gate| gate.inputs.iter().map(|input| (gate.key.as_str(), input)));
    reports.chain(inputs.map(|(key, input)| (key, input.path.as_str(), input.seal.as_ref()))).collect()
}

fn summary(artifacts: &[AttestedArtifact], gates: &[AttestedGate]) -> AttestationSummary {
    let required = || artifacts.iter().filter(|artifact| artifact.required);
    let passed = required().filter(|artifact| artifact.status == GateStatus::Pass).count();
    let total = required().count();
    let count = |status| gates.iter().filter(|gate| gate.status == status).count();
    let (failed, pending) = (count(GateStatus::Fail), count(GateStatus::Pending));
    // A bad artifact counts, required or not.
    let is_bad = artifacts.iter().any(|artifact| artifact.status == GateStatus::Fail);
    let overall = match (is_bad || failed > 0, total - passed + pending) {
        (true, _) => "fail",
        (false, 0) => "pass",
        (false, _) => "pending",
    };
    AttestationSummary {
        overall_status: overall.to_owned(),
        required_artifacts_total: total,
        required_artifacts_passed: passed,
        required_artifacts_failed: total - passed,
        gates_total: gates.len(),
        gates_passed: count(GateStatus::Pass),
        gates_failed: failed,
        gates_pending: pending,
    }
}

/// Every file that the attestation names, with its hash.
fn files<'a>(
    artifacts: &'a [AttestedArtifact],
    gates: &'a [AttestedGate],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let of_artifacts = artifacts.iter().filter_map(|a| Some((a.path.as_str(), a.sha256.as_deref()?)));
    let inputs = || gates.iter().flat_map(|gate| &gate.inputs);
    let of_gates = inputs().map(|input| (input.path.as_str(), input.sha256.as_str()));
    let beside = inputs().flat_map(|input| &input.rests_on);
    let beside = beside.map(|(path, sha256)| (path.as_str(), sha256.as_str()));
    let seals =
        artifacts.iter().filter_map(|a| a.seal.as_ref()).chain(inputs().filter_map(|i| i.seal.as_ref()));
    let seals = seals.map(|seal| (seal.path.as_str(), seal.sha256.as_str()));
    of_artifacts.chain(of_gates).chain(beside).chain(seals)
}

fn inputs_sha256(artifacts: &[AttestedArtifact], gates: &[AttestedGate]) -> Result<String, EvidenceError> {
    let all: BTreeMap<&str, &str> = files(artifacts, gates).collect();
    Ok(hash::json(&all)?)
}

fn subjects(attestation: &Attestation) -> Vec<Subject> {
    let released = attestation.release_files.iter().map(|file| (file.path.as_str(), file.sha256.as_str()));
    let all: BTreeSet<(&str, &str)> =
        files(&attestation.artifacts, &attestation.gates).chain(released).collect();
    let subject = |(name, sha256): (&str, &str)| Subject {
        name: name.to_owned(),
        digest: [("sha256".to_owned(), sha256.to_owned())].into(),
    };
    all.into_iter().map(subject).collect()
}

/// The statement to sign: the attestation, about the files it names and those that are released.
pub fn statement(attestation: Attestation) -> Statement {
    Statement {
        statement_type: STATEMENT_TYPE.to_owned(),
        subject: subjects(&attestation),
        predicate_type: PREDICATE_TYPE.to_owned(),
        predicate: attestation,
    }
}
