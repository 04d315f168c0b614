//! Rules for "is it slower?" on simulated and recorded noise: how often each is wrong, what it sees, what it costs.
//!
//! `cargo bench -p holdpoint-stats --bench rules` prints Markdown tables; the same ones every time.
#![allow(clippy::print_stdout)]

mod fixed;
mod noise;
mod ours;
mod recorded;
mod rivals;
mod tables;

use holdpoint_stats::random::Random;
use holdpoint_stats::sequential::{Decision, Plan};
use noise::{Machine, Noise};
use recorded::{Record, Workload};
use rivals::Blocks;

const WORKLOADS_COUNT: usize = 8;
/// At tolerance 0, where unchanged code lies on the line, units go on to here.
const UNITS_UNSTOPPED: usize = 40;

/// How often each thing is tried.
#[derive(Clone, Copy)]
struct Trials {
    suites: usize,
    stressed_suites: usize,
    rival_suites: usize,
    workloads: usize,
    fixed_lengths: usize,
}

fn main() {
    // `cargo test --all-targets` runs benches unoptimised and without this flag: there a glance is enough.
    let trials = if std::env::args().any(|argument| argument == "--bench") {
        Trials {
            suites: 20_000,
            stressed_suites: 10_000,
            rival_suites: 500,
            workloads: 2_000,
            fixed_lengths: 10_000,
        }
    } else {
        Trials { suites: 20, stressed_suites: 5, rival_suites: 5, workloads: 10, fixed_lengths: 10 }
    };
    let record = Record::read();
    let rows = in_two_threads(noise::ALL.len() + 1, |index| match noise::ALL.get(index) {
        Some(noise) => simulated(*noise, index as u64, trials),
        None => recorded(&record, index as u64, trials),
    });
    tables::print_unchanged(trials, &rows);
    tables::print_as_it_happened(&record);
    tables::print_errors_at_the_line(trials, &rows);
    tables::print_detection(&rows);
    tables::print_power(trials.workloads);
    fixed::print(trials.fixed_lengths, &record);
}

