//! `holdpoint roofline`: what the machine can do at most, and how near each workload comes to it.

use super::run;
use crate::args::{RooflineArgs, SuiteArg};
use crate::ceilings;
use crate::error::CliError;
use crate::output::Output;
use crate::suites;
use holdpoint_gate::roofline::{ceilings_from, device_of};
use holdpoint_measure::device_count;
use holdpoint_model::roofline::{Bottleneck, Placement};
use holdpoint_model::{Ceilings, ExitCode, Report, Roofline, RunStatus};
use holdpoint_render::{svg, terminal};
use std::path::Path;

const CPU: &str = "ceilings";
const GPU: &str = "ceilings-gpu";

/// Runs the command.
///
/// # Errors
/// When a file cannot be read, used or written, or there are no ceilings for the report.
pub fn run(args: &RooflineArgs, output: &Output) -> Result<ExitCode, CliError> {
    let path = match &args.report {
        None if args.measure => return measure_all(args, output),
        path => path.as_deref().unwrap_or(Path::new("artifacts/report.json")),
    };
    let report = holdpoint_store::read_document::<Report>(path)?;
    if args.measure {
        // Known before it costs a run.
        args.output.as_deref().map_or(Ok(()), holdpoint_store::check_writable)?;
        let is_gpu = device_of(&report).is_some_and(|(_, is_gpu)| is_gpu);
        if let Err(run) = measure(if is_gpu { GPU } else { CPU }, args.device, output)? {
            return unmeasured(&run, output);
        }
    }
    let roofline = ceilings::roofline(&report, args.ceilings.as_deref())?;
    if let Some(path) = &args.output {
        holdpoint_store::write_text(path, &svg::roofline(&roofline))?;
        output.note(&format!("picture: {}", path.display()));
    }
    output.result(&roofline, |style| terminal::roofline(&roofline, style))?;
    Ok(exit_code(&roofline))
}

/// The CPU's ceilings, and a device's where there is one.
fn measure_all(args: &RooflineArgs, output: &Output) -> Result<ExitCode, CliError> {
    if args.output.is_some() {
        return Err(CliError::Input(
            "--output: a picture needs a report, whose workloads are on it".to_owned(),
        ));
    }
    let has_device = args.device.is_some() || device_count().unwrap_or(0) > 0;
    let mut all = Vec::new();
    for suite in [CPU].into_iter().chain(has_device.then_some(GPU)) {
        match measure(suite, args.device, output)? {
            Ok(ceilings) => all.push(ceilings),
            Err(run) => return unmeasured(&run, output),
        }
    }
    output.result(&all, |style| {
        let texts: Vec<String> = all.iter().map(|ceilings| terminal::ceilings(ceilings, style)).collect();
        texts.join("\n")
    })?;
    Ok(ExitCode::Ok)
}

/// Measures a ceilings suite and keeps it; a run that holds no ceilings comes back as it is.
fn measure(
    suite: &str,
    device: Option<u32>,
    output: &Output,
) -> Result<Result<Ceilings, Box<Report>>, CliError> {
    let suite = suites::runnable(&SuiteArg { suite: suite.to_owned(), device })?;
    let report = run::measure(&suite, output);
    let is_usable = matches!(report.status, RunStatus::Ok | RunStatus::Partial);
    match (ceilings_from(&report), ceilings::kept_path(&report)) {
        (Ok(ceilings), Some(path)) if is_usable => {
            run::save(&path, &report)?;
            output.note(&format!("ceilings: {}", path.display()));
            Ok(Ok(ceilings))
        }
        _ => Ok(Err(Box::new(report))),
    }
}

fn unmeasured(report: &Report, output: &Output) -> Result<ExitCode, CliError> {
    output.result(report, |style| terminal::report(report, style))?;
    Ok(run::exit_code(report))
}

/// What is above a ceiling was not measured right; where nothing could be placed, nothing was shown.
fn exit_code(roofline: &Roofline) -> ExitCode {
    let placed = || {
        roofline.workloads.values().filter_map(|placement| match placement {
            Placement::Placed(placed) => Some(placed.bottleneck),
            Placement::Unplaced { .. } => None,
        })
    };
    match placed().next() {
        None => ExitCode::Skipped,
        Some(_) if placed().any(|bottleneck| bottleneck == Bottleneck::AboveCeiling) => {
            ExitCode::Inconclusive
        }
        Some(_) => ExitCode::Ok,
    }
}
