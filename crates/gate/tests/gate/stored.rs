//! Error rates against a stored baseline: false alarms on synthetic noise, slower code that passes on recorded noise.

#[allow(dead_code, reason = "the benchmark prints more than is asserted here")]
#[path = "../../benches/stored/simulate.rs"]
mod simulate;

#[allow(dead_code, reason = "the benchmark prints more than is asserted here")]
#[path = "../../benches/stored/recorded.rs"]
mod recorded;

use holdpoint_model::Verdict;
use holdpoint_stats::random::Random;
use holdpoint_stats::sequential::MISS_RATE;
use recorded::{Record, State, slowdown};
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

#[test]
fn no_slowdown_beyond_the_tolerance_passes_on_recorded_noise() {
    const PAIRS: usize = 500;
    let record = Record::read();
    let mut random = Random::new(5);
    for before in State::ALL {
        for now in [State::Quiet, State::Loaded] {
            for scale in [1.0, 0.1] {
                let slower = slowdown(&mut random);
                let mut green = |slower: f64| {
                    let judged = record.judge([before, now], slower, scale, &mut random);
                    judged.by_gate <= Verdict::Pass
                };
                let least = (0..PAIRS).filter(|_| green(0.05)).count();
                let others = (0..PAIRS).filter(|_| green(slower)).count();
                let most = (MISS_RATE * PAIRS as f64) as usize;
                assert!(least <= most && others <= most, "{before:?} {now:?} {scale}: {least} {others}");
            }
        }
    }
}

#[test]
fn a_quiet_baseline_passes_unchanged_code_and_finds_slower_code() {
    let record = Record::read();
    let mut random = Random::new(6);
    let mut verdicts = |slower: f64| -> Vec<Verdict> {
        let mut one = || record.judge([State::Quiet; 2], slower, 0.01, &mut random).by_gate;
        (0..200).map(|_| one()).collect()
    };
    let count = |verdicts: &[Verdict], of: Verdict| verdicts.iter().filter(|verdict| **verdict == of).count();
    let (same, slower) = (verdicts(0.0), verdicts(0.1));
    assert!(count(&same, Verdict::Pass) >= 180, "{same:?}");
    assert_eq!(count(&same, Verdict::Regressed), 0);
    assert!(count(&slower, Verdict::Regressed) >= 180, "{slower:?}");
}
