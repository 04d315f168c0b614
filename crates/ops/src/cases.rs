//! Draws shapes and parameters of cases for fuzzing: tiny and ragged sizes, primes, sizes beside powers of two, and a few that are
//! large along one axis. Each op's definition says which cases it has.

use crate::request::Backend;
use holdpoint_model::Values;
use holdpoint_stats::random::Random;

const PRIMES: &[usize] =
    &[11, 13, 17, 19, 23, 29, 31, 37, 41, 53, 61, 67, 71, 97, 101, 127, 131, 193, 251, 257];

/// Which cases fuzzing draws for an op.
#[derive(Clone, Copy, Debug)]
pub struct Cases {
    /// The largest size along each axis; empty where no case is large.
    pub sizes_max: &'static [usize],
    /// The same on a device, where the kernel is quick and the oracle computes some places only.
    pub device_sizes_max: &'static [usize],
    /// The axis over which a kernel sums or scans, in tiles or parts of a certain length.
    pub row_axis: Option<usize>,
    /// Shapes with more than 2^31 elements, or products of sizes beyond that, for a device.
    pub huge: &'static [&'static [usize]],
    /// Kinds of values beside ordinary ones.
    pub values: &'static [Values],
    /// Whether the tensors are all there is, so that a worker of the user's can compute it, too: no weights drawn from the seed, and
    /// nothing carried from call to call.
    pub for_workers: bool,
}

impl Cases {
    /// For an op that takes any values and needs nothing beside its tensors.
    pub const fn new(sizes_max: &'static [usize]) -> Self {
        let (device_sizes_max, huge) = (sizes_max, &[]);
        Self { sizes_max, device_sizes_max, row_axis: None, huge, values: Values::COMMON, for_workers: true }
    }

    /// For an op that takes exponentials, too.
    pub(crate) const fn with_exponentials(self) -> Self {
        Self { values: Values::ALL, ..self }
    }

    /// For an op whose kernels sum or scan along an axis, on a device up to these sizes.
    pub(crate) const fn with_rows(self, axis: usize, device_sizes_max: &'static [usize]) -> Self {
        Self { row_axis: Some(axis), device_sizes_max, ..self }
    }

    /// Also these shapes, whose products of sizes pass 2^31.
    pub(crate) const fn with_huge(self, huge: &'static [&'static [usize]]) -> Self {
        Self { huge, ..self }
    }

    /// For an op that only holdpoint's own workers implement.
    pub(crate) const fn builtin_only(self) -> Self {
        Self { for_workers: false, ..self }
    }

    /// For an op that chooses by its values: no ties, NaN or infinities, since the choice is undefined then.
    pub(crate) const fn without_ties(self) -> Self {
        Self { values: &[Values::Uniform, Values::Tiny], ..self }
    }
}

/// Upper limits on the size of a case.
#[derive(Clone, Copy, Debug)]
pub struct CaseLimits {
    /// Steps of the oracle: multiply-adds of one product of attention; of a declared op the product of its sizes.
    pub operations: usize,
    pub elements: usize,
}

/// The random source and the limits that a case is drawn with.
pub struct Draw<'a> {
    /// Absent for a user's own worker.
    pub backend: Option<Backend>,
    pub limits: CaseLimits,
    /// The axis that is large, and its size.
    pub large: Option<(usize, usize)>,
    /// Lengths of tiles and parts that the kernel's source or the tuner names.
    pub boundaries: &'a [usize],
    pub random: &'a mut Random,
}

impl Draw<'_> {
    /// A number in `0..count`.
    pub fn below(&mut self, count: usize) -> usize {
        self.random.below(count)
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.below(of.len())]
    }

    /// A size that is seldom round.
    pub fn size(&mut self, most: usize) -> usize {
        let most = most.max(1);
        if !self.boundaries.is_empty() && self.below(8) == 0 {
            let boundary = self.pick(self.boundaries);
            let drawn = boundary * (1 + self.below((most / boundary).clamp(1, 4))) + self.below(3) - 1;
            return if (1..=most).contains(&drawn) { drawn } else { 1 + self.below(most) };
        }
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

    /// The size of an op that takes a list.
    pub fn count(&mut self) -> usize {
        match self.large {
            Some((_, size)) => size,
            None => self.size(self.limits.elements),
        }
    }

    /// Sets the large axis, and shrinks the others until the case is cheap enough.
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

    /// The same, limited by the elements of the main input.
    pub(crate) fn stretch_elements(&self, sizes: &mut [usize]) {
        self.stretch(sizes, |sizes| sizes.iter().product::<usize>() > self.limits.elements);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn sizes_are_tiny_prime_and_beside_powers_of_two() {
        let limits = CaseLimits { operations: 1, elements: 1 };
        let mut draw =
            Draw { backend: None, limits, large: None, boundaries: &[], random: &mut Random::new(2) };
        let sizes: BTreeSet<usize> = (0..2000).map(|_| draw.size(300)).collect();
        assert!([1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 129, 131, 257].iter().all(|n| sizes.contains(n)));
        assert!(sizes.iter().all(|&n| (1..=300).contains(&n)));
    }

    #[test]
    fn sizes_lie_beside_the_lengths_that_a_kernel_names() {
        let limits = CaseLimits { operations: 1, elements: 1 };
        let mut draw =
            Draw { backend: None, limits, large: None, boundaries: &[88], random: &mut Random::new(2) };
        let sizes: BTreeSet<usize> = (0..2000).map(|_| draw.size(300)).collect();
        assert!([87, 88, 89, 175, 176, 177, 263, 264, 265].iter().all(|n| sizes.contains(n)), "{sizes:?}");
        assert!(sizes.iter().all(|&n| (1..=300).contains(&n)));
    }
}
