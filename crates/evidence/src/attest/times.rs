//! Verdicts over times, judged again from what they were made of: the numbers, statuses and verdicts that come out must be those in the file.

use super::Held;
use super::base::Base;
use super::verdict::{Said, plural, sibling, status_of};
use crate::folder::find_file;
use holdpoint_gate::{ab, contradiction, judge_again};
use holdpoint_model::ab::Ended;
use holdpoint_model::attest::{Compared, GateStatus};
use holdpoint_model::judgement::STATUS_METRIC;
use holdpoint_model::limits::clean_text;
use holdpoint_model::suite::{TIMER_HOST, TIMER_PROCESS};
use holdpoint_model::waiver::UsedWaiver;
use holdpoint_model::{
    AbPlan, AbReport, AbWorkload, Basis, CheckStatus, Current, Date, Identity, Judgement, Machine, Report,
    Revision, Unit, Verdict, import,
};
use holdpoint_store::{REPORTS_MAX, report_name};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// Numbers that were computed twice, perhaps on another machine, may differ by rounding.
const ROUNDING: f64 = 1e-9;

fn edited(what: &str) -> String {
    clean_text(&format!("{what}: it was edited"))
}

fn is_same(one: f64, other: f64) -> bool {
    one == other || (one - other).abs() <= ROUNDING * one.abs().max(other.abs())
}

/// Fails with the first place at which two values differ.
fn same(name: &str, said: &impl Serialize, is: &impl Serialize) -> Result<(), String> {
    let values = serde_json::to_value(said).and_then(|said| Ok((said, serde_json::to_value(is)?)));
    let (said, is) = values.map_err(|error| error.to_string())?;
    match difference(name, &said, &is) {
        None => Ok(()),
        Some(what) => Err(edited(&what)),
    }
}

