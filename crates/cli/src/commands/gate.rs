//! `holdpoint gate`: the whole flow in one command.

use super::ab::sides::{self, Head};
use super::{ab, baseline, compare, profile, run};
use crate::args::{AbFiles, CONFIRM_DEFAULT, GateArgs, PolicyArgs, ProfileOn, RUNS_DEFAULT};
use crate::artifacts::{self, Writer};
use crate::error::CliError;
use crate::output::Output;
use crate::sealing::{self, Sealing};
use crate::suites;
use crate::waivers::InForce;
use holdpoint_gate::{confirm, judge_run, set_tolerances};
use holdpoint_measure::ab::SideSpec;
use holdpoint_model::suite::GateSettings;
use holdpoint_model::{Current, ExitCode, Report, Source, Suite};
use holdpoint_render::{Judged, markdown, terminal};
use std::path::{Path, PathBuf};

/// Runs the command.
///
/// # Errors
/// When the suite or the baseline cannot be used, or a file cannot be written.
pub fn run(args: &GateArgs, output: &Output) -> Result<ExitCode, CliError> {
    let key = sealing::read_key(&args.seal)?;
    let _lock = artifacts::lock(&args.artifacts, output)?;
    if let Some(revision) = &args.against {
        return against(args, revision, output);
    }
    let suite = suites::runnable(&args.suite)?;
    let artifacts = Artifacts { dir: &args.artifacts };
    let mut sealing = Sealing::new(key, &artifacts.report());
    let own = baseline::this_machines(&suite, &args.baseline_dir);
    let path = args.baseline.clone().unwrap_or_else(|| own.clone());
    let policy = compare::baseline_policy(&args.policy, &suite.gate)?;
    let waivers = InForce::read(&args.waivers)?;
    if args.baseline.is_none() && !own.exists() {
        tell_others(&args.baseline_dir.baseline_dir, &suite, output);
        if args.require_baseline {
            artifacts.clear()?;
            output.note(&format!("inconclusive: no baseline for suite {:?} on this machine", suite.name));
            return Ok(ExitCode::Inconclusive);
        }
        return record(args, &suite, &own, &artifacts, sealing, output);
    }
    // Read before measuring: a bad baseline should not cost a run.
    let baseline = holdpoint_store::read_baseline(&path)?;
    let baseline = set_tolerances(baseline, args.decide.question.tolerance, &suite.gate);
    let confirm = args.confirm.or(suite.gate.confirm).unwrap_or(CONFIRM_DEFAULT);
    holdpoint_store::check_writable(&artifacts.report())?;
    sealing.build_on(&path)?;
    artifacts.clear()?;
    let report = run::measure(&suite, output);
    sealing.write_json(&artifacts.report(), &report)?;
    let decide = |current: &Current| {
        let mut judgement = judge_run(current, &baseline, args.policy.allow(), policy);
        waivers.apply(&mut judgement);
        judgement
    };
    let mut judgement = decide(&Current::from(&report));
    let mut reports = vec![report];
    let mut judged = 0;
    if confirm > 0 && confirm::worth_repeating(&judgement) {
        look_again(args, confirm, &mut reports, &artifacts, &mut sealing, output)?;
        let currents: Vec<Current> = reports.iter().map(Current::from).collect();
        if let Some(confirmed) = confirm::median_run(&currents) {
            judgement = decide(&confirmed.current);
            judged = confirmed.odd.unwrap_or(0);
            let how = match confirmed.odd {
                Some(odd) => format!("run {} came out differently and is judged", odd + 1),
                None => format!("judged by the median of {} runs", reports.len()),
            };
            judgement.notes.push(format!("the first run was slower than allowed; {how}"));
        }
    }
    if args.profile_on == ProfileOn::Regression {
        let side = SideSpec { suite: suite.clone(), dir: None };
        judgement.notes.extend(profile::of_regressed(
            &ab::regressed(&judgement),
            &side,
            None,
            artifacts.dir,
            output,
        ));
    }
    let report = &reports[judged];
    sealing.write_json(&artifacts.comparison(), &judgement)?;
    sealing.write_json(&artifacts.trend(), &compare::trend(&judgement))?;
    sealing.write_text(&artifacts.markdown(), &markdown::report(report, Some(&judgement)))?;
    let unsealed = sealing.seal(&run::origins("gate", &suite, report))?;
    let judged = Judged::new(&judgement, Some(Source::Run(report)));
    output.result(&judgement, |style| terminal::judgement(judged, style))?;
    output.note(&format!("baseline: {}\nevidence: {}{unsealed}", path.display(), artifacts.dir.display()));
    Ok(judgement.verdict.into())
}

