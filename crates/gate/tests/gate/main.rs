//! Verdicts of the gate: the originals' tables, and properties.

#![allow(clippy::unwrap_used)]

mod ab;
mod allowed_max;
mod calibrate;
mod comparable;
mod confirm;
mod gpu;
mod keys;
mod noise;
mod profile;
mod properties;
mod record;
mod stored;
mod stored_policy;
mod threshold;
mod waive;

use holdpoint_gate::Judgement;
use holdpoint_gate::{Allow, Policy, compare, judge};
use holdpoint_model::*;

const ALLOWED_MAX: Policy = Policy::AllowedMax;

fn machine(fingerprint: &str) -> Machine {
    Machine {
        fingerprint: fingerprint.to_owned(),
        cpu_model: format!("CPU {fingerprint}"),
        cpus: 2,
        memory_gib: 16,
        arch: "x86_64".to_owned(),
        os: "linux".to_owned(),
        devices: Vec::new(),
    }
}

fn identity() -> Identity {
    let params = serde_json::Map::from_iter([("tile".to_owned(), serde_json::Value::from(16))]);
    Identity {
        op: "tile_pack".to_owned(),
        shape: vec![1, 64, 128, 128],
        dtype: "f32".to_owned(),
        timer: "host_monotonic".to_owned(),
        params,
    }
}

/// A run that is `ok`, on machine "here".
fn run(metrics: &[(&str, f64)]) -> Current {
    let value = |value_ms| MetricValue {
        value_ms,
        workload: Some("w".to_owned()),
        identity: Some(identity()),
        answer_checked: None,
        slow_stretches: None,
    };
    Current {
        suite: "cpu".to_owned(),
        timestamp_utc: Some("2026-02-14T10:00:00Z".to_owned()),
        status: Some("ok".to_owned()),
        machine: Some(machine("here")),
        environment_lock: None,
        revision: None,
        others_cpu: None,
        metrics: metrics.iter().map(|(name, value_ms)| ((*name).to_owned(), value(*value_ms))).collect(),
        unmeasured: std::collections::BTreeMap::new(),
        notes: Vec::new(),
    }
}

/// A baseline of machine "here": name, value, ratio, abs.
fn baseline(metrics: &[(&str, f64, f64, f64)]) -> Baseline {
    let metric = |value_ms, max_regression_ratio, max_regression_abs_ms| BaselineMetric {
        value_ms,
        max_regression_ratio,
        max_regression_abs_ms,
        workload: Some("w".to_owned()),
        identity: Some(identity()),
        answer_checked: None,
        runs_ms: Vec::new(),
        spread: None,
        smallest_visible_slowdown: None,
        noise: None,
        slow_stretches: Vec::new(),
    };
    Baseline {
        schema_version: 1,
        suite: "cpu".to_owned(),
        baseline_notes: String::new(),
        required_status: Some("ok".to_owned()),
        machine: Some(machine("here")),
        environment_lock: None,
        alarm_rate: None,
        runs: Vec::new(),
        promoted: None,
        metrics: metrics.iter().map(|(name, v, r, a)| ((*name).to_owned(), metric(*v, *r, *a))).collect(),
    }
}

fn gate(current: &Current, baseline: &Baseline) -> Judgement {
    judge(&compare(current, baseline, Allow::default()), ALLOWED_MAX)
}

/// One metric that was `baseline_ms` and is `current_ms`, under the given policy.
fn one(baseline_ms: f64, current_ms: f64, ratio: f64, abs_ms: f64, policy: Policy) -> Judgement {
    let baseline = baseline(&[("m_ms", baseline_ms, ratio, abs_ms)]);
    judge(&compare(&run(&[("m_ms", current_ms)]), &baseline, Allow::default()), policy)
}

#[track_caller]
fn assert_one(judgement: &Judgement, status: &str, check: CheckStatus, verdict: Verdict) {
    assert_eq!(judgement.checks.len(), 1, "{judgement:#?}");
    assert_eq!((judgement.status.as_str(), judgement.verdict), (status, verdict), "{judgement:#?}");
    assert_eq!((judgement.checks[0].status, judgement.checks[0].verdict), (check, verdict), "{judgement:#?}");
}
