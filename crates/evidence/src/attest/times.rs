//! Verdicts over times, judged again from their samples: the result must match the file.

use super::Release;
use super::base::Base;
use super::verdict::{FileVerdict, plural, status_of};
use crate::Problem;
use crate::folder::sibling;
use crate::rejudge::{Doubt, edited_report, rejudge_beside};
use holdpoint_gate::{Policy, judge_sides};
use holdpoint_model::ab::Ended;
use holdpoint_model::attest::{Compared, GateStatus};
use holdpoint_model::judgement::STATUS_METRIC;
use holdpoint_model::limits::clean_text;
use holdpoint_model::suite::{TIMER_HOST, TIMER_PROCESS};
use holdpoint_model::waiver::UsedWaiver;
use holdpoint_model::{
    AbPlan, AbReport, BaselineBasis, Identity, Machine, Report, Revision, Stated, Verdict,
};
use std::collections::BTreeSet;

/// The waiver, where it counts.
fn describe_waiver(verdict: Verdict, waiver: Option<&UsedWaiver>) -> Option<String> {
    let UsedWaiver { owner, metric, limit, expires, .. } = waiver.filter(|_| verdict == Verdict::Waived)?;
    Some(format!(", {metric} waived up to {:+.1} % by {owner} until {expires}", limit * 100.0))
}

/// The differences that a run was allowed to have from its baseline.
fn describe_allowed(basis: &BaselineBasis) -> String {
    let allowed = basis.allow.names();
    if allowed.is_empty() { String::new() } else { format!(", across {} as allowed", allowed.join(", ")) }
}

/// Whether times are a device's: the machine names one, or a clock is not the host's.
fn on_device<'a>(machine: Option<&Machine>, mut identities: impl Iterator<Item = &'a Identity>) -> bool {
    machine.is_some_and(|machine| !machine.devices.is_empty())
        || identities.any(|identity| ![TIMER_HOST, TIMER_PROCESS].contains(&identity.timer.as_str()))
}

/// Adds the revisions and their problems. A verdict that does not hold is still about the CPU or a device.
fn with_revisions(
    found: Result<FileVerdict, Problem>,
    on_device: bool,
    base: &Base,
    head: Option<&Revision>,
) -> FileVerdict {
    let is_edited = |problem: Problem| FileVerdict {
        is_edited: true,
        ..FileVerdict::new(GateStatus::Fail, problem.to_string())
    };
    let mut verdict = found.unwrap_or_else(is_edited);
    let commit = head.map(|head| head.commit.as_str());
    if let Some(problem) = base.problem(commit)
        && verdict.status == GateStatus::Pass
    {
        verdict = FileVerdict {
            status: GateStatus::Pending,
            detail: format!("{}, but {problem}", verdict.detail),
            ..verdict
        };
    }
    let compared = Compared { base: base.revision(), head: head.cloned() };
    FileVerdict { on_device: Some(on_device), compared: Some(compared), ..verdict.with_revision(head) }
}

/// Reads a judgement, and judges it again from the samples beside it where they are there.
pub(super) fn judgement(j: &Stated, path: &str, release: Release<'_>) -> FileVerdict {
    let baseline = j.basis.as_ref().and_then(|basis| basis.baseline());
    let metrics = baseline.iter().flat_map(|basis| basis.baseline.metrics.values());
    let of_metrics = metrics.filter_map(|metric| metric.identity.as_ref());
    let of_sides = j.checks.iter().filter_map(|check| Some(&check.paired.as_ref()?.identity));
    let on_device = on_device(j.machine.as_ref(), of_metrics.chain(of_sides));
    let base = match (&j.sides, baseline) {
        (Some(sides), _) => Base::of_side(&sides.base),
        (None, Some(basis)) => Base::of_baseline(&basis.baseline),
        (None, None) => Base::default(),
    };
    with_revisions(rejudge(j, path, release), on_device, &base, j.revision.as_ref())
}

