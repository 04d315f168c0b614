//! `holdpoint gate`: the whole flow in one command.

mod history;

use crate::Watch;
use crate::ab::sides::{self, Head};
use crate::decided::Decided;
use crate::done::Done;
use crate::error::FlowError;
use crate::options::{AbFiles, CONFIRM_DEFAULT, GateArgs, PolicyArgs, ProfileOn, RUNS_DEFAULT};
use crate::support::artifacts::{self, Writer};
use crate::support::histories::{self, Measured};
use crate::support::sealing::{self, Sealing};
use crate::support::suites;
use crate::support::waivers::InForce;
use crate::{ab, baseline, compare, profile, run};
use holdpoint_gate::{HasExitCode, Policy, confirm, judge_run, set_tolerances};
use holdpoint_history::Location;
use holdpoint_model::{Baseline, Current, ExitCode, Report, Suite};
use holdpoint_render::markdown;
use std::path::{Path, PathBuf};

/// The outcome of a gate.
#[derive(Debug)]
pub enum Gated {
    Decided(Box<Decided>),
    /// There was no baseline; this one was recorded.
    Recorded(Box<Baseline>),
    /// There was no baseline, and none could be made of the runs; this is the last of them.
    Unrecorded(Box<Report>),
    /// There is no baseline, and one was required.
    NoBaseline,
}

impl Gated {
    fn decided(decided: Decided) -> Self {
        Self::Decided(Box::new(decided))
    }
}

pub fn run(args: &GateArgs, watch: &dyn Watch) -> Result<Done<Gated>, FlowError> {
    let key = sealing::read_key(&args.seal)?;
    let _lock = artifacts::lock(&args.artifacts, watch)?;
    if let Some(revision) = &args.against {
        return Ok(against(args, revision, watch)?.map(Gated::decided));
    }
    let suite = suites::runnable(&args.suite)?;
    let artifacts = Artifacts { dir: &args.artifacts };
    let mut sealing = Sealing::new(key, &artifacts.report());
    if let (Some(place), None) = (&args.history.history, &args.baseline) {
        return history::run(args, &suite, &Location::parse(place), &artifacts, sealing, watch);
    }
    let own = baseline::this_machines(&suite, &args.baseline_dir);
    let path = args.baseline.clone().unwrap_or_else(|| own.clone());
    let policy = compare::baseline_policy(&args.policy, &suite.gate)?;
    let waivers = InForce::read(&args.waivers)?;
    if args.baseline.is_none() && !own.exists() {
        tell_others(&args.baseline_dir.baseline_dir, &suite, watch);
        if args.require_baseline {
            artifacts.clear()?;
            let note = format!("inconclusive: no baseline for suite {:?} on this machine", suite.name);
            return Ok(Done::new(Gated::NoBaseline, ExitCode::Inconclusive).with_note(note));
        }
        return record(args, &suite, &own, policy, &artifacts, sealing, watch);
    }
    // Read before measuring: a bad baseline should not cost a run.
    let baseline = holdpoint_store::read_baseline(&path)?;
    let baseline = set_tolerances(baseline, args.decide.question.tolerance, &suite.gate, policy);
    let confirm = args.confirm.or(suite.gate.confirm).unwrap_or(CONFIRM_DEFAULT);
    holdpoint_store::check_writable(&artifacts.report())?;
    sealing.build_on(&path)?;
    artifacts.clear()?;
    let report = run::measure(&suite, watch);
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
        look_again(args, confirm, &mut reports, &artifacts, &mut sealing, watch)?;
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
        judgement.notes.extend(profile::of_regressed(
            &ab::regressed(&judgement),
            &suite,
            None,
            artifacts.dir,
            watch,
        ));
    }
    sealing.write_json(&artifacts.comparison(), &judgement)?;
    sealing.write_json(&artifacts.trend(), &compare::trend(&judgement))?;
    let measured = Measured::Runs { reports: &reports, judgement: Some(&judgement) };
    histories::keep(histories::wanted(&args.history, &suite).as_ref(), &measured, watch);
    let report = reports.swap_remove(judged);
    sealing.write_text(&artifacts.markdown(), &markdown::report(&report, Some(&judgement)))?;
    let unsealed = sealing.seal(&run::origins("gate", &suite, &report))?;
    let note = format!("baseline: {}\nevidence: {}{unsealed}", path.display(), artifacts.dir.display());
    let exit = judgement.exit_code();
    let decided = Decided { judgement, sides: None, report: Some(report) };
    Ok(Done::new(Gated::decided(decided), exit).with_note(note))
}

