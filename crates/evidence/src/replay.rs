//! Replay manifests: made, and checked against themselves and their files. Must not run anything.

use crate::folder::{find_file, stays_below};
use crate::{EvidenceError, hash};
use holdpoint_model::ReplayManifest;
use holdpoint_model::replay::{ArtifactHash, ReplayConfig, artifact_name};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The hash of a manifest, which leaves out paths, environment and revision.
pub fn manifest_sha256(
    seed: u64,
    config_sha256: &str,
    artifact_sha256: &BTreeMap<String, String>,
) -> Result<String, EvidenceError> {
    let hashed = json!({"seed": seed, "config_sha256": config_sha256, "artifact_sha256": artifact_sha256});
    Ok(hash::json(&hashed)?)
}

/// A manifest with its hashes; the caller fills in the rest.
pub fn manifest(
    seed: u64,
    config: Map<String, Value>,
    artifact_hashes: BTreeMap<String, ArtifactHash>,
) -> Result<ReplayManifest, EvidenceError> {
    let config_sha256 = hash::json(&config)?;
    let artifact_sha256 = hashes_alone(&artifact_hashes);
    let manifest_sha256 = manifest_sha256(seed, &config_sha256, &artifact_sha256)?;
    Ok(ReplayManifest {
        schema_version: holdpoint_model::SCHEMA_VERSION,
        suite: None,
        seed,
        config,
        config_sha256,
        artifact_hashes,
        artifact_sha256,
        manifest_sha256,
        workloads: Default::default(),
        timestamp_utc: None,
        revision: None,
        environment: None,
    })
}

fn hashes_alone(artifacts: &BTreeMap<String, ArtifactHash>) -> BTreeMap<String, String> {
    artifacts.iter().map(|(name, artifact)| (name.clone(), artifact.sha256.clone())).collect()
}

pub fn read(path: &Path) -> Result<ReplayManifest, EvidenceError> {
    let text = holdpoint_store::read_text(path)?;
    holdpoint_model::document::read(&text)
        .map_err(|source| EvidenceError::Format { path: path.to_owned(), source })
}

/// Finds contradictions inside a manifest; empty when its hashes match its content.
pub fn contradictions(manifest: &ReplayManifest) -> Result<Vec<String>, EvidenceError> {
    let mut found = Vec::new();
    let config = hash::json(&manifest.config)?;
    if config != manifest.config_sha256 {
        found.push(format!("config_sha256 is {}, yet its config hashes to {config}", manifest.config_sha256));
    }
    let alone = hashes_alone(&manifest.artifact_hashes);
    for name in alone.keys().chain(manifest.artifact_sha256.keys()) {
        let (one, other) = (alone.get(name), manifest.artifact_sha256.get(name));
        if one != other && !found.iter().any(|known| known.contains(&format!("{name:?}"))) {
            found.push(format!(
                "artifact {name:?} is {} in artifact_hashes and {} in artifact_sha256",
                one.map_or("absent", String::as_str),
                other.map_or("absent", String::as_str)
            ));
        }
    }
    let whole = manifest_sha256(manifest.seed, &manifest.config_sha256, &manifest.artifact_sha256)?;
    if whole != manifest.manifest_sha256 {
        found.push(format!(
            "manifest_sha256 is {}, yet what it is over hashes to {whole}",
            manifest.manifest_sha256
        ));
    }
    // Apex-X's own manifests have no workloads; ours have one behind every hash.
    let outputs: Vec<(String, &String, &String)> = manifest
        .workloads
        .iter()
        .flat_map(|(workload, replayed)| replayed.outputs.iter().map(move |output| (workload, &output.name)))
        .map(|(workload, output)| (artifact_name(workload, output), workload, output))
        .collect();
    for name in manifest.artifact_hashes.keys() {
        if !manifest.workloads.is_empty() && !outputs.iter().any(|(known, ..)| known == name) {
            found.push(format!("artifact {name:?} is the output of none of its workloads"));
        }
    }
    // The configuration names the workloads to run again, and the manifest their outcomes.
    if !manifest.workloads.is_empty() {
        let config = serde_json::from_value::<ReplayConfig>(Value::Object(manifest.config.clone()));
        let cases = config.map(|config| config.workloads).unwrap_or_default();
        let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        let recorded = manifest.workloads.iter().filter(|(_, workload)| workload.skipped.is_none());
        let known: BTreeSet<&str> = recorded.map(|(name, _)| name.as_str()).collect();
        if let Some(name) = names.symmetric_difference(&known).next() {
            found.push(format!("workload {name:?} is in one of config and workloads only"));
        }
    }
    for (name, workload, output) in &outputs {
        if !manifest.artifact_hashes.contains_key(name) {
            found.push(format!("workload {workload:?} names output {output:?}, of which there is no hash"));
        }
    }
    Ok(found)
}

