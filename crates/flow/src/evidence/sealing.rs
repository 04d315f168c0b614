//! Seals what a command measured, as it writes its files.
//!
//! Hashes are of what is written, not of what lies on the disk afterwards, where whatever was measured might still write.

use crate::ci_job;
use crate::error::FlowError;
use crate::evidence::save;
use holdpoint_evidence::seal::{self, Origin};
use holdpoint_evidence::{EvidenceError, SigningKey, hash, keys};
use holdpoint_measure::clock;
use holdpoint_model::seal::SealedSuite;
use holdpoint_model::{Kind, Machine, Revision, SCHEMA_VERSION, Seal, SealState, Suite, json};
use holdpoint_process::git::Repository;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Reads the key that seals, if there is one, before anything that is measured is started, and hides this process's memory
/// from what is.
pub(crate) fn read_key(named: Option<&Path>) -> Result<Option<SigningKey>, FlowError> {
    let variable = std::env::var(keys::SEAL_VARIABLE).ok();
    let key = keys::seal(named, variable.as_deref())?;
    holdpoint_process::hide_from_children(key.is_some())
        .map_err(|error| FlowError::Internal(format!("the key cannot be hidden: {error}")))?;
    Ok(key)
}

/// The origin of measurements.
pub(crate) struct Origins<'a> {
    /// By which command.
    pub command: &'static str,
    /// The suite, as it was run.
    pub suite: &'a Suite,
    /// The code.
    pub revision: Option<&'a Revision>,
    /// Where.
    pub machine: Option<&'a Machine>,
}

/// The files of one run.
pub(crate) struct Sealing {
    key: Option<SigningKey>,
    /// Where the seal goes; nowhere where the first file is a terminal, a pipe or the like.
    path: Option<PathBuf>,
    files: BTreeMap<String, String>,
    samples: BTreeMap<String, String>,
    workloads: Vec<String>,
    builds_on: Option<String>,
}

impl Sealing {
    /// The seal of a run, named after its first file.
    pub fn new(key: Option<SigningKey>, first: &Path) -> Self {
        let (files, samples) = Default::default();
        let path = (first.is_file() || !first.exists()).then(|| seal::seal_path(first));
        Self { key, path, files, samples, workloads: Vec::new(), builds_on: None }
    }

    /// Goes on from a file that an earlier run left. What it holds is sealed again only if the same key had sealed it.
    pub fn resume(&mut self, file: &Path, revision: Option<&Revision>) -> Result<Option<String>, FlowError> {
        let (dir, name) = (folder_of(file), name_of(file));
        let commit = revision.map_or(seal::UNKNOWN_COMMIT, |revision| revision.commit.as_str());
        let facts = seal::seal_facts(&dir, &name, Origin { commit, tree: None })?;
        let own = self.key.as_ref().map(|key| keys::key_id(&key.verifying_key()));
        let is_own = match facts.as_ref().map(|facts| facts.state()) {
            Some(SealState::SealedBy(keyid)) => own.as_deref() == Some(keyid),
            _ => own.is_none(),
        };
        self.builds_on = facts.map(|facts| facts.sha256);
        let lost = self.key.take_if(|_| !is_own);
        Ok(lost.map(|_| format!("unsealed: {name}, from which this goes on, has no whole seal of this key")))
    }

    /// Names the file that the verdict builds on.
    pub(crate) fn build_on(&mut self, file: &Path) -> Result<(), FlowError> {
        self.builds_on = Some(hash::file(file)?.0);
        Ok(())
    }

    /// Writes a document; where that fails, into the folder for temporary files.
    pub fn write_json(&mut self, path: &Path, value: &impl Serialize) -> Result<(), FlowError> {
        self.unseal()?;
        save(path, value)?;
        let text = json::to_pretty(value).map_err(|error| FlowError::Internal(error.to_string()))?;
        if let Some((names, sha256)) = seal::sealed_samples(&text)? {
            self.samples.insert(name_of(path), sha256);
            let new: Vec<String> = names.into_iter().filter(|name| !self.workloads.contains(name)).collect();
            self.workloads.extend(new);
        }
        self.add(path, &text);
        Ok(())
    }

    /// Writes a page.
    pub fn write_text(&mut self, path: &Path, text: &str) -> Result<(), FlowError> {
        self.unseal()?;
        holdpoint_store::write_text(path, text)?;
        self.add(path, text);
        Ok(())
    }

    fn add(&mut self, path: &Path, text: &str) {
        self.files.insert(name_of(path), hash::bytes(text.as_bytes()));
    }

    /// Removes the seal of an earlier run before the first of its files is replaced.
    pub(crate) fn unseal(&self) -> Result<(), FlowError> {
        match &self.path {
            Some(path) if self.files.is_empty() => Ok(holdpoint_store::remove(path)?),
            _ => Ok(()),
        }
    }

    /// Writes the seal. Where no key signs it, a line about that, to stand below the names of the files.
    pub fn seal(self, of: &Origins<'_>) -> Result<&'static str, FlowError> {
        let Some(path) = self.path else { return Ok("") };
        let commit = of.revision.map(|revision| revision.commit.clone());
        let seal = Seal {
            kind: Kind::Seal,
            schema_version: SCHEMA_VERSION,
            command: of.command.to_owned(),
            sealed_at_utc: clock::timestamp_utc(),
            holdpoint: env!("CARGO_PKG_VERSION").to_owned(),
            tree: commit.as_deref().and_then(|commit| Repository::around(Path::new(".")).tree_of(commit)),
            commit,
            dirty: of.revision.map(|revision| revision.dirty),
            suite: SealedSuite {
                name: of.suite.name.clone(),
                sha256: hash::json(of.suite).map_err(EvidenceError::from)?,
            },
            workloads: self.workloads,
            samples_sha256: self.samples,
            files: self.files,
            machine_fingerprint: of.machine.map(|machine| machine.fingerprint.clone()),
            ci_run_url: ci_job::own_url(),
            builds_on: self.builds_on,
            public_key: None,
        };
        let text = seal::seal_text(seal, self.key.as_ref())?;
        holdpoint_store::write_text(&path, &text)?;
        Ok(if self.key.is_some() { "" } else { "\nunsealed: no key was given (--seal-key)" })
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn folder_of(path: &Path) -> PathBuf {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}
