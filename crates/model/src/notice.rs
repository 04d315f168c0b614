//! The document that is sent to webhooks.

use crate::judgement::Verdict;
use crate::waiver::UsedWaiver;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a comparison came out, for programs. Text in it is on one line, without control characters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "notice")]
pub struct Notice {
    pub schema_version: u32,
    pub suite: String,
    /// The worst verdict of all.
    pub verdict: Verdict,
    /// The sentence about the whole.
    pub summary: String,
    /// The commit under test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The machine in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The page of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_url: Option<String>,
    /// Checks that did not pass, the worst first.
    pub rows: Vec<NoticeRow>,
    /// How many of them did not fit.
    pub rows_left_out: usize,
}

/// One metric or workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeRow {
    pub name: String,
    pub verdict: Verdict,
    /// How much slower, as a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<f64>,
    /// The changes that the evidence has not ruled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// How much slower it may be, as a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<f64>,
    pub reason: String,
    /// The waiver that is about it, and what became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiver: Option<UsedWaiver>,
}
