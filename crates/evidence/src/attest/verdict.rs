//! Verdicts read from files. A file that contradicts itself, is of another kind than its gate takes, or of another commit, passes
//! nothing.

use super::requirements::Form;
use super::{Release, times};
use crate::Problem;
use crate::folder::{find_file, sibling};
use holdpoint_model::attest::{Compared, GateStatus, SignOff};
use holdpoint_model::caps::RuntimeCaps;
use holdpoint_model::fuzz::FuzzedKernel;
use holdpoint_model::limits::clean_text;
use holdpoint_model::{
    CheckDocument, Document, FuzzReport, KernelCheck, Kind, ReplayVerification, Revision, Verdict, document,
    json,
};
use serde_json::Value;

/// The kinds of documents that are verdicts.
const VERDICTS: [Kind; 6] =
    [Kind::Comparison, Kind::Fuzz, Kind::ReplayVerification, Kind::SignOff, Kind::RuntimeCaps, Kind::Check];

/// The verdict of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FileVerdict {
    pub status: GateStatus,
    pub detail: String,
    /// The code that it is about, where the file names it.
    pub revision: Option<Revision>,
    /// Whether files of its kind name a commit.
    pub names_commit: bool,
    /// Whether it is about times on a device; absent where it is not about times.
    pub on_device: Option<bool>,
    /// The files that it was checked against, below the artifacts folder.
    pub rests_on: Vec<String>,
    /// Whether it contradicts itself or the files beside it.
    pub is_edited: bool,
    pub compared: Option<Compared>,
}

impl FileVerdict {
    pub(super) fn new(status: GateStatus, detail: impl Into<String>) -> Self {
        let detail = clean_text(&detail.into());
        Self {
            status,
            detail,
            revision: None,
            names_commit: false,
            on_device: None,
            rests_on: Vec::new(),
            is_edited: false,
            compared: None,
        }
    }

    pub(super) fn with_revision(self, revision: Option<&Revision>) -> Self {
        Self { revision: revision.cloned(), names_commit: true, ..self }
    }

    /// Checks that it is of the attested commit.
    pub(super) fn check_commit(self, commit: &str) -> Self {
        match &self.revision {
            Some(revision) if revision.commit != commit => {
                let detail = format!("it is of commit {}, not of {commit}", revision.commit);
                Self { status: GateStatus::Fail, detail, ..self }
            }
            Some(revision) if revision.dirty && self.status == GateStatus::Pass => {
                let detail = format!("{}, but from a tree with uncommitted changes", self.detail);
                Self { status: GateStatus::Pending, detail, ..self }
            }
            None if self.names_commit && self.status == GateStatus::Pass => {
                let detail = format!("{}, but it names no commit", self.detail);
                Self { status: GateStatus::Pending, detail, ..self }
            }
            _ => self,
        }
    }
}

pub(super) fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The form of a verdict file, by its content.
fn find_form(text: &str, value: &Value) -> Option<Form> {
    let is_job = |job: &Value| job.get("result").is_some_and(Value::is_string);
    // By its values: a job may be called anything.
    if value.as_object().is_some_and(|map| !map.is_empty() && map.values().all(is_job)) {
        return Some(Form::Jobs);
    }
    let kind = document::kind(text).ok().flatten().filter(|kind| VERDICTS.contains(kind));
    kind.map(Form::Document)
}

/// Reads a verdict file for a gate that takes these forms, and checks it against the files beside it and the commit.
pub(super) fn read(
    path: &str,
    gate: &str,
    forms: &[Form],
    release: Release<'_>,
) -> Result<FileVerdict, Problem> {
    let text = holdpoint_store::read_text(&release.dir.join(path))?;
    let text = text.as_str();
    let value: Value = json::parse(text)?;
    let form = find_form(text, &value)
        .ok_or("not a verdict file: compare, gate, ab, fuzz, check, replay verify or doctor write them")?;
    if !forms.contains(&form) {
        let wanted: Vec<&str> = forms.iter().map(|form| form.words()).collect();
        let (found, wanted) = (form.words(), wanted.join(" or "));
        return Err(format!("{found} says nothing about {gate}; wanted is {wanted}").into());
    }
    match form {
        Form::Jobs => Ok(jobs(value.as_object().into_iter().flatten())),
        Form::Document(Kind::Comparison) => Ok(times::judgement(&typed(text)?, path, release)),
        Form::Document(Kind::Fuzz) => fuzz(&typed(text)?),
        Form::Document(Kind::ReplayVerification) => replayed(&typed(text)?, path, release),
        Form::Document(Kind::SignOff) => signed_off(&typed(text)?, gate),
        Form::Document(Kind::RuntimeCaps) => capabilities(&typed(text)?, &value),
        Form::Document(Kind::Check) => checked(&typed(text)?),
        Form::Document(other) => Err(format!("{} says nothing about any gate", other.words()).into()),
    }
    .map(|verdict| verdict.check_commit(release.commit))
}

