//! Comparisons and reports held against themselves and each other: numbers that do not follow from each other were edited.

use super::verdict::{Said, plural, status_of};
use holdpoint_model::ab::Ended;
use holdpoint_model::attest::GateStatus;
use holdpoint_model::judgement::STATUS_METRIC;
use holdpoint_model::limits::clean_text;
use holdpoint_model::waiver::UsedWaiver;
use holdpoint_model::{
    AbReport, AbWorkload, Check, CheckStatus, Current, Date, Judgement, Report, Verdict, import,
};
use std::path::Path;

/// Policies under which one time is the limit.
const LIMITED: [&str; 2] = ["allowed-max", "threshold"];
/// The policy that compares the intervals of medians.
const INTERVALS: &str = "disjoint-ci";
/// Numbers that were computed twice may differ by rounding.
const ROUNDING: f64 = 1e-9;
/// Most reports of one gate.
const RUNS_MAX: usize = 100;

fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() <= ROUNDING * one.abs().max(other.abs()).max(1.0)
}

fn edited(what: &str) -> String {
    clean_text(&format!("{what}: it was edited"))
}

fn day(timestamp: Option<&str>) -> Option<Date> {
    timestamp.and_then(|text| text.get(..10)).and_then(Date::parse)
}

/// A regression that passes has a waiver beside it that covers it.
fn waived(
    names: &[&str],
    verdict: Verdict,
    waiver: Option<&UsedWaiver>,
    change: Option<f64>,
    day: Option<Date>,
) -> Result<(), String> {
    if verdict != Verdict::Waived {
        return Ok(());
    }
    let name = names.first().copied().unwrap_or_default();
    let waiver =
        waiver.ok_or_else(|| edited(&format!("{name} is waived, and no waiver beside it covers it")))?;
    waiver.covers(names, change, day).map_err(|what| edited(&format!("{name} is waived, yet {what}")))
}

pub(super) fn judgement(j: &Judgement) -> Result<Said, String> {
    let worst = j.checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Inconclusive);
    if worst != j.verdict {
        let (said, is) = (j.verdict.as_str(), worst.as_str());
        return Err(format!("its verdict is {said}, yet the worst of its checks is {is}: it was edited"));
    }
    for check in &j.checks {
        judged(check, j)?;
    }
    let passed = !j.checks.is_empty() && j.checks.iter().all(|check| check.status == CheckStatus::Pass);
    if (j.status == "pass") != passed {
        return Err(edited(&format!("its status is {:?}, which its checks do not make it", j.status)));
    }
    let is_required = j.current_status.as_ref().is_none_or(|current| *current == j.required_status);
    if !is_required && !j.checks.iter().any(|check| check.metric == STATUS_METRIC) {
        return Err(edited("the run's status is not the required one, and no check says so"));
    }
    let mut detail = format!(
        "{}: {}, {}, policy {}",
        j.suite,
        j.verdict.as_str(),
        plural(j.checks.len(), "metric"),
        j.policy
    );
    if !j.ungated.is_empty() {
        detail += &format!(", {} not judged", j.ungated.len());
    }
    let by: Vec<String> =
        j.checks.iter().filter_map(|check| shown(check.verdict, check.waiver.as_ref())).collect();
    detail += &by.concat();
    let on_device = j.machine.as_ref().is_some_and(|machine| !machine.devices.is_empty());
    Ok(Said { on_device: Some(on_device), ..Said::new(status_of(j.verdict), detail).of(j.revision.as_ref()) })
}

/// A waiver is told wherever it counts.
fn shown(verdict: Verdict, waiver: Option<&UsedWaiver>) -> Option<String> {
    let UsedWaiver { owner, metric, limit, expires, .. } = waiver.filter(|_| verdict == Verdict::Waived)?;
    Some(format!(", {metric} waived up to {:+.1} % by {owner} until {expires}", limit * 100.0))
}

