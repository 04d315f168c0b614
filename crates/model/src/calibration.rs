//! Error rates on a machine, from comparing code with itself, `calibration.json`.

use crate::machine::{Advice, Machine, Toolchain};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How often the rule was wrong on this machine, and which slowdowns it detects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "calibration")]
pub struct Calibration {
    pub schema_version: u32,
    pub suite: String,
    /// When it began, ISO-8601 in UTC.
    pub timestamp_utc: String,
    pub machine: Machine,
    pub toolchain: Toolchain,
    /// The tolerance that was decided at.
    pub tolerance: f64,
    /// The error rate that was asked for, per suite.
    pub alarm_rate: f64,
    /// Slowdown put into head: 0 where head is base.
    pub inject: f64,
    /// Comparisons of the whole suite.
    pub trials: u32,
    /// Comparisons that were decided: every workload, or one of them as slower. Absent in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<u32>,
    /// Comparisons in which at least one workload was called slower although nothing was injected.
    pub false_alarms: u32,
    /// Of the comparisons that were decided: with 95 % confidence the rate of false alarms per suite is at most this; absent with a slowdown injected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub false_alarm_rate_upper: Option<f64>,
    /// Workloads compared, over all trials: what `detected` and `inconclusive` are of.
    pub comparisons: u32,
    /// Workloads called slower, over all trials, where a slowdown was injected.
    pub detected: u32,
    /// Workloads not decided within the budget, over all trials.
    pub inconclusive: u32,
    /// Wall time of the calibration divided by the comparisons made, in seconds; in older files the median over workloads and trials.
    pub seconds: f64,
    /// Share of the wall time in which timed calls ran on a device; absent without one, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_share: Option<f64>,
    /// Wall time of a comparison of the whole suite, median, in seconds. Absent in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite_seconds: Option<f64>,
    /// Seconds of the whole calibration.
    pub elapsed_s: f64,
    /// Whether all trials were made; a signal may have ended them.
    pub finished: bool,
    /// Advice for steadier times on this machine; absent in older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
    pub workloads: IndexMap<String, Calibrated>,
}

/// The calibration of one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibrated {
    /// The tolerance that was decided at.
    pub tolerance: f64,
    /// Slowdown put into head.
    pub inject: f64,
    pub trials: u32,
    /// Called slower although nothing was injected.
    pub false_alarms: u32,
    /// The units of those trials, for the question why; absent in older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alarms: Vec<Vec<TrialUnit>>,
    /// Called slower where a slowdown was injected.
    pub detected: u32,
    pub passed: u32,
    pub faster: u32,
    /// Not decided within the budget.
    pub inconclusive: u32,
    pub failed: u32,
    /// Its share of the wall time of a trial, in seconds: the mean; in older files the median.
    pub seconds: f64,
    /// Share of that in which its timed calls ran on a device; absent without one, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_share: Option<f64>,
    /// 90th percentile of its seconds.
    pub seconds_p90: f64,
    /// Units to the verdict, median.
    pub units: f64,
    /// Median standard deviation of a unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_sd: Option<f64>,
    /// Smallest slowdown that was visible at the end of a trial, median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_visible_slowdown: Option<f64>,
    /// Slowdowns that are detectable in a given time with this noise: a basis for choosing a tolerance.
    #[serde(default)]
    pub visible: Vec<Visible>,
    /// Whether it is too noisy to be gated at this tolerance: most trials were undecided.
    pub too_noisy: bool,
}

impl Calibrated {
    /// Trials in which the workload was decided.
    pub fn decided(&self) -> u32 {
        [self.passed, self.faster, self.false_alarms, self.detected]
            .iter()
            .fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Whether it says anything about verdicts: nothing failed, and something was decided.
    pub fn is_evidence(&self) -> bool {
        self.failed == 0 && self.decided() > 0
    }
}

impl Calibration {
    /// Whether it may be kept and shown beside verdicts: a suite that fails says nothing about how it is judged.
    pub fn is_evidence(&self) -> bool {
        !self.workloads.is_empty() && self.workloads.values().all(|workload| workload.failed == 0)
    }
}

/// What is kept of a unit of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialUnit {
    /// Which pair of processes.
    pub process: u32,
    /// `ln(head / base)`.
    pub x: f64,
}

/// The smallest slowdown that is detected within a given time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Visible {
    /// Wall time for the workload.
    pub seconds: f64,
    /// 0.02 is 2 %; absent if no slowdown could be detected in that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<f64>,
}
