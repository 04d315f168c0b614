//! Comparing a document with itself judged again: the first difference is what is told.

use holdpoint_gate::judge_again;
use holdpoint_gate::waivers::covers;
use holdpoint_model::ab::Ended;
use holdpoint_model::limits::clean_text;
use holdpoint_model::waiver::UsedWaiver;
use holdpoint_model::{AbWorkload, Check, CheckStatus, Current, Date, Judgement, Unit, Verdict};
use serde::Serialize;
use serde_json::Value;

/// Numbers that were computed twice, perhaps on another machine, may differ by rounding.
const ROUNDING: f64 = 1e-9;

/// Says that a file was edited.
pub(crate) fn edited(what: &str) -> String {
    clean_text(&format!("{what}: it was edited"))
}

/// The verdict of the whole is that of its worst part.
pub(super) fn same_worst(
    said: Verdict,
    parts: impl Iterator<Item = Verdict>,
    noun: &str,
) -> Result<(), String> {
    let worst = parts.max().unwrap_or(Verdict::Inconclusive);
    if worst == said {
        return Ok(());
    }
    let (said, worst) = (said.as_str(), worst.as_str());
    Err(edited(&format!("its verdict is {said}, yet the worst of its {noun} is {worst}")))
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

pub(super) fn same_judgement(j: &Judgement, runs: &[Current], day: Option<Date>) -> Result<(), String> {
    let mut again = judge_again(j, runs)
        .ok_or_else(|| edited(&format!("there is no policy {:?} of its kind", j.policy)))?;
    let mut said = j.clone();
    for check in &mut said.checks {
        let names = names_of(check);
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

pub(super) fn same_workload(
    name: &str,
    said: &AbWorkload,
    again: &AbWorkload,
    day: Option<Date>,
) -> Result<(), String> {
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
