//! How often a gate against a stored baseline calls unchanged code slower, on synthetic noise, and how often it passes slower code, on
//! recorded noise.
//!
//! `cargo bench -p holdpoint-gate --bench stored` prints the tables of docs/results/stored-baselines.md.

#![allow(clippy::print_stdout)]

mod recorded;
mod simulate;

use holdpoint_model::Verdict;
use holdpoint_stats::random::Random;
use holdpoint_stats::sequential::ALARM_RATE;
use recorded::{Record, State, slowdown};
use simulate::{Noise, Outcome, Recorded, simulate};

const SUITES: u32 = 1_000;

fn main() {
    // `cargo test --all-targets` runs benches too, without this flag.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("| runs of the baseline | differ by | a gate alarms | by one run alone | sees |");
    println!("|---|---|--:|--:|--:|");
    let families = [
        ("normal noise", Noise::Normal),
        ("heavy tails (t, 3 degrees)", Noise::HeavyTails),
        ("skewed (exponential)", Noise::Skewed),
        ("one slow run in twenty", Noise::SlowRuns),
        ("sessions, by 1 sd of a run", Noise::Sessions(1.0)),
        ("sessions, by 2 sd of a run", Noise::Sessions(2.0)),
        ("sessions, by 4 sd of a run", Noise::Sessions(4.0)),
        ("one slow session in ten", Noise::SlowSessions),
        ("a wandering level", Noise::Wander),
    ];
    let baselines = [(1, 5), (1, 10), (1, 20), (2, 10), (5, 4)];
    for (sessions, runs) in baselines {
        for (name, noise) in families {
            let outcome = simulate(noise, Recorded { sessions, runs }, ALARM_RATE, SUITES, 1);
            print(sessions, runs, name, &outcome);
        }
    }
    println!(
        "\n| baseline | run | noise | 5 % slower passes | 5 to 600 % slower passes | is found | unchanged passes | is called slower |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|--:|");
    let record = Record::read();
    for before in State::ALL {
        for now in [State::Quiet, State::Loaded] {
            for scale in [1.0, 0.1, 0.02] {
                print_recorded(&record, [before, now], scale);
            }
        }
    }
}

/// Pairs of a baseline and slower code in each row of the table.
const PAIRS: u32 = 2_000;

/// Verdicts on slower and on unchanged code, as shares.
fn print_recorded(record: &Record, states: [State; 2], scale: f64) {
    let mut random = Random::new(2);
    let mut share = |is: fn(Verdict) -> bool, slower: fn(&mut Random) -> f64| {
        let mut is_one = || {
            let by = slower(&mut random);
            is(record.judge(states, by, scale, &mut random).by_gate)
        };
        let count: u32 = (0..PAIRS).map(|_| u32::from(is_one())).sum();
        format!("{:.2} %", f64::from(count) / f64::from(PAIRS) * 100.0)
    };
    let is_green = |verdict| verdict <= Verdict::Pass;
    let cells = [
        share(is_green, |_| 0.05),
        share(is_green, slowdown),
        share(|verdict| verdict == Verdict::Regressed, slowdown),
        share(is_green, |_| 0.0),
        share(|verdict| verdict == Verdict::Regressed, |_| 0.0),
    ];
    let [before, now] = states.map(|state| format!("{state:?}").to_lowercase());
    println!("| {before} | {now} | {scale} | {} |", cells.join(" | "));
}

fn print(sessions: usize, runs: usize, name: &str, outcome: &Outcome) {
    let recorded =
        if sessions == 1 { format!("{runs} in a row") } else { format!("{sessions} sessions of {runs}") };
    let percent = |count: u32| f64::from(count) / f64::from(outcome.suites) * 100.0;
    let (gate, one) = (percent(outcome.by_gate), percent(outcome.by_one_run));
    println!("| {recorded} | {name} | {gate:.2} % | {one:.2} % | {:.0} sd |", outcome.sees_sd);
}
