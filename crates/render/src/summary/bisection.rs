//! A search for a slow commit, in words and cells.

use crate::judged::Judged;
use crate::paint::Ink;
use crate::table::{Cell, Grid, names, numbers, words};
use crate::units;
use holdpoint_model::{BisectStep, Bisection, Check, CommitInfo, Source, StepOutcome, Verdict};

/// Most commits that a sentence names.
const NAMED_MAX: usize = 8;

pub(crate) fn steps_table(b: &Bisection) -> Grid {
    let mut grid = Grid::new(&[
        words("found"),
        words("commit"),
        names("subject"),
        numbers("change"),
        numbers("interval").drop(1),
        numbers("line").drop(3),
        numbers("seconds").drop(2),
    ]);
    for step in &b.steps {
        let ink = match step.outcome {
            StepOutcome::Slower => Ink::Bad,
            StepOutcome::NotSlower => Ink::Calm,
            _ => Ink::Doubt,
        };
        let interval = step.ratio_interval.map(|[low, high]| units::percent_interval(low - 1.0, high - 1.0));
        grid.push([
            Cell::inked(ink, step.outcome.as_str()),
            Cell::name(short(&step.commit)),
            Cell::new(&step.commit.subject),
            Cell::number(step.ratio.map(|ratio| ratio - 1.0), units::percent),
            Cell::new(interval.as_deref().unwrap_or(units::MISSING)),
            Cell::number(step.line, units::share),
            Cell::new(&units::seconds(step.seconds)),
        ]);
    }
    grid
}

/// A commit that is slower than the line while the commit before it is not, after both were compared.
fn describe_culprit(culprit: &str, workload: &str, check: Option<&Check>) -> (&'static str, String) {
    let change = check.and_then(|check| check.regression_ratio);
    let has_verdict = |of: &[Verdict]| check.is_some_and(|check| of.contains(&check.verdict));
    if has_verdict(&[Verdict::Regressed]) {
        let by = change.map_or_else(String::new, |change| format!(" by {}", units::share(change)));
        ("found", format!("{culprit} slowed {workload}{by}"))
    } else if has_verdict(&[Verdict::Pass, Verdict::Improved]) {
        let change = units::number(change, units::percent);
        let sentence = format!(
            "{workload} passes half of its change at {culprit}, which is only {change} itself: several commits share the \
             change, or builds from nothing do not have it"
        );
        ("spread", sentence)
    } else {
        let sentence = format!(
            "{workload} became slower at {culprit}, but comparing that with the commit before it did not decide; raise \
             --budget and --resume"
        );
        ("unconfirmed", sentence)
    }
}

/// First digits of the hash.
pub(crate) fn short(commit: &CommitInfo) -> &str {
    commit.commit.get(..12).unwrap_or(&commit.commit)
}

/// The steps that could not be used, and why.
pub(crate) fn left_out(b: &Bisection) -> impl Iterator<Item = &BisectStep> {
    b.steps.iter().filter(|step| !matches!(step.outcome, StepOutcome::Slower | StepOutcome::NotSlower))
}

/// The culprit against the commit before it.
pub(crate) fn judged(b: &Bisection) -> Option<Judged<'_>> {
    Some(Judged::new(b.judgement.as_ref()?, b.evidence.as_ref().map(Source::Sides)))
}

/// The word and the sentence that say how it came out.
pub(crate) fn describe_bisection(b: &Bisection) -> (&'static str, String) {
    let tolerance = units::setting(b.tolerance);
    let workload = b.workload.as_deref().unwrap_or("a workload");
    match (b.culprits.as_slice(), b.steps.first().map(|step| step.outcome)) {
        ([culprit], _) => {
            let of_workload = |check: &&Check| check.workload.as_deref() == Some(workload);
            let check = b.judgement.as_ref().and_then(|j| j.checks.iter().find(of_workload));
            describe_culprit(&format!("{} {}", short(culprit), culprit.subject), workload, check)
        }
        ([_, ..], _) => {
            let mut names: Vec<&str> = b.culprits.iter().map(short).take(NAMED_MAX).collect();
            let more = b.culprits.len() - names.len();
            let more = format!("{more} more");
            if b.culprits.len() > NAMED_MAX {
                names.push(&more);
            }
            let sentence = format!(
                "one of {} slowed {workload}; the others could not be decided, raise --budget and --resume",
                names.join(", ")
            );
            ("narrowed", sentence)
        }
        ([], Some(StepOutcome::NotSlower)) => (
            "nothing",
            format!("{} is not slower than {} by more than {tolerance}", short(&b.bad), short(&b.good)),
        ),
        ([], Some(StepOutcome::NotBuilt)) => ("not built", format!("{} does not build", short(&b.bad))),
        ([], Some(StepOutcome::Broken)) => ("broken", format!("{} fails when run", short(&b.bad))),
        ([], _) => ("undecided", format!("whether {} is slower could not be decided", short(&b.bad))),
    }
}
