//! One artifact and one gate, read from the folder.

use super::kinds::{ArtifactKind, CPU_TIMES, GPU_TIMES, GateKind};
use super::verdict::{self, Said};
use crate::replay::{changed_files, contradictions, stays_below};
use crate::{EvidenceError, hash};
use holdpoint_model::attest::{AttestedArtifact, AttestedGate, GateInput, GateStatus, RuntimeTarget};
use holdpoint_model::limits::clean_text;
use holdpoint_model::{import, json};
use serde_json::Value;
use std::path::Path;

/// Begins the text of what a project does not have.
pub(super) const WITHOUT: &str = "not of this project: ";

/// Reads an artifact: at its place, or at the first of the usual ones where there is one.
pub(super) fn artifact(
    kind: &ArtifactKind,
    dir: &Path,
    place: Option<&str>,
    target: RuntimeTarget,
    without: Option<&str>,
    commit: &str,
) -> Result<AttestedArtifact, EvidenceError> {
    let usual = kind.paths.iter().copied().find(|path| dir.join(path).is_file());
    let path = place.or(usual).unwrap_or(kind.paths[0]);
    let file = dir.join(path);
    let exists = stays_below(Path::new(path)) && file.is_file();
    let required = without.is_none() && (!kind.is_tensorrt || target == RuntimeTarget::Tensorrt);
    let mut artifact = AttestedArtifact {
        key: kind.key.to_owned(),
        label: kind.label.to_owned(),
        path: path.to_owned(),
        producer: kind.producer.to_owned(),
        required,
        exists,
        sha256: None,
        size_bytes: None,
        status: if required { GateStatus::Fail } else { GateStatus::NotApplicable },
        detail: match without {
            Some(reason) => clean_text(&format!("{WITHOUT}{reason}")),
            None if required => "missing".to_owned(),
            None => format!("not needed for {}", target.as_str()),
        },
    };
    if exists {
        let (sha256, size_bytes) = hash::file(&file)?;
        (artifact.sha256, artifact.size_bytes) = (Some(sha256), Some(size_bytes));
        (artifact.status, artifact.detail) = match content(kind.key, &file, commit) {
            Ok(detail) => (GateStatus::Pass, detail),
            Err(problem) => (GateStatus::Fail, problem),
        };
    }
    Ok(artifact)
}

/// What an artifact is, or what is wrong with it.
fn content(key: &str, file: &Path, commit: &str) -> Result<String, String> {
    match key {
        "onnx_graph" => starts_with(file, |first| first.first() == Some(&0x08), "ONNX model"),
        "trt_engine" => starts_with(file, |first| !first.is_empty(), "engine"),
        _ => {
            let text = holdpoint_store::read_text(file).map_err(|error| clean_text(&error.to_string()))?;
            document(key, &text, file, commit)
        }
    }
}

/// The graph of a model begins with the field `ir_version`, an engine with something.
fn starts_with(file: &Path, is_one: fn(&[u8]) -> bool, name: &str) -> Result<String, String> {
    let mut first: Option<Vec<u8>> = None;
    let read = holdpoint_store::read_chunks(file, |chunk| {
        first.get_or_insert_with(|| chunk[..chunk.len().min(16)].to_vec());
    });
    read.map_err(|error| clean_text(&error.to_string()))?;
    if is_one(&first.unwrap_or_default()) { Ok(name.to_owned()) } else { Err(format!("not an {name}")) }
}

