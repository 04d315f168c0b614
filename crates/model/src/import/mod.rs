//! Reading reports and baselines: ours, and the seeds' own files as they are.
//!
//! Which kind a file is, its top-level keys tell. Every value that becomes a time is checked here once, so
//! that nothing behind this module sees a time that is zero, negative or not a number.

mod apex;
mod dent;
mod head;
mod ncu;
mod sanitizer;

use crate::baseline::{Baseline, BaselineMetric, BaselineRun, DEFAULT_RATIO};
use crate::current::Current;
use crate::json::{self, JsonError};
use crate::limits::{TIME_MS_MAX, TIME_MS_MIN, TOLERANCE_MAX, clean_text};
use crate::report::{Measured, Outcome, Report, Samples};
use crate::{
    AbReport, Attestation, Bisection, Calibration, Envelope, Judgement, Profile, ReplayManifest,
    SCHEMA_VERSION, Seal, Trend,
};
use head::Head;
pub use ncu::{NcuLaunch, ncu_page};
pub use sanitizer::{SanitizerLog, sanitizer_log};
use serde_json::Value;

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Not JSON, or not of the form its kind has.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// Of a version that is not known here.
    #[error("schema_version is {found}; this holdpoint reads {SCHEMA_VERSION}{}", newer_hint(.found))]
    Version {
        /// What the file says.
        found: String,
    },
    /// Not of a kind that is known here.
    #[error("not a {wanted}: {what}")]
    Kind {
        /// What was wanted.
        wanted: &'static str,
        /// What it looks like, or what it lacks.
        what: String,
    },
    /// A value that makes no sense.
    #[error("{place}: {what}")]
    Value {
        /// Where in the file.
        place: String,
        /// What is wrong.
        what: String,
    },
}

fn newer_hint(found: &str) -> &'static str {
    match found.parse::<u32>() {
        Ok(version) if version > SCHEMA_VERSION => "; it was written by a newer one: update holdpoint",
        _ => "",
    }
}

/// Reads a report that holdpoint wrote.
///
/// # Errors
/// When the text is not such a report or holds times that make no sense.
pub fn report(text: &str) -> Result<Report, FileError> {
    match Kind::of(text)? {
        Kind::Report => own_report(text),
        other => Err(wrong_kind("report written by holdpoint", other)),
    }
}

/// Reads whatever can be compared with a baseline: a report of ours or a result file of the seeds.
///
/// # Errors
/// When the text is no such file or holds times that make no sense.
pub fn current(text: &str) -> Result<Current, FileError> {
    let current = match Kind::of(text)? {
        Kind::Report => Current::from(&own_report(text)?),
        Kind::ApexCpu => apex::cpu_report(&json::parse(text)?)?,
        Kind::ApexGpu => apex::gpu_report(&json::parse(text)?)?,
        Kind::ApexTrt => apex::trt_report(&json::parse(text)?)?,
        Kind::DentResult => dent::result(&json::parse(text)?)?,
        Kind::DentSummary => dent::summary(&json::parse(text)?)?,
        other @ (Kind::Baseline | Kind::DentRatchet) => return Err(wrong_kind("report", other)),
    };
    for (name, metric) in &current.metrics {
        check_time(name, metric.value_ms)?;
    }
    Ok(current)
}

/// Reads a baseline: a baseline file, ours or the seeds', or any file that [`current`] reads, whose values
/// then become the baseline's with the seeds' default tolerance.
///
/// # Errors
/// When the text is no such file or holds times that make no sense.
pub fn baseline(text: &str) -> Result<Baseline, FileError> {
    let baseline = match Kind::of(text)? {
        Kind::Baseline => json::parse(text)?,
        Kind::DentRatchet => dent::ratchet(&json::parse(text)?)?,
        _ => from_current(current(text)?),
    };
    for (name, metric) in &baseline.metrics {
        check_time(&format!("metrics.{name}.value_ms"), metric.value_ms)?;
        for value_ms in &metric.runs_ms {
            check_time(&format!("metrics.{name}.runs_ms"), *value_ms)?;
        }
        for tolerance in [metric.max_regression_ratio, metric.max_regression_abs_ms] {
            if !(0.0..=TOLERANCE_MAX).contains(&tolerance) {
                let what = format!("a tolerance must not be negative, nor above {TOLERANCE_MAX:e}");
                return value_error(format!("metrics.{name}"), &what);
            }
        }
    }
    Ok(baseline)
}

