//! The decision about a run or about two sides, `comparison.json`.

use crate::ab::{AbEvidence, AbPlan, AbReport, DisjointCiKeys, Ended, Side};
use crate::baseline::Baseline;
use crate::calibration::Calibrated;
use crate::machine::{Machine, Revision};
use crate::metric::Better;
use crate::report::Report;
use crate::suite::Identity;
use crate::waiver::UsedWaiver;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// From best to worst; the worst one speaks for the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Faster than the tolerance could explain.
    Improved,
    /// Not slower than allowed.
    Pass,
    /// Slower than allowed, and somebody answers for it for a while.
    Waived,
    /// Could not be measured here.
    Skipped,
    /// Measured, yet the evidence does not suffice.
    Inconclusive,
    /// Slower than allowed, or a required metric is missing.
    Regressed,
    /// A wrong answer or a crash.
    Broken,
}

impl Verdict {
    /// All of them, in their order.
    pub const ALL: [Self; 7] = [
        Self::Improved,
        Self::Pass,
        Self::Waived,
        Self::Skipped,
        Self::Inconclusive,
        Self::Regressed,
        Self::Broken,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::Pass => "pass",
            Self::Waived => "waived",
            Self::Skipped => "skipped",
            Self::Inconclusive => "inconclusive",
            Self::Regressed => "regressed",
            Self::Broken => "broken",
        }
    }
}

/// The originals' words for one check; `inconclusive` and `skipped` are ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// Within the tolerance.
    Pass,
    /// Outside it.
    Fail,
    /// The run has no such metric, or was skipped as a whole.
    Missing,
    /// Not comparable.
    Inconclusive,
    /// Its workload could not run here, others could.
    Skipped,
}

impl CheckStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Missing => "missing",
            Self::Inconclusive => "inconclusive",
            Self::Skipped => "skipped",
        }
    }
}

/// The judged comparison of a run with its baseline, or of two sides that were measured together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "comparison")]
pub struct Stated {
    pub schema_version: u32,
    pub suite: String,
    /// The originals' word: `pass` when every check passed, else `fail`.
    pub status: String,
    /// The worst verdict of all checks.
    pub verdict: Verdict,
    /// Name of the policy that decided.
    pub policy: String,
    /// When the run under test began, if known.
    #[serde(default)]
    pub timestamp_utc: Option<String>,
    /// The status a run must have.
    pub required_status: String,
    /// The status it had, if its file has one.
    #[serde(default)]
    pub current_status: Option<String>,
    #[serde(default)]
    pub machine: Option<Machine>,
    /// The revision of the run or side under test.
    #[serde(default)]
    pub revision: Option<Revision>,
    /// The two sides, where two were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sides: Option<ComparedSides>,
    /// Remarks for the reader, in sentences.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Metrics of the run that the baseline does not have: measured, not judged.
    #[serde(default)]
    pub ungated: Vec<String>,
    /// One check per metric.
    pub checks: Vec<Check>,
    /// The originals' keys of the worst check, under the policy `threshold`.
    #[serde(flatten)]
    pub threshold: Option<ThresholdKeys>,
    /// Everything needed to judge again. Absent if two reports were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
}

/// The sides of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedSides {
    pub base: Side,
    pub head: Side,
    /// Whether every workload was taken to its end.
    pub finished: bool,
}

/// Everything beside the samples that it takes to judge again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Basis {
    /// A run was compared with a baseline; its samples are in `report.json`.
    Baseline(Box<BaselineBasis>),
    /// Two sides were compared; their samples are in `ab.json`.
    Sides {
        /// Tolerance and error rates.
        plan: AbPlan,
    },
    /// A run was held against the history of its metrics; its samples are in `report.json`.
    History {
        /// The level of each metric before the run.
        levels: BTreeMap<String, HistoryLevel>,
    },
}

impl Basis {
    pub fn baseline(&self) -> Option<&BaselineBasis> {
        match self {
            Self::Baseline(basis) => Some(basis),
            Self::Sides { .. } | Self::History { .. } => None,
        }
    }

    pub fn plan(&self) -> Option<&AbPlan> {
        match self {
            Self::Baseline(_) | Self::History { .. } => None,
            Self::Sides { plan } => Some(plan),
        }
    }
}

/// The baseline that a run was judged by, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineBasis {
    pub baseline: Baseline,
    /// Which differences were declared harmless.
    pub allow: Allow,
    /// The least improvement that passes, in percent, under the policy `threshold`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold_pct: Option<f64>,
}

/// The file of samples that was judged.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    Run(&'a Report),
    Sides(&'a AbReport),
}

/// Differences between the sides that the user has declared harmless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Allow {
    /// Another machine.
    pub machine: bool,
    /// Another environment lock.
    pub environment: bool,
    /// Another shape.
    pub shape: bool,
    /// Another element type.
    pub dtype: bool,
    /// Another clock.
    pub timer: bool,
    /// Other parameters.
    pub params: bool,
}

impl Allow {
    /// The names of those that are, as `--allow` takes them.
    pub fn names(self) -> Vec<&'static str> {
        let Self { machine, environment, shape, dtype, timer, params } = self;
        let all = [
            (machine, "machine"),
            (environment, "environment"),
            (shape, "shape"),
            (dtype, "dtype"),
            (timer, "timer"),
            (params, "params"),
        ];
        all.into_iter().filter(|(is_allowed, _)| *is_allowed).map(|(_, name)| name).collect()
    }
}

/// Name of the check of the run's status, beside those of its metrics.
pub const STATUS_METRIC: &str = "__status__";
/// Name of a check that says what is wrong with the evidence itself.
pub const EVIDENCE_METRIC: &str = "__evidence__";

