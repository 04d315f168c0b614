//! Facts about each metric of a baseline: what it was, what it is, whether the two may be compared.

use holdpoint_model::machine::POWER_LIMIT;
use holdpoint_model::suite::{TIMER_CUDA_EVENTS, TIMER_CUDA_GRAPH};
use holdpoint_model::{Allow, Baseline, BaselineMetric, Current, Identity, Machine, Revision, Unmeasured};
use serde_json::Value;
use std::collections::BTreeSet;

/// The facts.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Name of the run's suite.
    pub suite: String,
    /// When the run began, if known.
    pub timestamp_utc: Option<String>,
    /// The status a run must have.
    pub required_status: String,
    /// The status it has, if its file has one.
    pub current_status: Option<String>,
    /// The run's machine.
    pub machine: Option<Machine>,
    /// The run's revision.
    pub revision: Option<Revision>,
    /// One row per metric of the baseline, sorted by name.
    pub rows: Vec<MetricRow>,
    /// Metrics of the run that the baseline does not have.
    pub ungated: Vec<String>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// One metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricRow {
    /// Its name.
    pub metric: String,
    /// The workload it belongs to, if known.
    pub workload: Option<String>,
    pub baseline: BaselineMetric,
    pub found: CurrentValue,
    /// That the machine was busier than for the baseline, where that matters to the metric.
    pub busier: Option<Busier>,
    /// That it was less busy, or may have been.
    pub quieter: Option<String>,
}

/// Other processes that used more of the machine than for the baseline, or may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Busier {
    pub why: String,
    /// The most times longer that they can make a call take.
    pub times_max: f64,
}

/// A metric in the run.
#[derive(Clone, Debug, PartialEq)]
pub enum CurrentValue {
    /// A time of the same workload on the same kind of machine.
    Value(f64),
    /// A time that may not be compared, and why.
    Incomparable(f64, String),
    /// Nothing: the workload or the metric is gone.
    Missing,
    /// Nothing: the workload could not run here.
    Skipped(String),
    /// Nothing: the workload failed.
    Failed(String),
}

/// Finds what the run has for each metric of the baseline.
pub fn compare(current: &Current, baseline: &Baseline, allow: Allow) -> Comparison {
    let problem = machine_difference(current, baseline)
        .filter(|_| !allow.machine)
        .or_else(|| lock_difference(current, baseline).filter(|_| !allow.environment));
    let (busier, quieter) = (busier(current, baseline), quieter(current, baseline));
    let rows = baseline.metrics.iter().map(|(metric, was)| MetricRow {
        metric: metric.clone(),
        workload: was.workload.clone().or_else(|| current.metrics.get(metric)?.workload.clone()),
        baseline: was.clone(),
        found: find(current, metric, was, problem.as_deref(), allow),
        busier: busier.clone().filter(|_| !is_timed_on_device(was)),
        quieter: quieter.clone().filter(|_| !is_timed_on_device(was)),
    });
    Comparison {
        suite: current.suite.clone(),
        timestamp_utc: current.timestamp_utc.clone(),
        required_status: baseline.required_status().to_owned(),
        current_status: current.status.clone(),
        machine: current.machine.clone(),
        revision: current.revision.clone(),
        rows: rows.collect(),
        ungated: current.metrics.keys().filter(|m| !baseline.metrics.contains_key(*m)).cloned().collect(),
        notes: notes(current, baseline, allow),
    }
}

fn find(
    current: &Current,
    metric: &str,
    was: &BaselineMetric,
    of_all: Option<&str>,
    allow: Allow,
) -> CurrentValue {
    match (current.metrics.get(metric), current.unmeasured.get(metric)) {
        (Some(is), _) => {
            let identities = was.identity.as_ref().zip(is.identity.as_ref());
            let problem = identities.and_then(|(was, is)| identity_difference(was, is, allow));
            let problem = problem.or_else(|| unchecked(was, is.answer_checked));
            match problem.or_else(|| of_all.map(str::to_owned)) {
                Some(problem) => CurrentValue::Incomparable(is.value_ms, problem),
                None => CurrentValue::Value(is.value_ms),
            }
        }
        (None, Some(Unmeasured::Skipped(reason))) => CurrentValue::Skipped(reason.clone()),
        (None, Some(Unmeasured::Failed(cause))) => CurrentValue::Failed(cause.clone()),
        (None, None) if current.status.as_deref() == Some("skipped") => {
            CurrentValue::Skipped("the whole run was skipped".to_owned())
        }
        (None, None) => CurrentValue::Missing,
    }
}

