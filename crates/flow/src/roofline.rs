//! `holdpoint roofline`: what the machine can do at most, and how near each workload comes to it.

use crate::Watch;
use crate::ceilings;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::save;
use crate::request::SuiteChoice;
use crate::run;
use crate::suites;
use holdpoint_gate::HasExitCode;
use holdpoint_gate::roofline::{ceilings_from, device_of};
use holdpoint_measure::device_count;
use holdpoint_model::{Ceilings, ExitCode, Report, Roofline, RunStatus};
use holdpoint_render::svg;
use std::path::{Path, PathBuf};

const CPU: &str = "ceilings";
const GPU: &str = "ceilings-gpu";

/// A report to be placed below ceilings.
#[derive(Clone, Debug)]
pub struct RooflineRequest {
    /// The usual one, or none where ceilings are measured, if absent.
    pub report: Option<PathBuf>,
    /// The report of a ceilings suite; those that are kept, if absent.
    pub ceilings: Option<PathBuf>,
    /// Whether ceilings are measured.
    pub measure: bool,
    /// On this CUDA device.
    pub device: Option<u32>,
    /// Where the picture goes.
    pub output: Option<PathBuf>,
}

/// Workloads below the ceilings, or the ceilings alone.
#[derive(Debug)]
pub enum RooflineResult {
    Roofline(Box<Roofline>),
    Ceilings(Vec<Ceilings>),
    /// The run that was to measure ceilings and did not.
    Unmeasured(Box<Report>),
}

pub fn run(request: &RooflineRequest, watch: &dyn Watch) -> Result<CommandResult<RooflineResult>, FlowError> {
    let path = match &request.report {
        None if request.measure => return measure_all(request, watch),
        path => path.as_deref().unwrap_or(Path::new("artifacts/report.json")),
    };
    let report = holdpoint_store::read_document::<Report>(path)?;
    if request.measure {
        // Known before it costs a run.
        request.output.as_deref().map_or(Ok(()), holdpoint_store::check_writable)?;
        let is_gpu = device_of(&report).is_some_and(|(_, is_gpu)| is_gpu);
        if let Err(run) = measure(if is_gpu { GPU } else { CPU }, request.device, watch)? {
            return Ok(unmeasured(run));
        }
    }
    let roofline = ceilings::roofline(&report, request.ceilings.as_deref())?;
    if let Some(path) = &request.output {
        holdpoint_store::write_text(path, &svg::roofline(&roofline))?;
        watch.note(&format!("picture: {}", path.display()));
    }
    let exit = roofline.exit_code();
    Ok(CommandResult::new(RooflineResult::Roofline(Box::new(roofline)), exit))
}

/// The CPU's ceilings, and a device's where there is one.
fn measure_all(
    request: &RooflineRequest,
    watch: &dyn Watch,
) -> Result<CommandResult<RooflineResult>, FlowError> {
    if request.output.is_some() {
        return Err(FlowError::Input(
            "--output: a picture needs a report, whose workloads are on it".to_owned(),
        ));
    }
    let has_device = request.device.is_some() || device_count().unwrap_or(0) > 0;
    let mut all = Vec::new();
    for suite in [CPU].into_iter().chain(has_device.then_some(GPU)) {
        match measure(suite, request.device, watch)? {
            Ok(ceilings) => all.push(ceilings),
            Err(run) => return Ok(unmeasured(run)),
        }
    }
    Ok(CommandResult::new(RooflineResult::Ceilings(all), ExitCode::Ok))
}

/// Measures a ceilings suite and keeps it; a run that holds no ceilings comes back as it is.
fn measure(
    suite: &str,
    device: Option<u32>,
    watch: &dyn Watch,
) -> Result<Result<Ceilings, Box<Report>>, FlowError> {
    let suite = suites::runnable(&SuiteChoice::new(suite, device))?;
    let report = run::measure(&suite, watch);
    let is_usable = matches!(report.status, RunStatus::Ok | RunStatus::Partial);
    match (ceilings_from(&report), ceilings::kept_path(&report)) {
        (Ok(ceilings), Some(path)) if is_usable => {
            save(&path, &report)?;
            watch.note(&format!("ceilings: {}", path.display()));
            Ok(Ok(ceilings))
        }
        _ => Ok(Err(Box::new(report))),
    }
}

fn unmeasured(run: Box<Report>) -> CommandResult<RooflineResult> {
    let exit = run.exit_code();
    CommandResult::new(RooflineResult::Unmeasured(run), exit)
}
