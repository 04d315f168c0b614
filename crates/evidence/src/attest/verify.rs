//! Checks an attestation against its signature, itself and its files. Every problem is reported, not only the first.

use super::requirements::REQUIREMENTS;
use super::{
    PREDICATE_TYPE, Release, STATEMENT_TYPE, files, inputs_sha256, read, released, subjects, summary,
};
use crate::keys::PublicKey;
use crate::{EvidenceError, Problem, dsse};
use holdpoint_model::attest::{AttestedArtifact, AttestedGate, Subject};
use holdpoint_model::limits::clean_text;
use holdpoint_model::{Attestation, Envelope, ReleasePolicy, Statement, json};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Problems found; empty when everything holds.
pub type Problems = Vec<String>;

/// The folders of a document's files.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    pub artifacts: &'a Path,
    /// The folder of the released files.
    pub released: &'a Path,
}

#[derive(Clone, Debug)]
pub enum Signed<'a> {
    /// With a signature, and the key that must have made it.
    Envelope(Envelope, &'a PublicKey),
    Bare(Box<Attestation>),
}

/// Checks a document against its signature, itself and the files; the policy says which files are released. An attestation that can be
/// read is returned; it may be shown, and must not be trusted while there are problems. [`judge_release`](super::judge_release) says
/// whether it is enough for a release.
pub fn verify(
    document: Signed<'_>,
    places: Places<'_>,
    policy: &ReleasePolicy,
) -> Result<(Problems, Option<Attestation>), EvidenceError> {
    let mut problems = Problems::new();
    let attestation = match document {
        Signed::Bare(attestation) => *attestation,
        Signed::Envelope(envelope, key) => match open_statement(&envelope, key) {
            Ok(statement) => {
                check_subjects(&statement, &mut problems);
                statement.predicate
            }
            // Nothing in it can be believed, so nothing more is said of it.
            Err(problem) => return Ok((vec![problem.to_string()], None)),
        },
    };
    check_consistency(&attestation, &mut problems)?;
    check_files(&attestation, places.artifacts, &mut problems)?;
    released::check(&attestation, policy, places.released, &mut problems)?;
    Ok((problems, Some(attestation)))
}

fn open_statement(envelope: &Envelope, key: &PublicKey) -> Result<Statement, Problem> {
    let payload = dsse::open(envelope, key)?;
    let text = String::from_utf8(payload).map_err(|_| "its payload is not UTF-8 text")?;
    read_statement(&text)
}