fn rejudge(j: &Stated, path: &str, release: Release<'_>) -> Result<FileVerdict, Problem> {
    if j.sides.as_ref().is_some_and(|sides| !sides.finished) {
        return Ok(FileVerdict::new(GateStatus::Pending, format!("{}: not finished", j.suite)));
    }
    let file = release.dir.join(path);
    let dir = file.parent().unwrap_or(release.dir);
    let (rejudged, names) = rejudge_beside(j, dir, Some(release.commit), release.day);
    let unknown = match rejudged.doubt {
        Some(Doubt::Edited(what)) => return Err(what.into()),
        Some(Doubt::Unknown(what)) => Some(what),
        None => None,
    };
    let rests_on = names.iter().map(|name| sibling(path, name)).collect();
    let mut detail = if j.sides.is_some() { describe_sides(j) } else { describe_run(j) };
    let waivers: BTreeSet<String> =
        j.checks.iter().filter_map(|check| describe_waiver(check.verdict, check.waiver.as_ref())).collect();
    detail.extend(waivers);
    let status = match (status_of(j.verdict), unknown) {
        (GateStatus::Pass, Some(what)) => {
            detail += &format!(", but {what}, so it cannot be judged again");
            GateStatus::Pending
        }
        (status, _) => status,
    };
    Ok(FileVerdict { rests_on, ..FileVerdict::new(status, detail) })
}

fn describe_run(j: &Stated) -> String {
    let metrics = j.checks.iter().filter(|check| check.metric != STATUS_METRIC).count();
    let mut detail =
        format!("{}: {}, {}, policy {}", j.suite, j.verdict.as_str(), plural(metrics, "metric"), j.policy);
    let most = j.checks.iter().filter_map(|check| match &check.stored {
        Some(stored) => Some(stored.limit),
        None => Some(check.allowed_max_ms? / check.baseline_ms? - 1.0),
    });
    if let Some(most) = most.max_by(f64::total_cmp) {
        detail += &format!(", at most {:+.1} % allowed", most * 100.0);
    }
    if !j.ungated.is_empty() {
        detail += &format!(", {} not judged", j.ungated.len());
    }
    detail.extend(j.basis.iter().filter_map(|basis| basis.baseline()).map(describe_allowed));
    detail
}

fn describe_sides(j: &Stated) -> String {
    let workloads = plural(j.checks.len(), "workload");
    let mut detail =
        format!("{}: {}, {workloads} side by side, policy {}", j.suite, j.verdict.as_str(), j.policy);
    if let Some(plan) = j.basis.as_ref().and_then(|basis| basis.plan())
        && j.policy == Policy::Sequential.name()
    {
        let AbPlan { tolerance, alarm_rate, miss_rate, .. } = plan;
        let rates =
            [tolerance, alarm_rate, miss_rate].map(|rate| format!("{} %", (rate * 1e8).round() / 1e6));
        let [tolerance, alarms, misses] = rates;
        detail += &format!(", tolerance {tolerance}, false alarms {alarms}, misses {misses}");
    }
    for check in &j.checks {
        if check.paired.as_ref().is_some_and(|paired| paired.ended == Ended::SameCode) {
            detail += &format!(", {} not measured: the same code", check.name());
        }
    }
    detail
}

/// Checks samples of two sides: their head must be the commit, and they must not contradict themselves.
pub(super) fn sides(report: &AbReport, commit: &str) -> Result<(GateStatus, String), Problem> {
    judge_sides(report, &report.plan, Policy::Sequential).map_err(|error| clean_text(&error.to_string()))?;
    let workloads = plural(report.workloads.len(), "workload");
    let detail = clean_text(&format!("samples of {}, {workloads} side by side", report.suite));
    at_commit(FileVerdict::new(GateStatus::Pass, detail).with_revision(report.head.revision.as_ref()), commit)
}

fn at_commit(verdict: FileVerdict, commit: &str) -> Result<(GateStatus, String), Problem> {
    let FileVerdict { status, detail, .. } = verdict.check_commit(commit);
    if status == GateStatus::Fail { Err(detail.into()) } else { Ok((status, detail)) }
}

/// Checks a report: it must be of the commit, and must not contradict itself.
pub(super) fn report(report: &Report, commit: &str) -> Result<(GateStatus, String), Problem> {
    if let Some(what) = edited_report(report) {
        return Err(what.into());
    }
    let detail =
        clean_text(&format!("report of {}, {}", report.suite, plural(report.benchmarks.len(), "workload")));
    if !matches!(report.status.as_str(), "ok" | "partial") {
        return Err(format!("{detail}, which is of a run that is {}", report.status.as_str()).into());
    }
    at_commit(FileVerdict::new(GateStatus::Pass, detail).with_revision(report.revision.as_ref()), commit)
}
