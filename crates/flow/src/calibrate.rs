//! `holdpoint calibrate`: a suite against itself, over and over.

use crate::Watch;
use crate::ab::compare::Comparison;
use crate::ab::sides::Prepared;
use crate::done::Done;
use crate::error::FlowError;
use crate::options::CalibrateArgs;
use crate::support::artifacts;
use crate::support::suites;
use holdpoint_gate::calibrate::Trials;
use holdpoint_gate::{HasExitCode, Policy};
use holdpoint_measure::ab::Sides;
use holdpoint_measure::machine;
use holdpoint_model::{AbPlan, Calibration, Side, WorkloadSpec};
use std::time::Instant;

pub fn run(args: &CalibrateArgs, watch: &dyn Watch) -> Result<Done<Calibration>, FlowError> {
    let prepared = sides(args)?;
    let machine = machine::machine();
    let suite = &prepared.sides.head;
    let own = holdpoint_store::baseline_path(&args.calibration_dir, &suite.name, &machine.fingerprint);
    let _lock = artifacts::lock(&args.calibration_dir, watch)?;
    // What was found with a slowdown put in says nothing about false alarms, and is not kept beside verdicts.
    let paths = args.output.iter().chain((args.inject == 0.0).then_some(&own));
    for path in paths.clone() {
        holdpoint_store::check_writable(path)?;
    }
    watch.keep_on_interrupt();
    let start = Instant::now();
    let mut trials = Trials::new(args.inject);
    let mut calibration: Option<Calibration> = None;
    for trial in 0..args.trials {
        if watch.is_interrupted() {
            break;
        }
        watch.progress(&format!("trial {} of {}", trial + 1, args.trials));
        let plan = args.decide.plan(&prepared.sides.head.gate);
        let plan = AbPlan { seed: plan.seed.wrapping_add(u64::from(trial)), ..plan };
        let mut comparison = Comparison::new(&prepared, plan, Policy::Sequential)?;
        comparison.measure(None, watch);
        let (report, judgement) = comparison.finish()?;
        if report.finished {
            trials.push(&report, &judgement);
            let (elapsed_s, finished) = (start.elapsed().as_secs_f64(), trials.count() == args.trials);
            calibration = trials.summarise(&report, machine.clone(), elapsed_s, finished);
        }
        // Kept after every trial: a machine that dies loses no more than one.
        for (path, calibration) in paths.clone().zip(calibration.iter().cycle()) {
            crate::support::save(path, calibration)?;
        }
    }
    let Some(calibration) = calibration else {
        return Err(FlowError::Internal("no trial was made".to_owned()));
    };
    let exit = calibration.exit_code();
    Ok(Done::new(calibration, exit))
}

/// The suite on both sides; a slowdown can only be put into ops of our own.
fn sides(args: &CalibrateArgs) -> Result<Prepared, FlowError> {
    // Code against itself is what is to be measured here.
    let (base, head) = (suites::separate(&args.suite, 0.0)?, suites::separate(&args.suite, args.inject)?);
    let pin = args.decide.pin(&head.gate);
    let sides = Sides { base, head, pin, measure_same_code: true };
    let suite = &sides.head;
    // A program in place of the built-in ops knows nothing of slowdowns.
    let as_written = suites::load(&args.suite)?;
    let is_ours = |workload: &&WorkloadSpec| suites::is_own(&as_written, &workload.worker);
    if args.inject > 0.0
        && let Some(workload) = suite.workloads.iter().find(|workload| !is_ours(workload))
    {
        return Err(FlowError::Input(format!(
            "--inject can slow down built-in ops only; workload {:?} runs on worker {:?}",
            workload.name, workload.worker
        )));
    }
    let label = |what: &str| Side { label: format!("{}{what}", suite.name), revision: None };
    // Rounded, since 0.07 · 100 is a little more than 7.
    let percent = (args.inject * 1e6).round() / 1e4;
    let injected = if args.inject > 0.0 { format!(" +{percent} %") } else { String::new() };
    let (base, head) = (label(""), label(&injected));
    Ok(Prepared::new(sides, base, head))
}
