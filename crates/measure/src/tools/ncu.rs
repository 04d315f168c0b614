//! Nsight Compute on the kernels of one workload.

use super::drive::{CallResult, Stop, drive};
use super::process::{ProcessError, capture_to_file, read_log};
use super::{Folder, unavailable};
use holdpoint_interop::ncu::{NcuLaunch, ncu_page};
use holdpoint_model::limits::clean_text;
use holdpoint_model::profile::{KernelProfile, ProfileOutcome, Profiled, ToolInfo, Unavailable};
use holdpoint_model::protocol::DeviceInfo;
use holdpoint_model::report::KernelInfo;
use holdpoint_model::suite::Cache;
use holdpoint_model::{FailureCause, Suite, Workload};
use holdpoint_stats as stats;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Shows that something ran; not used as a time.
const DURATION: &str = "gpu__time_duration.sum";
/// Most launches of one call that are profiled if the worker does not report their number; each takes tens of replays.
const LAUNCHES_MAX: u32 = 200;

#[derive(Clone, Copy, Debug)]
pub struct ProfileSettings<'a> {
    pub ncu: &'a ToolInfo,
    pub metrics: &'a [String],
    /// Metrics without which a profile is useless.
    pub required: &'a [String],
    /// Regular expression for kernel names; the workload's own kernels if absent.
    pub kernel: Option<&'a str>,
    pub timeout: Duration,
    pub folder: &'a Folder,
}

#[derive(Clone, Debug)]
pub struct ProfileResult {
    pub outcome: ProfileOutcome,
    pub device: Option<DeviceInfo>,
    /// Metrics that were requested and are not in the profile.
    pub missing: Vec<String>,
}

/// Profiles one workload: first a call without the profiler, to see that it works and learn its kernels' names, then
/// one with it.
pub fn profile(suite: &Suite, spec: &Workload, settings: ProfileSettings<'_>) -> ProfileResult {
    let CallResult { stop, device, kernel, .. } = drive(suite, spec, &[], settings.timeout);
    let mut missing = Vec::new();
    let outcome = match stop {
        Some(Stop::Failed(failure)) => ProfileOutcome::Failed(failure),
        Some(Stop::Skipped(reason)) => ProfileOutcome::Unavailable(unavailable(&reason, None)),
        None => match count(suite, spec, kernel.as_ref(), settings, &mut missing) {
            Ok(profiled) => ProfileOutcome::Profiled(profiled),
            Err(why) => ProfileOutcome::Unavailable(why),
        },
    };
    ProfileResult { outcome, device, missing }
}

fn count(
    suite: &Suite,
    spec: &Workload,
    kernel: Option<&KernelInfo>,
    settings: ProfileSettings<'_>,
    missing: &mut Vec<String>,
) -> Result<Profiled, Unavailable> {
    let (report, log) =
        (settings.folder.file(&spec.name, ".ncu-rep"), settings.folder.file(&spec.name, ".ncu.log"));
    let filter = settings.kernel.map(str::to_owned).or_else(|| kernel.and_then(own_kernels));
    let mut metrics = settings.metrics.to_vec();
    let called = loop {
        let command = ncu_command(spec, kernel, settings, filter.as_deref(), &metrics, [&report, &log]);
        let called = drive(suite, spec, &command, settings.timeout);
        // Some versions reject the whole list because of one unknown name, others skip it.
        let text = read_log(&log);
        let is_refused =
            |name: &&String| refused_metrics(&text).any(|refused| refused.contains(name.as_str()));
        let kept: Vec<String> = metrics.iter().filter(|name| !is_refused(name)).cloned().collect();
        if kept.len() == metrics.len() || kept.is_empty() {
            break called;
        }
        metrics = kept;
    };
    let text = read_log(&log);
    if let Some(why) = trouble(&called, &text, &log) {
        return Err(why);
    }
    let page = settings.folder.file(&spec.name, ".csv");
    let launches = import(settings.ncu, &report, &page)?;
    let kernels = kernels(&launches, settings.metrics);
    if kernels.is_empty() {
        return Err(no_kernel(&text));
    }
    for kernel in &kernels {
        let lacks = settings.required.iter().find(|name| !kernel.metrics.contains_key(*name));
        if let Some(name) = lacks {
            let detail = format!("{}: {name} is not a number; the table is {}", kernel.name, page.display());
            return Err(unavailable("counters_not_read", detail));
        }
    }
    missing.extend(
        settings
            .metrics
            .iter()
            .filter(|name| kernels.iter().all(|k| !k.metrics.contains_key(*name)))
            .cloned(),
    );
    let raw = page.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(Profiled { kernel_filter: filter, raw, kernels })
}

