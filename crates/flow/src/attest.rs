//! `holdpoint attest`: say what a release rests on, sign it, check it again.

pub mod release;

use crate::command_result::{CommandResult, Message};
use crate::error::FlowError;
use holdpoint_evidence::attest::{self, Places, Request, Signed, Signer};
use holdpoint_evidence::canonical::to_canonical;
use holdpoint_evidence::folder::find_file;
use holdpoint_evidence::{EvidenceError, dsse, keys};
use holdpoint_measure::{clock, machine};
use holdpoint_model::attest::{ReleaseFile, ReleaseMetadata, RuntimeTarget};
use holdpoint_model::{Attestation, Envelope, ExitCode, FileError, ReleasePolicy, document};
use holdpoint_process::git::Repository;
use holdpoint_render::markdown;
use release::{ReleaseRequest, Verification, VerificationRequest};
use serde_json::json;
use std::path::{Path, PathBuf};

/// What to do with attestations and keys.
#[derive(Clone, Debug)]
pub enum AttestRequest {
    Keygen {
        key: PathBuf,
        /// Beside the private one, if absent.
        public_key: Option<PathBuf>,
    },
    Create(AttestationRequest),
    Sign {
        attestation: PathBuf,
        artifacts: PathBuf,
        release_dir: PathBuf,
        /// That of the environment, if absent.
        key: Option<PathBuf>,
        /// Beside the attestation, if absent.
        output: Option<PathBuf>,
    },
    Verify {
        file: PathBuf,
        against: VerificationRequest,
    },
    Show {
        file: PathBuf,
    },
}

/// An attestation to be made. What is absent of the release's data is taken from CI and the repository.
#[derive(Clone, Debug)]
pub struct AttestationRequest {
    /// The folder with artifacts and verdict files.
    pub artifacts: PathBuf,
    pub release_tag: Option<String>,
    pub commit_sha: Option<String>,
    pub release_owner: Option<String>,
    pub runtime_target: RuntimeTarget,
    pub ci_run_url: Option<String>,
    /// KEY=PATH of artifacts that lie elsewhere in the folder.
    pub artifact_path: Vec<String>,
    /// KEY=PATH of verdict files beside those that are found by name.
    pub gate_evidence: Vec<String>,
    /// KEY=REASON of what this project does not have.
    pub without: Vec<String>,
    pub output_json: Option<PathBuf>,
    pub output_md: Option<PathBuf>,
    pub release_file: Vec<String>,
    pub release: ReleaseRequest,
}

impl AttestationRequest {
    /// The attestation of a folder, for a release of the files in the current one.
    pub fn new(artifacts: PathBuf) -> Self {
        Self {
            artifacts,
            release_tag: None,
            commit_sha: None,
            release_owner: None,
            runtime_target: RuntimeTarget::default(),
            ci_run_url: None,
            artifact_path: Vec::new(),
            gate_evidence: Vec::new(),
            without: Vec::new(),
            output_json: None,
            output_md: None,
            release_file: Vec::new(),
            release: ReleaseRequest { policy: None, release_dir: ".".into() },
        }
    }
}

/// The result of a subcommand.
#[derive(Debug)]
pub enum AttestResult {
    Keys(Message),
    Attestation(Box<Attestation>),
    Signed(Signature),
    Verified(Verification),
}

/// A signed attestation, and a sentence about it.
#[derive(Debug)]
pub struct Signature {
    pub envelope: Envelope,
    pub text: String,
}

pub fn run(request: &AttestRequest) -> Result<CommandResult<AttestResult>, FlowError> {
    match request {
        AttestRequest::Keygen { key, public_key } => keygen(key, public_key.as_deref()),
        AttestRequest::Create(request) => create(request),
        AttestRequest::Sign { attestation, artifacts, release_dir, key, output: path } => {
            let places = Places { artifacts, released: release_dir };
            sign(attestation, places, key.as_deref(), path.as_deref())
        }
        AttestRequest::Verify { file, against } => verify(file, against),
        AttestRequest::Show { file } => {
            let attestation = match Document::read(file)? {
                Document::Bare(attestation) => *attestation,
                Document::Envelope(envelope) => unchecked(&envelope, file)?,
            };
            Ok(CommandResult::new(AttestResult::Attestation(Box::new(attestation)), ExitCode::Ok))
        }
    }
}

