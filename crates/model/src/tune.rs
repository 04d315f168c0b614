//! Results of tuning: the fastest constants of a workload's kernel on one device.

use crate::report::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The outcome of tuning one workload's kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "tuning")]
pub struct Tuning {
    #[serde(default = "crate::schema_version")]
    pub schema_version: u32,
    pub workload: String,
    #[serde(flatten)]
    pub outcome: TuneOutcome,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum TuneOutcome {
    /// There is a winner, and it was kept.
    Tuned(TunedKernel),
    Skipped {
        /// A reason code, such as `cuda_unavailable`.
        reason: String,
        /// The problem and its remedy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// It ran and must not be trusted.
    Failed(Failure),
}

/// The winner among a kernel's constants for one set of sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TunedKernel {
    pub kernel_name: String,
    /// The sizes it was tuned for, as `key=value|…`.
    pub shape_bucket: String,
    /// The constants that won; empty when the op's own did.
    pub selected_config: BTreeMap<String, i64>,
    /// Time of one call with the op's own constants.
    pub default_ms: f64,
    /// Time of one call with the winner's, measured again after it had won.
    pub best_ms: f64,
    /// Candidates with right answers, the op's own included.
    pub candidates_count: u32,
    /// Candidates that did not compile, did not fit or gave wrong answers.
    pub refused: Vec<Refused>,
}

impl TunedKernel {
    /// How many times as quick the winner is as the op's own constants.
    pub fn gain(&self) -> f64 {
        self.default_ms / self.best_ms
    }
}

/// Constants that were tried in vain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    pub config: BTreeMap<String, i64>,
    pub reason: String,
}
