//! compute-sanitizer on one workload.

use super::drive::{CallResult, Stop, drive};
use super::process::read_log;
use super::{Folder, unavailable};
use holdpoint_interop::sanitizer::sanitizer_log;
use holdpoint_model::limits::clean_text;
use holdpoint_model::profile::{SanitizeOutcome, ToolInfo, Unavailable};
use holdpoint_model::protocol::DeviceInfo;
use holdpoint_model::{FailureCause, Suite, Workload};
use std::time::Duration;

/// Tools of compute-sanitizer: accesses out of bounds, races in shared memory, reads of uninitialised memory, barriers
/// that not all threads reach.
pub const SANITIZERS: &[&str] = &["memcheck", "racecheck", "initcheck", "synccheck"];

/// The exit code for errors found; workloads and workers do not use it.
const ERROR_EXIT: i32 = 86;

#[derive(Clone, Copy, Debug)]
pub struct SanitizeSettings<'a> {
    pub sanitizer: &'a ToolInfo,
    pub timeout: Duration,
    pub folder: &'a Folder,
}

pub fn sanitize(
    suite: &Suite,
    spec: &Workload,
    tool: &str,
    settings: SanitizeSettings<'_>,
) -> (SanitizeOutcome, Option<DeviceInfo>) {
    let log = settings.folder.file(&spec.name, &format!(".{tool}.log"));
    let (path, code) = (log.display().to_string(), ERROR_EXIT.to_string());
    let command = [
        // PyTorch's allocator packs tensors into large blocks, which hides accesses out of bounds.
        [
            "env",
            "PYTORCH_NO_CUDA_MEMORY_CACHING=1",
            &settings.sanitizer.path,
            "--tool",
            tool,
            "--error-exitcode",
            &code,
        ],
        ["--check-exit-code", "no", "--print-limit", "100", "--target-processes", "all", "--log-file"],
    ];
    let command: Vec<String> =
        command.concat().into_iter().chain([path.as_str()]).map(str::to_owned).collect();
    let CallResult { stop, device, status, .. } = drive(suite, spec, &command, settings.timeout);
    let report = sanitizer_log(&read_log(&log));
    let has_error_exit = status.is_some_and(|status| status.code() == Some(ERROR_EXIT));
    let name = log.file_name().map(|name| name.to_string_lossy().into_owned());
    let no_result = |reason: &str, detail: String| SanitizeOutcome::Unavailable(unavailable(reason, detail));
    let outcome = match (stop, report.errors_count) {
        (_, Some(errors_count @ 1..)) => {
            SanitizeOutcome::Errors { errors_count, errors: report.errors, log: name }
        }
        // Killed before its summary, it may have reported some.
        (_, None) if !report.errors.is_empty() || has_error_exit => {
            let errors_count = report.errors.len().max(1) as u64;
            SanitizeOutcome::Errors { errors_count, errors: report.errors, log: name }
        }
        (Some(Stop::Skipped(reason)), _) => SanitizeOutcome::Unavailable(unavailable(&reason, None)),
        (_, None) if !report.troubles.is_empty() => {
            no_result("sanitizer_not_supported", report.troubles.join("; "))
        }
        (Some(Stop::Failed(failure)), _) if failure.cause == FailureCause::TimedOut => {
            no_result("sanitizer_timed_out", failure.detail)
        }
        (Some(Stop::Failed(failure)), Some(0)) => SanitizeOutcome::Failed(failure),
        (Some(Stop::Failed(failure)), None) => {
            let detail = format!("{}; its log is {path}", clean_text(&failure.detail));
            no_result("sanitizer_no_summary", detail)
        }
        (None, None) => no_result("sanitizer_no_summary", format!("it wrote no summary; its log is {path}")),
        (None, Some(0)) if has_error_exit => {
            let detail = format!("it ended with {ERROR_EXIT} and counts no errors; its log is {path}");
            no_result("sanitizer_no_summary", detail)
        }
        (None, Some(0)) => SanitizeOutcome::Clean,
    };
    (outcome, device)
}

/// Checks that the sanitizer finds a planted error: the suite's workload writes out of bounds. If it does not, its
/// silence about others means nothing.
pub fn check_sanitizer(
    planted: &Suite,
    settings: SanitizeSettings<'_>,
) -> Result<Option<DeviceInfo>, Unavailable> {
    let Some(spec) = planted.workloads.first() else { return Ok(None) };
    let (outcome, device) = sanitize(planted, spec, "memcheck", settings);
    match outcome {
        SanitizeOutcome::Errors { errors, .. } if errors.iter().any(|error| error.kernel.is_some()) => {
            Ok(device)
        }
        SanitizeOutcome::Unavailable(why) => Err(why),
        SanitizeOutcome::Clean => Err(unavailable("sanitizer_blind", "memcheck called it clean".to_owned())),
        SanitizeOutcome::Errors { errors_count, .. } => {
            let detail = format!("of {errors_count} errors, none names a kernel");
            Err(unavailable("sanitizer_blind", detail))
        }
        SanitizeOutcome::Failed(failure) => Err(unavailable("sanitizer_blind", failure.detail)),
    }
}
