//! Converts our report to Apex-X's.

use super::{
    APEX_GPU_SUITE, ApexError, ApexGpuReport, Autotune, Dispatch, Part, Section, SkipRecord, Times, nulls,
    profile,
};
use holdpoint_model::SCHEMA_VERSION;
use holdpoint_model::limits::clean_text;
use holdpoint_model::report::{Measured, Measurement, Outcome, Report, RunStatus};
use std::collections::BTreeMap;

/// Last parts of names whose kernel is reported for the whole section.
const DISPATCHES: &[&str] = &["dispatch", "triton_dispatch"];
/// Keys of a section beside its parts.
const SECTION_KEYS: &[&str] = &["backend", "kernel_name", "fallback_reason"];
/// Workloads that Apex-X always reports, and why a run of ours lacks them, unless its suite has a worker for them: the built-in ops need
/// no TensorRT, and no engine was named.
const TENSORRT: &[(&str, &str)] = &[
    ("tilessm.tensorrt_plugin", "tensorrt_python_unavailable"),
    ("end_to_end_infer.tensorrt_engine", "missing_trt_engine_path"),
];
const ROUTING: [&str; 4] =
    ["selected_l0_per_call", "selected_l1_per_call", "budget_b1_spent", "budget_b2_spent"];
/// Deepest place. Apex-X's deepest is 3; readers of JSON give up at 128.
const DEPTH_MAX: usize = 16;
/// Bytes in Apex-X's MB.
const BYTES_PER_MB: f64 = 1_048_576.0;

impl TryFrom<&Report> for ApexGpuReport {
    type Error = ApexError;

    fn try_from(report: &Report) -> Result<Self, ApexError> {
        if !is_for_device(report) {
            return Err(ApexError::NotGpu { suite: clean_text(&report.suite) });
        }
        let is_skipped = report.status == RunStatus::Skipped;
        Ok(Self {
            schema_version: SCHEMA_VERSION,
            suite: APEX_GPU_SUITE.to_owned(),
            timestamp_utc: with_utc_offset(&report.timestamp_utc),
            environment: profile::environment(report),
            config: profile::config(report),
            status: report.status.as_str().to_owned(),
            reason: if report.status == RunStatus::Ok { None } else { reason(report) },
            benchmarks: if is_skipped { Section::default() } else { benchmarks(report)? },
            triton_autotune: if is_skipped { Autotune::default() } else { Autotune::from_report(report) },
        })
    }
}

/// Whether it is the report of a GPU suite, even of a failed run.
fn is_for_device(report: &Report) -> bool {
    report.environment.device == "cuda" || report.benchmarks.values().any(is_on_device)
}

/// Whether a workload ran on the device, or would have.
fn is_on_device(measurement: &Measurement) -> bool {
    let has_kernel = matches!(&measurement.outcome, Outcome::Measured(measured) if measured.kernel.is_some());
    has_kernel || measurement.identity.timer.starts_with("cuda")
}

/// Apex-X writes `+00:00` where we write `Z`.
pub(super) fn with_utc_offset(timestamp_utc: &str) -> String {
    match timestamp_utc.strip_suffix('Z') {
        Some(time) => format!("{time}+00:00"),
        None => timestamp_utc.to_owned(),
    }
}

/// Why the run is not `ok`: its own reason, or that of the first workload that has one.
pub(super) fn reason(report: &Report) -> Option<String> {
    let skipped = || {
        report.benchmarks.values().find_map(|measurement| match &measurement.outcome {
            Outcome::Skipped { reason } => Some(reason.clone()),
            Outcome::Measured(measured) => measured.distrust.clone(),
            Outcome::Failed(_) => None,
        })
    };
    report.reason.clone().or_else(skipped)
}

