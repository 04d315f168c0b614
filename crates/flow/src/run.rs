//! `holdpoint run`: measure a suite and write its report.

use crate::Watch;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::artifacts::{self, Writer};
use crate::evidence::sealing::{self, Origins, Sealing};
use crate::histories::{self, Measured};
use crate::request::{EngineChoice, HistoryChoice, SuiteChoice};
use crate::suites;
use crate::suites::engines;
use holdpoint_evidence::SigningKey;
use holdpoint_gate::HasExitCode;
use holdpoint_measure::ReadySuite;
use holdpoint_measure::{device_count, jobs, run_suite};
use holdpoint_model::{Report, Suite};
use holdpoint_store::FolderLock;
use std::path::{Path, PathBuf};

/// A suite to be measured.
#[derive(Clone, Debug)]
pub struct RunRequest {
    pub subject: RunSubject,
    /// Where the report goes.
    pub output: PathBuf,
    pub history: HistoryChoice,
    /// The key that signs the seal; that of the environment, if absent.
    pub seal_key: Option<PathBuf>,
    /// The process whose step this run is, and with which it ends.
    pub parent: Option<u32>,
}

/// What is measured.
#[derive(Clone, Debug)]
pub enum RunSubject {
    Suite(SuiteChoice),
    /// The suite on devices, one after the other: `all`, or their numbers.
    Devices {
        suite: SuiteChoice,
        devices: String,
    },
    Model(EngineChoice),
}

/// The report of a run, or those of each device.
#[derive(Debug)]
pub enum RunReports {
    Once(Box<Report>),
    OnDevices(Vec<(u32, Report)>),
}

pub fn run(request: &RunRequest, watch: &dyn Watch) -> Result<CommandResult<RunReports>, FlowError> {
    let key = sealing::read_key(request.seal_key.as_deref())?;
    if let Some(parent_id) = request.parent {
        jobs::end_with_parent(parent_id).map_err(|error| FlowError::Internal(error.to_string()))?;
    }
    let suite = match &request.subject {
        RunSubject::Devices { suite, devices } => return on_devices(request, suite, devices, key, watch),
        RunSubject::Model(engine) => engines::suite(engine, &[])?,
        RunSubject::Suite(suite) => suites::runnable(suite)?,
    };
    let _lock = begin(&request.output, watch)?;
    holdpoint_store::check_writable(&request.output)?;
    let report = measure(&suite, watch);
    let unsealed = save_sealed(Sealing::new(key, &request.output), &request.output, "run", &suite, &report)?;
    keep(request, &suite, &report, watch);
    let (exit, note) = (report.exit_code(), format!("report: {}{unsealed}", request.output.display()));
    Ok(CommandResult::new(RunReports::Once(Box::new(report)), exit).with_note(note))
}

/// The suite on several devices, one after the other.
fn on_devices(
    request: &RunRequest,
    choice: &SuiteChoice,
    devices: &str,
    key: Option<SigningKey>,
    watch: &dyn Watch,
) -> Result<CommandResult<RunReports>, FlowError> {
    let as_written = suites::load(choice)?;
    if !as_written.uses_cuda() {
        let name = &choice.name;
        return Err(FlowError::Input(format!("--devices: suite {name:?} has no `cuda` workloads")));
    }
    let ordinals = ordinals(devices, device_count().unwrap_or(0))?;
    let mut reports = Vec::new();
    for ordinal in ordinals {
        let choice = SuiteChoice { device: Some(ordinal), ..choice.clone() };
        let suite = suites::ready(suites::in_own_process(as_written.clone(), &choice)?)?;
        let path = with_ordinal(&request.output, ordinal);
        holdpoint_store::check_writable(&path)?;
        let report = measure(&suite, watch);
        let unsealed = save_sealed(Sealing::new(key.clone(), &path), &path, "run", &suite, &report)?;
        keep(request, &suite, &report, watch);
        let status = report.status.as_str();
        watch.note(&format!("device {ordinal}: {status}: {}{unsealed}", path.display()));
        reports.push((ordinal, report));
    }
    let exit = reports.exit_code();
    Ok(CommandResult::new(RunReports::OnDevices(reports), exit))
}

/// Adds the report to the history, if there is to be one. Whoever this run is a step of does it itself.
fn keep(request: &RunRequest, suite: &Suite, report: &Report, watch: &dyn Watch) {
    if request.parent.is_some() {
        return;
    }
    let measured = Measured::Runs { reports: std::slice::from_ref(report), judgement: None };
    histories::keep(histories::wanted(&request.history, suite).as_ref(), &measured, watch);
}

/// The devices that were named; `all` of none is the first, which will say why there is none.
fn ordinals(text: &str, count: u32) -> Result<Vec<u32>, FlowError> {
    if text == "all" {
        return Ok((0..count.max(1)).collect());
    }
    let numbers: Result<Vec<u32>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    numbers
        .map_err(|_| FlowError::Input(format!("--devices {text:?}: `all` or numbers such as 0,2 are wanted")))
}

/// `report.json` as `report.device-1.json`.
fn with_ordinal(path: &Path, ordinal: u32) -> PathBuf {
    let extension = path.extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_extension(format!("device-{ordinal}.{extension}").trim_end_matches('.'))
}

/// A report under the name that a gate gives it takes the place of whatever a gate left in the folder.
pub(crate) fn begin(path: &Path, watch: &dyn Watch) -> Result<Option<FolderLock>, FlowError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_gates = path.file_name().is_some_and(|name| name == artifacts::REPORT);
    if !is_gates {
        return Ok(None);
    }
    let lock = artifacts::lock(folder, watch)?;
    artifacts::clear(folder, Writer::Run)?;
    Ok(Some(lock))
}

/// Measures with progress on a terminal.
pub(crate) fn measure(suite: &ReadySuite, watch: &dyn Watch) -> Report {
    suites::note_harnesses(suite, watch);
    let progress = watch.start(suite.workloads.len());
    run_suite(suite, Path::new("."), &mut |event| progress.on_event(event))
}

pub(crate) fn save_sealed(
    mut sealing: Sealing,
    path: &Path,
    command: &'static str,
    suite: &Suite,
    report: &Report,
) -> Result<&'static str, FlowError> {
    sealing.write_json(path, report)?;
    sealing.seal(&origins(command, suite, report))
}

/// The origin of a report.
pub(crate) fn origins<'a>(command: &'static str, suite: &'a Suite, report: &'a Report) -> Origins<'a> {
    Origins { command, suite, revision: report.revision.as_ref(), machine: report.machine.as_ref() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_all_or_numbers() {
        assert_eq!(ordinals("all", 3).unwrap(), [0, 1, 2]);
        assert_eq!(ordinals("all", 0).unwrap(), [0]);
        assert_eq!(ordinals("2, 0", 3).unwrap(), [2, 0]);
        assert!(ordinals("first", 3).is_err());
        assert_eq!(with_ordinal(Path::new("a/report.json"), 1), Path::new("a/report.device-1.json"));
        assert_eq!(with_ordinal(Path::new("report"), 0), Path::new("report.device-0"));
    }
}