/// Compares with a revision, both alive at the same time.
fn against(args: &GateArgs, revision: &str, watch: &dyn Watch) -> Result<Done<Decided>, FlowError> {
    PolicyArgs::check_for_sides(args.policy.policy)?;
    let head = if args.dirty { Head::WorkingTree } else { Head::Checkout { remedy: "" } };
    let prepared = sides::revisions(&args.suite, revision, head, &args.decide, watch);
    let prepared =
        artifacts::clear_unless_input(prepared, &args.artifacts, Writer::Sides { resume: args.resume })?;
    let files = AbFiles {
        artifacts: args.artifacts.clone(),
        resume: args.resume,
        calibration_dir: args.calibration_dir.clone(),
        waivers: args.waivers.clone(),
        profile_on: args.profile_on,
        history: args.history.clone(),
        seal: args.seal.clone(),
    };
    ab::decide(&prepared, &args.decide, args.policy.policy, &files, watch)
}

/// Measures again in new processes and keeps every report.
fn look_again(
    args: &GateArgs,
    runs: u32,
    reports: &mut Vec<Report>,
    artifacts: &Artifacts,
    sealing: &mut Sealing,
    watch: &dyn Watch,
) -> Result<(), FlowError> {
    watch.progress("slower than allowed; looking again");
    for report in baseline::measure_runs(&args.suite, runs, watch)? {
        sealing.write_json(&artifacts.dir.join(holdpoint_store::report_name(reports.len() + 1)), &report)?;
        reports.push(report);
    }
    Ok(())
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

/// The first gate on a machine: there is nothing to compare with, so this run becomes what to compare with.
fn record(
    args: &GateArgs,
    suite: &Suite,
    path: &Path,
    policy: Policy,
    artifacts: &Artifacts,
    sealing: Sealing,
    watch: &dyn Watch,
) -> Result<Done<Gated>, FlowError> {
    holdpoint_store::check_writable(&artifacts.report())?;
    holdpoint_store::check_writable(path)?;
    artifacts.clear()?;
    let runs = args.runs.or(suite.gate.runs).unwrap_or(RUNS_DEFAULT);
    let noun = if runs == 1 { "run" } else { "runs" };
    watch.note(&format!(
        "no baseline for suite {:?} on this machine yet; recording one from {runs} {noun}",
        suite.name
    ));
    let mut reports = baseline::measure_runs(&args.suite, runs, watch)?;
    let measured = Measured::Runs { reports: &reports, judgement: None };
    histories::keep(histories::wanted(&args.history, suite).as_ref(), &measured, watch);
    let currents: Vec<Current> = reports.iter().map(Current::from).collect();
    let last = reports.pop().ok_or_else(|| FlowError::Internal("no run was made".to_owned()))?;
    let unsealed = keep_report(artifacts, sealing, suite, &last)?;
    let recorded = match baseline::record(&currents, &suite.gate) {
        Ok(recorded) => recorded,
        Err(error) => {
            let exit = last.exit_code();
            let done = Done::new(Gated::Unrecorded(Box::new(last)), exit);
            return Ok(done.with_note(format!("no baseline was recorded: {error}")));
        }
    };
    holdpoint_store::write_json(path, &recorded)?;
    let exit = baseline::say_what_it_serves(&recorded, policy, watch);
    let note = format!(
        "baseline recorded: {}{unsealed}\n\
         next: change something and run \"holdpoint gate --suite {}\" again; it now compares with this baseline.\n\
         Keep the file in version control to share it with machines of the same kind.",
        path.display(),
        args.suite.suite
    );
    Ok(Done::new(Gated::Recorded(Box::new(recorded)), exit).with_note(note))
}

/// Keeps a report that was compared with nothing.
fn keep_report(
    artifacts: &Artifacts,
    mut sealing: Sealing,
    suite: &Suite,
    report: &Report,
) -> Result<&'static str, FlowError> {
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
    fn clear(&self) -> Result<(), FlowError> {
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
