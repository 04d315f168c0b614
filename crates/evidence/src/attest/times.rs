//! Verdicts over times, judged again from their samples: the numbers, statuses and verdicts that come out must be those in the file.

use super::Held;
use super::base::Base;
use super::verdict::{Said, plural, sibling, status_of};
use crate::Problem;
use crate::rejudge::{Doubt, edited_report, rejudge_beside};
use holdpoint_gate::{Policy, judge_sides};
use holdpoint_model::ab::Ended;
use holdpoint_model::attest::{Compared, GateStatus};
use holdpoint_model::judgement::STATUS_METRIC;
use holdpoint_model::limits::clean_text;
use holdpoint_model::suite::{TIMER_HOST, TIMER_PROCESS};
use holdpoint_model::waiver::UsedWaiver;
use holdpoint_model::{
    AbPlan, AbReport, BaselineBasis, Identity, Judgement, Machine, Report, Revision, Verdict,
};
use std::collections::BTreeSet;

/// A waiver is told wherever it counts.
fn shown(verdict: Verdict, waiver: Option<&UsedWaiver>) -> Option<String> {
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

/// What a verdict over times says. One that does not hold is still about the CPU or a device.
fn said(found: Result<Said, Problem>, on_device: bool, base: &Base, head: Option<&Revision>) -> Said {
    let is_edited =
        |problem: Problem| Said { is_edited: true, ..Said::new(GateStatus::Fail, problem.to_string()) };
    let mut said = found.unwrap_or_else(is_edited);
    let commit = head.map(|head| head.commit.as_str());
    if let Some(problem) = base.problem(commit)
        && said.status == GateStatus::Pass
    {
        said =
            Said { status: GateStatus::Pending, detail: format!("{}, but {problem}", said.detail), ..said };
    }
    let compared = Compared { base: base.revision(), head: head.cloned() };
    Said { on_device: Some(on_device), compared: Some(compared), ..said.of(head) }
}

/// A judgement, by the samples beside it. What cannot be judged again is not yet known.
pub(super) fn judgement(j: &Judgement, path: &str, held: Held<'_>) -> Said {
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
    said(judged(j, path, held), on_device, &base, j.revision.as_ref())
}

fn judged(j: &Judgement, path: &str, held: Held<'_>) -> Result<Said, Problem> {
    if j.sides.as_ref().is_some_and(|sides| !sides.finished) {
        return Ok(Said::new(GateStatus::Pending, format!("{}: not finished", j.suite)));
    }
    let file = held.dir.join(path);
    let dir = file.parent().unwrap_or(held.dir);
    let (rejudged, names) = rejudge_beside(j, dir, Some(held.commit), held.day);
    let unknown = match rejudged.doubt {
        Some(Doubt::Edited(what)) => return Err(what.into()),
        Some(Doubt::Unknown(what)) => Some(what),
        None => None,
    };
    let rests_on = names.iter().map(|name| sibling(path, name)).collect();
    let mut detail = if j.sides.is_some() { describe_sides(j) } else { describe_run(j) };
    let waivers: BTreeSet<String> =
        j.checks.iter().filter_map(|check| shown(check.verdict, check.waiver.as_ref())).collect();
    detail.extend(waivers);
    let status = match (status_of(j.verdict), unknown) {
        (GateStatus::Pass, Some(what)) => {
            detail += &format!(", but {what}, so it cannot be judged again");
            GateStatus::Pending
        }
        (status, _) => status,
    };
    Ok(Said { rests_on, ..Said::new(status, detail) })
}

fn describe_run(j: &Judgement) -> String {
    let metrics = j.checks.iter().filter(|check| check.metric != STATUS_METRIC).count();
    let mut detail =
        format!("{}: {}, {}, policy {}", j.suite, j.verdict.as_str(), plural(metrics, "metric"), j.policy);
    let most = j.checks.iter().filter_map(|check| Some(check.allowed_max_ms? / check.baseline_ms? - 1.0));
    if let Some(most) = most.max_by(f64::total_cmp) {
        detail += &format!(", at most {:+.1} % allowed", most * 100.0);
    }
    if !j.ungated.is_empty() {
        detail += &format!(", {} not judged", j.ungated.len());
    }
    detail.extend(j.basis.iter().filter_map(|basis| basis.baseline()).map(describe_allowed));
    detail
}

fn describe_sides(j: &Judgement) -> String {
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

/// Samples of two sides whose head is the commit and that do not contradict themselves.
///
/// # Errors
/// With what is wrong.
pub(super) fn sides(report: &AbReport, commit: &str) -> Result<(GateStatus, String), Problem> {
    judge_sides(report, &report.plan, Policy::Sequential).map_err(|error| clean_text(&error.to_string()))?;
    let workloads = plural(report.workloads.len(), "workload");
    let detail = clean_text(&format!("samples of {}, {workloads} side by side", report.suite));
    at_commit(Said::new(GateStatus::Pass, detail).of(report.head.revision.as_ref()), commit)
}

fn at_commit(said: Said, commit: &str) -> Result<(GateStatus, String), Problem> {
    let said = said.at(commit);
    if said.status == GateStatus::Fail { Err(said.detail.into()) } else { Ok((said.status, said.detail)) }
}

/// A report that is of the commit and does not contradict itself.
pub(super) fn report(report: &Report, commit: &str) -> Result<(GateStatus, String), Problem> {
    if let Some(what) = edited_report(report) {
        return Err(what.into());
    }
    let said =
        clean_text(&format!("report of {}, {}", report.suite, plural(report.benchmarks.len(), "workload")));
    if !matches!(report.status.as_str(), "ok" | "partial") {
        return Err(format!("{said}, which is of a run that is {}", report.status.as_str()).into());
    }
    at_commit(Said::new(GateStatus::Pass, said).of(report.revision.as_ref()), commit)
}