fn keygen(key: &Path, public: Option<&Path>) -> Result<CommandResult<AttestResult>, FlowError> {
    let public = public.map_or_else(|| key.with_extension("pub"), Path::to_path_buf);
    if key == public {
        let what = "the private and the public key cannot be one file; name another with --public-key";
        return Err(FlowError::File { path: public, what: what.to_owned() });
    }
    let pair = keys::generate()?;
    keys::write_pair(&pair, key, &public)?;
    let keyid = keys::key_id(&pair.verifying_key());
    let json =
        json!({"key": key.display().to_string(), "public_key": public.display().to_string(), "keyid": keyid});
    let text = format!(
        "private key {} (keep it secret), public key {}\nkeyid {keyid}\n",
        key.display(),
        public.display()
    );
    Ok(CommandResult::new(AttestResult::Keys(Message { json, text }), ExitCode::Ok))
}

/// Writes an attestation.
pub(crate) fn create(request: &AttestationRequest) -> Result<CommandResult<AttestResult>, FlowError> {
    if !request.artifacts.is_dir() {
        let what = "no such folder; it should hold what gate, check, doctor and the like have written";
        return Err(FlowError::File { path: request.artifacts.clone(), what: what.to_owned() });
    }
    let policy = release::read_policy(&request.release)?;
    let [artifact_keys, gate_keys] = attest::known_keys();
    let all_keys = [artifact_keys.clone(), gate_keys.clone()].concat();
    let asked = Request {
        dir: &request.artifacts,
        metadata: metadata(request)?,
        artifact_paths: pairs("--artifact-path", &request.artifact_path, &artifact_keys)?
            .into_iter()
            .collect(),
        gate_files: pairs("--gate-evidence", &request.gate_evidence, &gate_keys)?,
        without: pairs("--without", &request.without, &all_keys)?.into_iter().collect(),
        release_files: release_files(request, &policy)?,
        holdpoint: env!("CARGO_PKG_VERSION").to_owned(),
    };
    for (key, path) in
        asked.artifact_paths.iter().chain(asked.gate_files.iter().map(|(key, path)| (key, path)))
    {
        if find_file(&request.artifacts, path)?.is_none() {
            let what = format!(
                "{key}={path}: no such file in {}; paths are below that folder",
                request.artifacts.display()
            );
            return Err(FlowError::Input(what));
        }
    }
    let attestation = attest::create(&asked)?;
    refuse_without(&attestation, &asked)?;
    let json_path = request
        .output_json
        .clone()
        .unwrap_or_else(|| request.artifacts.join("release/release_attestation.json"));
    let md_path = request.output_md.clone().unwrap_or_else(|| json_path.with_extension("md"));
    holdpoint_store::write_json(&json_path, &attestation)?;
    holdpoint_store::write_text(&md_path, &markdown::attestation(&attestation))?;
    let mut problems = Vec::new();
    if request.release.policy.is_some() {
        let facts = release::facts(&attestation, Some(&attestation.release_metadata.commit_sha))?;
        problems = attest::judge_release(&attestation, &Signer::NotYet, &policy, &facts);
    }
    let exit = if problems.is_empty() { ExitCode::Ok } else { ExitCode::Unverified };
    let mut done = CommandResult::new(AttestResult::Attestation(Box::new(attestation)), exit);
    done.notes.extend(problems.iter().map(|problem| format!("holdpoint: {problem}")));
    Ok(done)
}

/// The files that were named and those that the policy takes, with their hashes.
fn release_files(
    request: &AttestationRequest,
    policy: &ReleasePolicy,
) -> Result<Vec<ReleaseFile>, FlowError> {
    let dir = &request.release.release_dir;
    let mut paths = attest::released::find(policy, dir)?;
    paths.extend(request.release_file.iter().cloned());
    let file = |path: &String| {
        let missing =
            || FlowError::Input(format!("--release-file {path}: no plain file in {}", dir.display()));
        attest::released::read(dir, path)?.ok_or_else(missing)
    };
    paths.iter().map(file).collect()
}

