//! Doubts about one of two sides that take turns: noise of the machine makes those of either side equally often.

use super::{is_too_much, missed};
use crate::program::WorkerError;
use holdpoint_model::FailureCause;
use holdpoint_stats::sequential::SignProcess;

/// An honest side is accused once in so many workloads at most, however noisy the machine is: seventeen turns that missed time
/// beside none of the other side do it.
const ODDS: f64 = 10_000.0;

/// A turn, as far as its clock can be doubted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Time that passed outside its samples.
    pub(super) besides_ns: f64,
    /// The cost of a request on this side.
    pub(super) cost_ns: f64,
    /// Requests on this side vary by less than this in most turns.
    pub(super) varies_ns: f64,
    pub(super) reported_ns: f64,
    pub(super) samples: usize,
}

/// For each side, of the rounds in which one side alone missed time, those in which it was this one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contest([SignProcess; 2]);

impl Contest {
    /// Adds a round. The side that misses time more often than noise explains, and why.
    pub(crate) fn add(&mut self, turns: [Option<Turn>; 2]) -> Option<(usize, WorkerError)> {
        let [Some(base), Some(head)] = turns else { return None };
        (0..).zip([(base, head), (head, base)]).find_map(|(side, (own, other))| {
            let cost_ns = own.cost_ns.max(other.cost_ns);
            let misses = |unseen_ns: f64| {
                let least_ns = own.varies_ns.max(other.varies_ns);
                is_too_much(unseen_ns, own.reported_ns, own.samples, cost_ns, least_ns)
            };
            // What the other side's request took more than usual would have been missing here too.
            let is_missed = misses(own.besides_ns - cost_ns);
            if is_missed == misses(other.besides_ns - other.cost_ns) {
                return None;
            }
            self.0[side].push(is_missed);
            let is_proven = is_missed && self.0[side].ln_e() >= ODDS.ln();
            is_proven.then(|| {
                (side, WorkerError::new(FailureCause::BadTime, missed(own.reported_ns, own.besides_ns)))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdpoint_stats::random::Random;

    /// Twenty samples of a millisecond in a request that costs another one.
    fn turn(share: f64, noise_ns: f64) -> Option<Turn> {
        let (besides_ns, reported_ns) = (1e6 + (1.0 - share) * 20e6 + noise_ns, share * 20e6);
        Some(Turn { besides_ns, cost_ns: 1e6, varies_ns: 2e6, reported_ns, samples: 20 })
    }

    /// The round in which a side is accused.
    fn accused(mut round: impl FnMut(usize) -> [Option<Turn>; 2]) -> Option<(usize, usize)> {
        let mut contest = Contest::default();
        (0..1_000).find_map(|at| Some((at, contest.add(round(at))?.0)))
    }

    #[test]
    fn a_side_that_lies_in_three_of_four_turns_is_accused_and_the_other_is_not() {
        let share = |at: usize| if at.is_multiple_of(4) { 1.0 } else { 0.125 };
        let found = accused(|at| [turn(1.0, 0.0), turn(share(at), 0.0)]);
        assert!(found.is_some_and(|(at, side)| at < 30 && side == 1), "{found:?}");
        let found = accused(|at| [turn(share(at), 0.0), turn(1.0, 0.0)]);
        assert!(found.is_some_and(|(at, side)| at < 30 && side == 0), "{found:?}");
    }

    #[test]
    fn noise_that_falls_on_both_sides_accuses_neither_whatever_their_lengths() {
        let mut random = Random::new(1);
        for head_share in [1.0, 0.1] {
            let mut noise_ns = || if random.below(2) == 0 { 50e6 } else { 0.0 };
            let short = |noise_ns: f64| {
                turn(1.0, noise_ns).map(|turn| Turn { reported_ns: head_share * 20e6, ..turn })
            };
            assert_eq!(accused(|_| [turn(1.0, noise_ns()), short(noise_ns())]), None, "{head_share}");
        }
    }

    #[test]
    fn a_side_whose_requests_cost_more_is_not_accused_of_it() {
        let dear =
            |turn: Turn| Turn { besides_ns: turn.besides_ns + 20e6, cost_ns: turn.cost_ns + 20e6, ..turn };
        assert_eq!(accused(|_| [turn(1.0, 0.0), turn(1.0, 0.0).map(dear)]), None);
    }
}
