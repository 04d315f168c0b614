//! Comparing a document with itself judged again: the first difference is reported.

use crate::checks::{overall_status, overall_verdict};
use crate::sides::paired_ms;
use crate::waivers::covers;
use holdpoint_model::document::is_close;
use holdpoint_model::limits::clean_text;
use holdpoint_model::waiver::UsedWaiver;
use holdpoint_model::{Check, CheckStatus, Date, Stated, Verdict};
use serde::Serialize;
use serde_json::Value;

/// Says that a file was edited.
pub fn edited(what: &str) -> String {
    clean_text(&format!("{what}: it was edited"))
}

/// The verdict of the whole is that of its worst part.
pub(super) fn same_worst(stated: &Stated) -> Result<(), String> {
    let worst = overall_verdict(&stated.checks);
    if worst == stated.verdict {
        return Ok(());
    }
    let (stated, worst) = (stated.verdict.as_str(), worst.as_str());
    Err(edited(&format!("its verdict is {stated}, yet the worst of its checks is {worst}")))
}

pub(super) fn names_of(check: &Check) -> Vec<&str> {
    [Some(check.metric.as_str()), check.workload.as_deref()].into_iter().flatten().collect()
}

/// Holds a waived verdict against the waiver beside it, and gives the verdict that it was before.
pub(super) fn before_waiver(
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
    covers(waiver, names, change, day).map_err(|what| edited(&format!("{name} is waived, yet {what}")))?;
    Ok(Verdict::Regressed)
}

pub(super) fn same_judgement(stated: &Stated, again: &Stated, day: Option<Date>) -> Result<(), String> {
    let is_cut_short = stated.sides.as_ref().is_some_and(|sides| !sides.finished);
    if !is_cut_short && stated.status != overall_status(&stated.checks) {
        return Err(edited(&format!("its status is {:?}, which its checks do not make it", stated.status)));
    }
    let (mut stated, mut again) = (stated.clone(), again.clone());
    for check in &mut stated.checks {
        let names = names_of(check);
        let verdict =
            before_waiver(&names, check.verdict, check.waiver.as_ref(), check.regression_ratio, day)?;
        if verdict != check.verdict {
            (check.verdict, check.status) = (verdict, CheckStatus::Fail);
        }
        check.waiver = None;
    }
    // Words are the version's that wrote them. Verdict and status of the whole follow from the checks, waivers included; calibrations
    // are added from another file.
    for judgement in [&mut stated, &mut again] {
        judgement.notes.clear();
        judgement.status.clear();
        judgement.verdict = Verdict::Pass;
        for check in &mut judgement.checks {
            check.reason.clear();
            if let Some(paired) = &mut check.paired {
                paired.calibrated = None;
            }
        }
    }
    stated.checks.iter_mut().for_each(show_paired_times);
    for (stated, again) in stated.checks.iter().zip(&again.checks) {
        same(stated.name(), stated, again)?;
    }
    same("it", &stated, &again)
}

/// Older judgements show the medians of all samples as the times of both sides, where those of the units stand now.
fn show_paired_times(check: &mut Check) {
    let Some(evidence) = check.evidence() else { return };
    let shown = [check.baseline_ms, check.current_ms];
    if check.paired.as_ref().is_none_or(|paired| paired.disjoint_ci.is_some())
        || shown != [Some(evidence.base.p50_ms), Some(evidence.head.p50_ms)]
    {
        return;
    }
    let [base_ms, head_ms] = paired_ms(evidence);
    let scale = base_ms / evidence.base.p50_ms;
    check.allowed_max_ms = check.allowed_max_ms.map(|allowed_ms| allowed_ms * scale);
    (check.baseline_ms, check.current_ms) = (Some(base_ms), Some(head_ms));
}

/// Adds what files leave out, the growth of the evidence; and where an older one has an interval of 95 %, that which the verdict is read
/// from.
pub(super) fn complete_evidence(stated: &mut Stated, again: &Stated) {
    for check in &mut stated.checks {
        let is_same = |other: &&Check| other.metric == check.metric && other.workload == check.workload;
        let again = again.checks.iter().find(is_same).and_then(Check::evidence);
        let stated = check.paired.as_mut().and_then(|paired| paired.evidence.as_mut());
        let Some((stated, again)) = stated.zip(again) else { continue };
        stated.growth.clone_from(&again.growth);
        if stated.ratio_interval_rate.is_none() && stated.needed.is_none() {
            stated.ratio_interval = again.ratio_interval;
            stated.ratio_interval_rate = again.ratio_interval_rate;
            stated.needed = again.needed;
        }
    }
}

/// Fails with the first place at which two values differ.
fn same(name: &str, stated: &impl Serialize, is: &impl Serialize) -> Result<(), String> {
    let values = serde_json::to_value(stated).and_then(|stated| Ok((stated, serde_json::to_value(is)?)));
    let (stated, is) = values.map_err(|error| error.to_string())?;
    match difference(name, &stated, &is) {
        None => Ok(()),
        Some(what) => Err(edited(&what)),
    }
}

fn difference(name: &str, stated: &Value, is: &Value) -> Option<String> {
    match (stated, is) {
        (Value::Number(one), Value::Number(other)) if is_close(one.as_f64()?, other.as_f64()?) => None,
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
