//! Measures commits until one is left that is slower than the good one, while the one before it is not.

use super::candidates::{Candidates, Effort};
use super::{BisectRequest, info, keep_only, short};
use crate::Watch;
use crate::ab::compare::OngoingComparison;
use crate::ab::sides::{self, PreparedSides, Purpose};
use crate::error::FlowError;
use holdpoint_gate::{Judgement, Policy, bisect_step, half_of_change};
use holdpoint_measure::ReadySuite;
use holdpoint_measure::ab::Sides;
use holdpoint_measure::builds::{Builds, Built};
use holdpoint_model::{
    AbPlan, BisectStep, Bisection, Check, CommitInfo, Revision, Side, StepOutcome, Suite, Verdict,
};
use holdpoint_process::git::Commit;
use std::path::Path;
use std::time::Instant;

/// Share of the budget of a short effort. A commit is as fast as `good` or as slow as `bad`, twice as far from the line as the
/// budget provides for.
const SHORT_EFFORT: f64 = 1.0 / 3.0;

pub struct Search<'a> {
    pub request: &'a BisectRequest,
    pub watch: &'a dyn Watch,
    pub builds: &'a Builds,
    pub suite: Suite,
    pub good_built: Built,
    pub bisection: Bisection,
    /// Written after each step.
    pub path: &'a Path,
}

