//! The `[gate]` table of a suite: how its measurements are judged, unless a flag says otherwise.

use super::Metrics;
use crate::pattern::find_glob_problem;
use crate::toml_file::{TomlError, invalid};
use crate::unit_plan::Clock;
use crate::waiver::Limit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a suite is judged. Each key but those of CI has a flag of the same name, which overrides it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GateSettings {
    /// The policy by name: `stored`, `allowed-max` or `threshold` for a baseline, `sequential` or `disjoint-ci` for two sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// How much slower a workload may become; replaces the tolerances of a baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Limit>,
    /// For the policy `threshold`: the least improvement that passes, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Two sides: how many times faster a workload may become before that is inconclusive, and must be checked; 10 where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speedup_max: Option<f64>,
    /// Two sides: maximum false-alarm rate per suite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alarm_rate: Option<f64>,
    /// Two sides: maximum miss rate per workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub miss_rate: Option<f64>,
    /// Two sides: seconds per workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<f64>,
    /// Two sides: most units per workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units_max: Option<u32>,
    /// Two sides: compare wall time or CPU time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<Clock>,
    /// Two sides: units measured at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
    /// Two sides: hold all processes of a unit on one CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<bool>,
    /// Two sides: measure workloads even if both sides run the same code or are the same build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure_same_code: Option<bool>,
    /// The stored baseline that `gate` compares with, in place of the default branch: a file, relative to the suite's folder. Recorded
    /// by the first gate if it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// A baseline: runs to add when the first is slower than allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<u32>,
    /// A baseline: runs behind a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
    /// The metrics to gate of workloads that name none; a table is added to by a workload's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// Two revisions: globs of the files that no workload reads when it runs, from the root of the repository, such as `src/**`; builds
    /// that differ in nothing else are not measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore_files: Vec<String>,
    /// In CI: globs of the files that matter for speed, from the root of the repository, such as `src/**`; a change that touches none of
    /// them passes without being measured. Where absent, every file but documents (`*.md`, `LICENSE*`) matters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// In CI: the check of a change whose evidence does not suffice; neutral where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_inconclusive: Option<OnInconclusive>,
    /// Settings of single workloads, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub workloads: BTreeMap<String, WorkloadGate>,
}

/// How a check ends when the evidence does not suffice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnInconclusive {
    /// It does not fail, and says what would decide.
    #[default]
    Neutral,
    Fail,
}

/// How one workload is judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadGate {
    /// How much slower it may become.
    pub tolerance: Limit,
}

impl GateSettings {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The tolerances of single workloads, as shares.
    pub fn tolerances(&self) -> BTreeMap<String, f64> {
        self.workloads.iter().map(|(name, gate)| (name.clone(), gate.tolerance.share())).collect()
    }

    pub(super) fn check(&self) -> Result<(), TomlError> {
        let rate = |key: &str, rate: Option<f64>| match rate {
            Some(rate) if !(rate > 0.0 && rate < 1.0) => {
                invalid("gate", format!("{key} is {rate}; a rate between 0 and 1 is wanted, such as 0.001"))
            }
            _ => Ok(()),
        };
        rate("alarm_rate", self.alarm_rate)?;
        rate("miss_rate", self.miss_rate)?;
        let positive = |key: &str, value: Option<f64>| match value {
            Some(value) if !(value > 0.0 && value <= 1e6) => {
                invalid("gate", format!("{key} is {value}; a number above 0 is wanted"))
            }
            _ => Ok(()),
        };
        positive("budget", self.budget)?;
        if let Some(times) = self.speedup_max.filter(|times| !(*times > 1.0 && *times <= 1e6)) {
            return invalid(
                "gate",
                format!("speedup_max is {times}; a number above 1 is required, such as 50"),
            );
        }
        let ranges = [
            ("units_max", self.units_max, 1..=10_000),
            ("at_once", self.at_once, 1..=64),
            ("confirm", self.confirm, 0..=100),
            ("runs", self.runs, 1..=100),
        ];
        for (key, value, range) in ranges {
            if let Some(value) = value.filter(|value| !range.contains(value)) {
                let (low, high) = (range.start(), range.end());
                return invalid("gate", format!("{key} is {value}; {low} to {high} are wanted"));
            }
        }
        if self.baseline.as_ref().is_some_and(|file| file.is_empty() || file.ends_with('/')) {
            return invalid("gate", "baseline: give the path of a file");
        }
        for (key, globs) in [("paths", &self.paths), ("ignore_files", &self.ignore_files)] {
            if let Some((glob, why)) = globs.iter().find_map(|glob| Some((glob, find_glob_problem(glob)?))) {
                return invalid("gate", format!("{key}: {glob:?} matches nothing: {why}"));
            }
        }
        Ok(())
    }
}
