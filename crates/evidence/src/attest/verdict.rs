//! Verdicts read from the files that hold them. A file that contradicts itself, or is of another commit, passes nothing.

use holdpoint_model::attest::{GateStatus, SignOff};
use holdpoint_model::limits::clean_text;
use holdpoint_model::waiver::{UsedWaiver, WaiverState};
use holdpoint_model::{
    AbReport, CheckDocument, Current, FuzzReport, Judgement, KernelCheck, Outcome, ReplayVerification,
    Report, Revision, Verdict, import, json,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// What a verdict file says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Said {
    pub status: GateStatus,
    pub detail: String,
    /// The code that it speaks of, where it tells.
    pub revision: Option<Revision>,
    /// Whether it speaks of times on a device, where it speaks of times.
    pub on_device: Option<bool>,
}

impl Said {
    fn new(status: GateStatus, detail: impl Into<String>) -> Self {
        Self { status, detail: clean_text(&detail.into()), revision: None, on_device: None }
    }

    fn of(self, revision: Option<&Revision>) -> Self {
        Self { revision: revision.cloned(), ..self }
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
            _ => self,
        }
    }
}

/// `1 metric`, `9 metrics`.
pub(super) fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Reads a verdict file for a gate.
///
/// # Errors
/// With what is wrong with it: it is no such file, or contradicts itself.
pub(super) fn read(text: &str, gate: &str) -> Result<Said, String> {
    let value: Value = json::parse(text).map_err(|error| error.to_string())?;
    let has = |keys: &[&str]| keys.iter().all(|key| value.get(key).is_some());
    match () {
        () if has(&["verdict", "checks"]) => judgement(&import::judgement(text).map_err(|e| e.to_string())?),
        () if has(&["plan", "base", "head"]) => side_by_side(&import::ab(text).map_err(|e| e.to_string())?),
        () if has(&["kernels", "seed"]) => fuzz(&typed(value)?),
        () if has(&["manifest_sha256", "differences"]) => replayed(&typed(value)?),
        () if has(&["signed_off_by"]) => signed_off(&typed(value)?, gate),
        () if has(&["cpu", "cuda"]) => capabilities(value),
        () if has(&["correctness"]) || value.is_array() => checked(&typed(value)?),
        () => jobs(&value),
    }
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| clean_text(&error.to_string()))
}

fn status_of(verdict: Verdict) -> GateStatus {
    match verdict {
        Verdict::Improved | Verdict::Pass | Verdict::Waived => GateStatus::Pass,
        Verdict::Skipped | Verdict::Inconclusive => GateStatus::Pending,
        Verdict::Regressed | Verdict::Broken => GateStatus::Fail,
    }
}

/// A regression that passes has a waiver beside it that covers it.
fn waived(
    name: &str,
    verdict: Verdict,
    waiver: Option<&UsedWaiver>,
    change: Option<f64>,
) -> Result<(), String> {
    let covers = |waiver: &UsedWaiver| {
        waiver.state == WaiverState::Waived && change.is_some_and(|change| change <= waiver.limit)
    };
    if verdict == Verdict::Waived && !waiver.is_some_and(covers) {
        return Err(clean_text(&format!(
            "{name} is waived, and no waiver beside it covers it: it was edited"
        )));
    }
    Ok(())
}

fn judgement(j: &Judgement) -> Result<Said, String> {
    let worst = j.checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Inconclusive);
    if worst != j.verdict {
        let (said, is) = (j.verdict.as_str(), worst.as_str());
        return Err(format!("its verdict is {said}, yet the worst of its checks is {is}: it was edited"));
    }
    for check in &j.checks {
        let is_over =
            check.current_ms.zip(check.allowed_max_ms).is_some_and(|(current, most)| current > most);
        if is_over && check.verdict <= Verdict::Pass {
            let what =
                format!("{} is above its allowed_max_ms, yet {}", check.metric, check.verdict.as_str());
            return Err(clean_text(&format!("{what}: it was edited")));
        }
        waived(&check.metric, check.verdict, check.waiver.as_ref(), check.regression_ratio)?;
    }
    let detail = format!(
        "{}: {}, {}, policy {}",
        j.suite,
        j.verdict.as_str(),
        plural(j.checks.len(), "metric"),
        j.policy
    );
    let on_device = j.machine.as_ref().is_some_and(|machine| !machine.devices.is_empty());
    Ok(Said { on_device: Some(on_device), ..Said::new(status_of(j.verdict), detail).of(j.revision.as_ref()) })
}