/// The profiler's command line, up to the workload's own.
fn ncu_command(
    spec: &Workload,
    kernel: Option<&KernelInfo>,
    settings: ProfileSettings<'_>,
    filter: Option<&str>,
    metrics: &[String],
    [report, log]: [&Path; 2],
) -> Vec<String> {
    // Profile what a run of this workload does: with its caches, and with unlocked clocks.
    let is_cold = spec.task.device().is_some_and(|device| device.cache == Cache::Cold);
    let cache = if is_cold { "all" } else { "none" };
    // The check of the answer may launch more kernels after the call.
    let launches = kernel.map(|kernel| kernel.launches_per_call).filter(|_| settings.kernel.is_none());
    let launches = launches.unwrap_or(LAUNCHES_MAX).to_string();
    let metrics = format!("{DURATION},{}", metrics.join(","));
    let (report, log) = (report.display().to_string(), log.display().to_string());
    let mut command =
        vec![settings.ncu.path.as_str(), "--force-overwrite", "--export", &report, "--log-file", &log];
    command.extend(["--target-processes", "all", "--clock-control", "none", "--cache-control", cache]);
    command.extend(["--launch-count", &launches, "--metrics", &metrics]);
    let filter = filter.map(|filter| format!("regex:{filter}"));
    if let Some(filter) = &filter {
        command.extend(["--kernel-name", filter]);
    }
    command.into_iter().map(str::to_owned).collect()
}

/// A regular expression for the workload's own kernels, which leaves out those that draw inputs or compare answers.
fn own_kernels(kernel: &KernelInfo) -> Option<String> {
    let names = kernel.functions.iter().filter(|name| is_identifier(name)).map(String::as_str);
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| format!("^({})$", names.join("|")))
}

