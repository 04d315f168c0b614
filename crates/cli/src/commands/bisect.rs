//! `holdpoint bisect`: find the commit that slowed a workload.

use super::ab::compare::{self, Comparison};
use super::ab::sides::{self, Prepared};
use crate::args::BisectArgs;
use crate::artifacts;
use crate::error::CliError;
use crate::interrupt;
use crate::output::Output;
use holdpoint_gate::ab::AbPolicy;
use holdpoint_measure::ab::{SideSpec, Sides};
use holdpoint_measure::builds::{Builds, Built, Commit};
use holdpoint_measure::clock;
use holdpoint_model::{
    AbReport, BisectStep, Bisection, CommitInfo, ExitCode, Revision, SCHEMA_VERSION, Side, StepOutcome,
    Suite, Verdict,
};
use holdpoint_render::{markdown, terminal};
use std::time::Instant;

/// Runs the command.
///
/// # Errors
/// When the suite or the revisions cannot be used, or a file cannot be written.
pub fn run(args: &BisectArgs, output: &Output) -> Result<ExitCode, CliError> {
    let mut suite = sides::revision_suite(&args.suite)?;
    if let Some(name) = &args.workload {
        keep_only(&mut suite, name)?;
    }
    let path = args.artifacts.join("bisect.json");
    let _lock = artifacts::lock(&args.artifacts, output)?;
    holdpoint_store::check_writable(&path)?;
    let builds = Builds::open(std::path::Path::new("."))?;
    let commits = builds.between(&args.good, &args.bad)?;
    let good = builds.describe(&args.good)?;
    let bad = builds.describe(&args.bad)?;
    interrupt::hold();
    let good_built = sides::build(&builds, &good.hash, &suite, output)?;
    let bisection = Bisection {
        schema_version: SCHEMA_VERSION,
        suite: suite.name.clone(),
        timestamp_utc: clock::timestamp_utc(),
        workload: None,
        tolerance: args.decide.tolerance,
        good: info(&good),
        bad: info(&bad),
        steps: Vec::new(),
        culprits: Vec::new(),
        evidence: None,
    };
    let mut search = Search { args, output, builds: &builds, suite, good_built, bisection };
    let verdict = search.run(&commits)?;
    let bisection = search.bisection;
    super::run::save(&path, &bisection)?;
    holdpoint_store::write_text(&args.artifacts.join("bisect.md"), &markdown::bisection(&bisection))?;
    output.result(&bisection, |style| terminal::bisection(&bisection, style))?;
    output.note(&format!("evidence: {}", path.display()));
    interrupt::end_if_come();
    Ok(verdict)
}

fn keep_only(suite: &mut Suite, name: &str) -> Result<(), CliError> {
    let names: Vec<String> = suite.workloads.iter().map(|workload| workload.name.clone()).collect();
    suite.workloads.retain(|workload| workload.name == name);
    if suite.workloads.is_empty() {
        let names = names.join(", ");
        return Err(CliError::Input(format!(
            "suite {:?} has no workload {name:?}; it has {names}",
            suite.name
        )));
    }
    Ok(())
}

struct Search<'a> {
    args: &'a BisectArgs,
    output: &'a Output,
    builds: &'a Builds,
    suite: Suite,
    good_built: Built,
    bisection: Bisection,
}