/// Compares with a revision, both alive at the same time.
fn against(args: &GateArgs, revision: &str, output: &Output) -> Result<ExitCode, CliError> {
    PolicyArgs::policy_of_sides(args.policy.policy, &GateSettings::default())?;
    let head = if args.dirty { Head::WorkingTree } else { Head::Checkout { remedy: "" } };
    let prepared = sides::revisions(&args.suite, revision, head, &args.decide, output);
    let prepared =
        artifacts::clear_unless_input(prepared, &args.artifacts, Writer::Sides { resume: args.resume })?;
    let files = AbFiles {
        artifacts: args.artifacts.clone(),
        resume: args.resume,
        calibration_dir: args.calibration_dir.clone(),
        waivers: args.waivers.clone(),
        profile_on: args.profile_on,
        seal: args.seal.clone(),
    };
    ab::decide(&prepared, &args.decide, args.policy.policy, &files, false, output)
}

/// Measures again in new processes and keeps every report.
fn look_again(
    args: &GateArgs,
    runs: u32,
    reports: &mut Vec<Report>,
    artifacts: &Artifacts,
    sealing: &mut Sealing,
    output: &Output,
) -> Result<(), CliError> {
    output.progress("slower than allowed; looking again");
    for report in baseline::measure_runs(&args.suite.suite, runs, output)? {
        sealing.write_json(&artifacts.dir.join(holdpoint_store::report_name(reports.len() + 1)), &report)?;
        reports.push(report);
    }
    Ok(())
}

/// Baselines of other machines are no reason to start anew in silence.
fn tell_others(dir: &Path, suite: &Suite, output: &Output) {
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let prefix = format!("{}-", suite.name);
    let others: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.starts_with(&prefix) && name.ends_with(".json"))
        .collect();
    if !others.is_empty() {
        output.note(&format!(
            "{} has baselines of other machines ({}); they are not comparable with this one",
            dir.display(),
            others.join(", ")
        ));
    }
}

/// The first gate on a machine: there is nothing to compare with, so this run becomes what to compare with.
fn record(
    args: &GateArgs,
    suite: &Suite,
    path: &Path,
    artifacts: &Artifacts,
    sealing: Sealing,
    output: &Output,
) -> Result<ExitCode, CliError> {
    holdpoint_store::check_writable(&artifacts.report())?;
    holdpoint_store::check_writable(path)?;
    artifacts.clear()?;
    let runs = args.runs.or(suite.gate.runs).unwrap_or(RUNS_DEFAULT);
    let noun = if runs == 1 { "run" } else { "runs" };
    output.note(&format!(
        "no baseline for suite {:?} on this machine yet; recording one from {runs} {noun}",
        suite.name
    ));
    let reports = baseline::measure_runs(&args.suite.suite, runs, output)?;
    let last = reports.last().ok_or_else(|| CliError::Internal("no run was made".to_owned()))?;
    let unsealed = keep_report(artifacts, sealing, suite, last)?;
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
        "baseline recorded: {}{unsealed}\n\
         next: change something and run \"holdpoint gate --suite {}\" again; it now compares with this baseline.\n\
         Keep the file in version control to share it with machines of the same kind.",
        path.display(),
        args.suite.suite
    ));
    Ok(ExitCode::Ok)
}

/// Keeps a report that was compared with nothing.
fn keep_report(
    artifacts: &Artifacts,
    mut sealing: Sealing,
    suite: &Suite,
    report: &Report,
) -> Result<&'static str, CliError> {
    sealing.write_json(&artifacts.report(), report)?;
    sealing.write_text(&artifacts.markdown(), &markdown::report(report, None))?;
    sealing.seal(&run::origins("gate", suite, report))
}

/// The files of one gate.
struct Artifacts<'a> {
    dir: &'a Path,
}

impl Artifacts<'_> {
    /// Removes what an earlier gate left.
    fn clear(&self) -> Result<(), CliError> {
        artifacts::clear(self.dir, Writer::Gate)
    }

    fn report(&self) -> PathBuf {
        self.dir.join(artifacts::REPORT)
    }

    fn markdown(&self) -> PathBuf {
        self.dir.join(artifacts::REPORT_PAGE)
    }

    fn comparison(&self) -> PathBuf {
        self.dir.join(artifacts::COMPARISON)
    }

    fn trend(&self) -> PathBuf {
        self.dir.join(artifacts::TREND)
    }
}
