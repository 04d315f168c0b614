//! Seeds that what is measured cannot foresee.

use holdpoint_stats::random::Random;
use std::hash::{BuildHasher, RandomState};

/// Seeds of a workload's inputs, another one for each request: an answer remembered from earlier inputs is wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seeds {
    prepared: u64,
    next: u64,
}

impl Seeds {
    /// From that of the inputs that were prepared.
    pub(crate) fn new(prepared: u64) -> Self {
        Self { prepared, next: prepared.wrapping_add(1) }
    }

    pub(crate) fn draw(&mut self) -> u64 {
        let seed = self.next;
        self.next = self.next.wrapping_add(1);
        seed
    }

    /// Goes on with the inputs of a round of two sides, which are the same whatever either side was asked for before.
    pub(crate) fn begin_round(&mut self, round: u32) {
        self.next = Random::new(self.prepared ^ ((u64::from(round) + 1) << 32)).bits();
    }
}

/// From the system: what is measured cannot foresee it.
pub(crate) fn random_bits() -> u64 {
    RandomState::new().hash_one(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn rounds_have_inputs_of_their_own_however_many_requests_a_side_made() {
        let (mut base, mut head) = (Seeds::new(7), Seeds::new(7));
        let before: Vec<u64> = (0..40).map(|_| head.draw()).collect();
        let mut seen: BTreeSet<u64> = before.into_iter().chain([7]).collect();
        for round in 0..100 {
            base.begin_round(round);
            head.begin_round(round);
            let seed = base.draw();
            assert_eq!(seed, head.draw(), "round {round}");
            assert!(seen.insert(seed), "round {round}");
            // A further request of one side changes nothing for the next round.
            seen.insert(head.draw());
        }
    }
}
