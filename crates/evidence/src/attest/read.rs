//! Reads one artifact or one gate from the folder.

use super::requirements::{ArtifactKind, Content, Form, GateKind, REQUIREMENTS, TimesOf};
use super::verdict::{self, FileVerdict};
use super::{Release, times};
use crate::folder::find_file;
use crate::replay::{changed_files, contradictions};
use crate::{EvidenceError, Problem, hash};
use holdpoint_model::attest::{AttestedArtifact, AttestedGate, GateInput, GateStatus, RuntimeTarget};
use holdpoint_model::limits::clean_text;
use holdpoint_model::seal::{SealFacts, SealState, describe_seal};
use holdpoint_model::{FileError, Kind, ReplayManifest, Report, document, json};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Prefix of the text for something that a project does not have.
const WITHOUT: &str = "not of this project: ";

/// Why a project does not have something. Attestations from before `without` say so only in their text.
pub(super) fn declared_away(without: &Option<String>, text: &str) -> Option<String> {
    without.clone().or_else(|| text.strip_prefix(WITHOUT).map(str::to_owned))
}

/// Reads an artifact: at its place, or at the first of the usual ones where there is one.
pub(super) fn artifact(
    kind: &ArtifactKind,
    release: Release<'_>,
    place: Option<&str>,
    without: Option<&str>,
) -> Result<AttestedArtifact, EvidenceError> {
    let Release { dir, target, .. } = release;
    let usual = kind.paths.iter().map(String::as_str).find(|path| dir.join(path).is_file());
    let path = place.or(usual).unwrap_or(&kind.paths[0]);
    let file = find_file(dir, path)?;
    let required = without.is_none() && kind.only_for.is_none_or(|only| only == target);
    let mut artifact = AttestedArtifact {
        key: kind.key.clone(),
        label: kind.label.clone(),
        path: path.to_owned(),
        producer: kind.producer.clone(),
        required,
        exists: file.is_some(),
        sha256: None,
        size_bytes: None,
        status: if required { GateStatus::Fail } else { GateStatus::NotApplicable },
        detail: match without {
            Some(reason) => clean_text(&format!("{WITHOUT}{reason}")),
            None if required => "missing".to_owned(),
            None => format!("not needed for {}", target.as_str()),
        },
        without: without.map(clean_text),
        seal: None,
    };
    if let Some(file) = file {
        let (sha256, size_bytes) = hash::file(&file)?;
        (artifact.sha256, artifact.size_bytes) = (Some(sha256), Some(size_bytes));
        (artifact.status, artifact.detail) = match content(kind, path, release) {
            Ok(found) => found,
            Err(problem) => (GateStatus::Fail, problem.to_string()),
        };
        artifact.seal = release.seal(path)?;
        add_seal(&kind.key, artifact.seal.as_ref(), &mut artifact.status, &mut artifact.detail);
    }
    Ok(artifact)
}

/// Adds the state of the seal. A broken seal fails the file; a missing one is mentioned where a release needs one.
fn add_seal(key: &str, seal: Option<&SealFacts>, status: &mut GateStatus, detail: &mut String) {
    if seal.is_some() || REQUIREMENTS.is_about_times(key) {
        *detail = clean_text(&format!("{detail}, {}", describe_seal(seal)));
    }
    if matches!(seal.map(SealFacts::state), Some(SealState::Broken(_))) {
        *status = GateStatus::Fail;
    }
}

/// Checks an artifact's content and describes it.
fn content(kind: &ArtifactKind, path: &str, release: Release<'_>) -> Result<(GateStatus, String), Problem> {
    let file = &release.dir.join(path);
    let good = |detail| (GateStatus::Pass, detail);
    match kind.content {
        Content::Onnx => starts_with(file, |first| first.first() == Some(&0x08), "ONNX model").map(good),
        Content::Bytes => starts_with(file, |first| !first.is_empty(), "engine").map(good),
        _ => {
            let text = holdpoint_store::read_text(file)?;
            document(kind, &text, path, release)
        }
    }
}

