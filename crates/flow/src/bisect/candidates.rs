//! The commits that are still in question, and which of them to look at next. Measures nothing.

use holdpoint_model::StepOutcome;

/// Undecided commits that are gone around; the next one is given the whole budget.
const GONE_AROUND_MAX: usize = 1;
/// Commits left undecided by the whole budget after which the search ends: this machine cannot tell, whatever the commit.
const IN_VAIN_MAX: usize = 4;

/// How much time a commit is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// A part of the budget: enough for a commit that is as slow as `bad` or as fast as `good`.
    Short,
    /// All of the budget.
    Whole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tried {
    Not,
    /// Undecided after a short effort.
    Short,
    /// It cannot be told.
    InVain,
}

/// The commits from the oldest to `bad`.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// The commit before this one is not slower.
    low: usize,
    /// This one is slower.
    high: usize,
    tried: Vec<Tried>,
    in_vain_count: usize,
}

impl Candidates {
    /// The last of all commits is known to be slower.
    pub fn new(commits_count: usize) -> Self {
        let high = commits_count.saturating_sub(1);
        Self { low: 0, high, tried: vec![Tried::Not; commits_count], in_vain_count: 0 }
    }

    /// The first commit that is slower is among these.
    pub fn range(&self) -> std::ops::RangeInclusive<usize> {
        self.low..=self.high
    }

    /// The commit to look at next; none if there is nothing left to find out.
    pub fn next(&self) -> Option<(usize, Effort)> {
        if self.in_vain_count >= IN_VAIN_MAX {
            return None;
        }
        let gone_around = (self.low..self.high).filter(|at| self.tried[*at] == Tried::Short).count();
        let fresh = self.nearest_to_middle(Tried::Not).filter(|_| gone_around <= GONE_AROUND_MAX);
        let whole = || Some((self.nearest_to_middle(Tried::Short)?, Effort::Whole));
        fresh.map(|at| (at, Effort::Short)).or_else(whole)
    }

    /// Takes in what was found about a commit.
    pub fn note(&mut self, at: usize, outcome: StepOutcome, effort: Effort) {
        match (outcome, effort) {
            (StepOutcome::Slower, _) => self.high = at,
            (StepOutcome::NotSlower, _) => self.low = at + 1,
            (StepOutcome::Undecided, Effort::Short) => self.tried[at] = Tried::Short,
            (StepOutcome::Undecided, Effort::Whole) => {
                self.tried[at] = Tried::InVain;
                self.in_vain_count += 1;
            }
            (StepOutcome::NotBuilt | StepOutcome::Broken, _) => self.tried[at] = Tried::InVain,
        }
    }

    /// Steps until one commit is left, if each of them is decided.
    pub(crate) fn steps_left(&self) -> u32 {
        (self.high - self.low + 1).next_power_of_two().ilog2()
    }

    /// `high` itself is known to be slower.
    fn nearest_to_middle(&self, tried: Tried) -> Option<usize> {
        let middle = (self.low + self.high) / 2;
        (self.low..self.high).filter(|at| self.tried[*at] == tried).min_by_key(|at| at.abs_diff(middle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a line of commits; the outcomes of each by effort. Returns the steps and what is left.
    fn search(
        count: usize,
        outcome: impl Fn(usize, Effort) -> StepOutcome,
    ) -> (Vec<(usize, Effort)>, Vec<usize>) {
        let mut candidates = Candidates::new(count);
        let mut steps = Vec::new();
        while let Some((at, effort)) = candidates.next() {
            candidates.note(at, outcome(at, effort), effort);
            steps.push((at, effort));
        }
        (steps, candidates.range().collect())
    }

    fn slower_from(first: usize) -> impl Fn(usize) -> StepOutcome {
        move |at| if at >= first { StepOutcome::Slower } else { StepOutcome::NotSlower }
    }

    #[test]
    fn every_culprit_among_two_hundred_is_found_in_eight_short_steps() {
        for culprit in 0..200 {
            let (steps, left) = search(200, |at, _| slower_from(culprit)(at));
            assert_eq!(left, [culprit]);
            assert!(steps.len() <= 8 && steps.iter().all(|(_, effort)| *effort == Effort::Short));
        }
        assert_eq!(Candidates::new(200).steps_left(), 8);
        assert_eq!((Candidates::new(1).steps_left(), Candidates::new(1).next()), (0, None));
    }

    #[test]
    fn an_undecided_commit_is_gone_around_and_looked_at_again_only_where_it_matters() {
        // Number 3 is in the middle of eight, but the culprit is elsewhere.
        let outcome = |at: usize, _| if at == 3 { StepOutcome::Undecided } else { slower_from(6)(at) };
        let (steps, left) = search(8, outcome);
        assert_eq!(left, [6]);
        assert_eq!(steps.iter().filter(|(at, _)| *at == 3).count(), 1);
        // Here it is the culprit itself, and more time tells.
        let outcome = |at: usize, effort| match (at, effort) {
            (3, Effort::Short) => StepOutcome::Undecided,
            _ => slower_from(3)(at),
        };
        let (steps, left) = search(8, outcome);
        assert_eq!((left, steps.last()), (vec![3], Some(&(3, Effort::Whole))));
    }

    #[test]
    fn the_search_goes_around_what_does_not_build() {
        let outcome = |at: usize, _| match at {
            2..=4 => StepOutcome::NotBuilt,
            _ => slower_from(4)(at),
        };
        assert_eq!(search(8, outcome).1, [2, 3, 4, 5]);
    }

    #[test]
    fn a_machine_that_decides_nothing_ends_the_search() {
        let (steps, left) = search(1000, |_, _| StepOutcome::Undecided);
        assert_eq!(steps.iter().filter(|(_, effort)| *effort == Effort::Whole).count(), IN_VAIN_MAX);
        assert!(steps.len() <= 2 * IN_VAIN_MAX + GONE_AROUND_MAX && left.len() == 1000);
    }
}
