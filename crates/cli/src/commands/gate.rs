//! `holdpoint gate`: the whole flow in one command.

use super::{baseline, compare, run};
use crate::args::GateArgs;
use crate::error::CliError;
use crate::output::Output;
use crate::suites;
use holdpoint_gate::{confirm, judge};
use holdpoint_model::{Current, ExitCode, Report, Suite};
use holdpoint_render::{markdown, terminal};
use std::path::{Path, PathBuf};

/// Runs the command.
///
/// # Errors
/// When the suite or the baseline cannot be used, or a file cannot be written.
pub fn run(args: &GateArgs, output: &Output) -> Result<ExitCode, CliError> {
    let suite = suites::load(&args.suite.suite)?;
    let artifacts = Artifacts { dir: &args.artifacts };
    let own = baseline::this_machines(&suite, &args.baseline_dir);
    let path = args.baseline.clone().unwrap_or_else(|| own.clone());
    if args.baseline.is_none() && !own.exists() {
        return record(args, &suite, &own, &artifacts, output);
    }
    // Read before measuring: a bad baseline should not cost a run.
    let baseline = holdpoint_store::read_baseline(&path)?;
    holdpoint_store::check_writable(&artifacts.report())?;
    let report = run::measure(&suite, output);
    run::save(&artifacts.report(), &report)?;
    artifacts.remove_confirmations()?;
    let decide = |current: &Current| {
        judge(&holdpoint_gate::compare(current, &baseline, args.policy.allow()), args.policy.policy())
    };
    let mut judgement = decide(&Current::from(&report));
    if args.confirm > 0 && confirm::worth_repeating(&judgement) {
        let runs = look_again(args, &report, &artifacts, output)?;
        if let Some(merged) = confirm::median_run(&runs) {
            judgement = decide(&merged);
            let note = "the first run was slower than allowed; judged by the median of";
            judgement.notes.push(format!("{note} {} runs", runs.len()));
        }
    }
    holdpoint_store::write_json(&artifacts.comparison(), &judgement)?;
    holdpoint_store::write_json(&artifacts.trend(), &compare::trend(&judgement))?;
    holdpoint_store::write_text(&artifacts.markdown(), &markdown::report(&report, Some(&judgement)))?;
    output.result(&judgement, |style| terminal::judgement(&judgement, Some(&report), style))?;
    output.note(&format!("baseline: {}\nevidence: {}", path.display(), artifacts.dir.display()));
    Ok(judgement.verdict.into())
}

/// Measures again in new processes and keeps every report.
fn look_again(
    args: &GateArgs,
    first: &Report,
    artifacts: &Artifacts,
    output: &Output,
) -> Result<Vec<Current>, CliError> {
    output.progress("slower than allowed; looking again");
    let mut runs = vec![Current::from(first)];
    for report in baseline::measure_runs(&args.suite.suite, args.confirm, output)? {
        run::save(&artifacts.confirmation(runs.len() + 1), &report)?;
        runs.push(Current::from(&report));
    }
    Ok(runs)
}

/// The first gate on a machine: there is nothing to compare with, so this run becomes what to compare with.
fn record(
    args: &GateArgs,
    suite: &Suite,
    path: &Path,
    artifacts: &Artifacts,
    output: &Output,
) -> Result<ExitCode, CliError> {
    holdpoint_store::check_writable(&artifacts.report())?;
    holdpoint_store::check_writable(path)?;
    let runs = if args.runs == 1 { "run" } else { "runs" };
    output.note(&format!(
        "no baseline for suite {:?} on this machine yet; recording one from {} {runs}",
        suite.name, args.runs
    ));
    let reports = baseline::measure_runs(&args.suite.suite, args.runs, output)?;
    let last = reports.last().ok_or_else(|| CliError::Internal("no run was made".to_owned()))?;
    keep_report(artifacts, last)?;
    let currents: Vec<Current> = reports.iter().map(Current::from).collect();
    let recorded = match holdpoint_gate::record::record(&currents) {
        Ok(recorded) => recorded,
        Err(error) => {
            output.result(last, |style| terminal::report(last, style))?;
            output.note(&format!("no baseline was recorded: {error}"));
            return Ok(run::exit_code(last));
        }
    };
    holdpoint_store::write_json(path, &recorded)?;
    output.result(&recorded, |style| terminal::baseline(&recorded, style))?;
    output.note(&format!(
        "baseline recorded: {}\n\
         next: change something and run \"holdpoint gate\" again; it now compares with this baseline.\n\
         Keep the file in version control to share it with machines of the same kind.",
        path.display()
    ));
    Ok(ExitCode::Ok)
}

/// Keeps a report that was compared with nothing, and removes the verdict of an earlier run beside it.
fn keep_report(artifacts: &Artifacts, report: &Report) -> Result<(), CliError> {
    run::save(&artifacts.report(), report)?;
    holdpoint_store::write_text(&artifacts.markdown(), &markdown::report(report, None))?;
    for stale in [artifacts.comparison(), artifacts.trend()] {
        holdpoint_store::remove(&stale)?;
    }
    artifacts.remove_confirmations()
}

/// The files of one gate.
struct Artifacts<'a> {
    dir: &'a Path,
}

impl Artifacts<'_> {
    fn report(&self) -> PathBuf {
        self.dir.join("report.json")
    }

    /// The report of a run that was made to confirm the first; counted from 2.
    fn confirmation(&self, run: usize) -> PathBuf {
        self.dir.join(format!("report-{run}.json"))
    }

    /// Those of an earlier gate would pass for this one's.
    fn remove_confirmations(&self) -> Result<(), CliError> {
        for path in (2..).map(|run| self.confirmation(run)).take_while(|path| path.exists()) {
            holdpoint_store::remove(&path)?;
        }
        Ok(())
    }

    fn markdown(&self) -> PathBuf {
        self.dir.join("report.md")
    }

    fn comparison(&self) -> PathBuf {
        self.dir.join("comparison.json")
    }

    fn trend(&self) -> PathBuf {
        self.dir.join("trend.json")
    }
}
