//! One point of a suite's history: the originals' normalised schema, and the revision beside it.

use crate::current::{Current, MetricValue};
use crate::judgement::Stated;
use crate::machine::Revision;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The status of a run that was compared with nothing, and of its metrics.
pub const UNJUDGED: &str = "unjudged";

/// One run as a point of a trend, `trend.json`.
// It carries no `kind`: readers of Apex-X's histories expect these keys. `revision` is beside them, and last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trend {
    pub schema_version: u32,
    pub suite: String,
    /// When the run began, ISO-8601 in UTC ending in `Z`.
    pub timestamp_utc: String,
    /// `pass` or `fail`; `unjudged` for a run that was compared with nothing.
    pub overall_status: String,
    pub total_metrics: usize,
    /// Number of metrics whose status is not `pass`.
    pub failed_metrics: usize,
    /// The metrics, sorted by name.
    pub metrics: Vec<TrendMetric>,
    /// The revision of the run, where it is known; Apex-X's histories have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
}

/// One metric of a trend point; absent numbers are null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendMetric {
    pub metric: String,
    pub status: String,
    pub baseline_ms: Option<f64>,
    /// Anything above this failed.
    pub allowed_max_ms: Option<f64>,
    pub current_ms: Option<f64>,
    /// `current / baseline - 1`.
    pub regression_ratio: Option<f64>,
}

impl Trend {
    /// The trend point of a judged run that began at `timestamp_utc`.
    pub fn new(judgement: &Stated, timestamp_utc: &str) -> Self {
        let mut metrics: Vec<TrendMetric> = judgement
            .checks
            .iter()
            .map(|check| TrendMetric {
                metric: check.metric.clone(),
                status: check.status.as_str().to_owned(),
                baseline_ms: check.baseline_ms,
                allowed_max_ms: check.allowed_max_ms,
                current_ms: check.current_ms,
                regression_ratio: check.regression_ratio,
            })
            .collect();
        metrics.sort_by(|a, b| a.metric.cmp(&b.metric));
        Self {
            schema_version: crate::SCHEMA_VERSION,
            suite: judgement.suite.clone(),
            timestamp_utc: timestamp_utc.to_owned(),
            overall_status: judgement.status.clone(),
            total_metrics: metrics.len(),
            failed_metrics: metrics.iter().filter(|m| m.status != "pass").count(),
            metrics,
            revision: judgement.revision.clone(),
        }
    }

    /// The trend point of a run that was compared with nothing.
    pub fn unjudged(current: &Current, timestamp_utc: &str) -> Self {
        let metric = |(name, value): (&String, &MetricValue)| TrendMetric {
            metric: name.clone(),
            status: UNJUDGED.to_owned(),
            baseline_ms: None,
            allowed_max_ms: None,
            current_ms: Some(value.value_ms),
            regression_ratio: None,
        };
        let metrics: Vec<TrendMetric> = current.metrics.iter().map(metric).collect();
        Self {
            schema_version: crate::SCHEMA_VERSION,
            suite: current.suite.clone(),
            timestamp_utc: current.timestamp_utc.clone().unwrap_or_else(|| timestamp_utc.to_owned()),
            overall_status: UNJUDGED.to_owned(),
            total_metrics: metrics.len(),
            failed_metrics: 0,
            metrics,
            revision: current.revision.clone(),
        }
    }
}
