//! Units planned from the noise beside units of a fixed plan: error rates and time to a verdict.
//!
//! `cargo bench -p holdpoint-gate --bench schedule` prints a table of docs/results/simulation.md for synthetic noise; with
//! `-- FILE…`, each an `ab.json` of unchanged code, the one for recorded noise. Time is simulated: what processes, rounds and
//! samples cost.

#![allow(clippy::print_stdout)]

use holdpoint_gate::ab::{Deciding, Decision, estimate};
use holdpoint_model::ab::Clock;
use holdpoint_model::{AbPlan, AbReport, PairRound, SideName, Unit, UnitCost, UnitPlan, document};
use holdpoint_stats as stats;
use holdpoint_stats::random::Random;
use std::collections::BTreeMap;

const SUITES: u64 = 300;
const TOLERANCE: f64 = 0.01;
const SLOWER: f64 = 0.02;
const BUDGET_S: f64 = 20.0;
/// Of a round, beside its samples.
const ROUND_S: f64 = 0.0003;
/// Of starting two processes and preparing their inputs.
const FIXED_S: f64 = 0.016;

/// Where times come from.
enum Source {
    Synthetic(&'static Noise),
    Recorded(Recorded),
}

/// How times differ; shares are standard deviations.
struct Noise {
    name: &'static str,
    call_s: f64,
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
    fixed_s: FIXED_S,
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
    let files: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let sources: Vec<Source> = match files.is_empty() {
        true => FAMILIES.iter().map(Source::Synthetic).collect(),
        false => files.iter().flat_map(|file| Recorded::read(file)).map(Source::Recorded).collect(),
    };
    println!("| noise | schedule | false alarms | passed in s | 2 % slower: found | missed | in s |");
    println!("|---|---|--:|--:|--:|--:|--:|");
    for source in &sources {
        for (name, schedule) in [("planned", Schedule::Planned), ("fixed", Schedule::Fixed)] {
            let same = simulate(source, schedule, 0.0);
            let slower = simulate(source, schedule, SLOWER);
            let share = |outcome: &Outcomes, decision| {
                format!("{:.1} %", outcome.count(decision) as f64 / SUITES as f64 * 100.0)
            };
            println!(
                "| {} | {name} | {} of {SUITES} | {:.2} | {} | {} | {:.2} |",
                source.name(),
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

fn simulate(source: &Source, schedule: Schedule, slowdown: f64) -> Outcomes {
    Outcomes((0..SUITES).map(|seed| compare(source, schedule, slowdown, &mut Random::new(seed))).collect())
}

/// One workload, until it is decided or the budget is spent.
fn compare(source: &Source, schedule: Schedule, slowdown: f64, random: &mut Random) -> (Decision, f64) {
    let plan = AbPlan {
        tolerance: TOLERANCE,
        tolerances: BTreeMap::new(),
        metrics: BTreeMap::new(),
        speedup_max: None,
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
    let from = random.bits() as usize;
    loop {
        let cost = UnitCost { unit_s_max: BUDGET_S - spent_s, ..source.cost() };
        let how = match schedule {
            Schedule::Planned => deciding.plan_unit(0, &units, &cost),
            Schedule::Fixed => {
                let samples = ((0.003 / cost.sample_s) as u32).max(1);
                UnitPlan { rounds: 2, samples, skip: 0, quantile: 0.1, clock: Clock::Unwaited }
            }
        };
        let unit_s = cost.unit_s(how.rounds, how.samples);
        if spent_s + unit_s > BUDGET_S && !units.is_empty() {
            return (deciding.decision(0), spent_s);
        }
        spent_s += unit_s;
        let rounds = match source {
            Source::Synthetic(noise) => {
                level += noise.wander * random.normal() / 10.0;
                noise.rounds(how, slowdown, level, random)
            }
            Source::Recorded(recorded) => {
                recorded.rounds(how, slowdown, from.wrapping_add(units.len()), random)
            }
        };
        let UnitPlan { skip, quantile, clock, .. } = how;
        let mut unit = Unit { process: 0, x: 0.0, skip, quantile, clock, rounds };
        if estimate::unit(&mut unit).is_some() && !deciding.push(0, &unit) {
            return (deciding.decision(0), spent_s);
        }
        units.push(unit);
    }
}

impl Source {
    fn name(&self) -> &str {
        match self {
            Self::Synthetic(noise) => noise.name,
            Self::Recorded(recorded) => &recorded.name,
        }
    }

    fn cost(&self) -> UnitCost {
        let (fixed_s, sample_s) = match self {
            Self::Synthetic(noise) => (noise.fixed_s, noise.call_s),
            Self::Recorded(recorded) => (FIXED_S, recorded.sample_s),
        };
        UnitCost { fixed_s, round_s: ROUND_S, sample_s, unit_s_max: BUDGET_S, ..UnitCost::default() }
    }
}

impl Noise {
    fn rounds(&self, how: UnitPlan, slowdown: f64, level: f64, random: &mut Random) -> Vec<PairRound> {
        let process = [0.0, slowdown.ln_1p()].map(|change| level + change + self.process * random.normal());
        let mut turn = |process: f64| {
            let is_burst = random.uniform() < self.bursts;
            let burst = if is_burst { 0.5 * random.uniform() } else { 0.0 };
            let turn = process + self.turn * random.normal() + burst;
            let sample = |at: u32| {
                let cold = self.cold * 0.5_f64.powi(at as i32);
                let added = -self.sample * (1.0 - random.uniform()).ln();
                (self.call_s * 1e9 * turn.exp() * (1.0 + cold + added)) as u64
            };
            (0..how.samples).map(sample).collect::<Vec<u64>>()
        };
        (0..how.rounds).map(|round| pair_round(round, turn(process[0]), turn(process[1]))).collect()
    }
}

/// The units of a workload in a comparison of unchanged code.
struct Recorded {
    name: String,
    sample_s: f64,
    /// The turns of each unit, in order.
    units: Vec<Vec<[Vec<u64>; 2]>>,
}

impl Recorded {
    fn read(file: &str) -> Vec<Self> {
        let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let report: AbReport = document::read(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        report.workloads.into_iter().map(|(name, workload)| Self::new(name, &workload.units)).collect()
    }

    fn new(name: String, units: &[Unit]) -> Self {
        let times = |round: &PairRound, side| round.times_ns(side, Clock::Unwaited).collect::<Vec<_>>();
        let turns = |unit: &Unit| {
            unit.rounds.iter().map(|r| [SideName::Base, SideName::Head].map(|s| times(r, s))).collect()
        };
        let units: Vec<Vec<[Vec<u64>; 2]>> = units.iter().map(turns).collect();
        let samples: Vec<f64> = units.iter().flatten().flatten().flatten().map(|ns| *ns as f64).collect();
        Self { name, sample_s: stats::median(&samples).unwrap_or(f64::NAN) / 1e9, units }
    }

    /// The recorded turns of a unit, its sides swapped by a coin. Where more samples are wanted than a turn has, its last ones are
    /// drawn again.
    fn rounds(&self, how: UnitPlan, slowdown: f64, at: usize, random: &mut Random) -> Vec<PairRound> {
        let turns = &self.units[at % self.units.len()];
        let is_swapped = random.uniform() < 0.5;
        let mut pick = |turn: &[u64], factor: f64| {
            let settled = turn.len() / 2;
            let mut at = |i: usize| {
                turn.get(i).copied().unwrap_or_else(|| turn[settled + random.below(turn.len() - settled)])
            };
            (0..how.samples as usize).map(|i| (at(i) as f64 * factor) as u64).collect::<Vec<u64>>()
        };
        let round = |round: u32| {
            let [base, head] = &turns[round as usize % turns.len()];
            let (base, head) = if is_swapped { (head, base) } else { (base, head) };
            pair_round(round, pick(base, 1.0), pick(head, 1.0 + slowdown))
        };
        (0..how.rounds).map(round).collect()
    }
}

fn pair_round(round: u32, base_ns: Vec<u64>, head_ns: Vec<u64>) -> PairRound {
    PairRound { round, base_ns, head_ns, ..PairRound::default() }
}
