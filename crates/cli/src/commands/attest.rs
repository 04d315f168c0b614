//! `holdpoint attest`: say what a release rests on, sign it, check it again.

use crate::args::{AttestArgs, AttestCommand, AttestCreateArgs};
use crate::error::CliError;
use crate::output::Output;
use crate::sealing::tree_of;
use holdpoint_evidence::attest::{self, Asked, Signed, Trust};
use holdpoint_evidence::canonical::to_canonical;
use holdpoint_evidence::folder::find_file;
use holdpoint_evidence::{EvidenceError, dsse, keys};
use holdpoint_measure::{clock, machine};
use holdpoint_model::attest::ReleaseMetadata;
use holdpoint_model::{Attestation, Envelope, ExitCode, import};
use holdpoint_render::{markdown, terminal};
use holdpoint_store::StoreError;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Runs the command.
///
/// # Errors
/// When a file or a key cannot be used.
pub fn run(args: &AttestArgs, output: &Output) -> Result<ExitCode, CliError> {
    match &args.command {
        AttestCommand::Keygen { key, public_key } => keygen(key, public_key.as_deref(), output),
        AttestCommand::Create(args) => create(args, output),
        AttestCommand::Sign { attestation, artifacts, key, output: path } => {
            sign(attestation, artifacts, key.as_deref(), path.as_deref(), output)
        }
        AttestCommand::Verify { file, artifacts, public_key, commit_sha, seal_keyid, strict } => {
            let trust =
                Trust { is_strict: *strict, commit_sha: commit_sha.as_deref(), seal_keyids: seal_keyid };
            verify(file, artifacts, public_key.as_deref(), trust, output)
        }
        AttestCommand::Show { file } => {
            let attestation = match Document::read(file)? {
                Document::Bare(attestation) => *attestation,
                Document::Envelope(envelope) => unchecked(&envelope, file)?,
            };
            output.result(&attestation, |style| terminal::attestation(&attestation, style))?;
            Ok(ExitCode::Ok)
        }
    }
}

fn keygen(key: &Path, public: Option<&Path>, output: &Output) -> Result<ExitCode, CliError> {
    let public = public.map_or_else(|| key.with_extension("pub"), Path::to_path_buf);
    if key == public {
        let what = "the private and the public key cannot be one file; name another with --public-key";
        return Err(CliError::File { path: public, what: what.to_owned() });
    }
    let pair = keys::generate()?;
    keys::write_pair(&pair, key, &public)?;
    let keyid = keys::key_id(&pair.verifying_key());
    let told =
        json!({"key": key.display().to_string(), "public_key": public.display().to_string(), "keyid": keyid});
    output.result(&told, |_| {
        format!(
            "private key {} (keep it secret), public key {}\nkeyid {keyid}\n",
            key.display(),
            public.display()
        )
    })?;
    Ok(ExitCode::Ok)
}

fn create(args: &AttestCreateArgs, output: &Output) -> Result<ExitCode, CliError> {
    if !args.artifacts.is_dir() {
        let what = "no such folder; it should hold what gate, check, doctor and the like have written";
        return Err(CliError::File { path: args.artifacts.clone(), what: what.to_owned() });
    }
    let [artifact_keys, gate_keys] = attest::known_keys();
    let all_keys = [artifact_keys.clone(), gate_keys.clone()].concat();
    let asked = Asked {
        dir: &args.artifacts,
        metadata: metadata(args)?,
        artifact_paths: pairs("--artifact-path", &args.artifact_path, &artifact_keys)?.into_iter().collect(),
        gate_files: pairs("--gate-evidence", &args.gate_evidence, &gate_keys)?,
        without: pairs("--without", &args.without, &all_keys)?.into_iter().collect(),
        holdpoint: env!("CARGO_PKG_VERSION").to_owned(),
    };
    for (key, path) in
        asked.artifact_paths.iter().chain(asked.gate_files.iter().map(|(key, path)| (key, path)))
    {
        if find_file(&args.artifacts, path)?.is_none() {
            let what = format!(
                "{key}={path}: no such file in {}; paths are below that folder",
                args.artifacts.display()
            );
            return Err(CliError::Input(what));
        }
    }
    let attestation = attest::create(&asked)?;
    refuse_without(&attestation, &asked)?;
    let json_path =
        args.output_json.clone().unwrap_or_else(|| args.artifacts.join("release/release_attestation.json"));
    let md_path = args.output_md.clone().unwrap_or_else(|| json_path.with_extension("md"));
    holdpoint_store::write_json(&json_path, &attestation)?;
    holdpoint_store::write_text(&md_path, &markdown::attestation(&attestation))?;
    output.result(&attestation, |style| terminal::attestation(&attestation, style))?;
    if !args.strict {
        return Ok(ExitCode::Ok);
    }
    let problems = attest::missing_for_release(&attestation);
    for problem in &problems {
        output.note(&format!("holdpoint: {problem}"));
    }
    Ok(if problems.is_empty() { ExitCode::Ok } else { ExitCode::Unverified })
}

