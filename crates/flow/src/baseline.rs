//! `holdpoint baseline`: record, append, promote, show, template, fit.

pub mod promote;

use crate::Watch;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::artifacts;
use crate::links;
use crate::request::{OwnProcess, PolicyChoice, SuiteChoice};
use crate::suites::{self, LoadedSuite};
use holdpoint_gate::record::{self, RecordError};
use holdpoint_gate::{Policy, blind_spots, set_tolerances};
use holdpoint_measure::machine;
use holdpoint_model::suite::GateSettings;
use holdpoint_model::{Baseline, Current, ExitCode, Report, RunStatus, Suite};
use holdpoint_render::html;
use holdpoint_stats::sequential::ALARM_RATE;
use holdpoint_store::{FolderLock, Scratch};
use promote::PromoteRequest;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Runs behind a baseline: ten see half of the slowdown that five see, at a rate of one false alarm in 1000 suites; twenty
/// would see a quarter less.
pub const RUNS_DEFAULT: u32 = 10;
/// The usual folder, with one baseline per suite and machine.
pub const FOLDER_DEFAULT: &str = ".holdpoint/baselines";

/// What to do with baselines.
#[derive(Clone, Debug)]
pub enum BaselineRequest {
    Record(RecordRequest),
    Append(RecordRequest),
    Show(BaselinePage),
    /// With Apex-X's wide tolerances.
    Template(RecordRequest),
    Promote(PromoteRequest),
    /// Fits the tolerances to the spread between the runs.
    Fit(BaselineChoice),
}

/// Where a baseline comes from and goes to.
#[derive(Clone, Debug)]
pub struct RecordRequest {
    /// Instead of measuring.
    pub reports: Vec<PathBuf>,
    pub suite: SuiteChoice,
    /// Runs to take.
    pub runs: u32,
    /// The file; this machine's own, if absent.
    pub baseline: Option<PathBuf>,
    pub baseline_dir: PathBuf,
}

/// Which baseline.
#[derive(Clone, Debug)]
pub struct BaselineChoice {
    /// The file; this machine's own for the suite, if absent.
    pub baseline: Option<PathBuf>,
    pub suite: SuiteChoice,
    pub baseline_dir: PathBuf,
}

/// A baseline to be shown, and the page to be made of it.
#[derive(Clone, Debug)]
pub struct BaselinePage {
    pub which: BaselineChoice,
    pub html: Option<PathBuf>,
    /// The address of the repository whose commits are linked.
    pub repository: Option<String>,
}

pub fn run(request: &BaselineRequest, watch: &dyn Watch) -> Result<CommandResult<Baseline>, FlowError> {
    match request {
        BaselineRequest::Record(request) => {
            let (path, baseline, gate) = make(request, watch, record)?;
            finish_recorded(&path, baseline, &gate, watch)
        }
        BaselineRequest::Append(request) => append(request, watch),
        BaselineRequest::Promote(request) => promote::run(request, watch),
        BaselineRequest::Template(request) => {
            // Of Apex-X's tolerances, which ask for nothing that runs could not serve.
            let (path, baseline, _) = make(request, watch, |runs, _| record::template(runs))?;
            finish(&path, baseline)
        }
        BaselineRequest::Show(request) => show(request, watch),
        BaselineRequest::Fit(request) => {
            let path = path_of(request)?;
            let _lock = lock_of(&path, watch)?;
            let mut baseline = holdpoint_store::read_baseline(&path)?;
            let alarm_rate = baseline.alarm_rate.unwrap_or(ALARM_RATE);
            record::fit_tolerances(&mut baseline, alarm_rate)
                .map_err(|e| FlowError::File { path: path.clone(), what: e.to_string() })?;
            finish_recorded(&path, baseline, &GateSettings::default(), watch)
        }
    }
}

