//! `gate` with a stored baseline: measure, compare, look again at what is slower; the first gate on a machine records one.

use super::{BaselineQuestion, CONFIRM_DEFAULT, GateResult};
use crate::baseline::RUNS_DEFAULT;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::artifacts::{self, Writer};
use crate::evidence::sealing::Sealing;
use crate::histories::{self, Measured};
use crate::judgement_with_samples::JudgementWithSamples;
use crate::request::{EvidenceFiles, ProfileOn};
use crate::rules::Rules;
use crate::suites::{self, LoadedSuite};
use crate::{Watch, ab, baseline, compare, profile, run};
use holdpoint_gate::{HasExitCode, Judgement, Policy, confirm, judge_run, set_tolerances};
use holdpoint_measure::ReadySuite;
use holdpoint_model::{Baseline, Current, ExitCode, Report, Suite};
use holdpoint_render::markdown;
use std::path::{Path, PathBuf};

/// A gate with a stored baseline, all of whose rules have been read; no code of the change has run.
pub(crate) struct StoredGate<'a> {
    question: BaselineQuestion,
    files: &'a EvidenceFiles,
    rules: &'a Rules,
    suite: LoadedSuite,
    policy: Policy,
    path: PathBuf,
    /// Absent where it is still to be recorded.
    baseline: Option<Baseline>,
    sealing: Sealing,
}

impl<'a> StoredGate<'a> {
    /// Reads the baseline that the question names, or else the suite, or else this machine's own.
    pub fn read(
        suite: LoadedSuite,
        question: BaselineQuestion,
        of_suite: Option<PathBuf>,
        files: &'a EvidenceFiles,
        rules: &'a Rules,
    ) -> Result<Self, FlowError> {
        let gate = &suite.as_run.gate;
        let policy = compare::baseline_policy(&question.policy, gate)?;
        let own = baseline::this_machines(&suite.as_run, &question.baseline_dir);
        let of_suite = of_suite.filter(|_| question.baseline.is_none());
        if let Some(path) = of_suite.as_ref().filter(|path| !path.exists()) {
            return Err(missing_of_suite(path, &suite));
        }
        let named = question.baseline.clone().or(of_suite);
        let is_new = named.is_none() && !own.exists();
        let path = named.unwrap_or(own);
        let mut sealing = Sealing::new(rules.key.clone(), &files.artifacts.join(artifacts::REPORT));
        let baseline = if is_new {
            None
        } else {
            let baseline = holdpoint_store::read_baseline(&path)?;
            sealing.build_on(&path)?;
            Some(set_tolerances(baseline, question.tolerance, gate, policy))
        };
        Ok(Self { question, files, rules, suite, policy, path, baseline, sealing })
    }

    /// Asks the suite's programs for its workloads, measures them and decides.
    pub fn run(mut self, watch: &dyn Watch) -> Result<CommandResult<GateResult>, FlowError> {
        let suite = suites::ready(self.suite.as_run.clone())?;
        if let Some(baseline) = self.baseline.take() {
            return self.decide(&suite, &baseline, watch);
        }
        tell_others(&self.question.baseline_dir, &self.suite.as_run, watch);
        if self.question.require_baseline || is_ci(&std::env::var("CI").unwrap_or_default()) {
            artifacts::clear(&self.files.artifacts, Writer::Gate)?;
            let note = format!(
                "inconclusive: no baseline for suite {:?} on this machine; record one of code that is known to be good with \
                 \"holdpoint baseline record --suite {}\"",
                self.suite.as_run.name, self.suite.choice.name
            );
            return Ok(CommandResult::new(GateResult::NoBaseline, ExitCode::Inconclusive).with_note(note));
        }
        self.record(&suite, watch)
    }

    fn decide(
        mut self,
        suite: &ReadySuite,
        baseline: &Baseline,
        watch: &dyn Watch,
    ) -> Result<CommandResult<GateResult>, FlowError> {
        let files = self.files;
        let confirm = self.question.confirm.or(self.suite.as_run.gate.confirm).unwrap_or(CONFIRM_DEFAULT);
        holdpoint_store::check_writable(&self.file(artifacts::REPORT))?;
        artifacts::clear(&files.artifacts, Writer::Gate)?;
        let report = run::measure(suite, watch);
        self.sealing.write_json(&files.artifacts.join(artifacts::REPORT), &report)?;
        let (policy, allow, waivers) = (self.policy, self.question.policy.allow, &self.rules.waivers);
        let decide = |current: &Current| {
            let mut judgement = judge_run(current, baseline, allow, policy);
            waivers.apply(&mut judgement);
            judgement
        };
        let mut judgement = decide(&Current::from(&report));
        let mut reports = vec![report];
        let mut judged = 0;
        if confirm > 0 && confirm::worth_repeating(&judgement) {
            self.look_again(confirm, &mut reports, watch)?;
            let currents: Vec<Current> = reports.iter().map(Current::from).collect();
            if let Some(confirmed) = confirm::median_run(&currents) {
                judgement = decide(&confirmed.current);
                judged = confirmed.odd.unwrap_or(0);
                let how = match confirmed.odd {
                    Some(odd) => format!("run {} came out differently and is judged", odd + 1),
                    None => format!("judged by the median of {} runs", reports.len()),
                };
                judgement.add_note(format!("the first run was slower than allowed; {how}"));
            }
        }
        if files.profile_on == ProfileOn::Regression {
            let regressed = ab::regressed(&judgement);
            let notes = profile::of_regressed(&regressed, suite, None, &files.artifacts, watch);
            notes.into_iter().for_each(|note| judgement.add_note(note));
        }
        let measured = Measured::Runs { reports: &reports, judgement: Some(&judgement) };
        histories::keep(self.rules.history.as_ref(), &measured, watch);
        let report = reports.swap_remove(judged);
        self.finish(suite, judgement, report)
    }

