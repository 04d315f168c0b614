//! Apex-X's result files. They carry no machine and no workload identity.

use crate::{Imported, text_at};
use holdpoint_model::FileError;
use holdpoint_model::current::{Current, MetricValue, Unmeasured};
use holdpoint_model::document::{Head, value_error};
use serde_json::Value;

const TIMES: [&str; 2] = ["p50_ms", "p95_ms"];

pub(super) fn matches(head: &Head<'_>) -> bool {
    head.has("metrics") || head.has("benchmarks") || (head.has("cases") && head.has("summary"))
}

pub(super) fn read(head: &Head<'_>, file: &Value) -> Result<Imported, FileError> {
    let current = match () {
        () if head.has("metrics") => cpu_report(file)?,
        () if head.has("benchmarks") => gpu_report(file),
        () => trt_report(file),
    };
    Ok(Imported { current, ..Imported::default() })
}

/// The CPU suite: `metrics` is a flat map of numbers.
fn cpu_report(file: &Value) -> Result<Current, FileError> {
    let mut current = head(file);
    let Some(metrics) = file.get("metrics").and_then(Value::as_object) else {
        return value_error("metrics".to_owned(), "must be an object");
    };
    for (name, value) in metrics {
        match value.as_f64() {
            Some(value_ms) => insert(&mut current, name.clone(), value_ms),
            None => return value_error(format!("metrics.{name}"), "must be a number"),
        }
    }
    Ok(current)
}

/// The GPU suite: metrics are the dotted paths of the times below `benchmarks`.
fn gpu_report(file: &Value) -> Current {
    let mut current = head(file);
    if let Some(benchmarks) = file.get("benchmarks") {
        insert_times(&mut current, "benchmarks", benchmarks);
    }
    current
}

/// The TensorRT sweep: `summary.p50_ms_*` and `case.<label>.p50_ms`.
fn trt_report(file: &Value) -> Current {
    let mut current = head(file);
    for key in ["p50_ms_min", "p50_ms_median", "p50_ms_max"] {
        if let Some(value_ms) = file.get("summary").and_then(|summary| summary.get(key)?.as_f64()) {
            insert(&mut current, format!("summary.{key}"), value_ms);
        }
    }
    for case in file.get("cases").and_then(Value::as_array).into_iter().flatten() {
        let Some(label) = text_at(case, "label") else { continue };
        insert_times(&mut current, &format!("case.{label}"), case.get("metrics").unwrap_or(case));
    }
    current
}

fn head(file: &Value) -> Current {
    Current {
        suite: text_at(file, "suite").unwrap_or_else(|| "unnamed".to_owned()),
        timestamp_utc: text_at(file, "timestamp_utc"),
        status: text_at(file, "status"),
        ..Current::default()
    }
}

fn insert(current: &mut Current, name: String, value_ms: f64) {
    current.metrics.insert(
        name,
        MetricValue { value_ms, workload: None, identity: None, answer_checked: None, slow_stretches: None },
    );
}

/// Inserts every number whose key ends in `_ms`, by its dotted path, and skip records in place of such numbers.
fn insert_times(current: &mut Current, path: &str, value: &Value) {
    if let Some(unmeasured) = skip_record(value) {
        for metric in TIMES {
            current.unmeasured.insert(format!("{path}.{metric}"), unmeasured.clone());
        }
    }
    for (key, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{key}");
        match value.as_f64() {
            Some(value_ms) if key.ends_with("_ms") => insert(current, path, value_ms),
            _ => insert_times(current, &path, value),
        }
    }
}

/// Why a part has no times: Apex-X skips with a reason, and we write a failure in the same form.
fn skip_record(value: &Value) -> Option<Unmeasured> {
    let reason = text_at(value, "reason")?;
    match value.get("status")?.as_str()? {
        "skipped" => Some(Unmeasured::Skipped(reason)),
        "failed" => Some(Unmeasured::Failed(reason)),
        _ => None,
    }
}
