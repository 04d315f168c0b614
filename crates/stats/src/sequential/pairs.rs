//! How many pairs of processes say the same.

use super::Evidence;

/// Pairs of processes that must say so before head is called slower or faster. If one in ten is off by more than the tolerance in one
/// direction, three in a row are one in a thousand.
pub const PAIRS_LEAST: u32 = 3;

/// What pairs of processes say of a line, each by most of its units; and the evidence in the first unit of each, which no other unit
/// of its pair repeats.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pairs {
    /// Before the present pair: all, and those that lie beyond the line.
    earlier: u32,
    earlier_beyond: u32,
    units: u32,
    beyond: u32,
    of_each: Evidence,
}

impl Pairs {
    /// One more unit, of a fresh pair or of the last one's, so far beyond the line.
    pub(super) fn push(&mut self, is_fresh: bool, distance: f64, scale: f64) {
        if is_fresh {
            (self.earlier_beyond, self.earlier) = (self.count(), self.earlier + u32::from(self.units > 0));
            (self.units, self.beyond) = (0, 0);
            self.of_each.push(distance, scale);
        }
        self.units += 1;
        self.beyond += u32::from(distance > 0.0);
    }

    /// Those that lie beyond the line.
    pub(super) fn count(&self) -> u32 {
        self.earlier_beyond + u32::from(2 * self.beyond > self.units)
    }

    /// Whether some lie beyond the line and others do not: then what sticks to a process matters more than what its units tell.
    pub(super) fn differ(&self) -> bool {
        (1..self.earlier + u32::from(self.units > 0)).contains(&self.count())
    }

    /// The evidence of all units, or of one of each pair where pairs differ and that is less.
    pub(super) fn e(&self, units: &Evidence) -> f64 {
        if self.differ() { units.e().min(self.of_each.e()) } else { units.e() }
    }

    /// Whether that is enough.
    pub(super) fn reach(&self, units: &Evidence, needed: f64) -> bool {
        units.reaches(needed) && (!self.differ() || self.of_each.reaches(needed))
    }
}

#[cfg(test)]
mod tests {
    use super::{Evidence, Pairs};

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
            pairs.push(is_fresh, if is_beyond { 0.01 } else { -0.01 }, 0.01);
            counts.push(pairs.count());
        }
        assert_eq!(counts, [1, 1, 1, 1, 1, 2, 3]);
    }

    #[test]
    fn where_pairs_differ_each_counts_once() {
        let (mut pairs, mut units) = (Pairs::default(), Evidence::default());
        let mut push = |pairs: &mut Pairs, is_fresh: bool, distance: f64| {
            units.push(distance, 0.01);
            pairs.push(is_fresh, distance, 0.01);
            [pairs.e(&units), units.e()]
        };
        for at in 0..24 {
            let [of_pairs, of_units] = push(&mut pairs, at % 8 == 0, 0.01);
            assert_eq!(of_pairs, of_units, "all say the same");
        }
        assert!(!pairs.differ());
        push(&mut pairs, true, -0.01);
        assert!(pairs.differ());
        for at in 0..80 {
            let [of_pairs, of_units] = push(&mut pairs, at % 8 == 0, 0.01);
            assert!(of_pairs < of_units / 10.0 || at < 8, "{at}: {of_pairs} of {of_units}");
        }
        assert!(!pairs.reach(&units, 1000.0) && units.e() > 1000.0);
    }
}
