//! One kernel at one shape: right, quick, and how near to what the device can do. The keys are cudadent42's, what is added stands
//! beside them.

use crate::fuzz::{Finding, FindingKind};
use crate::report::{CheckedBy, Measured, null_is_infinite};
use crate::roofline::Placed;
use crate::suite::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CheckDocument {
    /// One: the file of the original.
    One(Box<KernelCheck>),
    Many(Vec<KernelCheck>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "check")]
pub struct KernelCheck {
    #[serde(default = "crate::schema_version")]
    pub schema_version: u32,
    /// Whether its answers are right; absent where it could not run.
    pub correctness: Option<Correctness>,
    /// How long it takes; absent where it is wrong or could not run.
    pub performance: Option<Performance>,
    /// How near it comes to what the device can do; absent without ceilings.
    pub roofline: Option<CheckedRoofline>,
    /// Shape and element type.
    pub config: Map<String, Value>,
    /// The kernel, or the op where the worker names none.
    pub kernel_name: String,
    /// When, ISO-8601 in UTC.
    pub timestamp: String,
    /// Why it could not run, or what failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it could not be measured as it should: it failed, or its times cannot be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broken: bool,
    /// Whether its oracle skipped a case, so that its answers were not checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
}

/// The keys of [`config`] that are not an op's own parameters.
const KNOWN: &[&str] = &["batch_size", "num_heads", "seq_len", "head_dim", "dtype", "op", "shape", "worker"];

impl KernelCheck {
    /// A text value of the configuration.
    pub fn text(&self, name: &str) -> &str {
        self.config.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The sizes as `8,4,64,64`.
    pub fn shape(&self) -> String {
        let sizes = self.config.get("shape").and_then(Value::as_array).into_iter().flatten();
        sizes.map(ToString::to_string).collect::<Vec<_>>().join(",")
    }

    /// The parameters as `causal=true`.
    pub fn params(&self) -> String {
        let others = self.config.iter().filter(|(name, _)| !KNOWN.contains(&name.as_str()));
        let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        others.map(|(name, value)| format!("{name}={}", plain(value))).collect::<Vec<_>>().join(" ")
    }
}

/// How the answers compared with an oracle of higher precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Correctness {
    /// Whether all of them are right.
    pub passed: bool,
    /// Largest absolute difference; infinite, in a file null, when a value is not a number.
    #[serde(deserialize_with = "null_is_infinite")]
    #[schemars(with = "Option<f64>")]
    pub max_abs_error: f64,
    /// Mean absolute difference, as above.
    #[serde(deserialize_with = "null_is_infinite")]
    #[schemars(with = "Option<f64>")]
    pub mean_abs_error: f64,
    /// Correlation with the oracle's answers.
    pub correlation: Option<f64>,
    /// Norm of the difference over that of the oracle's answers, as above.
    #[serde(deserialize_with = "null_is_infinite")]
    #[schemars(with = "Option<f64>")]
    pub rel_norm: f64,
    /// Cases that were run: kinds of values and seeds.
    pub cases_count: u64,
    /// What the inputs of the cases were drawn from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How long one of the calls took whose answers were checked, by holdpoint's clock; known for a user's worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<Finding>,
    /// The oracle of the last case; absent in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_by: Option<CheckedBy>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Performance {
    pub mean_time_ms: f64,
    pub std_dev_ms: f64,
    /// Operations per second, in 10⁹, by the median.
    pub throughput_gflops: Option<f64>,
    /// Bytes per second, in 10⁹, by the median.
    pub bandwidth_gb_s: Option<f64>,
    pub median_ms: f64,
    /// 95 % interval of the median, by how far rounds differ.
    pub ci_95_ms: Option<[f64; 2]>,
    pub p95_ms: f64,
    pub p99_ms: f64,
    /// Standard deviation over mean.
    pub cv: Option<f64>,
    pub n_samples: u64,
    /// The share of what the device or machine can do at most, where the median is near it: to be checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_peak: Option<f64>,
}