/// Share of the machine's CPUs by which others may use more of it than they did for any run of the baseline, or less.
pub const BUSIER: f64 = 0.1;

/// Up to so many times longer may a call take because others share its caches and memory.
pub const SHARING_TIMES: f64 = 3.0;

/// The share that others used during a run of the baseline, where any says so.
fn others_cpu(baseline: &Baseline, pick: fn(f64, f64) -> f64) -> Option<f64> {
    baseline.runs.iter().filter_map(|run| run.others_cpu).reduce(pick)
}

/// Whether other processes used less of the machine than for the baseline, or nobody knows whether they did: its times are then those
/// of a slower machine.
fn quieter(current: &Current, baseline: &Baseline) -> Option<String> {
    let was = others_cpu(baseline, f64::min)?;
    let is = current.others_cpu;
    (is.unwrap_or(0.0) < was - BUSIER).then(|| {
        format!(
            "other processes used {} of this machine's CPUs, at least {:.0} % while the baseline was recorded: record one now with \
             \"holdpoint baseline record\", or compare side by side with \"holdpoint gate --against REV\"",
            share_or_unknown(is),
            was * 100.0
        )
    })
}

/// Whether other processes used more of the machine than for the baseline, or nobody knows whether they did.
fn busier(current: &Current, baseline: &Baseline) -> Option<Busier> {
    let was = others_cpu(baseline, f64::max);
    let is = current.others_cpu.filter(|is| *is > was.unwrap_or(0.0) + BUSIER)?;
    let why = format!(
        "other processes used {:.0} % of this machine's CPUs, at most {} while the baseline was recorded: end them and \
         repeat, or compare side by side with \"holdpoint gate --against REV\"",
        is * 100.0,
        share_or_unknown(was)
    );
    // What is left of the CPUs, which is known to a percent, and what sharing the rest of the machine costs.
    Some(Busier { why, times_max: SHARING_TIMES / (1.0 - is).max(0.01) })
}