fn typed<T: Document>(text: &str) -> Result<T, Problem> {
    Ok(document::read(text)?)
}

pub(super) fn status_of(verdict: Verdict) -> GateStatus {
    match verdict {
        Verdict::Improved | Verdict::Pass | Verdict::Waived => GateStatus::Pass,
        Verdict::Skipped | Verdict::Inconclusive => GateStatus::Pending,
        Verdict::Regressed | Verdict::Broken => GateStatus::Fail,
    }
}

fn fuzz(report: &FuzzReport) -> Result<FileVerdict, Problem> {
    let is_odd = |kernel: &&FuzzedKernel| {
        let wrong = kernel.cases_count.checked_sub(kernel.passed_count);
        wrong.is_none_or(|wrong| (wrong > 0) == kernel.failures.is_empty())
    };
    if let Some(odd) = report.kernels.iter().find(is_odd) {
        let (cases, passed, failures) = (odd.cases_count, odd.passed_count, odd.failures.len());
        let what = format!(
            "{}: {passed} of {cases} cases passed and {failures} failures are kept: it was edited",
            odd.name()
        );
        return Err(what.into());
    }
    let sum = |count: fn(&FuzzedKernel) -> u64| report.kernels.iter().map(count).fold(0, u64::saturating_add);
    let (cases, passed) = (sum(|kernel| kernel.cases_count), sum(|kernel| kernel.passed_count));
    let detail = format!("{}: {passed} of {cases} fuzzed cases right", report.suite);
    // A kernel that did not run agrees with nobody.
    let silent = report.kernels.iter().find(|kernel| kernel.skipped.is_some() || kernel.cases_count == 0);
    let (status, detail) = match silent {
        _ if passed < cases => (GateStatus::Fail, detail),
        Some(kernel) => {
            let why = kernel.skipped.as_deref().unwrap_or("no case");
            let (name, dtype, worker) = (kernel.name(), &kernel.dtype, &kernel.worker);
            (GateStatus::Pending, format!("{detail}, but {name} {dtype} by {worker} did not run: {why}"))
        }
        None if report.kernels.is_empty() => (GateStatus::Pending, detail),
        None => (GateStatus::Pass, detail),
    };
    Ok(FileVerdict::new(status, detail).with_revision(report.revision.as_ref()))
}

fn replayed(found: &ReplayVerification, path: &str, release: Release<'_>) -> Result<FileVerdict, Problem> {
    let beside = sibling(path, "replay.json");
    let places = [beside.as_str(), "replay.json", "export/apex_x_manifest.json"];
    let place = places.into_iter().find(|place| release.dir.join(place).is_file());
    if let Some(place) = place {
        find_file(release.dir, place)?;
        let manifest = crate::replay::read(&release.dir.join(place))?;
        if manifest.manifest_sha256 != found.manifest_sha256 {
            return Err(format!("it is about another manifest than {place}").into());
        }
        if found.same && found.outputs_count != manifest.artifact_hashes.len() as u64 {
            let all = plural(manifest.artifact_hashes.len(), "answer");
            let compared = found.outputs_count;
            return Err(format!("{compared} were compared, {place} has {all}: it was edited").into());
        }
    }
    if found.exact_count > found.outputs_count {
        return Err("more answers are exact than were compared: it was edited".into());
    }
    let is_same = found.differences.is_empty() && found.skipped.is_empty() && found.outputs_count > 0;
    if is_same != found.same {
        return Err("whether all is the same does not follow from what differs: it was edited".into());
    }
    let (status, detail) = match found.differences.first() {
        Some(first) => (GateStatus::Fail, first.clone()),
        None if is_same && place.is_none() => {
            (GateStatus::Pending, "the manifest that it is about is not here".to_owned())
        }
        None if is_same => (
            GateStatus::Pass,
            format!("{} replayed the same", plural(found.outputs_count as usize, "answer")),
        ),
        None => (GateStatus::Pending, format!("{} could not be replayed", found.skipped.len())),
    };
    let rests_on = place.map(str::to_owned).into_iter().collect();
    Ok(FileVerdict { rests_on, ..FileVerdict::new(status, detail).with_revision(found.revision.as_ref()) })
}

