//! `holdpoint gate`: the whole flow in one command.

use super::{baseline, compare, run};
use crate::args::GateArgs;
use crate::error::CliError;
use crate::output::Output;
use crate::suites;
use holdpoint_gate::judge;
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
    let comparison = holdpoint_gate::compare(&Current::from(&report), &baseline, args.policy.allow());
    let judgement = judge(&comparison, args.policy.policy());
    holdpoint_store::write_json(&artifacts.comparison(), &judgement)?;
    holdpoint_store::write_json(&artifacts.trend(), &compare::trend(&judgement))?;
    holdpoint_store::write_text(&artifacts.markdown(), &markdown::report(&report, Some(&judgement)))?;
    output.result(&judgement, |style| terminal::judgement(&judgement, Some(&report), style))?;
    output.note(&format!("baseline: {}\nevidence: {}", path.display(), artifacts.dir.display()));
    Ok(judgement.verdict.into())
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
    Ok(())
}

/// The files of one gate.
struct Artifacts<'a> {
    dir: &'a Path,
}

impl Artifacts<'_> {
    fn report(&self) -> PathBuf {
        self.dir.join("report.json")
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