    /// Leaves the files.
    fn finish(
        mut self,
        suite: &Suite,
        judgement: Judgement,
        report: Report,
    ) -> Result<CommandResult<GateResult>, FlowError> {
        let [comparison, trend, page] =
            [artifacts::COMPARISON, artifacts::TREND, artifacts::REPORT_PAGE].map(|name| self.file(name));
        self.sealing.write_json(&comparison, &judgement)?;
        self.sealing.write_json(&trend, &compare::trend(&judgement))?;
        self.sealing.write_text(&page, &markdown::report(&report, Some(&judgement)))?;
        let unsealed = self.sealing.seal(&run::origins("gate", suite, &report))?;
        let (path, folder) = (self.path.display(), self.files.artifacts.display());
        let note = format!("baseline: {path}\nevidence: {folder}{unsealed}");
        let exit = judgement.exit_code();
        let decided = JudgementWithSamples { judgement, sides: None, report: Some(report) };
        Ok(CommandResult::new(GateResult::decided(decided), exit).with_note(note))
    }

    /// Measures again in new processes and keeps every report.
    fn look_again(
        &mut self,
        runs: u32,
        reports: &mut Vec<Report>,
        watch: &dyn Watch,
    ) -> Result<(), FlowError> {
        watch.progress("slower than allowed; looking again");
        for report in baseline::measure_runs(&self.suite, runs, watch)? {
            let path = self.file(&holdpoint_store::report_name(reports.len() + 1));
            self.sealing.write_json(&path, &report)?;
            reports.push(report);
        }
        Ok(())
    }

    /// The first gate on a machine: there is nothing to compare with, so this run becomes what to compare with.
    fn record(self, ready: &ReadySuite, watch: &dyn Watch) -> Result<CommandResult<GateResult>, FlowError> {
        let Self { policy, files, ref question, ref suite, ref path, .. } = self;
        let name = suite.choice.name.clone();
        holdpoint_store::check_writable(&self.file(artifacts::REPORT))?;
        holdpoint_store::check_writable(path)?;
        artifacts::clear(&files.artifacts, Writer::Gate)?;
        let runs = question.runs.or(suite.as_run.gate.runs).unwrap_or(RUNS_DEFAULT);
        let noun = if runs == 1 { "run" } else { "runs" };
        watch.note(&format!(
            "no baseline for suite {:?} on this machine yet; recording one from {runs} {noun}",
            suite.as_run.name
        ));
        let mut reports = baseline::measure_runs(suite, runs, watch)?;
        let measured = Measured::Runs { reports: &reports, judgement: None };
        histories::keep(self.rules.history.as_ref(), &measured, watch);
        let currents: Vec<Current> = reports.iter().map(Current::from).collect();
        let last = reports.pop().ok_or_else(|| FlowError::Internal("no run was made".to_owned()))?;
        let recorded = baseline::record(&currents, &suite.as_run.gate);
        let path = path.clone();
        let unsealed = self.keep_report(ready, &last)?;
        let recorded = match recorded {
            Ok(recorded) => recorded,
            Err(error) => {
                let exit = last.exit_code();
                let done = CommandResult::new(GateResult::Unrecorded(Box::new(last)), exit);
                return Ok(done.with_note(format!("no baseline was recorded: {error}")));
            }
        };
        holdpoint_store::write_json(&path, &recorded)?;
        let exit = baseline::say_what_it_serves(&recorded, policy, watch);
        let note = format!(
            "baseline recorded: {}{unsealed}\n\
             next: change something and run \"holdpoint gate --suite {}\" again; it now compares with this baseline.\n\
             Keep the file in version control to share it with machines of the same kind.",
            path.display(),
            name
        );
        Ok(CommandResult::new(GateResult::Recorded(Box::new(recorded)), exit).with_note(note))
    }

    /// Keeps a report that was compared with nothing.
    fn keep_report(mut self, suite: &Suite, report: &Report) -> Result<&'static str, FlowError> {
        let (path, page) = (self.file(artifacts::REPORT), self.file(artifacts::REPORT_PAGE));
        self.sealing.write_json(&path, report)?;
        self.sealing.write_text(&page, &markdown::report(report, None))?;
        self.sealing.seal(&run::origins("gate", suite, report))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.artifacts.join(name)
    }
}

/// A baseline that is named is not recorded anew: the change under test may have removed it.
fn missing_of_suite(path: &Path, suite: &LoadedSuite) -> FlowError {
    let what = format!(
        "no such file; suite {:?} names it as [gate] baseline: restore it, or record it of code that is known to be good with \
         \"holdpoint baseline record --suite {} --baseline {}\"",
        suite.as_run.name,
        suite.choice.name,
        path.display()
    );
    FlowError::File { path: path.to_owned(), what }
}

/// Whether this is a job of CI, by the variable `CI`. There a gate that only records would be green for any change.
fn is_ci(variable: &str) -> bool {
    !["", "0", "false"].contains(&variable)
}

/// Baselines of other machines are no reason to start anew in silence.
fn tell_others(dir: &Path, suite: &Suite, watch: &dyn Watch) {
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let prefix = format!("{}-", suite.name);
    let others: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.starts_with(&prefix) && name.ends_with(".json"))
        .collect();
    if !others.is_empty() {
        watch.note(&format!(
            "{} has baselines of other machines ({}); they are not comparable with this one",
            dir.display(),
            others.join(", ")
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_of_ci_is_known_by_its_variable() {
        assert!(["true", "1", "woodpecker"].into_iter().all(is_ci));
        assert!(!["", "0", "false"].into_iter().any(is_ci));
    }
}
