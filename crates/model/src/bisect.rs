//! The search for the commit that slowed a workload, `bisect.json`.

use crate::ab::AbReport;
use crate::judgement::Stated;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "bisection")]
pub struct Bisection {
    pub schema_version: u32,
    pub suite: String,
    /// When it began, ISO-8601 in UTC.
    pub timestamp_utc: String,
    /// The workload that became slow; absent when none was found slower.
    #[serde(default)]
    pub workload: Option<String>,
    /// How much slower is still fine.
    pub tolerance: f64,
    /// How much slower than `good` a commit must be to count as slower: half of the change between `good` and `bad`, in
    /// logarithms, and at least the tolerance. Absent where that change was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<f64>,
    /// Hash of the suite; a search is resumed only with the same one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suite_sha256: String,
    /// The revision that was fast, or the newest ancestor that it shares with `bad`; every step is compared with it.
    pub good: CommitInfo,
    /// The revision that is slow.
    pub bad: CommitInfo,
    /// The revisions that were measured, in order; the first is `bad` itself.
    pub steps: Vec<BisectStep>,
    /// The commit that slowed it; several where those between could not be decided; none where nothing was slower.
    pub culprits: Vec<CommitInfo>,
    /// Samples of the culprit and the commit before it; absent where there is no single culprit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<AbReport>,
    /// The judgement of these samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judgement: Option<Stated>,
    /// Remarks for the reader, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommitInfo {
    pub commit: String,
    /// When it was written, ISO-8601.
    pub date: String,
    /// First line of its message.
    pub subject: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BisectStep {
    pub commit: CommitInfo,
    pub outcome: StepOutcome,
    /// How much slower than `good` it had to be to count as slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<f64>,
    /// Time that measuring it was given, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_s: Option<f64>,
    /// Its time divided by that of the good revision.
    #[serde(default)]
    pub ratio: Option<f64>,
    /// The ratios that the evidence has not ruled out.
    #[serde(default)]
    pub ratio_interval: Option<[f64; 2]>,
    pub reason: String,
    /// Seconds spent on it, its build included.
    pub seconds: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// Slower than the line.
    Slower,
    NotSlower,
    /// Not decided within the budget: looked at again with more time if no other commit will do, else left out.
    Undecided,
    /// It does not build: left out of the search.
    NotBuilt,
    /// It fails when run: left out of the search.
    Broken,
}

impl StepOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::NotSlower => "not slower",
            Self::Undecided => "undecided",
            Self::NotBuilt => "not built",
            Self::Broken => "broken",
        }
    }
}
