//! `holdpoint bisect`: find the commit that slowed a workload.

use crate::Watch;
use crate::ab::compare::Comparison;
use crate::ab::sides::{self, Prepared};
use crate::done::Done;
use crate::error::FlowError;
use crate::options::BisectArgs;
use crate::support::artifacts;
use holdpoint_gate::{HasExitCode, Policy};
use holdpoint_measure::ab::Sides;
use holdpoint_measure::builds::{Builds, Built, Commit};
use holdpoint_measure::clock;
use holdpoint_model::suite::Metrics;
use holdpoint_model::{
    AbReport, BisectStep, Bisection, Check, CommitInfo, Judgement, Revision, SCHEMA_VERSION, Side,
    StepOutcome, Suite, Verdict,
};
use holdpoint_render::markdown;
use std::path::Path;
use std::time::Instant;

pub fn run(args: &BisectArgs, watch: &dyn Watch) -> Result<Done<Bisection>, FlowError> {
    let mut suite = sides::revision_suite(&args.suite)?;
    // The hunt is for time.
    suite.workloads.iter_mut().for_each(|workload| workload.metrics = Metrics::default());
    if let Some(name) = &args.workload {
        keep_only(&mut suite, name)?;
    }
    let path = args.artifacts.join("bisect.json");
    let _lock = artifacts::lock(&args.artifacts, watch)?;
    holdpoint_store::check_writable(&path)?;
    let builds = Builds::open(Path::new("."))?.in_folder(suite.dir.as_deref());
    let commits = builds.between(&args.good, &args.bad)?;
    let good = builds.describe(&args.good)?;
    let bad = builds.describe(&args.bad)?;
    watch.keep_on_interrupt();
    let good_built = sides::build(&builds, &good.hash, &suite, watch)?;
    let bisection = Bisection {
        schema_version: SCHEMA_VERSION,
        suite: suite.name.clone(),
        timestamp_utc: clock::timestamp_utc(),
        workload: None,
        tolerance: args.decide.plan(&suite.gate).tolerance,
        good: info(&good),
        bad: info(&bad),
        steps: Vec::new(),
        culprits: Vec::new(),
        evidence: None,
        judgement: None,
    };
    let mut search = Search { args, watch, builds: &builds, suite, good_built, bisection };
    search.run(&commits)?;
    let bisection = search.bisection;
    crate::support::save(&path, &bisection)?;
    holdpoint_store::write_text(&args.artifacts.join("bisect.md"), &markdown::bisection(&bisection))?;
    let exit = bisection.exit_code();
    Ok(Done::new(bisection, exit).with_note(format!("evidence: {}", path.display())))
}

fn keep_only(suite: &mut Suite, name: &str) -> Result<(), FlowError> {
    let names: Vec<String> = suite.workloads.iter().map(|workload| workload.name.clone()).collect();
    suite.workloads.retain(|workload| workload.name == name);
    if suite.workloads.is_empty() {
        let names = names.join(", ");
        return Err(FlowError::Input(format!(
            "suite {:?} has no workload {name:?}; it has {names}",
            suite.name
        )));
    }
    Ok(())
}

struct Search<'a> {
    args: &'a BisectArgs,
    watch: &'a dyn Watch,
    builds: &'a Builds,
    suite: Suite,
    good_built: Built,
    bisection: Bisection,
}