impl Search<'_> {
    pub fn run(&mut self, commits: &[Commit]) -> Result<(), FlowError> {
        let Some(bad) = commits.last() else { return Ok(()) };
        if self.bisection.line.is_none() {
            // Of a first step that did not decide.
            self.bisection.steps.clear();
            self.measure_change(bad)?;
        }
        let Some(line) = self.bisection.line else { return Ok(()) };
        let mut candidates = self.replay(commits);
        while let Some((at, effort)) = candidates.next() {
            if self.watch.is_interrupted() {
                break;
            }
            self.show_progress(&candidates);
            let Some(outcome) = self.step(&commits[at], line, effort)? else { break };
            candidates.note(at, outcome, effort);
        }
        self.bisection.culprits = commits[candidates.range()].iter().map(info).collect();
        self.save()?;
        match self.bisection.culprits.as_slice() {
            [_] if !self.watch.is_interrupted() => self.confirm(commits, *candidates.range().start(), line),
            _ => Ok(()),
        }
    }

    /// The first step: by how much `bad` is slower than `good`, and so where the line for all others lies.
    fn measure_change(&mut self, bad: &Commit) -> Result<(), FlowError> {
        let start = Instant::now();
        let Some((built, suite)) = self.build_step(bad, start)? else { return Ok(()) };
        let mut plan = self.request.decision.plan(&self.suite.gate, Policy::Sequential);
        let good = self.good()?;
        let prepared = self.prepare((&self.bisection.good, good), (&info(bad), (suite, built.clone())));
        let mut comparison = OngoingComparison::new(&prepared, plan.clone(), Policy::Sequential)?;
        comparison.measure(None, self.watch);
        let mut judgement = comparison.judge()?;
        let outcome = bisect_step(&judgement);
        let slowest = slowest(&judgement).map(|check| check.name().to_owned());
        let tolerance = slowest.as_deref().map_or(plan.tolerance, |name| plan.tolerance_of(name));
        if let (StepOutcome::Slower, Some(name)) = (outcome, &slowest)
            && let Some(line) = line(&judgement, name, tolerance)
        {
            // Until `bad` is beyond the line as well, half of the change is not well known.
            plan.tolerances.insert(name.clone(), line);
            comparison = comparison.ask(plan.clone())?;
            comparison.measure(None, self.watch);
            judgement = comparison.judge()?;
            self.bisection.line = self::line(&judgement, name, tolerance);
            self.bisection.workload = Some(name.clone());
        }
        self.builds.release(&built);
        if self.watch.is_interrupted() {
            (self.bisection.line, self.bisection.workload) = (None, None);
            return Ok(());
        }
        let check = slowest.as_deref().and_then(|name| find(&judgement, name)).or(worst(&judgement));
        self.keep(step(bad, outcome, check, [tolerance, plan.budget_s], start))?;
        slowest.map_or(Ok(()), |name| keep_only(&mut self.suite, &name))
    }

    /// Outcome of each commit by the steps so far.
    fn replay(&self, commits: &[Commit]) -> Candidates {
        let mut candidates = Candidates::new(commits.len());
        let budget_s = self.plan(0.0, Effort::Whole).budget_s;
        for step in self.bisection.steps.iter().skip(1) {
            let is_whole = step.budget_s.is_some_and(|given_s| given_s >= budget_s);
            let effort = if is_whole { Effort::Whole } else { Effort::Short };
            if let Some(at) = commits.iter().position(|commit| commit.hash == step.commit.commit) {
                candidates.note(at, step.outcome, effort);
            }
        }
        candidates
    }

    /// Compares a commit with the good one. None if it was interrupted.
    fn step(&mut self, commit: &Commit, line: f64, effort: Effort) -> Result<Option<StepOutcome>, FlowError> {
        let start = Instant::now();
        let Some((built, suite)) = self.build_step(commit, start)? else {
            return Ok(Some(StepOutcome::NotBuilt));
        };
        let plan = self.plan(line, effort);
        let budget_s = plan.budget_s;
        let good = self.good()?;
        let prepared = self.prepare((&self.bisection.good, good), (&info(commit), (suite, built.clone())));
        let mut comparison = OngoingComparison::new(&prepared, plan, Policy::Sequential)?;
        comparison.measure(None, self.watch);
        let judgement = comparison.judge()?;
        self.builds.release(&built);
        if self.watch.is_interrupted() {
            return Ok(None);
        }
        let outcome = bisect_step(&judgement);
        self.keep(step(commit, outcome, worst(&judgement), [line, budget_s], start))?;
        Ok(Some(outcome))
    }

    /// Builds a commit that is to be measured, and asks for its benchmarks. None if one of these fails, which is a step.
    fn build_step(
        &mut self,
        commit: &Commit,
        start: Instant,
    ) -> Result<Option<(Built, ReadySuite)>, FlowError> {
        let built = sides::build(self.builds, &commit.hash, &self.suite, Purpose::Search, self.watch);
        let reason = match built {
            Ok(mut built) => match sides::listed(self.builds, &mut built, &self.suite) {
                Ok(suite) => return Ok(Some((built, suite))),
                Err(FlowError::Input(reason)) if !self.watch.is_interrupted() => {
                    self.builds.release(&built);
                    reason
                }
                Err(error) => return Err(error),
            },
            Err(error) if error.is_of_one_revision() && !self.watch.is_interrupted() => error.to_string(),
            Err(error) => return Err(error.into()),
        };
        self.keep(BisectStep {
            commit: info(commit),
            outcome: StepOutcome::NotBuilt,
            line: None,
            budget_s: None,
            ratio: None,
            ratio_interval: None,
            reason,
            seconds: start.elapsed().as_secs_f64(),
        })?;
        Ok(None)
    }

    /// The good revision, to be measured again.
    fn good(&mut self) -> Result<(ReadySuite, Built), FlowError> {
        // Its inventory is taken again when it has listed its benchmarks: what others wrote there must not become part of it.
        self.check(&self.good_built, "other commits were built and measured")?;
        let suite = sides::listed(self.builds, &mut self.good_built, &self.suite)?;
        Ok((suite, self.good_built.clone()))
    }

    /// Each of the builds may have been measured before.
    fn check(&self, built: &Built, meanwhile: &str) -> Result<(), FlowError> {
        Ok(self.builds.check_measured(built, &self.suite.gate.ignore_files, meanwhile)?)
    }

    /// Compares the culprit with the commit before it, both built from nothing.
    fn confirm(&mut self, commits: &[Commit], at: usize, line: f64) -> Result<(), FlowError> {
        let before =
            at.checked_sub(1).map_or_else(|| self.bisection.good.clone(), |before| info(&commits[before]));
        let culprit = info(&commits[at]);
        let build =
            |commit: &str| sides::build(self.builds, commit, &self.suite, Purpose::Verdict, self.watch);
        let [mut from, mut to] = match (build(&before.commit), build(&culprit.commit)) {
            (Ok(from), Ok(to)) => [from, to],
            (Err(error), _) | (_, Err(error)) if error.is_of_one_revision() => {
                self.bisection.notes.push(format!("not compared with the commit before it: {error}"));
                return Ok(());
            }
            (Err(error), _) | (_, Err(error)) => return Err(error.into()),
        };
        self.check(&from, &format!("{} was built", short(&culprit.commit)))?;
        let from_suite = sides::listed(self.builds, &mut from, &self.suite)?;
        self.check(&to, &format!("{} listed its benchmarks", short(&before.commit)))?;
        let to_suite = sides::listed(self.builds, &mut to, &self.suite)?;
        self.check(&from, &format!("{} listed its benchmarks", short(&culprit.commit)))?;
        let prepared = self.prepare((&before, (from_suite, from)), (&culprit, (to_suite, to)));
        self.watch.progress(&format!("comparing {} with the commit before it", short(&culprit.commit)));
        let mut comparison =
            OngoingComparison::new(&prepared, self.plan(line, Effort::Whole), Policy::Sequential)?;
        comparison.measure(None, self.watch);
        if !self.watch.is_interrupted() {
            let judgement = comparison.judge()?;
            let evidence = comparison.report;
            (self.bisection.evidence, self.bisection.judgement) =
                (Some(evidence), Some(judgement.into_stated()));
        }
        Ok(())
    }

    fn plan(&self, line: f64, effort: Effort) -> AbPlan {
        let plan = self.request.decision.plan(&self.suite.gate, Policy::Sequential);
        let share = if effort == Effort::Short { SHORT_EFFORT } else { 1.0 };
        // It asks what is slower: how much faster a commit is does not matter.
        let speedup_max = Some(f64::MAX);
        let budget_s = plan.budget_s * share;
        AbPlan { tolerance: line, tolerances: Default::default(), speedup_max, budget_s, ..plan }
    }

    fn prepare(
        &self,
        (base, (base_suite, base_built)): (&CommitInfo, (ReadySuite, Built)),
        (head, (head_suite, head_built)): (&CommitInfo, (ReadySuite, Built)),
    ) -> PreparedSides {
        let side = |commit: &CommitInfo| Side {
            label: commit.subject.clone(),
            revision: Some(Revision { commit: commit.commit.clone(), dirty: false }),
            ..Side::default()
        };
        let sides = Sides {
            base: base_suite,
            head: head_suite,
            pin: self.request.decision.pin(&self.suite.gate),
            measure_same_code: self.request.decision.measure_same_code(&self.suite.gate),
        };
        let inventories = [base_built.inventory, head_built.inventory];
        PreparedSides { inventories, ..PreparedSides::new(sides, side(base), side(head)) }
    }

    fn keep(&mut self, step: BisectStep) -> Result<(), FlowError> {
        let (commit, outcome) = (&step.commit, step.outcome.as_str());
        self.watch.note(&format!("{}  {outcome}  {}", short(&commit.commit), commit.subject));
        self.bisection.steps.push(step);
        self.save()
    }

    fn save(&self) -> Result<(), FlowError> {
        crate::evidence::save(self.path, &self.bisection)
    }

    /// Steps left, the comparison at the end included, and the time that they will take if they take as long as those so far.
    fn show_progress(&self, candidates: &Candidates) {
        let (steps, left) = (&self.bisection.steps, candidates.steps_left() + 1);
        let spent_s: f64 = steps.iter().map(|step| step.seconds).sum();
        let left_s = spent_s / steps.len().max(1) as f64 * f64::from(left);
        let commits_count = candidates.range().count();
        self.watch.progress(&format!(
            "{commits_count} commits in question: {left} steps left, about {left_s:.0} s"
        ));
    }
}

