//! `holdpoint run`: measure a suite and write its report.

use crate::args::{RunArgs, SuiteArg};
use crate::artifacts::{self, Writer};
use crate::error::CliError;
use crate::output::Output;
use crate::progress::Progress;
use crate::sealing::{self, Origins, Sealing};
use crate::suites;
use holdpoint_evidence::SigningKey;
use holdpoint_measure::{device_count, jobs, run_suite};
use holdpoint_model::{ExitCode, Report, RunStatus, Suite};
use holdpoint_render::terminal;
use holdpoint_store::FolderLock;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Runs the command.
///
/// # Errors
/// When the suite cannot be used or the report cannot be written.
pub fn run(args: &RunArgs, output: &Output) -> Result<ExitCode, CliError> {
    let key = sealing::read_key(&args.seal)?;
    if let Some(parent_id) = args.parent {
        jobs::end_with_parent(parent_id).map_err(|error| CliError::Internal(error.to_string()))?;
    }
    if let Some(devices) = &args.devices {
        return on_devices(args, devices, key, output);
    }
    let suite = suites::runnable(&args.suite)?;
    let _lock = begin(&args.output, output)?;
    holdpoint_store::check_writable(&args.output)?;
    let report = measure(&suite, output);
    let unsealed = save_sealed(Sealing::new(key, &args.output), &args.output, &suite, &report)?;
    output.result(&report, |style| terminal::report(&report, style))?;
    output.note(&format!("report: {}{unsealed}", args.output.display()));
    Ok(exit_code(&report))
}

/// The suite on several devices, one after the other.
fn on_devices(
    args: &RunArgs,
    devices: &str,
    key: Option<SigningKey>,
    output: &Output,
) -> Result<ExitCode, CliError> {
    if !suites::load(&args.suite.suite)?.uses_cuda() {
        return Err(CliError::Input(format!(
            "--devices: suite {:?} has no `cuda` workloads",
            args.suite.suite
        )));
    }
    let ordinals = ordinals(devices, device_count().unwrap_or(0))?;
    let mut reports = Vec::new();
    for ordinal in ordinals {
        let suite = suites::runnable(&SuiteArg { device: Some(ordinal), ..args.suite.clone() })?;
        let path = with_ordinal(&args.output, ordinal);
        holdpoint_store::check_writable(&path)?;
        let report = measure(&suite, output);
        let unsealed = save_sealed(Sealing::new(key.clone(), &path), &path, &suite, &report)?;
        let status = report.status.as_str();
        output.note(&format!("device {ordinal}: {status}: {}{unsealed}", path.display()));
        reports.push((ordinal, report));
    }
    output.result(&reports, |style| terminal::devices(&reports, style))?;
    // A failure on one device is not made good by another; what was skipped on all was skipped.
    let codes: Vec<ExitCode> = reports.iter().map(|(_, report)| exit_code(report)).collect();
    let has = |code: ExitCode| codes.contains(&code);
    Ok(if has(ExitCode::Broken) {
        ExitCode::Broken
    } else if has(ExitCode::Ok) {
        ExitCode::Ok
    } else {
        ExitCode::Skipped
    })
}

/// The devices that were named; `all` of none is the first, which will say why there is none.
fn ordinals(text: &str, count: u32) -> Result<Vec<u32>, CliError> {
    if text == "all" {
        return Ok((0..count.max(1)).collect());
    }
    let numbers: Result<Vec<u32>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    numbers
        .map_err(|_| CliError::Input(format!("--devices {text:?}: `all` or numbers such as 0,2 are wanted")))
}

/// `report.json` as `report.device-1.json`.
fn with_ordinal(path: &Path, ordinal: u32) -> PathBuf {
    let extension = path.extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_extension(format!("device-{ordinal}.{extension}").trim_end_matches('.'))
}

/// A report under the name that a gate gives it takes the place of whatever a gate left in the folder.
fn begin(path: &Path, output: &Output) -> Result<Option<FolderLock>, CliError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_gates = path.file_name().is_some_and(|name| name == artifacts::REPORT);
    if !is_gates {
        return Ok(None);
    }
    let lock = artifacts::lock(folder, output)?;
    artifacts::clear(folder, Writer::Run)?;
    Ok(Some(lock))
}

/// Measures with progress on a terminal.
pub fn measure(suite: &Suite, output: &Output) -> Report {
    let progress = Progress::new(suite.workloads.len(), output);
    run_suite(suite, Path::new("."), &mut |event| progress.on(event))
}

fn save_sealed(
    mut sealing: Sealing,
    path: &Path,
    suite: &Suite,
    report: &Report,
) -> Result<&'static str, CliError> {
    sealing.write_json(path, report)?;
    sealing.seal(&origins("run", suite, report))
}

/// What a report is of.
pub fn origins<'a>(command: &'static str, suite: &'a Suite, report: &'a Report) -> Origins<'a> {
    Origins { command, suite, revision: report.revision.as_ref(), machine: report.machine.as_ref() }
}

/// Writes a report; where that fails, into the folder for temporary files: what was measured is not lost.
///
/// # Errors
/// With the first failure, after the report has been put elsewhere if at all possible.
pub fn save(path: &Path, report: &impl Serialize) -> Result<(), CliError> {
    let Err(source) = holdpoint_store::write_json(path, report) else {
        return Ok(());
    };
    let refuge = std::env::temp_dir().join(format!("holdpoint-report-{}.json", std::process::id()));
    match holdpoint_store::write_json(&refuge, report) {
        Ok(()) => Err(CliError::Kept { source, refuge }),
        Err(_) => Err(source.into()),
    }
}

/// How a run ends that is not compared with anything.
pub fn exit_code(report: &Report) -> ExitCode {
    match report.status {
        RunStatus::Ok | RunStatus::Partial => ExitCode::Ok,
        RunStatus::Skipped => ExitCode::Skipped,
        RunStatus::Failed => ExitCode::Broken,
    }
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
