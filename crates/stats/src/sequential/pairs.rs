//! How many pairs of processes say the same.

/// Pairs of processes that must say so before head is called slower or faster. If one in ten is off by more than the tolerance in one
/// direction, three in a row are one in a thousand.
pub const PAIRS_LEAST: u32 = 3;

/// Pairs most of whose units lie beyond a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pairs {
    earlier: u32,
    units: u32,
    beyond: u32,
}

impl Pairs {
    /// One more unit, of a fresh pair or of the last one's.
    pub(super) fn push(&mut self, is_fresh: bool, is_beyond: bool) {
        if is_fresh {
            *self = Self { earlier: self.count(), ..Self::default() };
        }
        self.units += 1;
        self.beyond += u32::from(is_beyond);
    }

    pub(super) fn count(&self) -> u32 {
        self.earlier + u32::from(2 * self.beyond > self.units)
    }
}

#[cfg(test)]
mod tests {
    use super::Pairs;

    #[test]
    fn a_pair_counts_once_and_only_while_most_of_its_units_are_beyond() {
        let mut pairs = Pairs::default();
        let mut counts = Vec::new();
        for (is_fresh, is_beyond) in [
            (true, true),
            (false, true),
            (false, false),
            (true, false),
            (false, true),
            (false, true),
            (true, true),
        ] {
            pairs.push(is_fresh, is_beyond);
            counts.push(pairs.count());
        }
        assert_eq!(counts, [1, 1, 1, 1, 1, 2, 3]);
    }
}