/// Refuses `--without` for evidence that is there.
fn refuse_without(attestation: &Attestation, asked: &Request<'_>) -> Result<(), FlowError> {
    let artifacts = attestation.artifacts.iter().filter(|artifact| artifact.exists);
    let artifacts = artifacts.map(|artifact| (&artifact.key, &artifact.path));
    let gates = attestation.gates.iter().filter_map(|gate| Some((&gate.key, &gate.inputs.first()?.path)));
    match artifacts.chain(gates).find(|(key, _)| asked.without.contains_key(*key)) {
        Some((key, path)) => Err(FlowError::Input(format!(
            "--without {key}: {} is there; remove the file or the flag",
            asked.dir.join(path).display()
        ))),
        None => Ok(()),
    }
}

/// `KEY=TEXT`, each key a known one.
fn pairs(flag: &str, given: &[String], known: &[&str]) -> Result<Vec<(String, String)>, FlowError> {
    let pair = |text: &String| {
        let problem = |what: &str| {
            FlowError::Input(format!("{flag} {text:?}: {what}; KEY is one of {}", known.join(", ")))
        };
        let (key, value) = text.split_once('=').ok_or_else(|| problem("KEY=VALUE is wanted"))?;
        if value.trim().is_empty() {
            return Err(problem("nothing stands behind the ="));
        }
        if !known.contains(&key) {
            return Err(problem("no such key"));
        }
        Ok((key.to_owned(), value.to_owned()))
    };
    given.iter().map(pair).collect()
}

/// Of what, by whom: as was typed, else as CI tells.
fn metadata(request: &AttestationRequest) -> Result<ReleaseMetadata, FlowError> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let first = |names: &[&str]| names.iter().find_map(|name| variable(name));
    let revision = machine::revision(Path::new("."));
    let tree_sha =
        revision.as_ref().and_then(|revision| Repository::around(Path::new(".")).tree_of(&revision.commit));
    let commit_sha = match (&request.commit_sha, &revision) {
        (Some(commit), Some(revision)) if *commit != revision.commit => {
            let what = format!(
                "--commit-sha {commit}: the tree here is at {}, check out what is attested",
                revision.commit
            );
            return Err(FlowError::Input(what));
        }
        (Some(commit), _) => commit.clone(),
        // What is checked out is what was measured; CI may speak of a merge that was not.
        (None, Some(revision)) => revision.commit.clone(),
        (None, None) => first(&["GITHUB_SHA", "CI_COMMIT_SHA"]).unwrap_or_else(|| "unknown".to_owned()),
    };
    // A branch is no release.
    let github_tag =
        || variable("GITHUB_REF_NAME").filter(|_| variable("GITHUB_REF_TYPE").as_deref() == Some("tag"));
    let tag = request.release_tag.clone().or_else(github_tag).or_else(|| variable("CI_COMMIT_TAG"));
    let github_run = || {
        let parts = ["GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID"].map(variable);
        let [server, repository, run] = parts.map(Option::unwrap_or_default);
        let is_known = ![&server, &repository, &run].iter().any(|part| part.is_empty());
        is_known.then(|| format!("{server}/{repository}/actions/runs/{run}"))
    };
    let run =
        request.ci_run_url.clone().or_else(github_run).or_else(|| first(&["CI_JOB_URL", "CI_PIPELINE_URL"]));
    let owner = request.release_owner.clone().or_else(|| first(&["GITHUB_ACTOR", "GITLAB_USER_LOGIN"]));
    Ok(ReleaseMetadata {
        release_tag: tag.unwrap_or_else(|| "unversioned".to_owned()),
        commit_sha,
        build_date_utc: clock::timestamp_utc(),
        release_owner: owner.unwrap_or_else(|| "unknown".to_owned()),
        runtime_target: request.runtime_target,
        ci_run_url: run,
        dirty: revision.map(|revision| revision.dirty),
        tree_sha,
        ref_name: first(&["GITHUB_REF_NAME", "CI_COMMIT_REF_NAME"]),
    })
}

