//! The roofline document: a device's ceilings, and where each workload of a report stands below them. `gate` computes it.

mod peaks;
mod per_clock;

pub use peaks::{PEAKS, PublicPeaks, public_peaks};
pub use per_clock::device_peaks;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All workloads of a report under the roofs of their device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "roofline")]
pub struct Roofline {
    pub schema_version: u32,
    /// Name of the suite that the workloads are of.
    pub suite: String,
    /// When its run began, ISO-8601 in UTC.
    pub timestamp_utc: String,
    /// The device: a GPU, or the CPU.
    pub device: String,
    pub ceilings: Ceilings,
    /// The vendor's figures; absent if the table does not have the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_peaks: Option<PublicPeaks>,
    /// Where each workload stands, in the report's order.
    pub workloads: IndexMap<String, Placement>,
    /// Remarks about implausible ceilings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Where one workload stands. It never becomes a missing row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Placement {
    /// Under a roof.
    Placed(Box<Placed>),
    /// Nowhere, and why.
    Unplaced { reason: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Placed {
    pub dtype: String,
    pub time_ms: f64,
    /// Bytes that a call has to move, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
    /// Floating-point operations of a call, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<f64>,
    /// Operations per byte; absent where one of the two is not known, or is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arithmetic_intensity: Option<f64>,
    /// Operations per second, in 10⁹.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_gflops: Option<f64>,
    /// Bytes per second, in 10⁹.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_gb_s: Option<f64>,
    pub bottleneck: Bottleneck,
    pub ceiling: Ceiling,
    /// How much of that roof it reaches, 0 to 100; absent where it is above it, which is no efficiency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efficiency_pct: Option<f64>,
    /// Recommendations, each with the number that led to it.
    pub recommendations: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// The bandwidth of memory.
    Memory,
    /// The bandwidth of a cache that all its data fits.
    Cache,
    Compute,
    /// Being started.
    Launch,
    /// Nothing that was measured: it is quicker than it can be, so a count of work or a ceiling is wrong.
    AboveCeiling,
}

impl Bottleneck {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cache => "cache",
            Self::Compute => "compute",
            Self::Launch => "launch",
            Self::AboveCeiling => "above",
        }
    }
}

/// A roof, by the workload that measured it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// The workload of the ceilings' report.
    pub workload: String,
    /// How high it is.
    pub value: f64,
    /// In what.
    pub unit: CeilingUnit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CeilingUnit {
    /// 10⁹ bytes per second.
    GbPerS,
    /// 10⁹ operations per second.
    Gflops,
    /// Milliseconds that a call takes at least.
    Ms,
}

/// The highest rates measured on a device.
///
/// A rate is that of the quickest sample: a ceiling is what was reached at all, and what disturbs a machine only ever lowers it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceilings {
    /// The device: a GPU, or the CPU.
    pub device: String,
    pub is_gpu: bool,
    /// Its driver, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// When they were measured, ISO-8601 in UTC.
    pub timestamp_utc: String,
    /// Copying far more than any cache holds.
    pub memory: Bandwidth,
    /// Copying less, the smallest first; only what is quicker than any larger copy.
    pub caches: Vec<Bandwidth>,
    /// Arithmetic by element type; `tf32` is fp32 on tensor cores.
    pub compute: BTreeMap<String, Compute>,
    /// Time of a call that does nothing, by clock: a launch, or a process.
    pub launch_ms: BTreeMap<String, f64>,
}

/// Bytes read and written per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bandwidth {
    /// The workload that measured it.
    pub workload: String,
    /// 10⁹ bytes per second.
    pub gb_per_s: f64,
    /// Bytes that it went over: what is no larger can be as quick.
    pub working_set_bytes: f64,
}

/// Operations per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compute {
    /// The workload that measured it.
    pub workload: String,
    /// 10⁹ operations per second.
    pub gflops: f64,
}