/// The files of a manifest that have changed since. A missing file is no change: answers can still be compared by their hash.
pub fn changed_files(manifest: &ReplayManifest, dir: &Path) -> Result<Vec<String>, EvidenceError> {
    let mut found = Vec::new();
    for (name, artifact) in &manifest.artifact_hashes {
        let path = Path::new(&artifact.path);
        if !stays_below(path) {
            found.push(format!(
                "artifact {name:?} lies at {:?}, outside the manifest's folder",
                artifact.path
            ));
            continue;
        }
        if !dir.join(path).exists() {
            continue;
        }
        match find_file(dir, &artifact.path) {
            Ok(Some(file)) => {
                let (sha256, _) = hash::file(&file)?;
                if sha256 != artifact.sha256 {
                    let path = &artifact.path;
                    found.push(format!("{path} is not the file that was recorded: SHA-256 {sha256}"));
                }
            }
            Ok(None) => found.push(format!("{} is no plain file", artifact.path)),
            Err(error) => found.push(error.to_string()),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traced() -> ReplayManifest {
        let config = json!({"profile": "quality", "kmax": 32}).as_object().unwrap().clone();
        let file =
            ArtifactHash { path: "t.json".to_owned(), sha256: hash::bytes(b"{\"selected\":[0,1,2]}\n") };
        manifest(11, config, [("trace".to_owned(), file)].into()).unwrap()
    }

    #[test]
    fn the_seeds_manifests_hash_as_in_python() {
        let manifest = traced();
        assert_eq!(
            manifest.artifact_sha256["trace"],
            "3fb47ee22aa98bc91ef85f4e267743ccdf5d019ae2e6ea929855f2ae4f72a73e"
        );
        assert_eq!(
            manifest.manifest_sha256,
            "2309c635ba82fb5a9e9f65bfbdd687e8e191425bcea77cc34567f59695dbd334"
        );
        let bare = super::manifest(11, manifest.config, BTreeMap::new()).unwrap();
        assert_eq!(bare.manifest_sha256, "b8a08a309a3f06ccaa7aaefb11e6e09b19fa61c4bd481c536919e4de081883d4");
    }

    #[test]
    fn where_a_file_lies_and_who_ran_it_do_not_count() {
        let (one, mut other) = (traced(), traced());
        other.artifact_hashes.get_mut("trace").unwrap().path = "elsewhere/t.json".to_owned();
        other.suite = Some("mine".to_owned());
        other.timestamp_utc = Some("2026-01-01T00:00:00Z".to_owned());
        let again = manifest(11, other.config.clone(), other.artifact_hashes.clone()).unwrap();
        assert_eq!(again.manifest_sha256, one.manifest_sha256);
        assert_eq!(contradictions(&other).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn every_part_under_the_hash_is_held_against_it() {
        let change = |edit: fn(&mut ReplayManifest)| {
            let mut manifest = traced();
            edit(&mut manifest);
            contradictions(&manifest).unwrap()
        };
        assert!(change(|m| m.seed = 12)[0].starts_with("manifest_sha256"));
        assert!(
            change(|m| drop(m.config.insert("kmax".to_owned(), json!(33))))[0].starts_with("config_sha256")
        );
        assert!(change(|m| m.config_sha256 = "0".repeat(64)).len() == 2);
        let other = change(|m| m.artifact_hashes.get_mut("trace").unwrap().sha256 = "1".repeat(64));
        assert!(other[0].contains("\"trace\"") && other.len() == 1, "{other:?}");
        assert!(change(|m| drop(m.artifact_sha256.remove("trace"))).len() == 2);
    }

    #[test]
    fn files_are_held_against_their_hashes_and_stay_in_their_folder() {
        let dir = tempfile::tempdir().unwrap();
        let mut manifest = traced();
        assert_eq!(
            changed_files(&manifest, dir.path()).unwrap(),
            Vec::<String>::new(),
            "gone is not changed"
        );
        std::fs::write(dir.path().join("t.json"), "{\"selected\":[0,1,2]}\n").unwrap();
        assert_eq!(changed_files(&manifest, dir.path()).unwrap(), Vec::<String>::new());
        std::fs::write(dir.path().join("t.json"), "{\"selected\":[0,2,1]}\n").unwrap();
        assert!(changed_files(&manifest, dir.path()).unwrap()[0].contains("not the file that was recorded"));
        for path in ["../t.json", "/etc/passwd", "a/../../t", ""] {
            manifest.artifact_hashes.get_mut("trace").unwrap().path = path.to_owned();
            assert!(changed_files(&manifest, dir.path()).unwrap()[0].contains("outside"), "{path:?}");
        }
    }
}
