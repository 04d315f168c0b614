//! The base of a verdict over times: its revisions, and why it may prove nothing about a release.

use holdpoint_model::{Baseline, Revision, Side};

/// Every revision behind a base. A side has one; a baseline has one per run and one that was promoted.
#[derive(Clone, Debug, Default)]
pub(super) struct Base {
    revisions: Vec<Option<Revision>>,
}

impl Base {
    pub(super) fn of_side(side: &Side) -> Self {
        Self { revisions: vec![side.revision.clone()] }
    }

    pub(super) fn of_baseline(baseline: &Baseline) -> Self {
        let promoted = baseline.promoted.iter().map(|promoted| {
            // Only clean runs are promoted.
            Some(Revision { commit: promoted.commit.clone(), dirty: false })
        });
        let runs = baseline.runs.iter().map(|run| run.revision.clone());
        Self { revisions: promoted.chain(runs).collect() }
    }

    /// The revision to show.
    pub(super) fn revision(&self) -> Option<Revision> {
        self.revisions.iter().flatten().next().cloned()
    }

    /// Why comparing this head with it proves nothing about a release.
    pub(super) fn problem(&self, head: Option<&str>) -> Option<String> {
        let known: Vec<&Revision> = self.revisions.iter().flatten().collect();
        let first = known.first().map(|revision| revision.commit.as_str());
        match first {
            _ if known.iter().any(|revision| Some(revision.commit.as_str()) == head) => {
                Some("base and head are the same commit".to_owned())
            }
            None => Some("the commit of the base is not known".to_owned()),
            Some(_) if known.len() < self.revisions.len() => {
                Some("the commit of some runs of the base is not known".to_owned())
            }
            Some(_) if known.iter().any(|revision| revision.dirty) => {
                Some("the base had uncommitted changes".to_owned())
            }
            Some(first) => known.iter().find(|revision| revision.commit != first).map(|other| {
                format!("the base was measured at more than one commit ({first} and {})", other.commit)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(revisions: &[Option<(&str, bool)>]) -> Base {
        let revision = |(commit, dirty): (&str, bool)| Revision { commit: commit.to_owned(), dirty };
        Base { revisions: revisions.iter().map(|known| known.map(revision)).collect() }
    }

    #[test]
    fn a_base_that_shows_nothing_says_why() {
        let (a, b) = (Some(("a", false)), Some(("b", false)));
        assert_eq!(base(&[a, a]).problem(Some("head")), None);
        for (revisions, words) in [
            (vec![Some(("head", false))], "the same commit"),
            (vec![a, a, Some(("head", true))], "the same commit"),
            (vec![], "is not known"),
            (vec![None], "is not known"),
            (vec![a, None], "some runs"),
            (vec![a, Some(("a", true))], "uncommitted changes"),
            (vec![a, b], "more than one commit (a and b)"),
        ] {
            let problem = base(&revisions).problem(Some("head")).unwrap_or_default();
            assert!(problem.contains(words), "{words}: {problem}");
        }
    }
}
