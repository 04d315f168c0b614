//! What it costs to judge a comparison of ten workloads with 20 000 samples a side.
//!
//! `cargo bench -p holdpoint-gate --bench judge_ab` prints seconds beside the bar; it exits with 1 when it is missed.

#![allow(clippy::print_stdout)]

use holdpoint_gate::Policy;
use holdpoint_gate::{ab, judge_sides};
use holdpoint_model::ab::{Clock, Ended};
use holdpoint_model::{
    AbPlan, AbReport, AbWorkload, Identity, PairRound, SCHEMA_VERSION, Side, Toolchain, Unit,
};
use holdpoint_stats::random::Random;
use std::process::ExitCode;
use std::time::Instant;

const WORKLOADS: usize = 10;
const UNITS: u32 = 80;
const ROUNDS: u32 = 5;
const SAMPLES_PER_ROUND: usize = 50;
const SECONDS_MAX: f64 = 0.3;
const PASSES: usize = 5;

fn main() -> ExitCode {
    // `cargo test --all-targets` runs benches too, without this flag.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let report = report();
    println!("| policy | judge, median of {PASSES} | bar |");
    println!("|---|---:|---:|");
    let mut missed = false;
    for policy in [Policy::Sequential, Policy::DisjointCi] {
        let mut seconds: Vec<f64> = (0..PASSES).map(|_| pass(&report, policy)).collect();
        seconds.sort_by(f64::total_cmp);
        println!("| {} | {:.3} s | {SECONDS_MAX} s |", policy.name(), seconds[PASSES / 2]);
        missed |= seconds[PASSES / 2] > SECONDS_MAX;
    }
    ExitCode::from(u8::from(missed))
}

fn pass(report: &AbReport, policy: Policy) -> f64 {
    let start = Instant::now();
    judge_sides(report, &report.plan, policy).expect("a plan");
    start.elapsed().as_secs_f64()
}

fn report() -> AbReport {
    let mut random = Random::new(1);
    let side = |label: &str| Side { label: label.to_owned(), ..Side::default() };
    let workloads = (0..WORKLOADS).map(|index| (format!("workload_{index}"), workload(&mut random)));
    AbReport {
        schema_version: SCHEMA_VERSION,
        suite: "scale".to_owned(),
        timestamp_utc: "2026-02-14T10:00:00Z".to_owned(),
        branch: None,
        finished: true,
        plan: AbPlan {
            tolerance: 0.01,
            tolerances: Default::default(),
            metrics: Default::default(),
            speedup_max: None,
            alarm_rate: 0.001,
            miss_rate: 0.01,
            units_max: UNITS,
            budget_s: 60.0,
            clock: None,
            units_at_once: 1,
            seed: 1,
        },
        workloads: workloads.collect(),
        base: side("base"),
        head: side("head"),
        machine: None,
        toolchain: Toolchain {
            holdpoint: "0.1.0".to_owned(),
            rustc: "1.95.0".to_owned(),
            profile: "release".to_owned(),
            kernel: None,
            cuda: None,
        },
        conditions: Default::default(),
        elapsed_s: 600.0,
        notes: Vec::new(),
    }
}

fn workload(random: &mut Random) -> AbWorkload {
    AbWorkload {
        identity: Identity {
            op: "tile_pack".to_owned(),
            shape: vec![1, 64, 128, 128],
            dtype: "f32".to_owned(),
            timer: "host_monotonic".to_owned(),
            params: serde_json::Map::new(),
        },
        reason: String::new(),
        ended: Ended::UnitsMax,
        spent_s: 60.0,
        failure: None,
        kernels: None,
        same_build: None,
        exact: Default::default(),
        calls_per_sample: 4,
        units: (0..UNITS).map(|process| unit(random, process)).collect(),
    }
}

fn unit(random: &mut Random, process: u32) -> Unit {
    let levels = [1.0, 1.01].map(|factor| 120_000.0 * factor * (0.02 * random.normal()).exp());
    let mut side = |level: f64| -> Vec<u64> {
        (0..SAMPLES_PER_ROUND).map(|_| (level * (0.01 * random.normal()).exp()) as u64).collect()
    };
    let rounds: Vec<PairRound> = (0..ROUNDS)
        .map(|round| PairRound {
            round,
            base_ns: side(levels[0]),
            head_ns: side(levels[1]),
            ..PairRound::default()
        })
        .collect();
    let mut unit = Unit { process, x: 0.0, skip: 0, quantile: 0.0, clock: Clock::Unwaited, rounds };
    ab::estimate::unit(&mut unit).expect("samples on both sides");
    unit
}