fn benchmarks(report: &Report) -> Result<Section, ApexError> {
    let mut root = Section::default();
    for (name, measurement) in &report.benchmarks {
        let (section, key) = place(&mut root, name)?;
        if DISPATCHES.contains(&key) {
            section.dispatch = Some(dispatch(measurement));
        }
        section.parts.insert(key.to_owned(), part(name, measurement));
    }
    for (name, reason) in TENSORRT {
        let matches = |workload: &String| {
            workload.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if !report.benchmarks.keys().any(matches) {
            let (section, key) = place(&mut root, name)?;
            section.parts.insert(key.to_owned(), skip("skipped", (*reason).to_owned()));
        }
    }
    Ok(root)
}

/// The section of a name, made where it is not there yet, and the name's key in it.
fn place<'s, 'n>(root: &'s mut Section, name: &'n str) -> Result<(&'s mut Section, &'n str), ApexError> {
    let refuse = |what| Err(ApexError::NoPlace { workload: clean_text(name), what });
    let Some((sections, key)) = name.rsplit_once('.') else {
        return refuse(
            "places have a dot; name it as those of suite \"gpu\", such as \"tile_ops.tilepack.dispatch\"",
        );
    };
    if name.split('.').count() > DEPTH_MAX {
        return refuse("its name has more than 16 parts; use fewer dots");
    }
    if name.split('.').any(|part| SECTION_KEYS.contains(&part)) {
        return refuse("backend, kernel_name and fallback_reason are keys of the report itself; rename it");
    }
    const TAKEN: &str = "another workload is there, or above it; rename one";
    let mut section = root;
    for part in sections.split('.') {
        let next = section.parts.entry(part.to_owned()).or_insert_with(|| Part::Section(Section::default()));
        let Part::Section(next) = next else { return refuse(TAKEN) };
        section = next;
    }
    if section.parts.contains_key(key) { refuse(TAKEN) } else { Ok((section, key)) }
}

fn dispatch(measurement: &Measurement) -> Dispatch {
    let kernel = match &measurement.outcome {
        Outcome::Measured(measured) => measured.kernel.as_ref(),
        _ => None,
    };
    let has_run = matches!(measurement.outcome, Outcome::Measured(_)) && is_on_device(measurement);
    Dispatch {
        backend: has_run
            .then(|| kernel.and_then(|kernel| kernel.backend.clone()).unwrap_or_else(|| "cuda".to_owned())),
        kernel_name: kernel.map(|kernel| kernel.kernel_name.clone()),
        fallback_reason: None,
    }
}

fn part(name: &str, measurement: &Measurement) -> Part {
    match &measurement.outcome {
        Outcome::Measured(measured) => match &measured.distrust {
            // Readers of this report would compare times that must not be compared.
            Some(reason) => skip("skipped", reason.clone()),
            None => Part::Times(Box::new(times(name, &measurement.gated, measured))),
        },
        Outcome::Skipped { reason } => skip("skipped", reason.clone()),
        Outcome::Failed(failure) => skip("failed", format!("{}: {}", failure.cause.as_str(), failure.detail)),
    }
}

fn skip(status: &str, reason: String) -> Part {
    Part::Skip(SkipRecord { status: status.to_owned(), reason })
}

pub(super) fn times(name: &str, gated: &[String], measured: &Measured) -> Times {
    // Bytes and operations are rates too, which Apex-X's report does not have.
    let is_of_items = |key: &str| key.ends_with("_per_s") && key != "gb_per_s";
    let rates = measured.throughput.iter().filter(|(key, _)| is_of_items(key));
    let others = gated.iter().filter(|metric| !["p50_ms", "p95_ms"].contains(&metric.as_str()));
    let others = others.filter_map(|metric| Some((metric.clone(), measured.metric(metric)?)));
    Times {
        p50_ms: measured.p50_ms,
        p95_ms: measured.p95_ms,
        peak_memory_mb: measured.peak_device_memory_mb.map(|mb| mb * 1e6 / BYTES_PER_MB),
        throughput: rates.map(|(key, rate)| (key.clone(), *rate)).collect(),
        gated: others.collect::<BTreeMap<_, _>>(),
        routing: name.starts_with(profile::END_TO_END).then(|| nulls(ROUTING)),
    }
}
