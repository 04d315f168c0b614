//! Units planned from the noise beside units of a fixed plan: error rates and time to a verdict, on synthetic noise.
//!
//! `cargo bench -p holdpoint-gate --bench schedule` prints the table of docs/simulation.md, "Schedules". Time is simulated: what
//! processes, rounds and samples cost.

#![allow(clippy::print_stdout)]

use holdpoint_gate::ab::{Deciding, Decision, estimate};
use holdpoint_model::ab::Clock;
use holdpoint_model::{AbPlan, PairRound, Unit, UnitCost, UnitPlan};
use holdpoint_stats as stats;
use holdpoint_stats::random::Random;
use std::collections::BTreeMap;

const SUITES: u64 = 2_000;
const TOLERANCE: f64 = 0.01;
const SLOWER: f64 = 0.02;
const BUDGET_S: f64 = 20.0;
/// Of a round, beside its samples.
const ROUND_S: f64 = 0.0003;

/// How times differ; shares are standard deviations.
struct Noise {
    name: &'static str,
    call_s: f64,
    /// Starting two processes and preparing their inputs.
    fixed_s: f64,
    process: f64,
    turn: f64,
    /// The mean of what is added to a sample.
    sample: f64,
    /// Added to the first sample of a turn; each later one has half of that.
    cold: f64,
    /// Share of turns that take up to a half longer.
    bursts: f64,
    /// From unit to unit, for both sides.
    wander: f64,
}

const PLAIN: Noise = Noise {
    name: "calm",
    call_s: 1e-4,
    fixed_s: 0.016,
    process: 0.005,
    turn: 0.003,
    sample: 0.01,
    cold: 0.0,
    bursts: 0.0,
    wander: 0.0,
};

const FAMILIES: [Noise; 8] = [
    PLAIN,
    Noise { name: "processes differ by 2 %", process: 0.02, ..PLAIN },
    Noise { name: "turns differ by 4 %", turn: 0.04, ..PLAIN },
    Noise { name: "cold caches", call_s: 3e-4, cold: 0.6, turn: 0.02, process: 0.01, ..PLAIN },
    Noise { name: "a tenth of the turns disturbed", bursts: 0.1, process: 0.01, ..PLAIN },
    Noise { name: "a wandering level", wander: 0.1, process: 0.01, turn: 0.01, ..PLAIN },
    Noise { name: "calls of 5 ms", call_s: 5e-3, process: 0.01, turn: 0.01, ..PLAIN },
    Noise { name: "processes of 0.5 s", fixed_s: 0.5, process: 0.005, turn: 0.02, ..PLAIN },
];

/// Ways to plan a unit.
#[derive(Clone, Copy)]
enum Schedule {
    /// By the noise so far.
    Planned,
    /// Two rounds of 3 ms a side, of which a tenth of the samples is faster.
    Fixed,
}

fn main() {
    // `cargo test --all-targets` runs benches too, without this flag.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("| noise | schedule | false alarms | passed in s | 2 % slower: found | missed | in s |");
    println!("|---|---|--:|--:|--:|--:|--:|");
    for noise in &FAMILIES {
        for (name, schedule) in [("planned", Schedule::Planned), ("fixed", Schedule::Fixed)] {
            let same = simulate(noise, schedule, 0.0);
            let slower = simulate(noise, schedule, SLOWER);
            let share = |outcome: &Outcomes, decision| {
                format!("{:.1} %", outcome.count(decision) as f64 / SUITES as f64 * 100.0)
            };
            println!(
                "| {} | {name} | {} of {SUITES} | {:.2} | {} | {} | {:.2} |",
                noise.name,
                same.count(Decision::Slower),
                same.median_s(),
                share(&slower, Decision::Slower),
                share(&slower, Decision::NotSlower),
                slower.median_s(),
            );
        }
    }
}

/// How each suite came out, and after how many seconds.
struct Outcomes(Vec<(Decision, f64)>);

impl Outcomes {
    fn count(&self, decision: Decision) -> usize {
        self.0.iter().filter(|(found, _)| *found == decision).count()
    }

    fn median_s(&self) -> f64 {
        stats::median(&self.0.iter().map(|(_, seconds)| *seconds).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    }
}

fn simulate(noise: &Noise, schedule: Schedule, slowdown: f64) -> Outcomes {
    Outcomes((0..SUITES).map(|seed| compare(noise, schedule, slowdown, &mut Random::new(seed))).collect())
}

/// One workload, until it is decided or the budget is spent.
fn compare(noise: &Noise, schedule: Schedule, slowdown: f64, random: &mut Random) -> (Decision, f64) {
    let plan = AbPlan {
        tolerance: TOLERANCE,
        tolerances: BTreeMap::new(),
        metrics: BTreeMap::new(),
        alarm_rate: stats::sequential::ALARM_RATE,
        miss_rate: stats::sequential::MISS_RATE,
        units_max: 10_000,
        budget_s: BUDGET_S,
        clock: None,
        units_at_once: 1,
        seed: 0,
    };
    let mut deciding = Deciding::new(&plan, ["a"].into_iter()).expect("the plan is valid");
    let (mut units, mut spent_s, mut level) = (Vec::new(), 0.0, 0.0);
    loop {
        let cost = UnitCost {
            fixed_s: noise.fixed_s,
            round_s: ROUND_S,
            sample_s: noise.call_s,
            unit_s_max: BUDGET_S - spent_s,
            may_overlap: false,
        };
        let how = match schedule {
            Schedule::Planned => deciding.plan_unit(0, &units, &cost),
            Schedule::Fixed => {
                let samples = ((0.003 / noise.call_s) as u32).max(1);
                UnitPlan { rounds: 2, samples, skip: 0, quantile: 0.1, clock: Clock::Unwaited }
            }
        };
        let unit_s = cost.unit_s(how.rounds, how.samples);
        if spent_s + unit_s > BUDGET_S && !units.is_empty() {
            return (deciding.decision(0), spent_s);
        }
        spent_s += unit_s;
        level += noise.wander * random.normal() / 10.0;
        let mut unit = measure(noise, how, slowdown, level, random);
        if estimate::unit(&mut unit).is_some() && !deciding.push(0, &unit) {
            return (deciding.decision(0), spent_s);
        }
        units.push(unit);
    }
}

fn measure(noise: &Noise, how: UnitPlan, slowdown: f64, level: f64, random: &mut Random) -> Unit {
    let process = [0.0, slowdown.ln_1p()].map(|change| level + change + noise.process * random.normal());
    let mut turn = |process: f64| {
        let is_burst = random.uniform() < noise.bursts;
        let burst = if is_burst { 0.5 * random.uniform() } else { 0.0 };
        let turn = process + noise.turn * random.normal() + burst;
        let sample = |at: u32| {
            let cold = noise.cold * 0.5_f64.powi(at as i32);
            let added = -noise.sample * (1.0 - random.uniform()).ln();
            (noise.call_s * 1e9 * turn.exp() * (1.0 + cold + added)) as u64
        };
        (0..how.samples).map(sample).collect::<Vec<u64>>()
    };
    let rounds = (0..how.rounds).map(|round| PairRound {
        round,
        base_ns: turn(process[0]),
        head_ns: turn(process[1]),
        ..PairRound::default()
    });
    let UnitPlan { skip, quantile, clock, .. } = how;
    Unit { process: 0, x: 0.0, skip, quantile, clock, rounds: rounds.collect() }
}