fn is_identifier(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Parses `==ERROR== Failed to find metric a__b.sum`.
fn refused_metrics(log: &str) -> impl Iterator<Item = &str> {
    let names = log.lines().filter_map(|line| line.split_once("Failed to find metric "));
    names.filter_map(|(_, name)| name.split_whitespace().next())
}

/// Why there is no profile, judging by the profiler's log and how the workload ended.
fn trouble(called: &CallResult, text: &str, log: &Path) -> Option<Unavailable> {
    let says = |words: &str| text.lines().find(|line| line.contains(words)).map(clean_text);
    if let Some(line) = says("ERR_NVGPUCTRPERM") {
        return Some(unavailable("ncu_no_permission", line));
    }
    for words in ["LibraryNotLoaded", "Failed to initialize the profiler", "not supported"] {
        if let Some(line) = says(words).filter(|line| line.contains("==ERROR==")) {
            return Some(unavailable("ncu_not_supported", line));
        }
    }
    let own_error = || says("==ERROR==").filter(|line| !line.contains("application returned an error"));
    match &called.stop {
        Some(Stop::Failed(failure)) if failure.cause == FailureCause::TimedOut => {
            Some(unavailable("ncu_timed_out", failure.detail.clone()))
        }
        Some(_) if own_error().is_some() => Some(unavailable("ncu_failed", own_error())),
        Some(Stop::Failed(failure)) => {
            let detail =
                format!("{}: {}; its log is {}", failure.cause.as_str(), failure.detail, log.display());
            Some(unavailable("failed_under_ncu", detail))
        }
        Some(Stop::Skipped(reason)) => {
            Some(unavailable("failed_under_ncu", format!("it was skipped: {reason}")))
        }
        None if says("No kernels were profiled").is_some() => Some(no_kernel(text)),
        None if called.status.is_some_and(|status| !status.success()) => {
            let ending = called.status.map(|status| format!("{status}; its log is {}", log.display()));
            Some(unavailable("ncu_failed", own_error().or(ending)))
        }
        None => None,
    }
}

/// No kernel was profiled; names those that ran, if the log does.
fn no_kernel(text: &str) -> Unavailable {
    let seen = text.lines().skip_while(|line| !line.contains("Available Kernels")).skip(1);
    let names: Vec<String> = seen
        .filter_map(|line| line.split_once(". ").map(|(_, name)| clean_text(name.trim())))
        .take(10)
        .collect();
    let detail = match names.as_slice() {
        [] => "the profiler saw no kernel".to_owned(),
        names => format!("none has the name asked for; there were {}", names.join(", ")),
    };
    unavailable("no_kernel_profiled", detail)
}

/// Converts the profiler's report to a table, which is kept beside it.
fn import(ncu: &ToolInfo, report: &Path, page: &Path) -> Result<Vec<NcuLaunch>, Unavailable> {
    /// Reading a report back takes a second or two.
    const IMPORT_TIMEOUT: Duration = Duration::from_secs(120);
    if !report.is_file() {
        return Err(unavailable("no_kernel_profiled", "the profiler left no report".to_owned()));
    }
    let report = report.display().to_string();
    let words = [&ncu.path, "--import", &report, "--page", "raw", "--csv", "--print-units", "base"];
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let output = capture_to_file(&words, page, IMPORT_TIMEOUT).map_err(|error| match error {
        ProcessError::TimedOut(_) => unavailable("ncu_timed_out", format!("ncu --import {error}")),
        error => unavailable("ncu_failed", format!("ncu --import: {error}")),
    })?;
    if !output.status.success() {
        let first = output.stdout.lines().next().unwrap_or_default();
        return Err(unavailable(
            "ncu_failed",
            format!("ncu --import: {}: {}", output.status, clean_text(first)),
        ));
    }
    ncu_page(&output.stdout)
        .map_err(|error| unavailable("ncu_failed", format!("{}: {error}", page.display())))
}

/// Merges launches of the same kernel, grid and block.
fn kernels(launches: &[NcuLaunch], wanted: &[String]) -> Vec<KernelProfile> {
    let mut groups: Vec<Vec<&NcuLaunch>> = Vec::new();
    for launch in launches {
        let same = |group: &&mut Vec<&NcuLaunch>| {
            let first = group[0];
            (&first.kernel, &first.grid, &first.block) == (&launch.kernel, &launch.grid, &launch.block)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(launch),
            None => groups.push(vec![launch]),
        }
    }
    groups.iter().map(|group| kernel(group, wanted)).collect()
}

fn kernel(group: &[&NcuLaunch], wanted: &[String]) -> KernelProfile {
    // A metric is reported only if every launch has it.
    let median = |name: &str| -> Option<f64> {
        let values: Option<Vec<f64>> = group.iter().map(|launch| launch.metrics.get(name).copied()).collect();
        stats::median(&values?)
    };
    let metrics: BTreeMap<String, f64> =
        wanted.iter().filter_map(|name| Some((name.clone(), median(name)?))).collect();
    KernelProfile {
        name: group[0].kernel.clone(),
        grid: group[0].grid.clone(),
        block: group[0].block.clone(),
        launches_count: u32::try_from(group.len()).unwrap_or(u32::MAX),
        metrics,
        replayed_ns: median(DURATION),
        findings: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_made_of_names_that_are_names() {
        let kernel = |functions: &[&str]| -> KernelInfo {
            let info = serde_json::json!({"op_name": "", "kernel_name": "", "shape_bucket": "",
                "selection_source": "", "launches_per_call": 1, "functions": functions});
            serde_json::from_value(info).unwrap()
        };
        assert_eq!(own_kernels(&kernel(&["a_1", "b"])).as_deref(), Some("^(a_1|b)$"));
        assert_eq!(own_kernels(&kernel(&[])), None);
        assert_eq!(own_kernels(&kernel(&["x.*", "--kill"])), None);
    }

    #[test]
    fn launches_of_one_kernel_are_one_and_a_counter_that_one_lacks_is_absent() {
        let launch = |kernel: &str, values: &[(&str, f64)]| NcuLaunch {
            kernel: kernel.to_owned(),
            metrics: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            ..NcuLaunch::default()
        };
        let launches = [
            launch("a", &[("x__y", 1.0), ("z__w", 1.0), (DURATION, 5.0)]),
            launch("b", &[("x__y", 7.0)]),
            launch("a", &[("x__y", 3.0), (DURATION, 7.0)]),
        ];
        let wanted = ["x__y".to_owned(), "z__w".to_owned()];
        let kernels = kernels(&launches, &wanted);
        assert_eq!(kernels.len(), 2);
        assert_eq!((kernels[0].launches_count, kernels[0].replayed_ns), (2, Some(6.0)));
        assert_eq!(kernels[0].metrics, BTreeMap::from([("x__y".to_owned(), 2.0)]));
    }
}
