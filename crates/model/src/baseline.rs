//! Baselines: a suite's metrics, and how much worse they may become.

use crate::machine::{EnvironmentLock, Machine, Revision};
use crate::suite::Identity;
use crate::{Current, SCHEMA_VERSION};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A baseline file: the originals' shape, with the machine, the runs and their spread beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "baseline")]
pub struct Baseline {
    pub schema_version: u32,
    pub suite: String,
    #[serde(default)]
    pub baseline_notes: String,
    /// The status a run must have to be compared; `ok` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_status: Option<String>,
    /// The machine the values hold for. Absent in the originals' files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Other conditions that must match. Absent in the files of Apex-X and cudadent42.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment_lock: Option<EnvironmentLock>,
    /// The false-alarm rate per suite that the tolerances were made for. Absent where they were not made from runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alarm_rate: Option<f64>,
    /// The runs the values come from. Absent in the originals' files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<BaselineRun>,
    /// How it became the baseline; absent if it was recorded by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted: Option<Promotion>,
    pub metrics: BTreeMap<String, BaselineMetric>,
}

/// How reports of a revision became the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Promotion {
    /// The revision, in full.
    pub commit: String,
    pub by: String,
    /// When, ISO-8601 in UTC.
    pub timestamp_utc: String,
    /// SHA-256 of each report file, in the order of `runs`.
    pub report_sha256: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineRun {
    /// When the run began, ISO-8601 in UTC.
    pub timestamp_utc: String,
    #[serde(default)]
    pub revision: Option<Revision>,
    /// Share of the machine's CPU time that other processes used meanwhile; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_cpu: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineMetric {
    /// The value: the median over the runs.
    pub value_ms: f64,
    /// Tolerance as a share of the value.
    #[serde(default = "default_ratio")]
    pub max_regression_ratio: f64,
    /// Tolerance added to that.
    #[serde(default)]
    pub max_regression_abs_ms: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Only measurements with the same identity may be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// The value in each run, in the order of `runs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs_ms: Vec<f64>,
    /// How much slower than the middle one the slowest tenth of each run's stretches was. Absent in older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow_stretches: Vec<f64>,
    /// Whether the workload's answer was checked; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_checked: Option<bool>,
    /// How far apart the runs were: `(max - min) / median`. Absent with fewer than two runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    /// The smallest slowdown that can be told from the difference between runs at `alarm_rate`. Absent with fewer than
    /// three runs, and in files from before it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_visible_slowdown: Option<f64>,
    /// How far runs of the baseline before this one differ, where this one has too few runs to know. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<RunNoise>,
}

/// How far runs differ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunNoise {
    /// Standard deviation of the logarithms of their values.
    pub sd: f64,
    /// Of how many runs.
    pub runs_count: usize,
}

/// The originals' tolerance where a file names none.
fn default_ratio() -> f64 {
    DEFAULT_RATIO
}

/// The originals' tolerance where a file names none.
pub const DEFAULT_RATIO: f64 = 0.50;

/// The tolerance of a baseline that is one run: it says nothing about the noise between runs, which on a shared machine is often
/// several percent.
pub const ONE_RUN_RATIO: f64 = 0.10;

impl BaselineMetric {
    /// The tolerance that the file's author asked for, as a share; absent where it is a default, or where an earlier version widened it
    /// to what the runs let be seen.
    pub fn own_tolerance(&self) -> Option<f64> {
        let is_default = self.has_default(DEFAULT_RATIO) || self.has_default(ONE_RUN_RATIO);
        (!is_default && !self.is_widened()).then(|| self.tolerance())
    }

    /// Whether an earlier version made the tolerance of what the runs let be seen.
    pub fn is_widened(&self) -> bool {
        self.smallest_visible_slowdown.is_some_and(|visible| self.has_default(visible))
    }

    /// Whether the tolerance is this default, which nobody has asked for.
    pub fn has_default(&self, ratio: f64) -> bool {
        self.max_regression_ratio == ratio && self.max_regression_abs_ms == 0.0
    }

    /// How much slower than the value it may be, as a share.
    pub fn tolerance(&self) -> f64 {
        self.max_regression_ratio + self.max_regression_abs_ms / self.value_ms
    }

    /// The originals' rule: anything above this fails.
    pub fn allowed_max_ms(&self) -> f64 {
        self.value_ms * (1.0 + self.max_regression_ratio) + self.max_regression_abs_ms
    }
}

impl Baseline {
    /// The status a run must have.
    pub fn required_status(&self) -> &str {
        self.required_status.as_deref().unwrap_or("ok")
    }
}

impl From<Current> for Baseline {
    /// The values of one run with the tolerance of one run, and nothing made up.
    fn from(current: Current) -> Self {
        let metrics = current.metrics.into_iter().map(|(name, metric)| {
            let value = BaselineMetric {
                value_ms: metric.value_ms,
                max_regression_ratio: ONE_RUN_RATIO,
                max_regression_abs_ms: 0.0,
                workload: metric.workload,
                identity: metric.identity,
                answer_checked: metric.answer_checked,
                runs_ms: Vec::new(),
                spread: None,
                smallest_visible_slowdown: None,
                slow_stretches: Vec::new(),
                noise: None,
            };
            (name, value)
        });
        let (revision, others_cpu) = (current.revision, current.others_cpu);
        let run = |timestamp_utc| BaselineRun { timestamp_utc, revision, others_cpu };
        Self {
            schema_version: SCHEMA_VERSION,
            suite: current.suite,
            baseline_notes: String::new(),
            required_status: None,
            machine: current.machine,
            environment_lock: current.environment_lock,
            alarm_rate: None,
            runs: current.timestamp_utc.map(run).into_iter().collect(),
            promoted: None,
            metrics: metrics.collect(),
        }
    }
}
