//! Two sides measured side by side.

mod deciding;
mod disjoint_ci;
mod estimate;
mod interval;
mod judge;
mod metrics;
mod reports;
mod resume;
mod unit_plan;

use super::identity;
use holdpoint_gate::ab::{self, Deciding};
use holdpoint_gate::{HasExitCode, Judgement, Policy, judge_sides};
use holdpoint_model::ab::{Clock, Ended, QUANTILE};
use holdpoint_model::*;
use holdpoint_stats::random::Random;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const ROUNDS: u32 = 3;
/// Fine enough that rounding to nanoseconds does not show.
const BASE_NS: f64 = 1e8;

pub(super) fn plan() -> AbPlan {
    AbPlan {
        tolerance: 0.01,
        tolerances: Default::default(),
        metrics: Default::default(),
        speedup_max: None,
        alarm_rate: 0.001,
        miss_rate: 0.01,
        units_max: 80,
        budget_s: 60.0,
        clock: None,
        units_at_once: 1,
        seed: 1,
    }
}

fn round(base_ns: &[u64], head_ns: &[u64]) -> PairRound {
    PairRound { base_ns: base_ns.to_vec(), head_ns: head_ns.to_vec(), ..PairRound::default() }
}

/// A unit of these rounds, without its number, of a pair of processes of its own.
fn unit_of(rounds: impl Into<Vec<PairRound>>) -> Unit {
    static PROCESS: AtomicU32 = AtomicU32::new(0);
    let (skip, quantile, clock) = (0, QUANTILE, Clock::Unwaited);
    Unit { process: PROCESS.fetch_add(1, Relaxed), x: 0.0, skip, quantile, clock, rounds: rounds.into() }
}

/// A unit whose head takes e^x of base's time.
fn unit(process: u32, x: f64) -> Unit {
    let head_ns = BASE_NS * x.exp();
    let times = |ns: f64| [ns * 1.02, ns, ns * 1.01].map(|ns| ns.round() as u64);
    let rounds = vec![round(&times(BASE_NS), &times(head_ns)); ROUNDS as usize];
    let mut unit = unit_of(rounds);
    unit.process = process;
    ab::estimate::unit(&mut unit).unwrap();
    unit
}

pub(super) fn workload(xs: &[f64]) -> AbWorkload {
    AbWorkload {
        identity: identity(),
        reason: String::new(),
        ended: Ended::Budget,
        spent_s: 2.0 * xs.len() as f64,
        failure: None,
        kernels: None,
        same_build: None,
        exact: Default::default(),
        calls_per_sample: 10,
        units: (0..).zip(xs).map(|(process, x)| unit(process, *x)).collect(),
    }
}

pub(super) fn report(workloads: Vec<AbWorkload>) -> AbReport {
    let side = |label: &str| Side { label: label.to_owned(), ..Side::default() };
    AbReport {
        schema_version: SCHEMA_VERSION,
        suite: "cpu".to_owned(),
        timestamp_utc: "2026-02-14T10:00:00Z".to_owned(),
        finished: true,
        plan: plan(),
        base: side("main"),
        head: side("change"),
        branch: None,
        machine: None,
        toolchain: Toolchain {
            holdpoint: "0.1.0".to_owned(),
            rustc: "1.95.0".to_owned(),
            profile: "release".to_owned(),
            kernel: None,
            cuda: None,
        },
        conditions: Default::default(),
        elapsed_s: 60.0,
        notes: Vec::new(),
        workloads: workloads.into_iter().enumerate().map(|(i, w)| (format!("w{i}"), w)).collect(),
    }
}

/// Judged from its units alone.
pub(super) fn judged(workloads: Vec<AbWorkload>, policy: Policy) -> Judgement {
    judge_sides(&report(workloads), &plan(), policy).unwrap()
}

/// Units of normal noise around a change.
pub(super) fn noisy(seed: u64, count: usize, change: f64, sd: f64) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..count).map(|_| (1.0 + change).ln() + sd * random.normal()).collect()
}