fn side_by_side(ab: &AbReport) -> Result<Said, String> {
    let worst = ab.workloads.values().map(|workload| workload.verdict).max().unwrap_or(Verdict::Inconclusive);
    // While it runs, the verdict is not out.
    if ab.finished && worst != ab.verdict {
        let (said, is) = (ab.verdict.as_str(), worst.as_str());
        return Err(format!("its verdict is {said}, yet the worst of its workloads is {is}: it was edited"));
    }
    for (name, workload) in &ab.workloads {
        let is_slower = workload.evidence.as_ref().is_some_and(|e| e.ratio > 1.0 + ab.plan.tolerance);
        if is_slower && workload.verdict <= Verdict::Pass {
            let what = format!("{name} is slower than the tolerance, yet {}", workload.verdict.as_str());
            return Err(clean_text(&format!("{what}: it was edited")));
        }
        let by_interval = workload.disjoint_ci.as_ref().map(|keys| keys.delta_pct / 100.0);
        let change = by_interval.or(workload.evidence.as_ref().map(|evidence| evidence.ratio - 1.0));
        waived(name, workload.verdict, workload.waiver.as_ref(), change)?;
    }
    let on_device = Some(ab.machine.as_ref().is_some_and(|machine| !machine.devices.is_empty()));
    let said = if ab.finished {
        let detail = {
            let count = plural(ab.workloads.len(), "workload");
            format!("{}: {}, {count} side by side", ab.suite, ab.verdict.as_str())
        };
        Said::new(status_of(ab.verdict), detail)
    } else {
        Said::new(GateStatus::Pending, format!("{}: not finished", ab.suite))
    };
    Ok(Said { on_device, ..said.of(ab.head.revision.as_ref()) })
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

fn replayed(found: &ReplayVerification) -> Result<Said, String> {
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
    let is_silent =
        map.get("available") == Some(&Value::Bool(false)) && map.get("reason").is_some_and(Value::is_null);
    if is_silent {
        silent.push(name.trim_start_matches('.').to_owned());
    }
    for (key, inner) in map {
        find_silent(&format!("{name}.{key}"), inner, silent);
    }
}

/// GitHub's `toJSON(needs)`: what became of the jobs before this one.
fn jobs(value: &Value) -> Result<Said, String> {
    let unknown = || {
        "not a verdict file: compare, gate, ab, fuzz, check, replay verify or doctor write them".to_owned()
    };
    let jobs: &Map<String, Value> = value.as_object().filter(|map| !map.is_empty()).ok_or_else(unknown)?;
    let mut bad = Vec::new();
    for (name, job) in jobs {
        match job.get("result").and_then(Value::as_str).ok_or_else(unknown)? {
            "success" => {}
            result => bad.push((result, format!("{name}: {result}"))),
        }
    }
    let names: Vec<&str> = bad.iter().map(|(_, text)| text.as_str()).collect();
    Ok(match () {
        () if bad.is_empty() => {
            Said::new(GateStatus::Pass, format!("{} succeeded", plural(jobs.len(), "job")))
        }
        () if bad.iter().any(|(result, _)| *result == "failure") => {
            Said::new(GateStatus::Fail, names.join(", "))
        }
        () => Said::new(GateStatus::Pending, names.join(", ")),
    })
}

/// Whether a report's numbers are those of its samples, and it is of the commit.
///
/// # Errors
/// With what is not.
pub(super) fn check_report(report: &Report, commit: &str) -> Result<(), String> {
    for (name, measurement) in &report.benchmarks {
        let Outcome::Measured(measured) = &measurement.outcome else { continue };
        let mut times_ms: Vec<f64> = measured.samples.per_call_ns().map(|ns| ns / 1e6).collect();
        times_ms.sort_by(f64::total_cmp);
        let half = times_ms.len() / 2;
        let median = match times_ms.len() % 2 {
            _ if times_ms.is_empty() => return Err(clean_text(&format!("{name} has no samples"))),
            1 => times_ms[half],
            _ => f64::midpoint(times_ms[half - 1], times_ms[half]),
        };
        if (median - measured.p50_ms).abs() > 1e-9 * median {
            let what = format!("{name}: p50_ms is {}, the median of its samples {median}", measured.p50_ms);
            return Err(clean_text(&format!("{what}: it was edited")));
        }
    }
    match &report.revision {
        Some(revision) if revision.commit != commit => {
            Err(format!("it is of commit {}, not of {commit}", revision.commit))
        }
        _ => Ok(()),
    }
}

/// Whether a comparison is of this report: every time it judged stands there.
///
/// # Errors
/// With the first that does not.
pub(super) fn check_same_run(j: &Judgement, current: &Current) -> Result<(), String> {
    for check in &j.checks {
        let measured = current.metrics.get(&check.metric).map(|metric| metric.value_ms);
        if let (Some(judged), Some(measured)) = (check.current_ms, measured)
            && judged != measured
        {
            let what =
                format!("{}: {judged} ms was judged, the report beside it says {measured} ms", check.metric);
            return Err(clean_text(&what));
        }
    }
    Ok(())
}