fn difference(name: &str, said: &Value, is: &Value) -> Option<String> {
    match (said, is) {
        (Value::Number(one), Value::Number(other)) if is_same(one.as_f64()?, other.as_f64()?) => None,
        (Value::Object(one), Value::Object(other)) => {
            let keys = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
            let of = |map: &serde_json::Map<String, Value>, key| map.get(key).cloned().unwrap_or_default();
            keys.into_iter()
                .find_map(|key| difference(&format!("{name}.{key}"), &of(one, key), &of(other, key)))
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => one
            .iter()
            .zip(other)
            .enumerate()
            .find_map(|(i, (one, other))| difference(&format!("{name}[{i}]"), one, other)),
        (one, other) => (one != other).then(|| format!("{name} is {one}, judged again {other}")),
    }
}

/// Holds a waived verdict against the waiver beside it, and gives the verdict that it was before.
fn before_waiver(
    names: &[&str],
    verdict: Verdict,
    waiver: Option<&UsedWaiver>,
    change: Option<f64>,
    day: Option<Date>,
) -> Result<Verdict, String> {
    if verdict != Verdict::Waived {
        return Ok(verdict);
    }
    let name = names.first().copied().unwrap_or_default();
    let waiver =
        waiver.ok_or_else(|| edited(&format!("{name} is waived, and no waiver beside it covers it")))?;
    waiver.covers(names, change, day).map_err(|what| edited(&format!("{name} is waived, yet {what}")))?;
    Ok(Verdict::Regressed)
}

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
fn said(found: Result<Said, String>, on_device: bool, base: &Base, head: Option<&Revision>) -> Said {
    let is_edited = |problem| Said { is_edited: true, ..Said::new(GateStatus::Fail, problem) };
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

fn judged(j: &Judgement, path: &str, held: Held<'_>) -> Result<Said, String> {
    let worst = j.checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Inconclusive);
    if worst != j.verdict {
        let (said, is) = (j.verdict.as_str(), worst.as_str());
        return Err(format!("its verdict is {said}, yet the worst of its checks is {is}: it was edited"));
    }
    let (rests_on, runs): (Vec<String>, Vec<Current>) = runs_beside(path, held)?.into_iter().unzip();
    let unknown = match () {
        () if j.basis.is_none() => Some("it does not hold what it was judged by"),
        () if runs.is_empty() => Some("the report that it judged is not beside it"),
        () => None,
    };
    if unknown.is_none() {
        same_judgement(j, &runs, held.day)?;
    }
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

fn same_judgement(j: &Judgement, runs: &[Current], day: Option<Date>) -> Result<(), String> {
    let mut again = judge_again(j, runs)
        .ok_or_else(|| edited(&format!("there is no policy {:?} of its kind", j.policy)))?;
    let mut said = j.clone();
    for check in &mut said.checks {
        let names: Vec<&str> =
            [Some(check.metric.as_str()), check.workload.as_deref()].into_iter().flatten().collect();
        let verdict =
            before_waiver(&names, check.verdict, check.waiver.as_ref(), check.regression_ratio, day)?;
        if verdict != check.verdict {
            (check.verdict, check.status) = (verdict, CheckStatus::Fail);
        }
        check.waiver = None;
    }
    // Words are the version's that wrote them. Verdict and status of the whole follow from the checks, waivers included.
    let passed = !j.checks.is_empty() && j.checks.iter().all(|check| check.status == CheckStatus::Pass);
    if (j.status == "pass") != passed {
        return Err(edited(&format!("its status is {:?}, which its checks do not make it", j.status)));
    }
    for judgement in [&mut said, &mut again] {
        judgement.notes.clear();
        judgement.status.clear();
        judgement.verdict = Verdict::Pass;
        judgement.checks.iter_mut().for_each(|check| check.reason.clear());
    }
    for (said, again) in said.checks.iter().zip(&again.checks) {
        same(&said.metric, said, again)?;
    }
    same("it", &said, &again)
}

/// The runs that lie beside a comparison, and where.
fn runs_beside(path: &str, held: Held<'_>) -> Result<Vec<(String, Current)>, String> {
    let mut runs: Vec<(String, Current)> = Vec::new();
    for number in 1..=REPORTS_MAX {
        let name = report_name(number);
        let place = sibling(path, &name);
        let file = held.dir.join(&place);
        if file.symlink_metadata().is_err() {
            break;
        }
        let problem = |what: String| clean_text(&format!("{name} beside it: {what}"));
        match find_file(held.dir, &place) {
            Ok(Some(_)) => {}
            Ok(None) => return Err(problem("it is no plain file".to_owned())),
            Err(error) => return Err(problem(error.to_string())),
        }
        let text = holdpoint_store::read_text(&file).map_err(|error| problem(error.to_string()))?;
        let current = import::current(&text).map_err(|error| problem(error.to_string()))?;
        if let Ok(report) = import::report(&text) {
            if let Some(what) = contradiction(&report) {
                return Err(problem(edited(&what)));
            }
            if report.revision.as_ref().is_some_and(|revision| revision.commit != held.commit) {
                return Err(problem("it is of another commit".to_owned()));
            }
        }
        runs.push((place, current));
    }
    Ok(runs)
}

/// Two sides, by their rounds.
pub(super) fn side_by_side(report: &AbReport, day: Option<Date>) -> Said {
    let identities = report.workloads.values().map(|workload| &workload.identity);
    let on_device = on_device(report.machine.as_ref(), identities);
    said(both(report, day), on_device, &Base::of_side(&report.base), report.head.revision.as_ref())
}

fn both(report: &AbReport, day: Option<Date>) -> Result<Said, String> {
    if !report.finished {
        return Ok(Said::new(GateStatus::Pending, format!("{}: not finished", report.suite)));
    }
    let worst = report.workloads.values().map(|workload| workload.verdict).max();
    let worst = worst.unwrap_or(Verdict::Inconclusive);
    if worst != report.verdict {
        let (said, is) = (report.verdict.as_str(), worst.as_str());
        return Err(format!("its verdict is {said}, yet the worst of its workloads is {is}: it was edited"));
    }
    let again = ab::judge_again(report)
        .ok_or("its plan, its policy or a unit of it makes no sense: it was edited")?;
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
    for ((name, said), again) in report.workloads.iter().zip(again.workloads.values()) {
        compared(name, said, again, day)?;
        if said.ended == Ended::SameCode {
            detail += &format!(", {name} not measured: the same code");
        }
        detail.extend(shown(said.verdict, said.waiver.as_ref()));
    }
    Ok(Said::new(status_of(report.verdict), detail))
}

fn compared(name: &str, said: &AbWorkload, again: &AbWorkload, day: Option<Date>) -> Result<(), String> {
    if said.ended == Ended::SameCode && !said.units.is_empty() {
        return Err(edited(&format!("{name} is the same code, yet was measured")));
    }
    let marks = |unit: &Unit| {
        unit.rounds.iter().map(|round| (round.left_out, round.trouble.clone())).collect::<Vec<_>>()
    };
    for (said, again) in said.units.iter().zip(&again.units) {
        if !is_same(said.x, again.x) || marks(said) != marks(again) {
            return Err(edited(&format!("{name}: a unit's x is {}, by its rounds {}", said.x, again.x)));
        }
    }
    same(&format!("{name}: evidence"), &said.evidence, &again.evidence)?;
    same(&format!("{name}: disjoint_ci"), &said.disjoint_ci, &again.disjoint_ci)?;
    let metric = format!("{name}_p50_ms");
    let verdict = before_waiver(&[name, &metric], said.verdict, said.waiver.as_ref(), said.change(), day)?;
    same(&format!("{name}: verdict"), &verdict, &again.verdict)
}

/// A report that is of the commit and does not contradict itself.
///
/// # Errors
/// With what is wrong.
pub(super) fn report(report: &Report, commit: &str) -> Result<(GateStatus, String), String> {
    if let Some(what) = contradiction(report) {
        return Err(edited(&what));
    }
    let said =
        clean_text(&format!("report of {}, {}", report.suite, plural(report.benchmarks.len(), "workload")));
    if !matches!(report.status.as_str(), "ok" | "partial") {
        return Err(format!("{said}, which is of a run that is {}", report.status.as_str()));
    }
    let said = Said::new(GateStatus::Pass, said).of(report.revision.as_ref()).at(commit);
    match said.status {
        GateStatus::Fail => Err(said.detail),
        status => Ok((status, said.detail)),
    }
}