/// The graph of a model begins with the field `ir_version`, an engine with something.
fn starts_with(file: &Path, is_one: fn(&[u8]) -> bool, name: &str) -> Result<String, Problem> {
    let mut first: Option<Vec<u8>> = None;
    let read = holdpoint_store::read_chunks(file, |chunk| {
        first.get_or_insert_with(|| chunk[..chunk.len().min(16)].to_vec());
    });
    read?;
    if is_one(&first.unwrap_or_default()) {
        Ok(name.to_owned())
    } else {
        Err(format!("not an {name}").into())
    }
}

fn document(
    kind: &ArtifactKind,
    text: &str,
    path: &str,
    release: Release<'_>,
) -> Result<(GateStatus, String), Problem> {
    let commit = release.commit;
    let value: Value = json::parse(text)?;
    // A verdict is good evidence of how it came out; how the gate stands by it is the gate's to say.
    let read = |forms: &[Form]| match verdict::read(path, &kind.key, forms, release)? {
        FileVerdict { is_edited: true, detail, .. } => Err(detail.into()),
        FileVerdict { revision: Some(revision), detail, .. } if revision.commit != commit => {
            Err(detail.into())
        }
        verdict => Ok((GateStatus::Pass, verdict.detail)),
    };
    let found = document::kind(text).ok().flatten();
    match (kind.content, found) {
        (Content::Manifest, Some(Kind::ReplayManifest)) => manifest(text, path, release),
        (Content::Report, Some(Kind::Ab)) => times::sides(
            &document::read::<holdpoint_model::AbReport>(text).map_err(|error| error.to_string())?,
            commit,
        ),
        (Content::Report, _) => match document::read::<Report>(text) {
            Ok(report) => times::report(&report, commit),
            // The reports of Apex-X and cudadent42 hold neither samples nor a commit.
            Err(FileError::Unknown { .. } | FileError::OtherKind { .. }) if !has_samples(&value) => {
                let current = holdpoint_interop::read_current(&text.into())?;
                if current.metrics.is_empty() {
                    return Err("it holds no metrics".into());
                }
                let count = verdict::plural(current.metrics.len(), "metric");
                Ok((GateStatus::Pass, clean_text(&format!("report of {}, {count}", current.suite))))
            }
            Err(error) => Err(error.into()),
        },
        (Content::Verdict, _) => read(&kind.takes),
        _ => match value.as_object() {
            Some(map) if !map.is_empty() => {
                Ok((GateStatus::Pass, format!("JSON with {}", verdict::plural(map.len(), "key"))))
            }
            _ => Err("not a JSON object, or an empty one".into()),
        },
    }
}

/// Whether a report was one of ours before something was cut out of it.
fn has_samples(report: &Value) -> bool {
    let has = |benchmark: &Value| benchmark.get("samples").is_some() || benchmark.get("identity").is_some();
    report.get("benchmarks").and_then(Value::as_object).is_some_and(|all| all.values().any(has))
}

fn manifest(text: &str, path: &str, release: Release<'_>) -> Result<(GateStatus, String), Problem> {
    let (file, commit) = (release.dir.join(path), release.commit);
    let manifest = document::read::<ReplayManifest>(text)?;
    let dir = file.parent().unwrap_or(Path::new("."));
    let mut problems = contradictions(&manifest)?;
    problems.extend(changed_files(&manifest, dir)?);
    match &manifest.revision {
        Some(revision) if revision.commit != commit => {
            problems.push(format!("it is of commit {}, not of {commit}", revision.commit));
        }
        Some(revision) if revision.dirty => {
            problems.push("it was recorded from a tree with uncommitted changes".to_owned());
        }
        _ => {}
    }
    match problems.into_iter().next() {
        Some(problem) => Err(problem.into()),
        None => {
            let count = verdict::plural(manifest.artifact_hashes.len(), "answer");
            let of = if manifest.revision.is_none() { ", which names no commit" } else { "" };
            let left_out = manifest.workloads.values().filter(|workload| workload.skipped.is_some()).count();
            let without = if left_out == 0 { String::new() } else { format!(", {left_out} not recorded") };
            Ok((GateStatus::Pass, format!("replay manifest, {count}{without}{of}")))
        }
    }
}

