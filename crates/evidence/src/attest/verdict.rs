//! Verdicts read from the files that hold them. A file that contradicts itself, is of another kind than its gate takes, or of another
//! commit, passes nothing.

use super::kinds::Form;
use super::times;
use holdpoint_model::attest::{GateStatus, SignOff};
use holdpoint_model::limits::clean_text;
use holdpoint_model::{
    CheckDocument, FuzzReport, KernelCheck, ReplayVerification, Revision, SCHEMA_VERSION, Verdict, import,
    json,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;

/// What a verdict file says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Said {
    pub status: GateStatus,
    pub detail: String,
    /// The code that it speaks of, where it tells.
    pub revision: Option<Revision>,
    /// Whether files of its kind tell.
    pub names_commit: bool,
    /// Whether it speaks of times on a device, where it speaks of times.
    pub on_device: Option<bool>,
}

impl Said {
    pub(super) fn new(status: GateStatus, detail: impl Into<String>) -> Self {
        let detail = clean_text(&detail.into());
        Self { status, detail, revision: None, names_commit: false, on_device: None }
    }

    pub(super) fn of(self, revision: Option<&Revision>) -> Self {
        Self { revision: revision.cloned(), names_commit: true, ..self }
    }

    /// Held against the commit that is attested.
    pub(super) fn at(self, commit: &str) -> Self {
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

/// `1 metric`, `9 metrics`.
pub(super) fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// What kind of verdict a file holds.
fn form_of(value: &Value) -> Option<Form> {
    let has = |keys: &[&str]| keys.iter().all(|key| value.get(key).is_some());
    let is_job = |job: &Value| job.get("result").is_some_and(Value::is_string);
    Some(match () {
        () if has(&["verdict", "checks"]) => Form::Judged,
        () if has(&["plan", "base", "head"]) => Form::SideBySide,
        () if has(&["kernels", "seed"]) => Form::Fuzzed,
        () if has(&["manifest_sha256", "differences"]) => Form::Replayed,
        () if has(&["signed_off_by"]) => Form::SignedOff,
        () if has(&["cpu", "cuda"]) => Form::Capabilities,
        () if has(&["correctness"]) || value.is_array() => Form::Checked,
        () if value.as_object().is_some_and(|map| !map.is_empty() && map.values().all(is_job)) => Form::Jobs,
        () => return None,
    })
}

/// Reads a verdict file for a gate that takes these forms, and holds it against what lies beside it and the commit.
///
/// # Errors
/// With what is wrong with it: it is no such file, or contradicts itself.
pub(super) fn read(file: &Path, gate: &str, forms: &[Form], commit: &str) -> Result<Said, String> {
    let text = holdpoint_store::read_text(file).map_err(|error| clean_text(&error.to_string()))?;
    let dir = file.parent().unwrap_or(Path::new("."));
    let text = text.as_str();
    let value: Value = json::parse(text).map_err(|error| error.to_string())?;
    let form = form_of(&value)
        .ok_or("not a verdict file: compare, gate, ab, fuzz, check, replay verify or doctor write them")?;
    if !forms.contains(&form) {
        let wanted: Vec<&str> = forms.iter().map(|form| form.as_str()).collect();
        return Err(format!(
            "{} says nothing about {gate}; wanted is {}",
            form.as_str(),
            wanted.join(" or ")
        ));
    }
    match form {
        Form::Judged => times::judgement(&import::judgement(text).map_err(|e| e.to_string())?, dir, commit),
        Form::SideBySide => times::side_by_side(&import::ab(text).map_err(|e| e.to_string())?),
        Form::Fuzzed => fuzz(&typed(value)?),
        Form::Replayed => replayed(&typed(value)?, dir),
        Form::SignedOff => signed_off(&typed(value)?, gate),
        Form::Capabilities => capabilities(value),
        Form::Checked => checked(&typed(value)?),
        Form::Jobs => Ok(jobs(value.as_object().into_iter().flatten())),
    }
    .map(|said| said.at(commit))
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| clean_text(&error.to_string()))
}

pub(super) fn status_of(verdict: Verdict) -> GateStatus {
    match verdict {
        Verdict::Improved | Verdict::Pass | Verdict::Waived => GateStatus::Pass,
        Verdict::Skipped | Verdict::Inconclusive => GateStatus::Pending,
        Verdict::Regressed | Verdict::Broken => GateStatus::Fail,
    }
}

fn fuzz(report: &FuzzReport) -> Result<Said, String> {
    let sum = |count: fn(&holdpoint_model::fuzz::FuzzedKernel) -> u64| {
        report.kernels.iter().map(count).sum::<u64>()
    };
    let (cases, passed) = (sum(|kernel| kernel.cases_count), sum(|kernel| kernel.passed_count));
    let failures = report.kernels.iter().map(|kernel| kernel.failures.len()).sum::<usize>();
    if (passed < cases) != (failures > 0) {
        return Err(format!(
            "{passed} of {cases} cases passed and {failures} failures are kept: it was edited"
        ));
    }
    let detail = format!("{}: {passed} of {cases} fuzzed cases right", report.suite);
    let status = match (cases, failures) {
        (0, _) => GateStatus::Pending,
        (_, 0) => GateStatus::Pass,
        _ => GateStatus::Fail,
    };
    Ok(Said::new(status, detail).of(report.revision.as_ref()))
}

fn replayed(found: &ReplayVerification, dir: &Path) -> Result<Said, String> {
    let manifest = dir.join("replay.json");
    if manifest.is_file() {
        let manifest = crate::replay::read(&manifest).map_err(|error| clean_text(&error.to_string()))?;
        if manifest.manifest_sha256 != found.manifest_sha256 {
            return Err("it is about another manifest than the replay.json beside it".to_owned());
        }
    }
    let is_same = found.differences.is_empty() && found.skipped.is_empty() && found.outputs_count > 0;
    if is_same != found.same {
        return Err("whether all is the same does not follow from what differs: it was edited".to_owned());
    }
    let (status, detail) = match found.differences.first() {
        Some(first) => (GateStatus::Fail, first.clone()),
        None if is_same => (
            GateStatus::Pass,
            format!("{} replayed the same", plural(found.outputs_count as usize, "answer")),
        ),
        None => (GateStatus::Pending, format!("{} could not be replayed", found.skipped.len())),
    };
    Ok(Said::new(status, detail).of(found.revision.as_ref()))
}

fn checked(document: &CheckDocument) -> Result<Said, String> {
    let checks: &[KernelCheck] = match document {
        CheckDocument::One(check) => std::slice::from_ref(check),
        CheckDocument::Many(checks) => checks,
    };
    let count = |passed: bool| {
        checks.iter().filter(|check| check.correctness.as_ref().is_some_and(|c| c.passed == passed)).count()
    };
    let is_odd = |check: &KernelCheck| {
        check.correctness.as_ref().is_some_and(|c| c.passed && (c.finding.is_some() || c.cases_count == 0))
    };
    if checks.iter().any(is_odd) {
        return Err("a kernel is called right, yet has a finding or no case: it was edited".to_owned());
    }
    let (right, wrong) = (count(true), count(false));
    let status = match (right, wrong) {
        (_, 1..) => GateStatus::Fail,
        (right, 0) if right == checks.len() && right > 0 => GateStatus::Pass,
        _ => GateStatus::Pending,
    };
    Ok(Said::new(status, format!("{right} of {} right", plural(checks.len(), "kernel"))))
}

fn signed_off(sign_off: &SignOff, gate: &str) -> Result<Said, String> {
    if sign_off.gate != gate {
        return Err(clean_text(&format!("it signs off {:?}, not {gate:?}", sign_off.gate)));
    }
    if sign_off.schema_version != SCHEMA_VERSION {
        return Err(format!("schema_version {} is not known here", sign_off.schema_version));
    }
    if !sign_off.signed_off_by.chars().any(char::is_alphanumeric) {
        return Err("signed_off_by is empty: nobody answers for it".to_owned());
    }
    let revision = Revision { commit: sign_off.commit_sha.clone(), dirty: false };
    let detail = format!("signed off by {}: {}", sign_off.signed_off_by, sign_off.evidence);
    Ok(Said::new(sign_off.status, detail).of(Some(&revision)))
}

/// Every capability that is missing must say why.
fn capabilities(value: Value) -> Result<Said, String> {
    let mut silent = Vec::new();
    find_silent("", &value, &mut silent);
    let caps: holdpoint_model::caps::RuntimeCaps = typed(value)?;
    let detail = format!(
        "{}; GPU runtime {}",
        caps.cpu.model,
        if caps.any_gpu_runtime { "there" } else { "not there" }
    );
    Ok(match silent.first() {
        None => Said::new(GateStatus::Pass, detail),
        Some(first) => Said::new(GateStatus::Fail, format!("{first} is not available and does not say why")),
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

/// GitHub's `toJSON(needs)`: what became of the jobs before this one.
fn jobs<'a>(jobs: impl Iterator<Item = (&'a String, &'a Value)>) -> Said {
    let results: Vec<(&String, &str)> =
        jobs.map(|(name, job)| (name, job["result"].as_str().unwrap_or_default())).collect();
    let bad: Vec<String> = results
        .iter()
        .filter(|(_, result)| *result != "success")
        .map(|(name, result)| format!("{name}: {result}"))
        .collect();
    match () {
        () if bad.is_empty() => {
            Said::new(GateStatus::Pass, format!("{} succeeded", plural(results.len(), "job")))
        }
        () if results.iter().any(|(_, result)| *result == "failure") => {
            Said::new(GateStatus::Fail, bad.join(", "))
        }
        () => Said::new(GateStatus::Pending, bad.join(", ")),
    }
}