/// Reads one trend point.
///
/// # Errors
/// When the text is not one.
pub fn trend(text: &str) -> Result<Trend, FileError> {
    let head = Head::of(text)?;
    head.check_version()?;
    if !head.has("overall_status") {
        return Err(FileError::Kind { wanted: "trend file", what: head.describe() });
    }
    Ok(json::parse(text)?)
}

/// Reads a judged comparison.
///
/// # Errors
/// When the text is not one.
pub fn judgement(text: &str) -> Result<Judgement, FileError> {
    own(text, "comparison", &["verdict"])
}

/// A document that can be shown again.
#[derive(Debug)]
pub enum Document {
    /// One run.
    Report(Box<Report>),
    /// Two sides.
    Ab(Box<AbReport>),
    /// A run against its baseline, judged.
    Judgement(Box<Judgement>),
    /// A suite against itself.
    Calibration(Box<Calibration>),
    /// A search among revisions.
    Bisection(Box<Bisection>),
}

/// Reads whichever of them it is.
///
/// # Errors
/// When the text is none of them.
pub fn document(text: &str) -> Result<Document, FileError> {
    let head = Head::of(text)?;
    Ok(match () {
        () if head.has("plan") => Document::Ab(Box::new(ab(text)?)),
        () if head.has("checks") && head.has("verdict") => Document::Judgement(Box::new(judgement(text)?)),
        () if head.has("trials") => Document::Calibration(Box::new(calibration(text)?)),
        () if head.has("culprits") => {
            Document::Bisection(Box::new(own(text, "search", &["culprits", "steps"])?))
        }
        () => Document::Report(Box::new(report(text)?)),
    })
}

/// Reads a side-by-side comparison.
///
/// # Errors
/// When the text is not one.
pub fn ab(text: &str) -> Result<AbReport, FileError> {
    own(text, "side-by-side comparison", &["plan", "base", "head", "workloads"])
}

/// Reads what comparing code with itself has shown.
///
/// # Errors
/// When the text is not one.
pub fn calibration(text: &str) -> Result<Calibration, FileError> {
    own(text, "calibration", &["trials", "workloads"])
}

/// Reads a profile.
///
/// # Errors
/// When the text is not one.
pub fn profile(text: &str) -> Result<Profile, FileError> {
    own(text, "profile", &["profiles", "suite", "timestamp_utc"])
}

/// Reads a replay manifest, ours or the seeds'. Whether its hashes are right is not looked at here.
///
/// # Errors
/// When the text is not one.
pub fn replay_manifest(text: &str) -> Result<ReplayManifest, FileError> {
    own(text, "replay manifest", &["seed", "config_sha256", "artifact_sha256", "manifest_sha256"])
}

/// Reads a release attestation that is not signed.
///
/// # Errors
/// When the text is not one.
pub fn attestation(text: &str) -> Result<Attestation, FileError> {
    own(text, "release attestation", &["release_metadata", "artifacts", "gates", "summary"])
}

/// Reads a DSSE envelope, or the one in a bundle of sigstore's, as cosign writes it. Who signed it is not looked at here.
///
/// # Errors
/// When the text is neither.
pub fn envelope(text: &str) -> Result<Envelope, FileError> {
    #[derive(serde::Deserialize)]
    struct Bundle {
        #[serde(rename = "dsseEnvelope")]
        envelope: Envelope,
    }
    if Head::of(text)?.has("dsseEnvelope") {
        return Ok(json::parse::<Bundle>(text)?.envelope);
    }
    own(text, "DSSE envelope", &["payload", "payloadType", "signatures"])
}

/// Reads a seal that is not signed, or a signed one's payload.
///
/// # Errors
/// When the text is not one.
pub fn seal(text: &str) -> Result<Seal, FileError> {
    own(text, "seal", &["sealed_at_utc", "files", "samples_sha256"])
}

/// A file of ours that has these keys.
fn own<T: serde::de::DeserializeOwned>(
    text: &str,
    wanted: &'static str,
    keys: &[&str],
) -> Result<T, FileError> {
    let head = Head::of(text)?;
    head.check_version()?;
    if !keys.iter().all(|key| head.has(key)) {
        return Err(FileError::Kind { wanted, what: head.describe() });
    }
    Ok(json::parse(text)?)
}