/// What is there cannot be declared away.
fn refuse_without(attestation: &Attestation, asked: &Asked<'_>) -> Result<(), CliError> {
    let artifacts = attestation.artifacts.iter().filter(|artifact| artifact.exists);
    let artifacts = artifacts.map(|artifact| (&artifact.key, &artifact.path));
    let gates = attestation.gates.iter().filter_map(|gate| Some((&gate.key, &gate.inputs.first()?.path)));
    match artifacts.chain(gates).find(|(key, _)| asked.without.contains_key(*key)) {
        Some((key, path)) => Err(CliError::Input(format!(
            "--without {key}: {} is there; remove the file or the flag",
            asked.dir.join(path).display()
        ))),
        None => Ok(()),
    }
}

/// `KEY=TEXT`, each key a known one.
fn pairs(flag: &str, given: &[String], known: &[&str]) -> Result<Vec<(String, String)>, CliError> {
    let pair = |text: &String| {
        let problem = |what: &str| {
            CliError::Input(format!("{flag} {text:?}: {what}; KEY is one of {}", known.join(", ")))
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
fn metadata(args: &AttestCreateArgs) -> Result<ReleaseMetadata, CliError> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let first = |names: &[&str]| names.iter().find_map(|name| variable(name));
    let revision = machine::revision(Path::new("."));
    let tree_sha = revision.as_ref().and_then(|revision| tree_of(&revision.commit));
    let commit_sha = match (&args.commit_sha, &revision) {
        (Some(commit), Some(revision)) if *commit != revision.commit => {
            let what = format!(
                "--commit-sha {commit}: the tree here is at {}, check out what is attested",
                revision.commit
            );
            return Err(CliError::Input(what));
        }
        (Some(commit), _) => commit.clone(),
        // What is checked out is what was measured; CI may speak of a merge that was not.
        (None, Some(revision)) => revision.commit.clone(),
        (None, None) => first(&["GITHUB_SHA", "CI_COMMIT_SHA"]).unwrap_or_else(|| "unknown".to_owned()),
    };
    // A branch is no release.
    let github_tag =
        || variable("GITHUB_REF_NAME").filter(|_| variable("GITHUB_REF_TYPE").as_deref() == Some("tag"));
    let tag = args.release_tag.clone().or_else(github_tag).or_else(|| variable("CI_COMMIT_TAG"));
    let github_run = || {
        let parts = ["GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID"].map(variable);
        let [server, repository, run] = parts.map(Option::unwrap_or_default);
        let is_known = ![&server, &repository, &run].iter().any(|part| part.is_empty());
        is_known.then(|| format!("{server}/{repository}/actions/runs/{run}"))
    };
    let run =
        args.ci_run_url.clone().or_else(github_run).or_else(|| first(&["CI_JOB_URL", "CI_PIPELINE_URL"]));
    let owner = args.release_owner.clone().or_else(|| first(&["GITHUB_ACTOR", "GITLAB_USER_LOGIN"]));
    Ok(ReleaseMetadata {
        release_tag: tag.unwrap_or_else(|| "unversioned".to_owned()),
        commit_sha,
        build_date_utc: clock::timestamp_utc(),
        release_owner: owner.unwrap_or_else(|| "unknown".to_owned()),
        runtime_target: args.runtime_target.into(),
        ci_run_url: run,
        dirty: revision.map(|revision| revision.dirty),
        tree_sha,
        ref_name: first(&["GITHUB_REF_NAME", "CI_COMMIT_REF_NAME"]),
    })
}

fn sign(
    path: &Path,
    artifacts: &Path,
    key: Option<&Path>,
    to: Option<&Path>,
    output: &Output,
) -> Result<ExitCode, CliError> {
    let text = holdpoint_store::read_text(path)?;
    let attestation = import::attestation(&text).map_err(|source| format_error(path, source))?;
    let key = keys::private(key, std::env::var(keys::PRIVATE_VARIABLE).ok().as_deref())?;
    // What does not hold is not signed. Nothing is run meanwhile, not even git: the key is in this process.
    let document = Signed::Bare(Box::new(attestation.clone()));
    let (problems, _) = attest::verify(document, artifacts, Trust::default())?;
    if !problems.is_empty() {
        output.result(&problems, |style| terminal::verified(&problems, "", style))?;
        output.note("nothing was signed; make the attestation again with \"holdpoint attest create\"");
        return Ok(ExitCode::Unverified);
    }
    let statement = attest::statement(attestation);
    let payload = to_canonical(&statement).map_err(EvidenceError::from)?;
    let envelope = dsse::sign(payload.as_bytes(), &key);
    let to = to.map_or_else(|| path.with_extension("dsse.json"), Path::to_path_buf);
    holdpoint_store::write_json(&to, &envelope)?;
    let keyid = keys::key_id(&key.verifying_key());
    output.result(&envelope, |_| {
        format!("signed {} files in {}\nkeyid {keyid}\n", statement.subject.len(), to.display())
    })?;
    Ok(ExitCode::Ok)
}

/// What can be verified or shown.
pub(super) enum Document {
    Bare(Box<Attestation>),
    Envelope(Envelope),
}

impl Document {
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let text = holdpoint_store::read_text(path)?;
        match import::envelope(&text) {
            Ok(envelope) => Ok(Self::Envelope(envelope)),
            Err(_) if !text.contains("payloadType") => {
                let attestation = import::attestation(&text).map_err(|source| format_error(path, source))?;
                Ok(Self::Bare(Box::new(attestation)))
            }
            Err(source) => Err(format_error(path, source)),
        }
    }
}

fn format_error(path: &Path, source: import::FileError) -> CliError {
    EvidenceError::Format { path: path.to_owned(), source }.into()
}

/// What an envelope holds, whoever signed it.
fn unchecked(envelope: &Envelope, path: &Path) -> Result<Attestation, CliError> {
    let what = |what: String| CliError::File { path: PathBuf::from(path), what };
    let payload = dsse::payload(envelope).map_err(what)?;
    let text = String::from_utf8(payload).map_err(|_| what("its payload is not UTF-8 text".to_owned()))?;
    let statement = attest::read_statement(&text).map_err(what)?;
    Ok(statement.predicate)
}

fn verify(
    path: &Path,
    artifacts: &Path,
    public: Option<&Path>,
    trust: Trust<'_>,
    output: &Output,
) -> Result<ExitCode, CliError> {
    let (problems, attestation, signer) = checked(path, artifacts, public, trust)?;
    let holds = attestation.as_ref().map(|a| {
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
    told(&problems, &holds.unwrap_or_default(), attestation.as_ref(), output)
}

/// What does not hold of a file, what it holds, and who signed it.
pub(super) fn checked(
    path: &Path,
    artifacts: &Path,
    public: Option<&Path>,
    trust: Trust<'_>,
) -> Result<(Vec<String>, Option<Attestation>, String), CliError> {
    // A file that cannot even be read as one was tampered with, or is another; both mean that nothing is verified.
    let document = match Document::read(path) {
        Err(CliError::Evidence(error @ EvidenceError::Format { .. })) => {
            return Ok((vec![error.to_string()], None, String::new()));
        }
        Err(CliError::Store(error @ StoreError::NotText { .. })) => {
            return Ok((vec![error.to_string()], None, String::new()));
        }
        other => other?,
    };
    let variable = std::env::var(keys::PUBLIC_VARIABLE).ok().filter(|text| !text.trim().is_empty());
    let key;
    let mut is_unsigned = false;
    let (document, signer) = match document {
        Document::Bare(attestation) => {
            // Whoever names a key asks for its signature; strictly it is asked for anyway.
            is_unsigned = !trust.is_strict && (public.is_some() || variable.is_some());
            (Signed::Bare(attestation), "not signed".to_owned())
        }
        Document::Envelope(envelope) => {
            key = keys::public(public, variable.as_deref())?;
            let signer = format!("signed by {}", key.key_id());
            (Signed::Envelope(envelope, &key), signer)
        }
    };
    let (mut problems, attestation) = attest::verify(document, artifacts, trust)?;
    if is_unsigned {
        problems.insert(0, "it is not signed, and a public key was given".to_owned());
    }
    Ok((problems, attestation, signer))
}

fn told(
    problems: &[String],
    holds: &str,
    attestation: Option<&Attestation>,
    output: &Output,
) -> Result<ExitCode, CliError> {
    let document = json!({"verified": problems.is_empty(), "problems": problems, "attestation": attestation});
    output.result(&document, |style| terminal::verified(problems, holds, style))?;
    Ok(if problems.is_empty() { ExitCode::Ok } else { ExitCode::Unverified })
}