fn judged(check: &Check, j: &Judgement) -> Result<(), String> {
    let Check { metric, verdict, status, .. } = check;
    let fits = match status {
        CheckStatus::Pass => *verdict <= Verdict::Waived,
        CheckStatus::Fail => {
            matches!(verdict, Verdict::Regressed | Verdict::Broken) || metric == STATUS_METRIC
        }
        CheckStatus::Missing => matches!(verdict, Verdict::Regressed | Verdict::Skipped),
        CheckStatus::Inconclusive => *verdict == Verdict::Inconclusive,
        CheckStatus::Skipped => *verdict == Verdict::Skipped,
    };
    if !fits {
        let what = format!("{metric} is {}, yet its status is {}", verdict.as_str(), status.as_str());
        return Err(edited(&what));
    }
    if *verdict > Verdict::Waived {
        return Ok(());
    }
    let (Some(baseline), Some(current), Some(ratio)) =
        (check.baseline_ms, check.current_ms, check.regression_ratio)
    else {
        return Err(edited(&format!("{metric} is {}, and has not the times for it", verdict.as_str())));
    };
    if !is_same(ratio, current / baseline - 1.0) {
        let what = format!("{metric}: a regression_ratio of {ratio} is not {current} ms over {baseline} ms");
        return Err(edited(&what));
    }
    if LIMITED.contains(&j.policy.as_str()) {
        let most = check.allowed_max_ms.ok_or_else(|| edited(&format!("{metric} has no allowed_max_ms")))?;
        if current > most && *verdict <= Verdict::Pass {
            return Err(edited(&format!("{metric} is above its allowed_max_ms, yet {}", verdict.as_str())));
        }
    }
    let names: Vec<&str> = [Some(metric.as_str()), check.workload.as_deref()].into_iter().flatten().collect();
    waived(&names, *verdict, check.waiver.as_ref(), check.regression_ratio, day(j.timestamp_utc.as_deref()))
}

pub(super) fn side_by_side(ab: &AbReport) -> Result<Said, String> {
    let worst = ab.workloads.values().map(|workload| workload.verdict).max().unwrap_or(Verdict::Inconclusive);
    // While it runs, the verdict is not out.
    if ab.finished && worst != ab.verdict {
        let (said, is) = (ab.verdict.as_str(), worst.as_str());
        return Err(format!("its verdict is {said}, yet the worst of its workloads is {is}: it was edited"));
    }
    let mut waivers = String::new();
    for (name, workload) in &ab.workloads {
        compared(name, workload, ab)?;
        waivers.extend(shown(workload.verdict, workload.waiver.as_ref()));
    }
    let on_device = Some(ab.machine.as_ref().is_some_and(|machine| !machine.devices.is_empty()));
    let said = if ab.finished {
        let count = plural(ab.workloads.len(), "workload");
        let detail = format!("{}: {}, {count} side by side{waivers}", ab.suite, ab.verdict.as_str());
        Said::new(status_of(ab.verdict), detail)
    } else {
        Said::new(GateStatus::Pending, format!("{}: not finished", ab.suite))
    };
    Ok(Said { on_device, ..said.of(ab.head.revision.as_ref()) })
}

fn compared(name: &str, workload: &AbWorkload, ab: &AbReport) -> Result<(), String> {
    if let Some(evidence) = &workload.evidence {
        let mut units: Vec<f64> = workload.units.iter().map(|unit| unit.x).collect();
        units.sort_by(f64::total_cmp);
        let middle = |n: usize| f64::midpoint(units[(n - 1) / 2], units[n / 2]).exp();
        let ratio = (!units.is_empty()).then(|| middle(units.len()));
        if !ratio.is_some_and(|ratio| is_same(ratio, evidence.ratio)) {
            return Err(edited(&format!("{name}: a ratio of {} is not that of its units", evidence.ratio)));
        }
    }
    let is_good = workload.verdict <= Verdict::Waived;
    let has_none = workload.evidence.is_none() && workload.ended != Ended::SameCode;
    if is_good && (has_none || workload.failure.is_some()) {
        return Err(edited(&format!(
            "{name} is {}, and has not the evidence for it",
            workload.verdict.as_str()
        )));
    }
    let is_slower = match &workload.disjoint_ci {
        Some(keys) if ab.policy == INTERVALS => keys.is_significant && keys.delta_pct > 0.0,
        _ => workload.evidence.as_ref().is_some_and(|e| e.ratio > 1.0 + ab.plan.tolerance),
    };
    if is_slower && workload.verdict <= Verdict::Pass {
        let what = format!("{name} is slower than the tolerance, yet {}", workload.verdict.as_str());
        return Err(edited(&what));
    }
    let by_interval = workload.disjoint_ci.as_ref().map(|keys| keys.delta_pct / 100.0);
    let change = by_interval.or(workload.evidence.as_ref().map(|evidence| evidence.ratio - 1.0));
    let metric = format!("{name}_p50_ms");
    let day = day(Some(&ab.timestamp_utc));
    waived(&[name, &metric], workload.verdict, workload.waiver.as_ref(), change, day)
}

