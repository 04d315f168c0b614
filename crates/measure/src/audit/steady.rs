//! Doubts about turns that are too short for any of them to prove anything: most of many say the same.

use super::is_too_much;
use holdpoint_stats as stats;
use std::collections::VecDeque;

/// Requests for one sample whose median shows what a request costs, and the fewest that do: each is of another process.
const COSTS_KEPT: usize = 8;
const COSTS_MIN: usize = 4;
/// Turns that are looked at together, and how many of them must have missed time. If the machine's noise makes half of an honest
/// worker's turns look so, that is one set of turns in five hundred.
const TURNS: usize = 16;
const TURNS_MIN: usize = 14;
/// The cost of a request varies by less than this in most of them.
const UNSEEN_NS: f64 = 1e5;

/// Whether each of the last turns missed time.
#[derive(Clone, Debug, Default)]
pub(super) struct Missed(VecDeque<bool>);

impl Missed {
    /// Adds a turn; whether by now most have missed time, as this one has.
    pub(super) fn add(&mut self, is_missed: bool) -> bool {
        keep(&mut self.0, is_missed, TURNS);
        is_missed
            && self.0.len() == TURNS
            && self.0.iter().filter(|is_missed| **is_missed).count() >= TURNS_MIN
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Steady {
    costs_ns: VecDeque<f64>,
    missed: Missed,
}

impl Steady {
    /// What a request with a single sample took besides it.
    pub(super) fn add_cost(&mut self, cost_ns: f64) {
        keep(&mut self.costs_ns, cost_ns, COSTS_KEPT);
    }

    /// Whether by now most turns took longer than was reported, as this one did. Such a turn took so long besides its samples.
    pub(super) fn add_turn(&mut self, besides_ns: f64, reported_ns: f64, samples: usize) -> bool {
        let known = Some(self.costs_ns.make_contiguous()).filter(|costs| costs.len() >= COSTS_MIN);
        let Some(cost_ns) = known.and_then(|costs| stats::median(costs)) else { return false };
        let is_missed = is_too_much(besides_ns - cost_ns, reported_ns, samples, cost_ns, UNSEEN_NS);
        self.missed.add(is_missed)
    }
}

fn keep<T>(all: &mut VecDeque<T>, one: T, most: usize) {
    all.truncate(most - 1);
    all.push_front(one);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether so many turns of twenty samples of 30 µs prove a lie, by a worker that reports this share of them.
    fn is_caught(share: f64, noise_ns: impl Fn(usize) -> f64) -> bool {
        let mut steady = Steady::default();
        (0..64).any(|turn| {
            if turn % 4 == 0 {
                steady.add_cost(150_000.0 + noise_ns(turn / 4));
            }
            let took_ns = 600_000.0;
            steady.add_turn(150_000.0 + noise_ns(turn) + (1.0 - share) * took_ns, share * took_ns, 20)
        })
    }

    #[test]
    fn short_turns_of_a_worker_that_hides_time_add_up() {
        let quiet = |turn: usize| (turn % 7) as f64 * 5_000.0;
        for (share, is_lie) in [(1.0, false), (0.9, false), (0.5, true), (0.1, true), (0.001, true)] {
            assert_eq!(is_caught(share, quiet), is_lie, "{share}");
        }
    }

    #[test]
    fn a_busy_machine_delays_some_requests_and_accuses_nobody() {
        assert!(!is_caught(1.0, |turn| if turn % 3 == 0 { 2e6 } else { 0.0 }));
        assert!(is_caught(0.1, |turn| if turn % 10 == 0 { 2e6 } else { 0.0 }));
    }
}
