//! `holdpoint calibrate`: a suite against itself, over and over.

use crate::Watch;
use crate::ab::compare::OngoingComparison;
use crate::ab::sides::PreparedSides;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::artifacts;
use crate::request::{Decision, SuiteChoice};
use crate::suites;
use holdpoint_gate::calibrate::Trials;
use holdpoint_gate::{HasExitCode, Judgement, Policy};
use holdpoint_measure::ab::Sides;
use holdpoint_measure::builds::{Builds, Built};
use holdpoint_measure::{advice, machine};
use holdpoint_model::{AbPlan, Calibration, Check, Side, Suite, Verdict, Workload};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A suite to be compared with itself.
#[derive(Clone, Debug)]
pub struct CalibrationRequest {
    pub suite: SuiteChoice,
    /// How often.
    pub trials: u32,
    /// The slowdown that is put into head.
    pub inject: f64,
    pub decision: Decision,
    /// The folder for the result, which is not written with a slowdown.
    pub calibration_dir: PathBuf,
    /// Also writes the outcome to this file.
    pub output: Option<PathBuf>,
}

pub fn run(request: &CalibrationRequest, watch: &dyn Watch) -> Result<CommandResult<Calibration>, FlowError> {
    let prepared = sides(request, watch)?;
    let machine = machine::machine();
    let suite = &prepared.sides.head;
    let own = holdpoint_store::baseline_path(&request.calibration_dir, &suite.name, &machine.fingerprint);
    let _lock = artifacts::lock(&request.calibration_dir, watch)?;
    // What was found with a slowdown put in says nothing about false alarms, and is not kept beside verdicts.
    let paths = request.output.iter().chain((request.inject == 0.0).then_some(&own));
    for path in paths.clone() {
        holdpoint_store::check_writable(path)?;
    }
    watch.keep_on_interrupt();
    watch.progress("looking at this machine");
    let advice = advice::advise();
    let start = Instant::now();
    let mut trials = Trials::new(request.inject);
    let mut calibration: Option<Calibration> = None;
    let mut failed = None;
    for trial in 0..request.trials {
        if watch.is_interrupted() {
            break;
        }
        watch.progress(&format!("trial {} of {}", trial + 1, request.trials));
        let plan = request.decision.plan(&prepared.sides.head.gate, Policy::Sequential);
        let plan = AbPlan { seed: plan.seed.wrapping_add(u64::from(trial)), ..plan };
        let mut comparison = OngoingComparison::new(&prepared, plan, Policy::Sequential)?;
        comparison.measure(None, watch);
        let judgement = comparison.judge()?;
        let report = comparison.report;
        if report.finished {
            trials.push(&report, &judgement);
            let (elapsed_s, finished) = (start.elapsed().as_secs_f64(), trials.count() == request.trials);
            calibration = trials.summarise(&report, machine.clone(), elapsed_s, finished);
        }
        let Some(calibration) = &mut calibration else { continue };
        calibration.advice.clone_from(&advice);
        if !calibration.is_evidence() {
            failed = failure(&judgement);
            break;
        }
        // Kept after every trial: a machine that dies loses no more than one.
        for path in paths.clone() {
            crate::evidence::save(path, calibration)?;
        }
    }
    let Some(calibration) = calibration else {
        return Err(FlowError::Internal("no trial was made".to_owned()));
    };
    let exit = calibration.exit_code();
    let mut done = CommandResult::new(calibration, exit);
    if let Some(failed) = failed {
        // What earlier trials left is no evidence either: the suite does not always work.
        if trials.count() > 1 {
            paths.clone().try_for_each(|path| holdpoint_store::remove(path))?;
        }
        done = done.with_note(failed);
    }
    Ok(done)
}

/// The first workload that failed, and why.
fn failure(judgement: &Judgement) -> Option<String> {
    let is_failed = |check: &&Check| matches!(check.verdict, Verdict::Broken | Verdict::Skipped);
    let check = judgement.checks.iter().find(is_failed)?;
    Some(format!("not kept: {}: {}", check.name(), check.reason))
}

/// The suite on both sides; a slowdown can only be put into ops of our own.
fn sides(request: &CalibrationRequest, watch: &dyn Watch) -> Result<PreparedSides, FlowError> {
    let as_written = suites::load(&request.suite)?;
    let built = build(&as_written, watch)?;
    // Code against itself is what is to be measured here.
    let side = |slowdown| {
        let suite = suites::separate(as_written.clone(), &request.suite, slowdown)?;
        let dir = built.as_ref().map(|(_, built)| built.dir.clone());
        suites::list(Suite { dir: dir.or_else(|| suite.dir.clone()), ..suite })
    };
    let (base, head) = (side(0.0)?, side(request.inject)?);
    let pin = request.decision.pin(&head.gate);
    let sides = Sides { base, head, pin, measure_same_code: true };
    let suite = &sides.head;
    // A program in place of the built-in ops knows nothing of slowdowns.
    let is_ours = |workload: &&Workload| suites::is_own(&as_written, workload.worker());
    if request.inject > 0.0
        && let Some(workload) = suite.workloads.iter().find(|workload| !is_ours(workload))
    {
        return Err(FlowError::Input(format!(
            "--inject can slow down built-in ops only; workload {:?} runs on worker {:?}",
            workload.name,
            workload.worker()
        )));
    }
    let label = |what: &str| Side { label: format!("{}{what}", suite.name), ..Side::default() };
    // Rounded, since 0.07 · 100 is a little more than 7.
    let percent = (request.inject * 1e6).round() / 1e4;
    let injected = if request.inject > 0.0 { format!(" +{percent} %") } else { String::new() };
    let (base, head) = (label(""), label(&injected));
    Ok(PreparedSides { _builds: built.map(|(builds, _)| builds), ..PreparedSides::new(sides, base, head) })
}

/// The working tree as it is, built as `ab` builds it; both sides are this one.
fn build(suite: &Suite, watch: &dyn Watch) -> Result<Option<(Builds, Built)>, FlowError> {
    if suite.build.is_none() {
        return Ok(None);
    }
    watch.progress("building the working tree");
    let builds = Builds::open(Path::new("."))?.in_folder(suite.dir.as_deref());
    let built = builds.build_in_place(suite.build.as_ref())?;
    Ok(Some((builds, built)))
}