fn show(request: &BaselinePage, watch: &dyn Watch) -> Result<CommandResult<Baseline>, FlowError> {
    let baseline = holdpoint_store::read_baseline(&path_of(&request.which)?)?;
    if let Some(path) = &request.html {
        let newest = baseline.runs.iter().rev().find_map(|run| run.revision.as_ref());
        let links =
            links::find(request.repository.as_deref(), newest.map(|revision| revision.commit.as_str()))?;
        let extras = html::Extras { links, ..html::Extras::default() };
        holdpoint_store::write_text(path, &html::baseline(&baseline, &extras))?;
        watch.note(&format!("html: {}", path.display()));
    }
    Ok(CommandResult::new(baseline, ExitCode::Ok))
}

fn make(
    request: &RecordRequest,
    watch: &dyn Watch,
    rule: impl Fn(&[Current], &GateSettings) -> Result<Baseline, RecordError>,
) -> Result<(PathBuf, Baseline, GateSettings), FlowError> {
    let (currents, gate) = take_runs(request, LoadedSuite::read(&request.suite)?, watch)?;
    let baseline = rule(&currents, &gate).map_err(not_made)?;
    let path = match &request.baseline {
        Some(path) => path.clone(),
        None => own_path(&request.baseline_dir, &baseline)?,
    };
    Ok((path, baseline, gate))
}

/// A baseline with the tolerances that its suite asks for.
pub(crate) fn record(currents: &[Current], gate: &GateSettings) -> Result<Baseline, RecordError> {
    let baseline = record::record(currents, gate.alarm_rate.unwrap_or(ALARM_RATE))?;
    // What nobody asks for is left to the policy that will judge by it.
    Ok(set_tolerances(baseline, None, gate, Policy::AllowedMax))
}

fn append(request: &RecordRequest, watch: &dyn Watch) -> Result<CommandResult<Baseline>, FlowError> {
    let suite = LoadedSuite::read(&request.suite)?;
    let path = match &request.baseline {
        Some(path) => path.clone(),
        None => existing_own_path(&suite.as_written, &suite.choice, &request.baseline_dir)?,
    };
    // Read before measuring: a bad baseline should not cost the runs. Again afterwards: others may have written it.
    holdpoint_store::read_baseline(&path)?;
    let (currents, gate) = take_runs(request, suite, watch)?;
    let _lock = lock_of(&path, watch)?;
    let before = holdpoint_store::read_baseline(&path)?;
    let alarm_rate = gate.alarm_rate.or(before.alarm_rate).unwrap_or(ALARM_RATE);
    let baseline = record::append(before, &currents, alarm_rate).map_err(not_made)?;
    finish_recorded(&path, set_tolerances(baseline, None, &gate, Policy::AllowedMax), &gate, watch)
}

/// The runs that were given or are made now, and the settings of their suite.
fn take_runs(
    request: &RecordRequest,
    suite: LoadedSuite,
    watch: &dyn Watch,
) -> Result<(Vec<Current>, GateSettings), FlowError> {
    if request.reports.is_empty() {
        // Tried before measuring: a place that cannot be written to should not cost the runs.
        let own = || this_machines(&suite.as_written, &request.baseline_dir);
        holdpoint_store::check_writable(&request.baseline.clone().unwrap_or_else(own))?;
        let runs = measure_runs(&suite, request.runs, watch)?;
        return Ok((runs.iter().map(Current::from).collect(), suite.as_written.gate));
    }
    let suite = suite.as_written;
    let read = request.reports.iter().map(|path| holdpoint_store::read_current(path));
    let currents = read.collect::<Result<Vec<Current>, _>>()?;
    let is_of_suite = currents.iter().all(|run| run.suite == suite.name);
    Ok((currents, if is_of_suite { suite.gate } else { GateSettings::default() }))
}

fn not_made(error: RecordError) -> FlowError {
    FlowError::Input(format!("no baseline can be made: {error}"))
}

/// Keeps others from writing a baseline between reading it and writing it.
pub(crate) fn lock_of(path: &Path, watch: &dyn Watch) -> Result<FolderLock, FlowError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    artifacts::lock(folder.unwrap_or(Path::new(".")), watch)
}

