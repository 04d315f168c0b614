//! Metrics that two sides are compared by, beside the median time. The name of a metric ends with its unit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The metrics that a suite may ask to be gated.
pub const METRICS: &[&str] = &["p50_ms", "p95_ms", "p99_ms", "mean_ms", "min_ms", "cpu_p50_ms"];

/// Kinds of metrics. Everything but [`Metric::Exact`] is measured in every unit and decided by evidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// A quantile of the times of a unit's samples.
    Quantile(f64),
    /// The mean time of a unit's samples.
    Mean,
    /// The median CPU time, user and system.
    Cpu,
    /// The highest resident memory of the process.
    PeakMemory,
    /// Calls per second.
    Throughput,
    /// Energy of the device per call, told by the worker.
    Energy,
    /// A number that the program prints.
    Printed,
    /// The same whenever it is looked at: it needs no statistics.
    Exact(Exact),
}

/// A quantity that is the same whenever it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exact {
    /// Instructions of a call of a command.
    Instructions,
    /// Size of the program's file.
    FileBytes,
    /// Size of the kernels' machine code.
    CodeBytes,
    /// Registers per thread of the kernels.
    Registers,
    /// Bytes per thread of the kernels that went to local memory.
    SpillBytes,
}

/// The metrics by name.
pub const SIDE_METRICS: &[(&str, Metric)] = &[
    ("p95_ms", Metric::Quantile(0.95)),
    ("p99_ms", Metric::Quantile(0.99)),
    ("min_ms", Metric::Quantile(0.0)),
    ("mean_ms", Metric::Mean),
    ("cpu_p50_ms", Metric::Cpu),
    ("peak_memory_mb", Metric::PeakMemory),
    ("throughput_per_s", Metric::Throughput),
    (METRIC_ENERGY, Metric::Energy),
    ("instructions", Metric::Exact(Exact::Instructions)),
    ("file_bytes", Metric::Exact(Exact::FileBytes)),
    ("code_bytes", Metric::Exact(Exact::CodeBytes)),
    ("registers", Metric::Exact(Exact::Registers)),
    ("spill_bytes", Metric::Exact(Exact::SpillBytes)),
];

/// Name of the energy of a device per call, in millijoules.
pub const METRIC_ENERGY: &str = "energy_mj";
/// Name of the metric that every workload has: the median time.
pub const METRIC_TIME: &str = "p50_ms";

impl Metric {
    /// The metric of that name; any other name is that of a number that the program prints.
    pub fn from_name(name: &str) -> Self {
        let known = SIDE_METRICS.iter().find(|(known, _)| *known == name);
        known.map_or(Self::Printed, |(_, metric)| *metric)
    }

    /// Samples of a side below which a unit does not show it: a quantile needs some beyond it.
    pub fn samples_min(self) -> u64 {
        match self {
            Self::Quantile(q) => (1.0 / (1.0 - q)).round() as u64,
            _ => 1,
        }
    }
}

/// Which direction is an improvement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    #[default]
    Lower,
    Higher,
}

impl Better {
    pub fn is_lower(&self) -> bool {
        *self == Self::Lower
    }

    /// 1 where more is worse, -1 where more is better.
    pub fn sign(self) -> f64 {
        if self.is_lower() { 1.0 } else { -1.0 }
    }
}

/// The question about one metric of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricPlan {
    /// How much worse head may be: 0.01 is 1 %.
    pub tolerance: f64,
    #[serde(default, skip_serializing_if = "Better::is_lower")]
    pub better: Better,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_needs_samples_beyond_it() {
        let samples_min = |name| Metric::from_name(name).samples_min();
        assert_eq!(["p95_ms", "p99_ms", "min_ms", "mean_ms", "tokens"].map(samples_min), [20, 100, 1, 1, 1]);
    }
}
