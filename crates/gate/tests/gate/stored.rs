//! The rate of false alarms against a stored baseline, on synthetic noise.

#[allow(dead_code, reason = "the benchmark prints more than is asserted here")]
#[path = "../../benches/stored/simulate.rs"]
mod simulate;

use simulate::{Noise, Outcome, Recorded, simulate};

/// One suite in a hundred, so that few suites show it.
const ALARM_RATE: f64 = 0.01;
const SUITES: u32 = 400;

fn alarms(noise: Noise, sessions: usize, runs: usize) -> Outcome {
    simulate(noise, Recorded { sessions, runs }, ALARM_RATE, SUITES, 3)
}

#[test]
fn a_gate_keeps_its_rate_where_sessions_are_as_one_session_assumes() {
    for noise in [Noise::Normal, Noise::HeavyTails, Noise::Skewed, Noise::Sessions(1.0)] {
        let outcome = alarms(noise, 1, 10);
        assert!(outcome.by_gate <= 4, "{outcome:?}");
    }
}

#[test]
fn several_sessions_learn_how_far_sessions_differ() {
    let [one, several] =
        [(1, 20), (5, 4)].map(|(sessions, runs)| alarms(Noise::Sessions(8.0), sessions, runs).by_gate);
    assert!(one > 5 * several, "{one} {several}");
}

#[test]
fn more_runs_see_more() {
    let sees = [5, 10, 20].map(|runs| alarms(Noise::Normal, 1, runs).sees_sd);
    assert!(sees.is_sorted_by(|few, many| few > many), "{sees:?}");
}
