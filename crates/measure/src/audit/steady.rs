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
pub(super) const TURNS_MIN: usize = 14;
/// The cost of a request varies by less than this in most of them.
pub(super) const UNSEEN_NS: f64 = 1e5;

/// Whether each of the last turns missed time.
#[derive(Clone, Debug, Default)]
pub(super) struct Missed(VecDeque<bool>);

impl Missed {
    /// Adds a turn; whether by now so many have missed time, this one too.
    pub(super) fn add(&mut self, is_missed: bool, least: usize) -> bool {
        keep(&mut self.0, is_missed, TURNS);
        is_missed && self.0.iter().filter(|is_missed| **is_missed).count() >= least
    }
}

/// The kind of request still needed before a worker's turns can be judged together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// A request for one sample.
    One,
    /// Another turn: most of the few so far missed time.
    Turn,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Steady {
    costs_ns: VecDeque<f64>,
    turns: VecDeque<Turn>,
}

/// Time of a turn outside its samples, the time it reported for them, and their number.
#[derive(Clone, Copy, Debug)]
struct Turn {
    besides_ns: f64,
    reported_ns: f64,
    samples: usize,
}

impl Steady {
    /// What a request with a single sample took besides it.
    pub(super) fn add_cost(&mut self, cost_ns: f64) {
        keep(&mut self.costs_ns, cost_ns, COSTS_KEPT);
    }

    /// The cost of a request, once enough requests have shown it.
    pub(super) fn cost_ns(&self) -> Option<f64> {
        let costs: Vec<f64> = self.costs_ns.iter().copied().collect();
        stats::median(&costs).filter(|_| costs.len() >= COSTS_MIN)
    }

    /// Whether by now most turns took longer than was reported, as this one did. Such a turn took so long besides its samples.
    pub(super) fn add_turn(&mut self, besides_ns: f64, reported_ns: f64, samples: usize) -> bool {
        let turn = Turn { besides_ns, reported_ns, samples };
        keep(&mut self.turns, turn, TURNS);
        let Some(cost_ns) = self.cost_ns() else { return false };
        turn.is_missed(cost_ns) && self.turns.len() == TURNS && self.missed_count(cost_ns) >= TURNS_MIN
    }

    pub(super) fn lack(&self) -> Option<Lack> {
        let turns_count = self.turns.len();
        match self.cost_ns() {
            None => (turns_count > 0).then_some(Lack::One),
            Some(cost_ns) => {
                let is_open = turns_count < TURNS && 2 * self.missed_count(cost_ns) > turns_count;
                is_open.then_some(Lack::Turn)
            }
        }
    }

    fn missed_count(&self, cost_ns: f64) -> usize {
        self.turns.iter().filter(|turn| turn.is_missed(cost_ns)).count()
    }
}

impl Turn {
    fn is_missed(self, cost_ns: f64) -> bool {
        is_too_much(self.besides_ns - cost_ns, self.reported_ns, self.samples, cost_ns, UNSEEN_NS)
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
    fn a_few_turns_that_missed_time_ask_for_more() {
        let mut steady = Steady::default();
        assert_eq!(steady.lack(), None, "turns of few samples are judged by themselves");
        for _ in 0..10 {
            steady.add_turn(700_000.0, 60_000.0, 20);
        }
        for _ in 0..COSTS_MIN {
            assert_eq!(steady.lack(), Some(Lack::One));
            steady.add_cost(150_000.0);
        }
        assert_eq!(steady.lack(), Some(Lack::Turn));
        let mut honest = steady.clone();
        let accused = (10..TURNS).find(|_| steady.add_turn(700_000.0, 60_000.0, 20));
        assert_eq!(accused, Some(TURNS - 1));
        (0..TURNS).for_each(|_| _ = honest.add_turn(150_000.0, 60_000.0, 20));
        assert_eq!(honest.lack(), None);
    }

    #[test]
    fn a_busy_machine_delays_some_requests_and_accuses_nobody() {
        assert!(!is_caught(1.0, |turn| if turn % 3 == 0 { 2e6 } else { 0.0 }));
        assert!(is_caught(0.1, |turn| if turn % 10 == 0 { 2e6 } else { 0.0 }));
    }
}