/// The same of runs that were just recorded.
fn finish_recorded(
    path: &Path,
    baseline: Baseline,
    gate: &GateSettings,
    watch: &dyn Watch,
) -> Result<CommandResult<Baseline>, FlowError> {
    let policy = PolicyChoice::default().policy(gate)?;
    let done = finish(path, baseline)?;
    let exit = say_what_it_serves(&done.document, policy, watch);
    Ok(CommandResult { end: Ok(exit), ..done })
}

/// A baseline that cannot serve its tolerance is kept, says so, and ends as inconclusive, as its gates will.
pub(crate) fn say_what_it_serves(baseline: &Baseline, policy: Policy, watch: &dyn Watch) -> ExitCode {
    match blind_spots(baseline).filter(|_| policy == Policy::Stored) {
        Some(blind) => {
            watch.note(&format!("warning: {blind}"));
            ExitCode::Inconclusive
        }
        None => ExitCode::Ok,
    }
}

pub(crate) fn finish(path: &Path, baseline: Baseline) -> Result<CommandResult<Baseline>, FlowError> {
    holdpoint_store::write_json(path, &baseline)?;
    Ok(CommandResult::new(baseline, ExitCode::Ok).with_note(format!("baseline: {}", path.display())))
}

/// Where a baseline belongs that was not given a place.
fn own_path(dir: &Path, baseline: &Baseline) -> Result<PathBuf, FlowError> {
    let machine = baseline.machine.as_ref().ok_or_else(|| {
        FlowError::Input("these reports name no machine; say where to write with --baseline FILE".to_owned())
    })?;
    Ok(holdpoint_store::baseline_path(dir, &baseline.suite, &machine.fingerprint))
}

/// Where this machine's baseline of a suite lies.
pub(crate) fn this_machines(suite: &Suite, dir: &Path) -> PathBuf {
    holdpoint_store::baseline_path(dir, &suite.name, &machine::machine_for(suite).fingerprint)
}

fn path_of(request: &BaselineChoice) -> Result<PathBuf, FlowError> {
    if let Some(path) = &request.baseline {
        return Ok(path.clone());
    }
    existing_own_path(&suites::load(&request.suite)?, &request.suite, &request.baseline_dir)
}

/// Where this machine's baseline of a suite lies, if it has one.
fn existing_own_path(suite: &Suite, choice: &SuiteChoice, dir: &Path) -> Result<PathBuf, FlowError> {
    let path = this_machines(suite, dir);
    if path.exists() {
        return Ok(path);
    }
    Err(FlowError::File {
        path,
        what: format!(
            "no baseline for suite {:?} on this machine; record one: \"holdpoint baseline record --suite {}\"",
            suite.name, choice.name
        ),
    })
}

/// Measures a suite several times, each time in a new process: what a process is lucky or unlucky with, such
/// as its address layout, then shows in the spread between runs. A run that is not `ok` is the last. Each process reads the
/// suite again, which has to be the one that was read before anything was measured.
pub(crate) fn measure_runs(
    suite: &LoadedSuite,
    runs_count: u32,
    watch: &dyn Watch,
) -> Result<Vec<Report>, FlowError> {
    let dir = Scratch::new()?;
    let mut reports = Vec::new();
    for run in 1..=runs_count {
        watch.progress(&format!("run {run} of {runs_count}"));
        let path = dir.path().join(format!("run-{run}.json"));
        let (suite_choice, parent) = (suite.choice.clone(), std::process::id());
        let step = OwnProcess::Run { suite: suite_choice, output: path.clone(), parent };
        let status = step.command()?.stdout(Stdio::null()).status();
        let status = status.map_err(|error| FlowError::Internal(format!("cannot start a run: {error}")))?;
        if !path.exists() {
            return Err(FlowError::Internal(format!("run {run} ended with {status} and left no report")));
        }
        if suites::load(&suite.choice)? != suite.as_written {
            let what = "it has changed while its workloads were measured; find out what writes to it, and measure again";
            return Err(FlowError::File { path: suite.choice.name.clone().into(), what: what.to_owned() });
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