impl Search<'_> {
    /// Halves the commits until one is left that is slower than the good one, while the one before it is not.
    fn run(&mut self, commits: &[Commit]) -> Result<ExitCode, CliError> {
        let Some(last) = commits.len().checked_sub(1) else { return Ok(ExitCode::Skipped) };
        let (first, report) = self.step(&commits[last])?;
        let Some(report) = report else { return Ok(ExitCode::Broken) };
        if first != StepOutcome::Slower {
            return Ok(match first {
                StepOutcome::NotSlower => ExitCode::Skipped,
                StepOutcome::Undecided => ExitCode::Inconclusive,
                _ => ExitCode::Broken,
            });
        }
        let workload =
            slowest(&report).ok_or_else(|| CliError::Internal("no workload is slower".to_owned()))?;
        keep_only(&mut self.suite, &workload)?;
        self.bisection.workload = Some(workload);
        // The commit before `low` is not slower, `high` is; those in `left_out` cannot be told.
        let (mut low, mut high) = (0, last);
        let mut left_out = vec![false; commits.len()];
        let mut before: Option<usize> = None;
        let mut slower = report;
        while let Some(middle) = nearest_to_middle(low, high, &left_out) {
            if interrupt::has_come() {
                break;
            }
            match self.step(&commits[middle])? {
                (StepOutcome::Slower, Some(report)) => (high, slower) = (middle, report),
                (StepOutcome::NotSlower, _) => (low, before) = (middle + 1, Some(middle)),
                _ => left_out[middle] = true,
            }
        }
        self.bisection.culprits = commits[low..=high].iter().map(info).collect();
        if low < high || interrupt::has_come() {
            return Ok(ExitCode::Inconclusive);
        }
        self.bisection.evidence = Some(match before {
            // The culprit follows the good revision: it was compared with what came before it already.
            None => slower,
            Some(before) => {
                let from = sides::build(self.builds, &commits[before].hash, &self.suite, self.output)?;
                let to = sides::build(self.builds, &commits[high].hash, &self.suite, self.output)?;
                self.compare(&info(&commits[before]), from, &commits[high], to)?
            }
        });
        Ok(ExitCode::Ok)
    }

    /// Compares a commit with the good one.
    fn step(&mut self, commit: &Commit) -> Result<(StepOutcome, Option<AbReport>), CliError> {
        let start = Instant::now();
        let step = |outcome, reason: String| BisectStep {
            commit: info(commit),
            outcome,
            ratio: None,
            ratio_interval: None,
            reason,
            seconds: start.elapsed().as_secs_f64(),
        };
        let built = match sides::build(self.builds, &commit.hash, &self.suite, self.output) {
            Ok(built) => built,
            Err(error) if error.is_of_one_revision() => {
                self.keep(step(StepOutcome::NotBuilt, error.to_string()));
                return Ok((StepOutcome::NotBuilt, None));
            }
            Err(error) => return Err(error.into()),
        };
        let report = self.compare(&self.bisection.good.clone(), self.good_built.clone(), commit, built)?;
        let outcome = match report.verdict {
            Verdict::Improved | Verdict::Pass => StepOutcome::NotSlower,
            Verdict::Skipped | Verdict::Inconclusive => StepOutcome::Undecided,
            // No waivers are read here; a waived slowdown is one all the same.
            Verdict::Regressed | Verdict::Waived => StepOutcome::Slower,
            // One workload may be broken and another slower: that is then found.
            Verdict::Broken if slowest(&report).is_some() => StepOutcome::Slower,
            Verdict::Broken => StepOutcome::Broken,
        };
        let worst = match slowest(&report) {
            Some(name) => report.workloads.get(&name),
            None => report.workloads.values().max_by_key(|workload| workload.verdict),
        };
        let mut step = step(outcome, worst.map(|workload| workload.reason.clone()).unwrap_or_default());
        if let Some(evidence) = worst.and_then(|workload| workload.evidence.as_ref()) {
            (step.ratio, step.ratio_interval) = (Some(evidence.ratio), evidence.ratio_interval);
        }
        self.keep(step);
        Ok((outcome, Some(report)))
    }

    fn keep(&mut self, step: BisectStep) {
        let (commit, outcome) = (&step.commit, step.outcome.as_str());
        let short = commit.commit.get(..12).unwrap_or_default();
        self.output.note(&format!("{short}  {outcome}  {}", commit.subject));
        self.bisection.steps.push(step);
    }

    fn compare(
        &self,
        base: &CommitInfo,
        base_built: Built,
        head: &Commit,
        head_built: Built,
    ) -> Result<AbReport, CliError> {
        let spec = |built: Built| SideSpec { suite: self.suite.clone(), dir: Some(built.dir) };
        let side = |commit: &str, label: &str| Side {
            label: label.to_owned(),
            revision: Some(Revision { commit: commit.to_owned(), dirty: false }),
        };
        let sides = Sides {
            base: spec(base_built),
            head: spec(head_built),
            pin: self.args.decide.pin,
            measure_same_code: self.args.decide.measure_same_code,
        };
        let prepared =
            Prepared::of(sides, side(&base.commit, &base.subject), side(&head.hash, &head.subject));
        let plan = compare::plan(&self.args.decide);
        let mut comparison = Comparison::new(&prepared, plan, AbPolicy::Sequential)?;
        comparison.measure(None, self.output);
        Ok(comparison.finish())
    }
}

/// The workload that became slowest, of those that are slower.
fn slowest(report: &AbReport) -> Option<String> {
    let slower = report.workloads.iter().filter(|(_, workload)| workload.verdict == Verdict::Regressed);
    let ratio = |workload: &holdpoint_model::AbWorkload| workload.evidence.as_ref().map_or(0.0, |e| e.ratio);
    slower.max_by(|a, b| ratio(a.1).total_cmp(&ratio(b.1))).map(|(name, _)| name.clone())
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
