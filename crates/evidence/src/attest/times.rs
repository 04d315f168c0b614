//! Verdicts over times, judged again from what they were made of: the numbers, statuses and verdicts that come out must be those in the file.

use super::Held;
use super::base::Base;
use super::verdict::{Said, plural, sibling, status_of};
use crate::Problem;
use crate::rejudge::{Doubt, edited, rejudge_run, rejudge_sides};
use holdpoint_gate::{ab, contradiction};
use holdpoint_model::ab::Ended;
use holdpoint_model::attest::{Compared, GateStatus};
use holdpoint_model::judgement::STATUS_METRIC;
use holdpoint_model::limits::clean_text;
use holdpoint_model::suite::{TIMER_HOST, TIMER_PROCESS};
use holdpoint_model::waiver::UsedWaiver;
use holdpoint_model::{
    AbPlan, AbReport, Basis, Date, Identity, Judgement, Machine, Report, Revision, Verdict,
};
use std::collections::BTreeSet;

/// A waiver is told wherever it counts.
fn shown(verdict: Verdict, waiver: Option<&UsedWaiver>) -> Option<String> {
    let UsedWaiver { owner, metric, limit, expires, .. } = waiver.filter(|_| verdict == Verdict::Waived)?;
    Some(format!(", {metric} waived up to {:+.1} % by {owner} until {expires}", limit * 100.0))
}

/// The differences that a run was allowed to have from its baseline.
fn describe_allowed(basis: &Basis) -> String {
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

/// The judgement of the runs beside it, `report.json`, `report-2.json` and so on. What cannot be judged again is not yet known.
pub(super) fn judgement(j: &Judgement, path: &str, held: Held<'_>) -> Said {
    let metrics = j.basis.iter().flat_map(|basis| basis.baseline.metrics.values());
    let on_device = on_device(j.machine.as_ref(), metrics.filter_map(|metric| metric.identity.as_ref()));
    let base = j.basis.as_ref().map(|basis| Base::of_baseline(&basis.baseline)).unwrap_or_default();
    said(judged(j, path, held), on_device, &base, j.revision.as_ref())
}

fn judged(j: &Judgement, path: &str, held: Held<'_>) -> Result<Said, Problem> {
    let file = held.dir.join(path);
    let dir = file.parent().unwrap_or(held.dir);
    let rejudged = rejudge_run(j, dir, Some(held.commit), held.day);
    let unknown = match rejudged.doubt {
        Some(Doubt::Edited(what)) => return Err(what.into()),
        Some(Doubt::Unknown(what)) => Some(what),
        None => None,
    };
    let rests_on = rejudged.rests_on.iter().map(|name| sibling(path, name)).collect();
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
    detail.extend(j.basis.iter().map(describe_allowed));
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

/// Two sides, by their rounds.
pub(super) fn side_by_side(report: &AbReport, day: Option<Date>) -> Said {
    let identities = report.workloads.values().map(|workload| &workload.identity);
    let on_device = on_device(report.machine.as_ref(), identities);
    said(both(report, day), on_device, &Base::of_side(&report.base), report.head.revision.as_ref())
}

fn both(report: &AbReport, day: Option<Date>) -> Result<Said, Problem> {
    if !report.finished {
        return Ok(Said::new(GateStatus::Pending, format!("{}: not finished", report.suite)));
    }
    if let Some(Doubt::Edited(what)) = rejudge_sides(report, day).doubt {
        return Err(what.into());
    }
    let mut detail = format!(
        "{}: {}, {} side by side, policy {}",
        report.suite,
        report.verdict.as_str(),
        plural(report.workloads.len(), "workload"),
        report.policy
    );
    if report.policy == ab::AbPolicy::Sequential.name() {
        let AbPlan { tolerance, alarm_rate, miss_rate, .. } = report.plan;
        let rates =
            [tolerance, alarm_rate, miss_rate].map(|rate| format!("{} %", (rate * 1e8).round() / 1e6));
        let [tolerance, alarms, misses] = rates;
        detail += &format!(", tolerance {tolerance}, false alarms {alarms}, misses {misses}");
    }
    for (name, said) in &report.workloads {
        if said.ended == Ended::SameCode {
            detail += &format!(", {name} not measured: the same code");
        }
        detail.extend(shown(said.verdict, said.waiver.as_ref()));
    }
    Ok(Said::new(status_of(report.verdict), detail))
}

/// A report that is of the commit and does not contradict itself.
pub(super) fn report(report: &Report, commit: &str) -> Result<(GateStatus, String), Problem> {
    if let Some(what) = contradiction(report) {
        return Err(edited(&what).into());
    }
    let said =
        clean_text(&format!("report of {}, {}", report.suite, plural(report.benchmarks.len(), "workload")));
    if !matches!(report.status.as_str(), "ok" | "partial") {
        return Err(format!("{said}, which is of a run that is {}", report.status.as_str()).into());
    }
    let said = Said::new(GateStatus::Pass, said).of(report.revision.as_ref()).at(commit);
    match said.status {
        GateStatus::Fail => Err(said.detail.into()),
        status => Ok((status, said.detail)),
    }
}
