//! Apex-X's files: its reports are read, and its GPU report and its sweep of a model are written from one of ours.
//!
//! Keys and units are Apex-X's; values that our report lacks are null, never guessed. Metrics of such a file have the names that our
//! own report has.

mod autotune;
mod convert;
mod profile;
mod read;
mod sweep;

pub use autotune::{Autotune, AutotuneEntry};
pub use profile::{ApexCaps, ApexConfig, ApexEnvironment};
pub use sweep::{ApexSweepCase, ApexSweepReport};

use crate::Format;
use holdpoint_model::document::Head;
use holdpoint_model::json;
use indexmap::IndexMap;
use serde::Serialize;
use std::collections::BTreeMap;

/// Reports of the CPU suite, the GPU suite and the TensorRT sweep.
pub(crate) const FORMAT: Format = Format {
    words: "a report of Apex-X",
    matches: |source| source.any_head(read::matches),
    read: |source| {
        source.read_each(read::matches, |text| read::read(&Head::parse(text)?, &json::parse(text)?))
    },
};

/// Apex-X's name of the suite.
pub(crate) const APEX_GPU_SUITE: &str = "apex_x_gpu_benchmark";

/// The GPU report of Apex-X, `perf_gpu.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ApexGpuReport {
    pub schema_version: u32,
    pub suite: String,
    /// When the run began, ISO-8601 with `+00:00`.
    pub timestamp_utc: String,
    pub environment: ApexEnvironment,
    pub config: ApexConfig,
    /// `ok` or `skipped`; ours also has `partial` and `failed`, for which Apex-X has no word.
    pub status: String,
    /// Why, when the status is not `ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The measurements, by the dotted names of their workloads; empty when the run was skipped.
    pub benchmarks: Section,
    /// The kernels behind them; empty when the run was skipped.
    pub triton_autotune: Autotune,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Section {
    /// The kernel that ran as this section's dispatch, where it has one.
    #[serde(flatten)]
    pub dispatch: Option<Dispatch>,
    #[serde(flatten)]
    pub parts: IndexMap<String, Part>,
}

impl Section {
    /// The part of a dotted name below this section.
    pub fn get(&self, name: &str) -> Option<&Part> {
        match name.split_once('.') {
            None => self.parts.get(name),
            Some((first, rest)) => match self.parts.get(first)? {
                Part::Section(section) => section.get(rest),
                _ => None,
            },
        }
    }
}

/// The kernel that ran as a dispatch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dispatch {
    /// `triton` or `cuda`; null when it did not run.
    pub backend: Option<String>,
    /// Where the worker names it. A key of ours.
    pub kernel_name: Option<String>,
    /// Always null: a kernel that cannot run is skipped, nothing else is timed under its name.
    pub fallback_reason: Option<String>,
}

/// The content of a dotted name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Part {
    Times(Box<Times>),
    Skip(SkipRecord),
    Section(Section),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Times {
    pub p50_ms: f64,
    /// `sorted[floor(0.95(n-1))]`.
    pub p95_ms: f64,
    /// Most device memory that the workload's process held at a time, in units of 2^20 bytes: Apex-X's meaning of this key.
    pub peak_memory_mb: Option<f64>,
    /// Items over the median, by Apex-X's name: `tiles_per_s`.
    #[serde(flatten)]
    pub throughput: BTreeMap<String, f64>,
    /// Metrics that the suite gates beyond the two above. Keys of ours, so that no gated metric is lost.
    #[serde(flatten)]
    pub gated: BTreeMap<String, f64>,
    /// The choices of routing in each call, of workloads end to end.
    #[serde(flatten)]
    pub routing: Option<Nulls>,
}

/// Keys of Apex-X for values that our report lacks: all null.
pub(crate) type Nulls = IndexMap<&'static str, ()>;

fn nulls<const N: usize>(keys: [&'static str; N]) -> Nulls {
    keys.into_iter().map(|key| (key, ())).collect()
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SkipRecord {
    /// `skipped`; `failed` for a workload that failed, for which Apex-X has no word.
    pub status: String,
    /// A reason code, or a sentence.
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApexError {
    #[error(
        "no workload of suite {suite:?} is for a CUDA device; give the report of a GPU suite, such as \"holdpoint run --suite gpu\" writes"
    )]
    NotGpu { suite: String },
    /// A workload whose name has no place in it.
    #[error("workload {workload:?} has no place in a GPU report of Apex-X: {what}")]
    NoPlace {
        workload: String,
        /// Why not, and a remedy.
        what: &'static str,
    },
}

#[cfg(test)]
mod tests;