/// The judgement of one metric; of two sides, of the median time of one workload or of another metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Name of the metric; `__status__` for the run's status.
    pub metric: String,
    /// The workload it belongs to, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// The originals' word.
    pub status: CheckStatus,
    /// Ours.
    pub verdict: Verdict,
    /// Why, in a sentence.
    pub reason: String,
    /// The baseline's value.
    #[serde(default)]
    pub baseline_ms: Option<f64>,
    /// Anything above this fails; under the policy `stored` nothing above it passes.
    #[serde(default)]
    pub allowed_max_ms: Option<f64>,
    /// The run's value.
    #[serde(default)]
    pub current_ms: Option<f64>,
    /// `current / baseline - 1`; of a metric of which more is better `baseline / current - 1`.
    #[serde(default)]
    pub regression_ratio: Option<f64>,
    /// Run-to-run spread in the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_spread: Option<f64>,
    /// The waiver that is about this regression, and what became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiver: Option<UsedWaiver>,
    /// For `__status__`: what was required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// For `__status__`: what it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// The originals' keys under the policy `threshold`.
    #[serde(flatten)]
    pub threshold: Option<ThresholdKeys>,
    /// Keys that only a comparison of two sides has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paired: Option<PairedKeys>,
    /// What the baseline's noise allows to be said, under the policy `stored`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredKeys>,
}

/// A change against a stored baseline, in view of its noise. All are shares: 0.01 is 1 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoredKeys {
    /// How much slower the metric may be: what was asked for.
    pub tolerance: f64,
    /// A pass is surely less slow than this: the tolerance, or twice of it.
    pub limit: f64,
    /// The change is surely less than this, at the miss rate.
    pub change_max: f64,
    /// The smallest slowdown that is reported, at the alarm rate.
    pub sees: f64,
}

impl Check {
    /// The name in tables: of two sides' median times the workload's, else the metric's.
    pub fn name(&self) -> &str {
        let is_time = self.paired.as_ref().is_some_and(|paired| paired.metric.is_none());
        self.workload.as_deref().filter(|_| is_time).unwrap_or(&self.metric)
    }

    /// The metric of two sides beside the median time.
    pub fn metric_keys(&self) -> Option<&MetricKeys> {
        self.paired.as_ref()?.metric.as_ref()
    }

    /// A change that is positive where it is worse, such as `regression_ratio`, as the change of the metric itself.
    pub fn change_of_value(&self, worse: f64) -> f64 {
        match self.metric_keys() {
            Some(keys) if !keys.better.is_lower() => 1.0 / (1.0 + worse) - 1.0,
            _ => worse,
        }
    }

    /// Whether it is about the whole, not about one metric or workload.
    pub fn is_overall(&self) -> bool {
        [STATUS_METRIC, EVIDENCE_METRIC].contains(&self.metric.as_str())
    }

    /// The evidence from the units of two sides.
    pub fn evidence(&self) -> Option<&AbEvidence> {
        self.paired.as_ref()?.evidence.as_ref()
    }
}

/// Keys of a workload of two sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairedKeys {
    pub identity: Identity,
    /// Why measuring ended.
    pub ended: Ended,
    /// Its share of the machine's time: starts, preparation and rounds.
    pub spent_s: f64,
    /// Share of that in which its timed calls ran on a device; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_share: Option<f64>,
    /// Statistics of the units; absent when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<AbEvidence>,
    /// The keys of the policy `disjoint-ci`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disjoint_ci: Option<DisjointCiKeys>,
    /// The outcome of comparing unchanged code on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<Calibrated>,
    /// The metric, where it is not the median time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<MetricKeys>,
}

/// A metric of two sides beside the median time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricKeys {
    /// Its name, which ends with its unit.
    pub name: String,
    /// How much worse it may be: 0.01 is 1 %.
    pub tolerance: f64,
    #[serde(default, skip_serializing_if = "Better::is_lower")]
    pub better: Better,
    /// Base's value, such that head's over it is the median ratio of the units.
    #[serde(default)]
    pub base: Option<f64>,
    /// Head's value.
    #[serde(default)]
    pub head: Option<f64>,
    /// Base's and head's value in each unit that shows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<[f64; 2]>,
}

/// Keys of the second seed's comparison file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThresholdKeys {
    /// Baseline over current: above 1 is faster.
    pub speedup: f64,
    /// Positive is faster.
    pub improvement_pct: f64,
    /// `improvement_pct < threshold`.
    pub is_regression: bool,
    /// The baseline's time.
    pub baseline_time_ms: f64,
    /// The run's time.
    pub current_time_ms: f64,
    /// The least improvement that passes, in percent; negative allows a slowdown.
    pub threshold: f64,
    /// `REGRESSION DETECTED`, `SIGNIFICANT IMPROVEMENT`, `SLIGHT IMPROVEMENT` or `PERFORMANCE SIMILAR`.
    pub label: String,
}

/// The level that the history of a metric expects of the next run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryLevel {
    #[serde(default, skip_serializing_if = "Better::is_lower")]
    pub better: Better,
    /// Median of the newest points of the present level.
    pub level: f64,
    /// The worst value that is still the level's noise.
    pub fence: f64,
    /// The best one.
    pub floor: f64,
    /// Points behind the level.
    pub points_count: usize,
    /// The level when it was accepted; absent while it has not lasted long enough to drift.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_level: Option<f64>,
    /// The worst that the newest points together may be against that level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_fence: Option<f64>,
    /// The newest values before the run, oldest first.
    pub newest: Vec<f64>,
    /// How much worse the metric may be, where somebody asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
}