/// Every other job in a thread of its own: each has seeds of its own, so threads change nothing.
fn in_two_threads<T: Send>(jobs_count: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let work = |start: usize| -> Vec<(usize, T)> {
        (start..jobs_count).step_by(2).map(|index| (index, job(index))).collect()
    };
    let mut done = std::thread::scope(|scope| {
        let other = scope.spawn(|| work(1));
        let mut done = work(0);
        done.extend(other.join().into_iter().flatten());
        done
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// What was counted for one kind of noise.
struct Row {
    name: String,
    suites: usize,
    alarms: usize,
    improvements: usize,
    stressed_alarms: usize,
    rivals_alarms: Vec<usize>,
    seen: Vec<Seen>,
}

/// What was counted for workloads with this noise.
struct Seen {
    name: String,
    /// At a change of 0 %, 1 % (the line), 2 % and 5 %.
    ours: [Outcomes; 4],
    /// At 2 % and 5 %.
    rivals_found: [Vec<usize>; 2],
}

/// What became of workloads, out of `Trials::workloads`.
#[derive(Default)]
struct Outcomes {
    slower: usize,
    not_slower: usize,
    units: Vec<usize>,
}

const CHANGES: [f64; 4] = [0.0, 0.01, 0.02, 0.05];

fn plan() -> Plan {
    Plan { workloads_count: WORKLOADS_COUNT, ..Plan::default() }
}

fn simulated(noise: Noise, index: u64, trials: Trials) -> Row {
    let mut seed = index << 40;
    let mut machine = || {
        seed += 1;
        Machine::new(noise, seed)
    };
    // Where most workloads stay undecided a suite takes long.
    let suites = if noise.is_loud() { trials.suites / 4 } else { trials.suites };
    let (mut alarms, mut improvements) = (0, 0);
    for _ in 0..suites {
        // Workloads of a suite take turns on one machine; here one after the other, which is the harder order.
        let mut suite = machine();
        let decisions: Vec<Decision> =
            (0..WORKLOADS_COUNT).map(|_| ours::decide(plan(), &mut suite, 0.0, ours::UNITS_MAX).0).collect();
        alarms += usize::from(decisions.contains(&Decision::Slower));
        improvements += usize::from(decisions.contains(&Decision::Faster));
    }
    let strict = Plan { tolerance: 0.0, ..plan() };
    let is_alarm = |suite: &mut Machine| {
        (0..WORKLOADS_COUNT).any(|_| ours::decide(strict, suite, 0.0, UNITS_UNSTOPPED).0 == Decision::Slower)
    };
    let stressed_alarms = (0..trials.stressed_suites).filter(|_| is_alarm(&mut machine())).count();
    let rivals_alarms = rivals_alarms(trials.rival_suites, || {
        let mut suite = machine();
        (0..WORKLOADS_COUNT).map(|_| rivals::measure(&mut suite, 0.0)).collect()
    });
    let ours = CHANGES.map(|change| {
        outcomes(trials.workloads, || ours::decide(plan(), &mut machine(), change.ln_1p(), ours::UNITS_MAX))
    });
    let rivals_found = [0.02, 0.05].map(|change: f64| {
        rivals_alarms_alone(trials.workloads, || rivals::measure(&mut machine(), change.ln_1p()))
    });
    let seen = vec![Seen { name: noise.name(), ours, rivals_found }];
    Row { name: noise.name(), suites, alarms, improvements, stressed_alarms, rivals_alarms, seen }
}

fn recorded(record: &Record, index: u64, trials: Trials) -> Row {
    let plan = recorded_plan(record);
    let mut seed = index << 40;
    let mut next_seed = || {
        seed += 1;
        seed
    };
    let decide = |plan: Plan, workload: &Workload, seed: u64, change: f64, limit: usize| {
        ours::decide_units(plan, workload.draw(seed, change.ln_1p()).take(limit))
    };
    let (mut alarms, mut improvements) = (0, 0);
    for _ in 0..trials.suites {
        let seed = next_seed();
        let decisions: Vec<Decision> = record
            .workloads
            .iter()
            .map(|workload| decide(plan, workload, seed, 0.0, ours::UNITS_MAX).0)
            .collect();
        alarms += usize::from(decisions.contains(&Decision::Slower));
        improvements += usize::from(decisions.contains(&Decision::Faster));
    }
    let strict = Plan { tolerance: 0.0, ..plan };
    let is_alarm = |seed: u64| {
        let mut workloads = record.workloads.iter();
        workloads.any(|workload| decide(strict, workload, seed, 0.0, UNITS_UNSTOPPED).0 == Decision::Slower)
    };
    let stressed_alarms = (0..trials.stressed_suites).filter(|_| is_alarm(next_seed())).count();
    let mut random = Random::new(next_seed());
    let rivals_alarms = rivals_alarms(trials.rival_suites, || {
        record.workloads.iter().map(|workload| workload.blocks(&mut random, 0.0)).collect()
    });
    let mut seen = Vec::new();
    for workload in &record.workloads {
        let ours = CHANGES.map(|change| {
            outcomes(trials.workloads, || decide(plan, workload, next_seed(), change, ours::UNITS_MAX))
        });
        let rivals_found = [0.02, 0.05].map(|change: f64| {
            rivals_alarms_alone(trials.workloads, || workload.blocks(&mut random, change.ln_1p()))
        });
        seen.push(Seen { name: format!("recorded: {}", workload.name), ours, rivals_found });
    }
    let name = format!("recorded, {} workloads", record.workloads.len());
    Row { name, suites: trials.suites, alarms, improvements, stressed_alarms, rivals_alarms, seen }
}

fn recorded_plan(record: &Record) -> Plan {
    Plan { workloads_count: record.workloads.len(), ..Plan::default() }
}

/// In how many suites each rival calls a workload slower.
fn rivals_alarms(suites_count: usize, mut suite: impl FnMut() -> Vec<Blocks>) -> Vec<usize> {
    let mut alarms = vec![0; rivals::ALL.len()];
    for _ in 0..suites_count {
        let workloads = suite();
        for (count, (_, rule)) in alarms.iter_mut().zip(rivals::ALL) {
            *count += usize::from(workloads.iter().any(|blocks| rule(blocks) == Some(true)));
        }
    }
    alarms
}

fn rivals_alarms_alone(workloads_count: usize, mut workload: impl FnMut() -> Blocks) -> Vec<usize> {
    rivals_alarms(workloads_count, || vec![workload()])
}

fn outcomes(workloads_count: usize, mut decide: impl FnMut() -> (Decision, usize)) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for _ in 0..workloads_count {
        let (decision, units) = decide();
        outcomes.slower += usize::from(decision == Decision::Slower);
        outcomes.not_slower += usize::from(matches!(decision, Decision::NotSlower | Decision::Faster));
        outcomes.units.push(units);
    }
    outcomes.units.sort_unstable();
    outcomes
}
