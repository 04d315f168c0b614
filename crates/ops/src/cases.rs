//! Drawing shapes and parameters of cases for fuzzing: tiny and ragged sizes, primes, sizes beside powers of two, and among them a few
//! that are large along one axis. What an op's cases are is said by its definition.

use crate::op::Backend;
use holdpoint_model::Values;
use holdpoint_stats::random::Random;

const PRIMES: &[usize] =
    &[11, 13, 17, 19, 23, 29, 31, 37, 41, 53, 61, 67, 71, 97, 101, 127, 131, 193, 251, 257];

/// What cases of an op may be.
#[derive(Clone, Copy, Debug)]
pub struct Cases {
    /// The largest size along each axis; empty where no case is large.
    pub sizes_max: &'static [usize],
    /// Kinds of values beside ordinary ones.
    pub values: &'static [Values],
    /// Whether the tensors are all there is, so that a worker of the user's can compute it, too: no weights drawn from the seed, and
    /// nothing carried from call to call.
    pub for_workers: bool,
}

impl Cases {
    /// Of an op that takes any values and whose tensors are all there is.
    #[must_use]
    pub const fn new(sizes_max: &'static [usize]) -> Self {
        Self { sizes_max, values: Values::ALL, for_workers: true }
    }

    /// Of an op that only holdpoint's own workers have.
    #[must_use]
    pub const fn own(self) -> Self {
        Self { for_workers: false, ..self }
    }

    /// Of an op that chooses by its values: none that tie, and nothing that is not finite, since the choice is open then.
    #[must_use]
    pub const fn untied(self) -> Self {
        Self { values: &[Values::Uniform, Values::Tiny], ..self }
    }
}

/// How large cases may be in all.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    /// Steps of the oracle: multiply-adds of one product of attention; of a declared op the product of its sizes.
    pub operations: usize,
    /// Elements of the main input.
    pub elements: usize,
}

/// What a shape is drawn with.
pub struct Draw<'a> {
    /// Who runs it; absent for a worker of the user's.
    pub backend: Option<Backend>,
    /// How large it may be.
    pub most: Most,
    /// The axis that is large, and its size.
    pub large: Option<(usize, usize)>,
    /// Everything is drawn from it.
    pub random: &'a mut Random,
}

impl Draw<'_> {
    /// A number from 0 up to this, without it.
    pub fn below(&mut self, count: usize) -> usize {
        self.random.below(count)
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.below(of.len())]
    }

    /// A size that is seldom round.
    pub fn size(&mut self, most: usize) -> usize {
        let most = most.max(1);
        let drawn = match self.below(10) {
            0..=3 => 1 + self.below(8),
            4 | 5 => (1_usize << (1 + self.below(9))) + self.below(3) - 1,
            // Whole tiles of kernels, and one more or less.
            6 => self.pick(&[16, 32, 64]) * (1 + self.below(4)) + self.pick(&[0, 0, 1]),
            7 | 8 => self.pick(PRIMES),
            _ => 1 + self.below(most),
        };
        if drawn <= most { drawn } else { 1 + self.below(most) }
    }

    /// The one size of an op on a list.
    pub fn count(&mut self) -> usize {
        match self.large {
            Some((_, size)) => size,
            None => self.size(self.most.elements),
        }
    }

    /// Makes the large axis large, and the others smaller until all of it costs little enough.
    pub fn stretch(&self, sizes: &mut [usize], costs_too_much: impl Fn(&[usize]) -> bool) {
        let large = self.large.map(|(axis, _)| axis);
        if let Some((axis, size)) = self.large {
            sizes[axis] = size;
        }
        while costs_too_much(sizes) {
            let others = (0..sizes.len()).filter(|at| Some(*at) != large && sizes[*at] > 1);
            match others.max_by_key(|at| sizes[*at]).or(large) {
                Some(at) if sizes[at] > 1 => sizes[at] -= sizes[at].div_ceil(4).min(sizes[at] - 1),
                _ => return,
            }
        }
    }

    /// The same, until the main input has few enough elements.
    pub fn stretch_elements(&self, sizes: &mut [usize]) {
        self.stretch(sizes, |sizes| sizes.iter().product::<usize>() > self.most.elements);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn sizes_are_tiny_prime_and_beside_powers_of_two() {
        let most = Most { operations: 1, elements: 1 };
        let mut draw = Draw { backend: None, most, large: None, random: &mut Random::new(2) };
        let sizes: BTreeSet<usize> = (0..2000).map(|_| draw.size(300)).collect();
        assert!([1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 129, 131, 257].iter().all(|n| sizes.contains(n)));
        assert!(sizes.iter().all(|&n| (1..=300).contains(&n)));
    }
}