/// Whole numbers as such: protobuf, with which in-toto's own packages write, spells 1 as 1.0.
fn restore_whole_numbers(value: &mut Value) {
    /// From here on a float cannot tell a whole number from its neighbour.
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => {
            let whole =
                number.as_f64().filter(|n| number.is_f64() && n.fract() == 0.0 && n.abs() < WHOLE_MAX);
            if let Some(whole) = whole {
                *value = Value::from(whole as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(restore_whole_numbers),
        Value::Object(map) => map.values_mut().for_each(restore_whole_numbers),
        _ => {}
    }
}

/// Reads a statement of ours, known by its two types; unknown fields are ignored.
pub fn read_statement(text: &str) -> Result<Statement, Problem> {
    let mut value: Value =
        json::parse(text).map_err(|error| Problem::from(format!("its payload: {error}")))?;
    restore_whole_numbers(&mut value);
    for (key, wanted) in [("_type", STATEMENT_TYPE), ("predicateType", PREDICATE_TYPE)] {
        if value[key] != wanted {
            return Err(format!("its {key} is {}, not {wanted:?}", value[key]).into());
        }
    }
    serde_json::from_value(value).map_err(|error| format!("its payload: {error}").into())
}

/// The subjects must be the files that the attestation names, by name and SHA-256, in any order and with any other digests.
fn check_subjects(statement: &Statement, problems: &mut Problems) {
    let pairs = |subjects: &[Subject]| -> BTreeSet<(String, String)> {
        let sha256 = |subject: &Subject| subject.digest.get("sha256").cloned().unwrap_or_default();
        subjects.iter().map(|subject| (subject.name.clone(), sha256(subject))).collect()
    };
    let (named, attested) = (pairs(&statement.subject), pairs(&subjects(&statement.predicate)));
    for (name, _) in attested.difference(&named) {
        problems
            .push(clean_text(&format!("{name} is not among its subjects with the SHA-256 that it attests")));
    }
    for (name, _) in named.difference(&attested) {
        problems.push(clean_text(&format!("its subject {name} is not a file that its attestation names")));
    }
}

/// Finds contradictions inside an attestation.
fn check_consistency(attestation: &Attestation, problems: &mut Problems) -> Result<(), EvidenceError> {
    let Attestation { artifacts, gates, .. } = attestation;
    if !artifacts.iter().map(|a| &a.key).eq(REQUIREMENTS.artifacts.iter().map(|kind| &kind.key)) {
        problems.push(format!("its artifacts are not the {}, in their order", REQUIREMENTS.artifacts.len()));
    }
    if !gates.iter().map(|gate| &gate.key).eq(REQUIREMENTS.gates.iter().map(|kind| &kind.key)) {
        problems.push(format!("its gates are not the {}, in their order", REQUIREMENTS.gates.len()));
    }
    if attestation.summary != summary(artifacts, gates) {
        problems.push("its summary does not follow from its artifacts and gates".to_owned());
    }
    if attestation.inputs_sha256 != inputs_sha256(artifacts, gates)? {
        problems.push("inputs_sha256 is not the hash of the files it names".to_owned());
    }
    if attestation.generated_at_utc != attestation.release_metadata.build_date_utc {
        problems.push("it has two dates".to_owned());
    }
    let mut hashes = std::collections::BTreeMap::new();
    for (path, sha256) in files(artifacts, gates) {
        if *hashes.entry(path).or_insert(sha256) != sha256 {
            problems.push(clean_text(&format!("{path} has two hashes in it")));
        }
    }
    Ok(())
}

/// Reads the folder again, and reports every difference.
fn check_files(attestation: &Attestation, dir: &Path, problems: &mut Problems) -> Result<(), EvidenceError> {
    let release = Release::new(dir, &attestation.release_metadata);
    let artifacts = REQUIREMENTS.artifacts.iter().zip(&attestation.artifacts);
    for (kind, was) in artifacts.filter(|(kind, was)| kind.key == was.key) {
        let was =
            &AttestedArtifact { without: read::declared_away(&was.without, &was.detail), ..was.clone() };
        // A missing artifact is looked for at its usual places.
        let place = was.exists.then_some(was.path.as_str());
        let is = read::artifact(kind, release, place, was.without.as_deref())?;
        check_artifact(was, &is, problems);
    }
    // Those that it names, and those that it should have: one that was left out or has come since counts too.
    let given: Vec<(&str, &str)> = attestation
        .gates
        .iter()
        .flat_map(|gate| gate.inputs.iter().map(|input| (gate.key.as_str(), input.path.as_str())))
        .collect();
    let gates = REQUIREMENTS.gates.iter().zip(&attestation.gates);
    for (kind, was) in gates.filter(|(kind, was)| kind.key == was.key) {
        let was = &AttestedGate { without: read::declared_away(&was.without, &was.evidence), ..was.clone() };
        let is = read::gate(kind, release, &given, was.without.as_deref())?;
        check_gate(was, &is, problems);
    }
    Ok(())
}

fn check_artifact(was: &AttestedArtifact, is: &AttestedArtifact, problems: &mut Problems) {
    if was == is {
        return;
    }
    let name = format!("artifact {} ({})", was.key, if was.exists { &was.path } else { &is.path });
    let text = match (&was.sha256, &is.sha256) {
        (Some(_), None) => format!("{name} is not there any more"),
        (None, Some(_)) => format!("{name} was not there when it was attested, and is now"),
        (Some(old), Some(new)) if old != new => {
            format!("{name} is another file: SHA-256 {new}, attested {old}")
        }
        _ if was.status != is.status => {
            format!(
                "{name} is {} by its content ({}), attested {}",
                is.status.as_str(),
                is.detail,
                was.status.as_str()
            )
        }
        _ => format!("{name} is not described as it is: {}", is.detail),
    };
    problems.push(clean_text(&text));
}

fn check_gate(was: &AttestedGate, is: &AttestedGate, problems: &mut Problems) {
    if was == is {
        return;
    }
    let before = problems.len();
    for old in &was.inputs {
        let text = match is.inputs.iter().find(|new| new.path == old.path) {
            None => format!("gate {}: {} is not there any more, or is no verdict for it", was.key, old.path),
            Some(new) if new.sha256 != old.sha256 => {
                format!(
                    "gate {}: {} is another file: SHA-256 {}, attested {}",
                    was.key, old.path, new.sha256, old.sha256
                )
            }
            Some(new) if new.rests_on != old.rests_on && new.detail == old.detail => {
                let is_other = |path: &&String| new.rests_on.get(*path) != old.rests_on.get(*path);
                let path = old.rests_on.keys().chain(new.rests_on.keys()).find(is_other);
                let path = path.map(String::as_str).unwrap_or_default();
                format!("gate {}: {path}, on which {} rests, is not the file that it was", was.key, old.path)
            }
            Some(new) if new != old => {
                format!("gate {}: {} says {} ({})", was.key, old.path, new.status.as_str(), new.detail)
            }
            Some(_) => continue,
        };
        problems.push(clean_text(&text));
    }
    for new in is.inputs.iter().filter(|new| !was.inputs.iter().any(|old| old.path == new.path)) {
        let (status, detail) = (new.status.as_str(), &new.detail);
        problems.push(clean_text(&format!(
            "gate {}: {} is there, says {status} ({detail}), and was not attested",
            was.key, new.path
        )));
    }
    if problems.len() == before || was.status != is.status {
        let (old, new) = (was.status.as_str(), is.status.as_str());
        problems.push(clean_text(&format!("gate {} is {new} by its files, attested {old}", was.key)));
    }
}