fn sign(
    path: &Path,
    places: Places<'_>,
    key: Option<&Path>,
    to: Option<&Path>,
) -> Result<CommandResult<AttestResult>, FlowError> {
    let text = holdpoint_store::read_text(path)?;
    let attestation = document::read::<Attestation>(&text).map_err(|source| format_error(path, source))?;
    let key = keys::private(key, std::env::var(keys::PRIVATE_VARIABLE).ok().as_deref())?;
    // What does not hold is not signed. Nothing is run meanwhile, not even git: the key is in this process.
    let document = Signed::Bare(Box::new(attestation.clone()));
    let (problems, _) = attest::verify(document, places, &ReleasePolicy::default())?;
    if !problems.is_empty() {
        let note = "nothing was signed; make the attestation again with \"holdpoint attest create\"";
        let unsigned = AttestResult::Verified(Verification::broken(problems));
        return Ok(CommandResult::new(unsigned, ExitCode::Unverified).with_note(note));
    }
    let statement = attest::statement(attestation);
    let payload = to_canonical(&statement).map_err(EvidenceError::from)?;
    let envelope = dsse::sign(payload.as_bytes(), &key);
    let to = to.map_or_else(|| path.with_extension("dsse.json"), Path::to_path_buf);
    holdpoint_store::write_json(&to, &envelope)?;
    let keyid = keys::key_id(&key.verifying_key());
    let text = format!("signed {} files in {}\nkeyid {keyid}\n", statement.subject.len(), to.display());
    Ok(CommandResult::new(AttestResult::Signed(Signature { envelope, text }), ExitCode::Ok))
}

/// An attestation, signed or not.
pub(super) enum Document {
    Bare(Box<Attestation>),
    Envelope(Envelope),
}

impl Document {
    pub(super) fn read(path: &Path) -> Result<Self, FlowError> {
        let text = holdpoint_store::read_text(path)?;
        match document::read_envelope(&text) {
            Ok(envelope) => Ok(Self::Envelope(envelope)),
            Err(_) if !text.contains("payloadType") => {
                let attestation =
                    document::read::<Attestation>(&text).map_err(|source| format_error(path, source))?;
                Ok(Self::Bare(Box::new(attestation)))
            }
            Err(source) => Err(format_error(path, source)),
        }
    }
}

fn format_error(path: &Path, source: FileError) -> FlowError {
    EvidenceError::Format { path: path.to_owned(), source }.into()
}

/// The content of an envelope; its signature is not checked.
fn unchecked(envelope: &Envelope, path: &Path) -> Result<Attestation, FlowError> {
    let what = |what: String| FlowError::File { path: PathBuf::from(path), what };
    let payload = dsse::payload(envelope).map_err(|problem| what(problem.to_string()))?;
    let text = String::from_utf8(payload).map_err(|_| what("its payload is not UTF-8 text".to_owned()))?;
    let statement = attest::read_statement(&text).map_err(|problem| what(problem.to_string()))?;
    Ok(statement.predicate)
}

fn verify(path: &Path, against: &VerificationRequest) -> Result<CommandResult<AttestResult>, FlowError> {
    let checked = release::check(path, against)?;
    let signer = match &checked.signer {
        Signer::Key(id) => format!("signed by {id}"),
        Signer::Nobody | Signer::NotYet => "not signed".to_owned(),
    };
    let holds = checked.attestation.as_ref().map(|a| {
        let (m, s) = (&a.release_metadata, &a.summary);
        let without = attest::without(a);
        let without = if without.is_empty() {
            String::new()
        } else {
            format!("; declared away: {}", without.join(", "))
        };
        format!(
            "{} at {}, {signer}; overall status {}{without}",
            m.release_tag, m.commit_sha, s.overall_status
        )
    });
    let verified =
        Verification::new(checked.problems(), holds.unwrap_or_default(), checked.attestation.as_ref());
    let exit = verified.exit_code();
    Ok(CommandResult::new(AttestResult::Verified(verified), exit))
}
