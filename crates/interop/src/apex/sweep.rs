//! Apex-X's sweep of a model over input shapes, from a report of ours.
//!
//! Labels are those of our workloads: they name every tensor and do not depend on a case's position.

use super::{ApexCaps, Times, convert, profile};
use holdpoint_model::SCHEMA_VERSION;
use holdpoint_model::report::{Measurement, Outcome, Report, RunStatus};
use holdpoint_stats as stats;
use serde::Serialize;

/// Apex-X's name of the suite.
const SUITE: &str = "apex_x_trt_engine_shape_sweep";

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ApexSweepReport {
    pub schema_version: u32,
    pub suite: String,
    /// When the run began, ISO-8601 with `+00:00`.
    pub timestamp_utc: String,
    pub environment: ApexSweepEnvironment,
    pub config: ApexSweepConfig,
    /// `ok`, `partial`, `failed` or `skipped`, as of our report.
    pub status: String,
    /// Why nothing was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub cases: Vec<ApexSweepCase>,
    pub summary: ApexSweepSummary,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ApexSweepEnvironment {
    pub python: Option<String>,
    pub platform: String,
    /// Null: not in our report.
    pub torch: Option<String>,
    pub runtime_caps: ApexCaps,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ApexSweepConfig {
    /// The model, whatever ran it.
    pub trt_engine_path: String,
    pub shape_cases: Vec<String>,
    /// Null: warm-up ends when times are steady.
    pub warmup: Option<u64>,
    /// Null: measuring ends when the interval is narrow.
    pub iters: Option<u64>,
    pub seed: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ApexSweepCase {
    pub label: String,
    /// `image=1x3x64x64`, one for each input that was given a shape.
    pub input_shapes: Vec<String>,
    /// `ok`, `skipped` or `failed`.
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How the model was run, such as `modern_io_tensors` or `onnxruntime:CPUExecutionProvider`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Times>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ApexSweepSummary {
    pub ok_count: usize,
    pub skipped_count: usize,
    pub failed_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ms_min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ms_max: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ms_median: Option<f64>,
}

impl ApexSweepReport {
    /// The sweep of the model at this path.
    pub fn new(report: &Report, model: &str) -> Self {
        let cases: Vec<_> = report.benchmarks.iter().map(|(label, measured)| case(label, measured)).collect();
        let lock = report.environment_lock.as_ref();
        Self {
            schema_version: SCHEMA_VERSION,
            suite: SUITE.to_owned(),
            timestamp_utc: convert::with_utc_offset(&report.timestamp_utc),
            environment: ApexSweepEnvironment {
                python: lock.and_then(|lock| lock.get("engine.python").cloned()),
                platform: report.environment.platform.clone(),
                torch: None,
                runtime_caps: profile::caps(report),
            },
            config: ApexSweepConfig {
                trt_engine_path: model.to_owned(),
                shape_cases: cases.iter().map(|case| case.input_shapes.join(";")).collect(),
                warmup: None,
                iters: None,
                seed: report.config.seed,
            },
            status: report.status.as_str().to_owned(),
            reason: if report.status == RunStatus::Skipped { convert::reason(report) } else { None },
            summary: summary(&cases),
            cases,
        }
    }
}

fn case(label: &str, measurement: &Measurement) -> ApexSweepCase {
    let shapes = measurement.identity.params.get("inputs").and_then(|shapes| shapes.as_str()).unwrap_or("");
    let (status, reason, measured) = match &measurement.outcome {
        Outcome::Measured(measured) => match &measured.distrust {
            // Readers of this file would compare times that must not be compared.
            Some(reason) => ("skipped", Some(reason.clone()), None),
            None => ("ok", None, Some(measured)),
        },
        Outcome::Skipped { reason } => ("skipped", Some(reason.clone()), None),
        Outcome::Failed(failure) => {
            ("failed", Some(format!("{}:{}", failure.cause.as_str(), failure.detail)), None)
        }
    };
    ApexSweepCase {
        label: label.to_owned(),
        input_shapes: shapes.split(';').filter(|shape| !shape.is_empty()).map(str::to_owned).collect(),
        status: status.to_owned(),
        reason,
        mode: measured.and_then(|measured| Some(measured.kernel.as_ref()?.selection_source.clone())),
        metrics: measured.map(|measured| convert::times(label, &measurement.gated, measured)),
    }
}

fn summary(cases: &[ApexSweepCase]) -> ApexSweepSummary {
    let count = |status: &str| cases.iter().filter(|case| case.status == status).count();
    let p50_ms: Vec<f64> = cases.iter().filter_map(|case| Some(case.metrics.as_ref()?.p50_ms)).collect();
    let bound = |pick: fn(f64, f64) -> f64| p50_ms.iter().copied().reduce(pick);
    ApexSweepSummary {
        ok_count: count("ok"),
        skipped_count: count("skipped"),
        failed_count: count("failed"),
        p50_ms_min: bound(f64::min),
        p50_ms_max: bound(f64::max),
        p50_ms_median: stats::median(&p50_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_current;
    use holdpoint_model::document::read;
    use holdpoint_model::suite::OP_INFERENCE;
    use serde_json::{Value, json};

    /// Two measured cases, one that was skipped and one that failed.
    fn report() -> Report {
        let path = format!("{}/../model/tests/data/report-gpu-h200.json", env!("CARGO_MANIFEST_DIR"));
        let mut report = read::<Report>(&std::fs::read_to_string(path).unwrap()).unwrap();
        let measured = report.benchmarks["tile_ops.tilepack.dispatch"].clone();
        report.benchmarks.clear();
        for (label, p50_ms) in [("image_1x3x64x64", 2.0), ("image_8x3x64x64", 3.0)] {
            let mut case = measured.clone();
            case.identity.op = OP_INFERENCE.to_owned();
            let inputs = label.replace("image_", "image=");
            case.identity.params.clear();
            case.identity.params.insert("inputs".to_owned(), Value::from(inputs));
            if let Outcome::Measured(times) = &mut case.outcome {
                times.p50_ms = p50_ms;
            }
            report.benchmarks.insert(label.to_owned(), case);
        }
        let reason = "provider_unavailable:cuda".to_owned();
        let skipped = Measurement { outcome: Outcome::Skipped { reason }, ..measured };
        report.benchmarks.insert("image_9x3x64x64".to_owned(), skipped);
        report.status = RunStatus::Partial;
        report
    }

    #[test]
    fn a_sweep_has_the_seeds_keys() {
        let file = serde_json::to_value(ApexSweepReport::new(&report(), "a.onnx")).unwrap();
        let keys = |value: &Value| {
            let mut keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
            keys.sort_unstable();
            keys.join(" ")
        };
        assert_eq!(keys(&file), "cases config environment schema_version status suite summary timestamp_utc");
        assert_eq!(keys(&file["environment"]), "platform python runtime_caps torch");
        assert_eq!(keys(&file["config"]), "iters seed shape_cases trt_engine_path warmup");
        assert_eq!(file["suite"], "apex_x_trt_engine_shape_sweep");
        let first = &file["cases"][0];
        assert_eq!(keys(first), "input_shapes label metrics mode status");
        assert_eq!(first["input_shapes"], json!(["image=1x3x64x64"]));
        assert_eq!(
            file["summary"],
            json!({"ok_count": 2, "skipped_count": 1, "failed_count": 0, "p50_ms_min": 2.0, "p50_ms_max": 3.0, "p50_ms_median": 2.5})
        );
        assert_eq!(file["cases"][2]["reason"], "provider_unavailable:cuda");
    }

    #[test]
    fn a_sweep_is_read_back_with_what_was_skipped() {
        let text = serde_json::to_string(&ApexSweepReport::new(&report(), "a.onnx")).unwrap();
        let current = read_current(&text.as_str().into()).unwrap();
        assert_eq!(current.metrics["case.image_8x3x64x64.p50_ms"].value_ms, 3.0);
        assert_eq!(current.metrics["summary.p50_ms_median"].value_ms, 2.5);
        assert!(current.unmeasured.contains_key("case.image_9x3x64x64.p50_ms"));
        assert_eq!(current.status.as_deref(), Some("partial"));
    }

    #[test]
    fn a_sweep_that_could_not_run_says_why() {
        let mut report = report();
        report.benchmarks.retain(|label, _| label == "image_9x3x64x64");
        report.status = RunStatus::Skipped;
        let sweep = ApexSweepReport::new(&report, "a.onnx");
        assert_eq!((sweep.status.as_str(), sweep.summary.skipped_count), ("skipped", 1));
        assert_eq!(sweep.summary.p50_ms_min, None);
    }
}