fn share_or_unknown(share: Option<f64>) -> String {
    share.map_or_else(|| "an unknown share".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// Times that the device takes do not depend on how busy the host is.
fn is_timed_on_device(was: &BaselineMetric) -> bool {
    let timer = was.identity.as_ref().map(|identity| identity.timer.as_str());
    timer.is_some_and(|timer| [TIMER_CUDA_GRAPH, TIMER_CUDA_EVENTS].contains(&timer))
}

/// A time whose answer nobody looks at any more.
fn unchecked(was: &BaselineMetric, answer_checked: Option<bool>) -> Option<String> {
    (was.answer_checked == Some(true) && answer_checked == Some(false)).then(|| {
        "the answer was checked for the baseline and is not now; let the worker check it, or record a baseline with \
         \"holdpoint baseline record\""
            .to_owned()
    })
}

fn machine_difference(current: &Current, baseline: &Baseline) -> Option<String> {
    let (was, is) = baseline.machine.as_ref().zip(current.machine.as_ref())?;
    (was.fingerprint != is.fingerprint).then(|| {
        format!(
            "baseline is from another machine ({}; now {}); record one here with \"holdpoint baseline record\", \
             or pass --allow machine",
            was.describe(),
            is.describe()
        )
    })
}

/// Settings that differ. A power limit that a file does not have cannot differ: older ones have none.
fn lock_difference(current: &Current, baseline: &Baseline) -> Option<String> {
    let (was, is) = baseline.environment_lock.as_ref().zip(current.environment_lock.as_ref())?;
    let is_known = |name: &str| was.contains_key(name) && is.contains_key(name);
    let is_power_limit = |name: &str| name.rsplit('.').next() == Some(POWER_LIMIT);
    let differs =
        |name: &&String| was.get(*name) != is.get(*name) && (is_known(name) || !is_power_limit(name));
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).filter(differs).collect();
    let spoken =
        |value: Option<&String>| value.map_or_else(|| "not set".to_owned(), |value| format!("{value:?}"));
    let differences: Vec<String> = names
        .iter()
        .map(|name| format!("{name} was {}, is {}", spoken(was.get(*name)), spoken(is.get(*name))))
        .collect();
    (!differences.is_empty()).then(|| {
        format!(
            "the environment differs from the baseline's: {}; set it as it was, record a baseline with \
             \"holdpoint baseline record\", or pass --allow environment",
            differences.join(", ")
        )
    })
}

/// The first difference that matters. What a file does not say cannot differ.
pub(crate) fn identity_difference(was: &Identity, is: &Identity, allow: Allow) -> Option<String> {
    if was.op != is.op {
        return Some(format!("another op: baseline {:?}, now {:?}", was.op, is.op));
    }
    if !allow.shape && was.shape != is.shape && !was.shape.is_empty() && !is.shape.is_empty() {
        return Some(format!("shape differs: baseline {:?}, now {:?}", was.shape, is.shape));
    }
    if !allow.dtype && was.dtype != is.dtype && !was.dtype.is_empty() && !is.dtype.is_empty() {
        return Some(format!("dtype differs: baseline {}, now {}", was.dtype, is.dtype));
    }
    if !allow.timer && was.timer != is.timer {
        return Some(format!("timer differs: baseline {}, now {}", was.timer, is.timer));
    }
    let differs = |key: &&String| match (was.params.get(*key), is.params.get(*key)) {
        (Some(was), Some(is)) => !same(was, is),
        (was, is) => was != is,
    };
    let key = was.params.keys().chain(is.params.keys()).find(differs);
    key.filter(|_| !allow.params).map(|key| format!("parameter {key:?} differs from the baseline's"))
}

/// Equal as values: 16 and 16.0 are one number, whichever way a file spells it.
fn same(was: &Value, is: &Value) -> bool {
    match (was, is) {
        (Value::Number(was), Value::Number(is)) => was.as_f64() == is.as_f64(),
        (Value::Array(was), Value::Array(is)) => {
            was.len() == is.len() && was.iter().zip(is).all(|(was, is)| same(was, is))
        }
        (Value::Object(was), Value::Object(is)) => {
            was.len() == is.len() && was.iter().all(|(key, was)| is.get(key).is_some_and(|is| same(was, is)))
        }
        _ => was == is,
    }
}

/// Differences that would have made it inconclusive, had they not been allowed.
fn allowed_difference(current: &Current, baseline: &Baseline, allow: Allow) -> Option<String> {
    baseline.metrics.iter().find_map(|(name, was)| {
        let (was, is) = was.identity.as_ref().zip(current.metrics.get(name)?.identity.as_ref())?;
        let strict = identity_difference(was, is, Allow::default())?;
        identity_difference(was, is, allow)
            .is_none()
            .then(|| format!("{name}: {strict}; compared as allowed"))
    })
}

fn notes(current: &Current, baseline: &Baseline, allow: Allow) -> Vec<String> {
    let mut notes = Vec::new();
    if baseline.metrics.is_empty() {
        notes.push("the baseline has no metrics: nothing is gated".to_owned());
    }
    match (&baseline.machine, &current.machine) {
        (None, _) => notes.push("the baseline names no machine; judged as if it were this one".to_owned()),
        (_, None) => notes.push("the run names no machine; judged as if it were the baseline's".to_owned()),
        _ if allow.machine && machine_difference(current, baseline).is_some() => {
            notes.push("compared across machines, as allowed".to_owned());
        }
        _ => {}
    }
    if allow.environment && lock_difference(current, baseline).is_some() {
        notes.push("compared across environments, as allowed".to_owned());
    }
    notes.extend(allowed_difference(current, baseline, allow));
    if baseline.suite != current.suite {
        notes.push(format!("the baseline is of suite {:?}, the run of {:?}", baseline.suite, current.suite));
    }
    notes.extend(current.notes.iter().cloned());
    notes
}