fn step(
    commit: &Commit,
    outcome: StepOutcome,
    check: Option<&Check>,
    [line, budget_s]: [f64; 2],
    start: Instant,
) -> BisectStep {
    let evidence = check.and_then(Check::evidence);
    BisectStep {
        commit: info(commit),
        outcome,
        line: Some(line),
        budget_s: Some(budget_s),
        ratio: evidence.map(|evidence| evidence.ratio),
        ratio_interval: evidence.and_then(|evidence| evidence.ratio_interval),
        reason: check.map(|check| check.reason.clone()).unwrap_or_default(),
        seconds: start.elapsed().as_secs_f64(),
    }
}

/// Half of the change of a workload, or the tolerance if that is more.
fn line(judgement: &Judgement, workload: &str, tolerance: f64) -> Option<f64> {
    let ratio = find(judgement, workload)?.evidence()?.ratio;
    Some(half_of_change(ratio).max(tolerance))
}

fn find<'a>(judgement: &'a Judgement, workload: &str) -> Option<&'a Check> {
    judgement.checks.iter().find(|check| check.name() == workload)
}

/// The workload that became slowest, of those that are slower.
fn slowest(judgement: &Judgement) -> Option<&Check> {
    let slower = judgement.checks.iter().filter(|check| check.verdict == Verdict::Regressed);
    let change = |check: &&Check| check.regression_ratio.unwrap_or(0.0);
    slower.max_by(|a, b| change(a).total_cmp(&change(b)))
}

fn worst(judgement: &Judgement) -> Option<&Check> {
    slowest(judgement).or_else(|| judgement.checks.iter().max_by_key(|check| check.verdict))
}