impl Performance {
    pub fn new(measured: &Measured) -> Self {
        let rate = |name: &str| measured.throughput.get(name).copied();
        Self {
            mean_time_ms: measured.mean_ms,
            std_dev_ms: measured.cv.unwrap_or(0.0) * measured.mean_ms,
            throughput_gflops: rate("gflops"),
            bandwidth_gb_s: rate("gb_per_s"),
            median_ms: measured.p50_ms,
            ci_95_ms: measured.p50_interval_ms,
            p95_ms: measured.p95_ms,
            p99_ms: measured.p99_ms,
            cv: measured.cv,
            near_peak: measured.near_peak,
            n_samples: measured.samples.rounds.iter().map(|round| round.elapsed_ns.len() as u64).sum(),
        }
    }
}

impl Performance {
    /// Of the calls whose answers were checked, where the timed ones are quicker; their operations are the same.
    pub fn of_checked_calls(measured: &Measured, call_ms: f64) -> Self {
        let timed = Self::new(measured);
        let rate = |rate: Option<f64>| rate.map(|rate| rate * timed.median_ms / call_ms);
        Self {
            mean_time_ms: call_ms,
            median_ms: call_ms,
            p95_ms: call_ms,
            p99_ms: call_ms,
            throughput_gflops: rate(timed.throughput_gflops),
            bandwidth_gb_s: rate(timed.bandwidth_gb_s),
            std_dev_ms: 0.0,
            ci_95_ms: None,
            cv: None,
            near_peak: None,
            n_samples: 1,
        }
    }
}

impl Correctness {
    /// Whether the oracle failed, so that nothing is known about the answers.
    pub fn is_unknown(&self) -> bool {
        self.finding.as_ref().is_some_and(|finding| finding.kind == FindingKind::OracleFailed)
    }
}

/// How near to what the device can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedRoofline {
    /// Operations per byte.
    pub arithmetic_intensity: Option<f64>,
    pub bottleneck: String,
    /// Share of the roof, 0 to 100; absent where it is above it, which is no efficiency.
    pub efficiency_pct: Option<f64>,
    /// Recommendations, each with the number that led to it.
    pub recommendations: Vec<String>,
}

impl From<&Placed> for CheckedRoofline {
    fn from(placed: &Placed) -> Self {
        Self {
            arithmetic_intensity: placed.arithmetic_intensity,
            bottleneck: placed.bottleneck.as_str().to_owned(),
            efficiency_pct: placed.efficiency_pct,
            recommendations: placed.recommendations.clone(),
        }
    }
}

/// A workload's shape by the original's names where it is attention, and by ours.
pub fn config(spec: &Workload) -> Map<String, Value> {
    let dtype = match spec.dtype.as_str() {
        "f16" => "float16",
        "bf16" => "bfloat16",
        "f32" => "float32",
        "e4m3" => "float8_e4m3fn",
        other => other,
    };
    let mut config = Map::new();
    if let ("attention", [batch, heads, steps, width]) = (spec.op.as_str(), &*spec.shape) {
        let names = ["batch_size", "num_heads", "seq_len", "head_dim"];
        config
            .extend(names.map(str::to_owned).into_iter().zip([batch, heads, steps, width].map(|n| json!(n))));
    }
    config.insert("dtype".to_owned(), json!(dtype));
    config.insert("op".to_owned(), json!(spec.op));
    config.insert("shape".to_owned(), json!(spec.shape));
    config.insert("worker".to_owned(), json!(spec.worker()));
    config.extend(spec.params.clone());
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::{DeviceTask, Task};

    #[test]
    fn attention_has_the_names_of_the_original() {
        let mut workload = Workload::new("a", Task::DeviceOp(DeviceTask::default()), "attention");
        (workload.shape, workload.dtype) = (vec![8, 4, 64, 32], "f16".to_owned());
        workload.params.insert("causal".to_owned(), json!(true));
        let config = config(&workload);
        assert_eq!((&config["batch_size"], &config["num_heads"]), (&json!(8), &json!(4)));
        assert_eq!((&config["seq_len"], &config["head_dim"]), (&json!(64), &json!(32)));
        assert_eq!((&config["dtype"], &config["causal"]), (&json!("float16"), &json!(true)));
    }
}