/// A report that is of the commit and does not contradict itself.
///
/// # Errors
/// With what is wrong.
pub(super) fn report(report: &Report, commit: &str) -> Result<(GateStatus, String), String> {
    if let Some(what) = report.contradiction() {
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

/// Whether a comparison is of the runs that lie beside it, `report.json`, `report-2.json` and so on: every time it judged is the median over
/// them, and every metric of theirs was judged or is told as not judged.
///
/// # Errors
/// With the first that is not so.
pub(super) fn beside(j: &Judgement, dir: &Path, commit: &str) -> Result<(), String> {
    let mut runs: Vec<Current> = Vec::new();
    for number in 1..=RUNS_MAX {
        let name = if number == 1 { "report.json".to_owned() } else { format!("report-{number}.json") };
        let path = dir.join(&name);
        if path.symlink_metadata().is_err() {
            break;
        }
        let problem = |what: String| clean_text(&format!("{name} beside it: {what}"));
        let text = holdpoint_store::read_text(&path).map_err(|error| problem(error.to_string()))?;
        let current = import::current(&text).map_err(|error| problem(error.to_string()))?;
        if let Ok(report) = import::report(&text) {
            if let Some(what) = report.contradiction() {
                return Err(problem(edited(&what)));
            }
            if report.revision.as_ref().is_some_and(|revision| revision.commit != commit) {
                return Err(problem("it is of another commit".to_owned()));
            }
        }
        runs.push(current);
    }
    let Some(first) = runs.first() else { return Ok(()) };
    // A run in which something failed or is missing speaks for all.
    let differs = |run: &&Current| run.status != first.status || !run.metrics.keys().eq(first.metrics.keys());
    let odd = runs.iter().find(differs);
    let measured = |metric: &str| -> Option<f64> {
        let runs = odd.map_or(runs.as_slice(), std::slice::from_ref);
        let mut times: Vec<f64> =
            runs.iter().filter_map(|run| Some(run.metrics.get(metric)?.value_ms)).collect();
        times.sort_by(f64::total_cmp);
        let n = times.len();
        (n > 0).then(|| f64::midpoint(times[(n - 1) / 2], times[n / 2]))
    };
    let is_limited = LIMITED.contains(&j.policy.as_str());
    for check in &j.checks {
        let Some(judged) = check.current_ms else { continue };
        let what = match measured(&check.metric) {
            Some(measured) if is_same(judged, measured) => continue,
            Some(measured) => format!("{judged} ms was judged, the report beside it says {measured} ms"),
            // A comparison of intervals is about medians, whichever metrics the suite gates.
            None if !is_limited => continue,
            None => "it was judged, and is not in the report beside it".to_owned(),
        };
        return Err(clean_text(&format!("{}: {what}", check.metric)));
    }
    let is_told = |metric: &&String| {
        j.ungated.contains(*metric) || j.checks.iter().any(|check| check.metric == **metric)
    };
    match odd.unwrap_or(first).metrics.keys().find(|metric| is_limited && !is_told(metric)) {
        Some(lost) => Err(clean_text(&format!("{lost}: it is in the report beside it, and was not judged"))),
        None => Ok(()),
    }
}
