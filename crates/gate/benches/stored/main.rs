//! How often a gate against a stored baseline calls unchanged code slower, on synthetic noise.
//!
//! `cargo bench -p holdpoint-gate --bench stored` prints the table of METHODOLOGY.md, "Against a stored baseline".

#![allow(clippy::print_stdout)]

mod simulate;

use holdpoint_stats::sequential::ALARM_RATE;
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
}

fn print(sessions: usize, runs: usize, name: &str, outcome: &Outcome) {
    let recorded =
        if sessions == 1 { format!("{runs} in a row") } else { format!("{sessions} sessions of {runs}") };
    let percent = |count: u32| f64::from(count) / f64::from(outcome.suites) * 100.0;
    let (gate, one) = (percent(outcome.by_gate), percent(outcome.by_one_run));
    println!("| {recorded} | {name} | {gate:.2} % | {one:.2} % | {:.0} sd |", outcome.sees_sd);
}