/// Reads a gate from all of its verdict files that are there. Files in `given`, by the key of a gate, belong to that gate.
pub(super) fn gate(
    kind: &GateKind,
    release: Release<'_>,
    given: &[(&str, &str)],
    without: Option<&str>,
) -> Result<AttestedGate, EvidenceError> {
    let mut inputs: Vec<GateInput> = Vec::new();
    let given_for = |key: &str, path: &str| given.contains(&(key, path));
    let further = given.iter().filter(|(key, _)| *key == kind.key).map(|(_, path)| *path);
    for path in kind.files.iter().map(String::as_str).chain(further) {
        if inputs.iter().any(|known| known.path == path) {
            continue;
        }
        let Some(file) = find_file(release.dir, path)? else { continue };
        let (sha256, _) = hash::file(&file)?;
        let read = verdict::read(path, &kind.key, &kind.takes, release);
        // A verdict over times belongs to one of the two gates; what cannot be read belongs to both.
        let on_device = read.as_ref().ok().and_then(|verdict| verdict.on_device);
        if let Some(on_device) = on_device
            && !given_for(&kind.key, path)
        {
            let own = if on_device { TimesOf::Gpu } else { TimesOf::Cpu };
            let is_others = |key: &str| key != kind.key && given_for(key, path);
            if kind.times != Some(own) || REQUIREMENTS.times_gates().any(|gate| is_others(&gate.key)) {
                continue;
            }
        }
        let mut rests_on = BTreeMap::new();
        let compared = read.as_ref().ok().and_then(|verdict| verdict.compared.clone());
        let (mut status, mut detail) = match read {
            Ok(_) if kind.times == Some(TimesOf::Cpu) && on_device == Some(true) => {
                (GateStatus::Fail, "its times are a device's".to_owned())
            }
            Ok(verdict) => {
                for path in verdict.rests_on {
                    if let Some(file) = find_file(release.dir, &path)? {
                        rests_on.insert(path, hash::file(&file)?.0);
                    }
                }
                (verdict.status, verdict.detail)
            }
            Err(problem) => (GateStatus::Fail, problem.to_string()),
        };
        let seal = release.seal(path)?;
        add_seal(&kind.key, seal.as_ref(), &mut status, &mut detail);
        inputs.push(GateInput { path: path.to_owned(), sha256, status, detail, rests_on, compared, seal });
    }
    let is_out_of_scope = kind.times == Some(TimesOf::Gpu) && release.target == RuntimeTarget::Cpu;
    let (status, evidence) = match (inputs.as_slice(), without) {
        ([], Some(reason)) => (GateStatus::NotApplicable, clean_text(&format!("{WITHOUT}{reason}"))),
        ([], None) if is_out_of_scope => (GateStatus::NotApplicable, "no GPU in scope".to_owned()),
        ([], None) => (GateStatus::Pending, "pending".to_owned()),
        (inputs, _) => {
            let has = |status| inputs.iter().any(|input| input.status == status);
            let status = match () {
                () if has(GateStatus::Fail) => GateStatus::Fail,
                () if inputs.iter().all(|input| input.status == GateStatus::Pass) => GateStatus::Pass,
                () => GateStatus::Pending,
            };
            let details: Vec<String> =
                inputs.iter().map(|input| format!("{}: {}", input.path, input.detail)).collect();
            (status, clean_text(&details.join("; ")))
        }
    };
    let without = without.map(clean_text);
    Ok(AttestedGate { key: kind.key.clone(), label: kind.label.clone(), evidence, status, without, inputs })
}
