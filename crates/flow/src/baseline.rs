//! `holdpoint baseline`: record, promote, show, template, fit.

use crate::Watch;
use crate::done::Done;
use crate::error::FlowError;
use crate::options::{BaselineArgs, BaselineCommand, BaselineDir, RecordArgs, ShowArgs, SuiteArg};
use crate::support::artifacts;
use crate::support::suites;
use holdpoint_gate::record::{self, RecordError};
use holdpoint_measure::machine;
use holdpoint_model::{Baseline, Current, ExitCode, Report, RunStatus, Suite};
use holdpoint_store::{FolderLock, Scratch};
use std::path::{Path, PathBuf};
use std::process::Stdio;

pub fn run(args: &BaselineArgs, watch: &dyn Watch) -> Result<Done<Baseline>, FlowError> {
    match &args.command {
        BaselineCommand::Record(args) => make(args, record::record, watch),
        BaselineCommand::Promote(args) => crate::promote::run(args, watch),
        BaselineCommand::Template(args) => make(args, record::template, watch),
        BaselineCommand::Show(args) => {
            Ok(Done::new(holdpoint_store::read_baseline(&path_of(args)?)?, ExitCode::Ok))
        }
        BaselineCommand::Fit(args) => {
            let path = path_of(args)?;
            let _lock = lock_of(&path, watch)?;
            let mut baseline = holdpoint_store::read_baseline(&path)?;
            record::fit_tolerances(&mut baseline)
                .map_err(|e| FlowError::File { path: path.clone(), what: e.to_string() })?;
            finish(&path, baseline)
        }
    }
}

fn make(
    args: &RecordArgs,
    rule: fn(&[Current]) -> Result<Baseline, RecordError>,
    watch: &dyn Watch,
) -> Result<Done<Baseline>, FlowError> {
    let currents: Vec<Current> = if args.reports.is_empty() {
        // Tried before measuring: a place that cannot be written to should not cost the runs.
        holdpoint_store::check_writable(&match &args.baseline {
            Some(path) => path.clone(),
            None => this_machines(&suites::load(&args.suite)?, &args.baseline_dir),
        })?;
        measure_runs(&args.suite, args.runs, watch)?.iter().map(Current::from).collect()
    } else {
        args.reports.iter().map(|path| holdpoint_store::read_current(path)).collect::<Result<_, _>>()?
    };
    let baseline = rule(&currents).map_err(|e| FlowError::Input(format!("no baseline can be made: {e}")))?;
    let path = match &args.baseline {
        Some(path) => path.clone(),
        None => own_path(&args.baseline_dir, &baseline)?,
    };
    finish(&path, baseline)
}

/// Keeps others from writing a baseline between reading it and writing it.
pub(crate) fn lock_of(path: &Path, watch: &dyn Watch) -> Result<FolderLock, FlowError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    artifacts::lock(folder.unwrap_or(Path::new(".")), watch)
}

pub(crate) fn finish(path: &Path, baseline: Baseline) -> Result<Done<Baseline>, FlowError> {
    holdpoint_store::write_json(path, &baseline)?;
    Ok(Done::new(baseline, ExitCode::Ok).with_note(format!("baseline: {}", path.display())))
}

/// Where a baseline belongs that was not given a place.
fn own_path(dir: &BaselineDir, baseline: &Baseline) -> Result<PathBuf, FlowError> {
    let machine = baseline.machine.as_ref().ok_or_else(|| {
        FlowError::Input("these reports name no machine; say where to write with --baseline FILE".to_owned())
    })?;
    Ok(holdpoint_store::baseline_path(&dir.baseline_dir, &baseline.suite, &machine.fingerprint))
}

/// Where this machine's baseline of a suite lies.
pub fn this_machines(suite: &Suite, dir: &BaselineDir) -> PathBuf {
    holdpoint_store::baseline_path(&dir.baseline_dir, &suite.name, &machine::machine_for(suite).fingerprint)
}

fn path_of(args: &ShowArgs) -> Result<PathBuf, FlowError> {
    if let Some(path) = &args.baseline {
        return Ok(path.clone());
    }
    let suite = suites::load(&args.suite)?;
    let path = this_machines(&suite, &args.baseline_dir);
    if path.exists() {
        return Ok(path);
    }
    Err(FlowError::File {
        path,
        what: format!(
            "no baseline for suite {:?} on this machine; record one: \"holdpoint baseline record --suite {}\"",
            suite.name, args.suite.suite
        ),
    })
}

/// Measures a suite several times, each time in a new process: what a process is lucky or unlucky with, such
/// as its address layout, then shows in the spread between runs. A run that is not `ok` is the last.
pub fn measure_runs(suite: &SuiteArg, runs_count: u32, watch: &dyn Watch) -> Result<Vec<Report>, FlowError> {
    let internal = |what: &str, error: std::io::Error| FlowError::Internal(format!("{what}: {error}"));
    suites::load(suite)?;
    let program = std::env::current_exe().map_err(|e| internal("cannot find this program again", e))?;
    let dir = Scratch::new()?;
    let mut reports = Vec::new();
    for run in 1..=runs_count {
        watch.progress(&format!("run {run} of {runs_count}"));
        let path = dir.path().join(format!("run-{run}.json"));
        let mut command = holdpoint_process::command(&program);
        command.args(["--quiet", "run", "--output"]).arg(&path).args(suite.flags()).stdout(Stdio::null());
        command.args(["--parent", &std::process::id().to_string()]);
        let status = command.status().map_err(|e| internal("cannot start a run", e))?;
        if !path.exists() {
            return Err(FlowError::Internal(format!("run {run} ended with {status} and left no report")));
        }
        let report = holdpoint_store::read_document::<Report>(&path)?;
        // No baseline can be made with this one; further runs would only cost time.
        let is_last = !matches!(report.status, RunStatus::Ok | RunStatus::Partial);
        reports.push(report);
        if is_last {
            break;
        }
    }
    Ok(reports)
}
