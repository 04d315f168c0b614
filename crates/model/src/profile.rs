//! Profiler counters of a suite's kernels, `profile.json`. Counters say why a kernel takes its time, never how long:
//! under a profiler kernels are replayed one at a time, with other caches and clocks than a run has.

use crate::machine::Revision;
use crate::protocol::DeviceInfo;
use crate::report::Failure;
use crate::suite::Identity;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One profile of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "profile")]
pub struct Profile {
    pub schema_version: u32,
    pub suite: String,
    /// When it began, ISO-8601 in UTC.
    pub timestamp_utc: String,
    /// The profiler; absent where none was found.
    #[serde(default)]
    pub profiler: Option<ToolInfo>,
    /// The device; absent where none could be used.
    #[serde(default)]
    pub device: Option<DeviceInfo>,
    #[serde(default)]
    pub revision: Option<Revision>,
    /// Metrics that were asked for and that this profiler does not know, or did not count for any kernel.
    #[serde(default)]
    pub missing_metrics: Vec<String>,
    /// The outcome of each workload.
    pub profiles: IndexMap<String, WorkloadProfile>,
}

/// A tool beside holdpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolInfo {
    pub name: String,
    pub version: String,
    pub path: String,
}

/// The profile of one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadProfile {
    pub identity: Identity,
    #[serde(flatten)]
    pub outcome: ProfileOutcome,
}

/// How profiling came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ProfileOutcome {
    Profiled(Profiled),
    /// It could not be profiled here; nothing is wrong with the workload.
    Unavailable(Unavailable),
    /// The workload itself failed, without a profiler.
    Failed(Failure),
}

/// Why a tool could not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unavailable {
    /// A reason code, such as `ncu_not_found` or `ncu_no_permission`.
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// The kernels of one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profiled {
    /// Which kernels were counted, as the profiler was told; absent where all of the process were.
    #[serde(default)]
    pub kernel_filter: Option<String>,
    /// The profiler's own table, beside this file.
    #[serde(default)]
    pub raw: Option<String>,
    /// The kernels, in the order of their first launch.
    pub kernels: Vec<KernelProfile>,
}

/// The counters of one kernel. Launches of the same name, grid and block are one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelProfile {
    pub name: String,
    /// Blocks, as the profiler writes them: `(64, 1, 1)`.
    pub grid: String,
    /// Threads of a block.
    pub block: String,
    /// Launches counted.
    pub launches_count: u32,
    /// The counters by the profiler's names, in base units; the median where there were several launches. One that is not
    /// a number is absent.
    pub metrics: BTreeMap<String, f64>,
    /// How long the profiler's replay took: shows that something ran, is no time of the kernel's, and is compared with nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed_ns: Option<f64>,
    /// Conclusions from the counters.
    #[serde(default)]
    pub findings: Vec<Finding>,
}

/// Something that a rule found, with what it was found by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The rule.
    pub rule: String,
    /// How much it matters.
    pub severity: Severity,
    /// The finding, in a sentence.
    pub what: String,
    pub remedy: String,
    /// The counters that it was found by.
    pub evidence: BTreeMap<String, f64>,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Says what the kernel is like.
    Note,
    /// Likely costs time.
    Medium,
    /// Costs time wherever it is seen.
    High,
}

impl Severity {
    /// The word in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Two profiles of a suite, kernel by kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "profile_comparison")]
pub struct ProfileComparison {
    pub schema_version: u32,
    /// When base was taken.
    pub base_timestamp_utc: String,
    /// When head was taken.
    pub head_timestamp_utc: String,
    /// Differences that make the two hard to compare: another device, profiler, workload or set of kernels.
    pub differences: Vec<String>,
    /// The kernels that both have.
    pub kernels: Vec<KernelChange>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelChange {
    /// The workload.
    pub workload: String,
    pub kernel: String,
    /// Counters that changed, those that changed most by their own measure first.
    pub changes: Vec<MetricChange>,
    /// Rules that found something in head and not in base.
    pub findings_new: Vec<String>,
    /// Rules that found something in base and not in head.
    pub findings_gone: Vec<String>,
}

/// One counter, before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricChange {
    /// The profiler's name.
    pub metric: String,
    /// Its name in tables.
    pub title: String,
    pub base: f64,
    pub head: f64,
    /// The change in units of what counts as one for this counter.
    pub weight: f64,
}

/// The findings of compute-sanitizer, `sanitize.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "sanitize")]
pub struct SanitizeReport {
    pub schema_version: u32,
    pub suite: String,
    /// When it began, ISO-8601 in UTC.
    pub timestamp_utc: String,
    /// The sanitizer; absent where none was found.
    #[serde(default)]
    pub sanitizer: Option<ToolInfo>,
    /// The device; absent where none could be used.
    #[serde(default)]
    pub device: Option<DeviceInfo>,
    #[serde(default)]
    pub revision: Option<Revision>,
    /// The outcome of each workload, by tool.
    pub sanitized: IndexMap<String, IndexMap<String, SanitizeOutcome>>,
}

/// The outcome of one tool of the sanitizer for one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum SanitizeOutcome {
    /// It looked, and found nothing.
    Clean,
    Errors {
        /// As many as it counted.
        errors_count: u64,
        /// The first of them.
        errors: Vec<SanitizerError>,
        /// The tool's own log, beside this file.
        #[serde(default)]
        log: Option<String>,
    },
    /// It could not be used.
    Unavailable(Unavailable),
    /// The workload itself failed, and not by anything that the tool looks for.
    Failed(Failure),
}

/// One error that compute-sanitizer found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SanitizerError {
    /// The first line of the error.
    pub what: String,
    /// The kernel, where it names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The place in the source or in the machine code, where it names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The thread and block, where it names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}