fn checked(document: &CheckDocument) -> Result<FileVerdict, Problem> {
    let checks: &[KernelCheck] = match document {
        CheckDocument::One(check) => std::slice::from_ref(check),
        CheckDocument::Many(checks) => checks,
    };
    let count = |passed: bool| {
        checks.iter().filter(|check| check.correctness.as_ref().is_some_and(|c| c.passed == passed)).count()
    };
    let is_odd = |check: &KernelCheck| {
        let is_wrong = |c: &holdpoint_model::check::Correctness| {
            c.finding.is_some() || c.cases_count == 0 || c.max_abs_error.is_infinite()
        };
        check.correctness.as_ref().is_some_and(|c| c.passed && is_wrong(c))
    };
    if checks.iter().any(is_odd) {
        return Err(
            "a kernel is called right, yet has a finding, no case, or an error without end: it was edited"
                .into(),
        );
    }
    let (right, wrong) = (count(true), count(false));
    let status = match (right, wrong) {
        (_, 1..) => GateStatus::Fail,
        (right, 0) if right == checks.len() && right > 0 => GateStatus::Pass,
        _ => GateStatus::Pending,
    };
    Ok(FileVerdict::new(status, format!("{right} of {} right", plural(checks.len(), "kernel"))))
}

fn signed_off(sign_off: &SignOff, gate: &str) -> Result<FileVerdict, Problem> {
    if sign_off.gate != gate {
        return Err(format!("it signs off {:?}, not {gate:?}", sign_off.gate).into());
    }
    if !sign_off.signed_off_by.chars().any(char::is_alphanumeric) {
        return Err("signed_off_by is empty: nobody answers for it".into());
    }
    let revision = Revision { commit: sign_off.commit_sha.clone(), dirty: false };
    let detail = format!("signed off by {}: {}", sign_off.signed_off_by, sign_off.evidence);
    Ok(FileVerdict::new(sign_off.status, detail).with_revision(Some(&revision)))
}

/// Every capability that is missing must say why.
fn capabilities(caps: &RuntimeCaps, value: &Value) -> Result<FileVerdict, Problem> {
    let mut silent = Vec::new();
    find_silent("", value, &mut silent);
    let detail = format!(
        "{}; GPU runtime {}",
        caps.cpu.model,
        if caps.any_gpu_runtime { "there" } else { "not there" }
    );
    Ok(match silent.first() {
        None => FileVerdict::new(GateStatus::Pass, detail),
        Some(first) => {
            FileVerdict::new(GateStatus::Fail, format!("{first} is not available and does not say why"))
        }
    })
}

fn find_silent(name: &str, value: &Value, silent: &mut Vec<String>) {
    let Value::Object(map) = value else { return };
    let says_why = map.get("reason").and_then(Value::as_str).is_some_and(|why| !why.trim().is_empty());
    if map.get("available") == Some(&Value::Bool(false)) && !says_why {
        silent.push(name.trim_start_matches('.').to_owned());
    }
    for (key, inner) in map {
        find_silent(&format!("{name}.{key}"), inner, silent);
    }
}

/// GitHub's `toJSON(needs)`: the results of the jobs before this one.
fn jobs<'a>(jobs: impl Iterator<Item = (&'a String, &'a Value)>) -> FileVerdict {
    let results: Vec<(&String, &str)> =
        jobs.map(|(name, job)| (name, job["result"].as_str().unwrap_or_default())).collect();
    let bad: Vec<String> = results
        .iter()
        .filter(|(_, result)| *result != "success")
        .map(|(name, result)| format!("{name}: {result}"))
        .collect();
    match () {
        () if bad.is_empty() => {
            FileVerdict::new(GateStatus::Pass, format!("{} succeeded", plural(results.len(), "job")))
        }
        () if results.iter().any(|(_, result)| *result == "failure") => {
            FileVerdict::new(GateStatus::Fail, bad.join(", "))
        }
        () => FileVerdict::new(GateStatus::Pending, bad.join(", ")),
    }
}