/// A baseline with the values of one run, the seeds' default tolerance, and nothing made up.
fn from_current(current: Current) -> Baseline {
    let metrics = current.metrics.into_iter().map(|(name, metric)| {
        let value = BaselineMetric {
            value_ms: metric.value_ms,
            max_regression_ratio: DEFAULT_RATIO,
            max_regression_abs_ms: 0.0,
            workload: metric.workload,
            identity: metric.identity,
            answer_checked: metric.answer_checked,
            runs_ms: Vec::new(),
            spread: None,
        };
        (name, value)
    });
    let run = |timestamp_utc| BaselineRun { timestamp_utc, revision: current.revision };
    Baseline {
        schema_version: SCHEMA_VERSION,
        suite: current.suite,
        baseline_notes: String::new(),
        required_status: None,
        machine: current.machine,
        environment_lock: current.environment_lock,
        runs: current.timestamp_utc.map(run).into_iter().collect(),
        promoted: None,
        metrics: metrics.collect(),
    }
}

fn own_report(text: &str) -> Result<Report, FileError> {
    let report: Report = json::parse(text)?;
    for (name, measurement) in &report.benchmarks {
        match &measurement.outcome {
            Outcome::Measured(measured) => check_measured(&format!("benchmarks.{name}"), measured)?,
            Outcome::Skipped { .. } | Outcome::Failed(_) => {}
        }
    }
    Ok(report)
}

fn check_measured(place: &str, measured: &Measured) -> Result<(), FileError> {
    for (key, value) in [
        ("p50_ms", measured.p50_ms),
        ("p95_ms", measured.p95_ms),
        ("p99_ms", measured.p99_ms),
        ("mean_ms", measured.mean_ms),
        ("min_ms", measured.min_ms),
    ] {
        check_time(&format!("{place}.{key}"), value)?;
    }
    check_samples(place, &measured.samples)
}

fn check_samples(place: &str, samples: &Samples) -> Result<(), FileError> {
    if samples.calls_per_sample == 0 {
        return value_error(format!("{place}.samples.calls_per_sample"), "must be above 0");
    }
    if samples.rounds.iter().all(|round| round.elapsed_ns.is_empty()) {
        return value_error(format!("{place}.samples"), "measured, yet it has no samples");
    }
    for round in &samples.rounds {
        if round.elapsed_ns.contains(&0) {
            return value_error(format!("{place}.samples, round {}", round.round), "a time of 0 ns");
        }
    }
    Ok(())
}

fn check_time(place: &str, value_ms: f64) -> Result<(), FileError> {
    if value_ms > 0.0 && (TIME_MS_MIN..=TIME_MS_MAX).contains(&value_ms) {
        return Ok(());
    }
    let problem = if value_ms > 0.0 { "beyond reason" } else { "not a time" };
    let range = format!("times lie between {TIME_MS_MIN:e} and {TIME_MS_MAX:e} ms");
    value_error(place.to_owned(), &format!("{value_ms:?} is {problem}; {range}"))
}

fn value_error<T>(place: String, what: &str) -> Result<T, FileError> {
    Err(FileError::Value { place: clean_text(&place), what: what.to_owned() })
}

/// What a file is, by its top-level keys.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Report,
    Baseline,
    ApexCpu,
    ApexGpu,
    ApexTrt,
    DentResult,
    DentSummary,
    DentRatchet,
}

impl Kind {
    fn of(text: &str) -> Result<Self, FileError> {
        let head = Head::of(text)?;
        head.check_version()?;
        let kind = if head.has("toolchain") && head.has("benchmarks") {
            Self::Report
        } else if head.has("performance") {
            Self::DentResult
        } else if head.has("metrics") {
            head.kind_by_metrics()?
        } else if head.has("benchmarks") {
            Self::ApexGpu
        } else if head.has("cases") && head.has("summary") {
            Self::ApexTrt
        } else if head.has("results") {
            Self::DentSummary
        } else if head.has("configs") {
            Self::DentRatchet
        } else {
            return Err(FileError::Kind { wanted: "report or baseline", what: head.describe() });
        };
        Ok(kind)
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Report => "a report of holdpoint",
            Self::Baseline => "a baseline",
            Self::ApexCpu | Self::ApexGpu | Self::ApexTrt => "a report of Apex-X",
            Self::DentResult | Self::DentSummary => "a result of cudadent42",
            Self::DentRatchet => "a baseline of cudadent42's ratchet",
        }
    }
}

fn wrong_kind(wanted: &'static str, found: Kind) -> FileError {
    FileError::Kind { wanted, what: format!("it is {}", found.as_str()) }
}

/// A text field, if there is one.
fn text_at(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests;