fn document(key: &str, text: &str, file: &Path, commit: &str) -> Result<String, String> {
    let value: Value = json::parse(text).map_err(|error| error.to_string())?;
    match key {
        "export_manifest" if value.get("manifest_sha256").is_some() => {
            let manifest = import::replay_manifest(text).map_err(|error| error.to_string())?;
            let dir = file.parent().unwrap_or(Path::new("."));
            let mut problems = contradictions(&manifest).map_err(|error| error.to_string())?;
            problems.extend(changed_files(&manifest, dir).map_err(|error| clean_text(&error.to_string()))?);
            match problems.into_iter().next() {
                None => Ok(format!(
                    "replay manifest, {}",
                    verdict::plural(manifest.artifact_hashes.len(), "answer")
                )),
                Some(problem) => Err(problem),
            }
        }
        "performance_report" if value.get("plan").is_some() => Ok(verdict::read(text, CPU_TIMES)?.detail),
        "performance_report" => match import::report(text) {
            Ok(report) => {
                verdict::check_report(&report, commit)?;
                Ok(clean_text(&format!(
                    "report of {}, {}",
                    report.suite,
                    verdict::plural(report.benchmarks.len(), "workload")
                )))
            }
            // The seeds' own reports hold no samples.
            Err(_) => {
                let current = import::current(text).map_err(|error| error.to_string())?;
                Ok(clean_text(&format!(
                    "report of {}, {}",
                    current.suite,
                    verdict::plural(current.metrics.len(), "metric")
                )))
            }
        },
        "parity_report" => Ok(verdict::read(text, key)?.detail),
        "runtime_capability_snapshot" => Ok(verdict::read(text, key)?.detail),
        _ => match value.as_object() {
            Some(map) if !map.is_empty() => Ok(format!("JSON with {}", verdict::plural(map.len(), "key"))),
            _ => Err("not a JSON object, or an empty one".to_owned()),
        },
    }
}

/// Reads a gate from its verdict files, all that are there.
pub(super) fn gate(
    kind: &GateKind,
    dir: &Path,
    files: &[&str],
    target: RuntimeTarget,
    without: Option<&str>,
    commit: &str,
) -> Result<AttestedGate, EvidenceError> {
    let mut inputs: Vec<GateInput> = Vec::new();
    for path in files {
        let file = dir.join(path);
        if inputs.iter().any(|known| known.path == *path) || !stays_below(Path::new(path)) || !file.is_file()
        {
            continue;
        }
        let (sha256, _) = hash::file(&file)?;
        let text = holdpoint_store::read_text(&file);
        let said = text.map_err(|error| clean_text(&error.to_string())).and_then(|text| {
            let said = verdict::read(&text, kind.key)?.at(commit);
            Ok(match beside(&file, &text) {
                Ok(()) => said,
                Err(problem) => Said { status: GateStatus::Fail, detail: problem, ..said },
            })
        });
        // A verdict over times belongs to one of the two gates; what cannot be read belongs to both.
        let is_other = |on_device: bool| kind.key == if on_device { CPU_TIMES } else { GPU_TIMES };
        if said.as_ref().is_ok_and(|said| said.on_device.is_some_and(is_other)) {
            continue;
        }
        let (status, detail) = match said {
            Ok(said) => (said.status, said.detail),
            Err(problem) => (GateStatus::Fail, problem),
        };
        inputs.push(GateInput { path: (*path).to_owned(), sha256, status, detail });
    }
    let is_out_of_scope = kind.key == GPU_TIMES && target == RuntimeTarget::Cpu;
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
            let said: Vec<String> =
                inputs.iter().map(|input| format!("{}: {}", input.path, input.detail)).collect();
            (status, clean_text(&said.join("; ")))
        }
    };
    Ok(AttestedGate { key: kind.key.to_owned(), label: kind.label.to_owned(), evidence, status, inputs })
}

/// A comparison is held against the report that lies beside it, ours or the seeds', unless it was made from several runs.
fn beside(file: &Path, text: &str) -> Result<(), String> {
    let dir = file.parent().unwrap_or(Path::new("."));
    let report = dir.join("report.json");
    let is_comparison = file.file_name().is_some_and(|name| name == "comparison.json");
    if !is_comparison || !report.is_file() || dir.join("report-2.json").is_file() {
        return Ok(());
    }
    let judgement = import::judgement(text).map_err(|error| error.to_string())?;
    let report = holdpoint_store::read_current(&report).map_err(|error| clean_text(&error.to_string()))?;
    verdict::check_same_run(&judgement, &report)
}