impl Search<'_> {
    /// Halves the commits until one is left that is slower than the good one, while the one before it is not.
    fn run(&mut self, commits: &[Commit]) -> Result<(), FlowError> {
        let Some(last) = commits.len().checked_sub(1) else { return Ok(()) };
        let (first, found) = self.step(&commits[last])?;
        let (StepOutcome::Slower, Some(found)) = (first, found) else { return Ok(()) };
        let workload = slowest(&found.1)
            .map(str::to_owned)
            .ok_or_else(|| FlowError::Internal("no workload is slower".to_owned()))?;
        keep_only(&mut self.suite, &workload)?;
        self.bisection.workload = Some(workload);
        // The commit before `low` is not slower, `high` is; those in `left_out` cannot be told.
        let (mut low, mut high) = (0, last);
        let mut left_out = vec![false; commits.len()];
        let mut before: Option<usize> = None;
        let mut slower = found;
        while let Some(middle) = nearest_to_middle(low, high, &left_out) {
            if self.watch.is_interrupted() {
                break;
            }
            match self.step(&commits[middle])? {
                (StepOutcome::Slower, Some(found)) => (high, slower) = (middle, found),
                (StepOutcome::NotSlower, _) => (low, before) = (middle + 1, Some(middle)),
                _ => left_out[middle] = true,
            }
        }
        self.bisection.culprits = commits[low..=high].iter().map(info).collect();
        if low < high || self.watch.is_interrupted() {
            return Ok(());
        }
        let (evidence, judgement) = match before {
            // The culprit follows the good revision: it was compared with what came before it already.
            None => slower,
            Some(before) => {
                let from = sides::build(self.builds, &commits[before].hash, &self.suite, self.watch)?;
                let to = sides::build(self.builds, &commits[high].hash, &self.suite, self.watch)?;
                self.compare(&info(&commits[before]), from, &commits[high], to)?
            }
        };
        (self.bisection.evidence, self.bisection.judgement) = (Some(evidence), Some(judgement));
        Ok(())
    }

    /// Compares a commit with the good one.
    fn step(&mut self, commit: &Commit) -> Result<(StepOutcome, Option<Compared>), FlowError> {
        let start = Instant::now();
        let step = |outcome, reason: String| BisectStep {
            commit: info(commit),
            outcome,
            ratio: None,
            ratio_interval: None,
            reason,
            seconds: start.elapsed().as_secs_f64(),
        };
        let built = match sides::build(self.builds, &commit.hash, &self.suite, self.watch) {
            Ok(built) => built,
            Err(error) if error.is_of_one_revision() => {
                self.keep(step(StepOutcome::NotBuilt, error.to_string()));
                return Ok((StepOutcome::NotBuilt, None));
            }
            Err(error) => return Err(error.into()),
        };
        let found = self.compare(&self.bisection.good.clone(), self.good_built.clone(), commit, built)?;
        let judgement = &found.1;
        let outcome = holdpoint_gate::bisect_step(judgement);
        let worst = match slowest(judgement) {
            Some(name) => judgement.checks.iter().find(|check| check.name() == name),
            None => judgement.checks.iter().max_by_key(|check| check.verdict),
        };
        let mut step = step(outcome, worst.map(|check| check.reason.clone()).unwrap_or_default());
        if let Some(evidence) = worst.and_then(|check| check.evidence()) {
            (step.ratio, step.ratio_interval) = (Some(evidence.ratio), evidence.ratio_interval);
        }
        self.keep(step);
        Ok((outcome, Some(found)))
    }

    fn keep(&mut self, step: BisectStep) {
        let (commit, outcome) = (&step.commit, step.outcome.as_str());
        let short = commit.commit.get(..12).unwrap_or_default();
        self.watch.note(&format!("{short}  {outcome}  {}", commit.subject));
        self.bisection.steps.push(step);
    }

    fn compare(
        &self,
        base: &CommitInfo,
        base_built: Built,
        head: &Commit,
        head_built: Built,
    ) -> Result<Compared, FlowError> {
        let at = |built: Built| Suite { dir: Some(built.dir), ..self.suite.clone() };
        let side = |commit: &str, label: &str| Side {
            label: label.to_owned(),
            revision: Some(Revision { commit: commit.to_owned(), dirty: false }),
        };
        let sides = Sides {
            base: at(base_built),
            head: at(head_built),
            pin: self.args.decide.pin(&self.suite.gate),
            measure_same_code: self.args.decide.measure_same_code(&self.suite.gate),
        };
        let prepared =
            Prepared::new(sides, side(&base.commit, &base.subject), side(&head.hash, &head.subject));
        let plan = self.args.decide.plan(&self.suite.gate);
        let mut comparison = Comparison::new(&prepared, plan, Policy::Sequential)?;
        comparison.measure(None, self.watch);
        comparison.finish()
    }
}

/// Samples and their judgement.
type Compared = (AbReport, Judgement);

/// The workload that became slowest, of those that are slower.
fn slowest(judgement: &Judgement) -> Option<&str> {
    let slower = judgement.checks.iter().filter(|check| check.verdict == Verdict::Regressed);
    let change = |check: &&Check| check.regression_ratio.unwrap_or(0.0);
    slower.max_by(|a, b| change(a).total_cmp(&change(b))).map(Check::name)
}

/// The commit nearest to the middle of those that are still in question: `high` itself is known to be slower.
fn nearest_to_middle(low: usize, high: usize, left_out: &[bool]) -> Option<usize> {
    let middle = (low + high) / 2;
    (low..high).filter(|at| !left_out[*at]).min_by_key(|at| at.abs_diff(middle))
}

fn info(commit: &Commit) -> CommitInfo {
    CommitInfo { commit: commit.hash.clone(), date: commit.date.clone(), subject: commit.subject.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_goes_around_what_cannot_be_told() {
        assert_eq!(nearest_to_middle(0, 7, &[false; 8]), Some(3));
        assert_eq!(
            nearest_to_middle(0, 7, &[false, false, false, true, false, false, false, false]),
            Some(2)
        );
        assert_eq!(nearest_to_middle(2, 3, &[false, false, true, false]), None);
        assert_eq!(nearest_to_middle(3, 3, &[false; 4]), None);
    }
}
