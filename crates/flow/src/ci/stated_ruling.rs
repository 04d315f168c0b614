//! The outcome of a check: the decision about the event, the result of the gate's job, and the evidence, judged again.

use super::ReportRequest;
use super::gate::{DECISION, NO_VERDICT};
use crate::evidence::artifacts::EvidenceFolder;
use holdpoint_ci::guard::plain;
use holdpoint_ci::outcome::Outcome;
use holdpoint_model::ExitCode;
use holdpoint_model::limits::clean_text;
use holdpoint_model::suite::OnInconclusive;
use serde_json::Value;

/// The decision about the event: the guard's, or what the evidence says of it.
pub(crate) struct StatedRuling {
    decision: String,
    reason: String,
}

impl StatedRuling {
    pub fn read(request: &ReportRequest) -> Self {
        if let Some(decision) = &request.decision {
            return Self { decision: decision.clone(), reason: clean_text(&request.reason) };
        }
        let path = request.artifacts.join(DECISION);
        let is_plain = path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
        let text = is_plain.then(|| holdpoint_store::read_text(&path).ok()).flatten().unwrap_or_default();
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let word = |key: &str| plain(value[key].as_str().unwrap_or_default());
        Self { decision: word("decision"), reason: word("reason") }
    }

    /// Whether nothing was to be measured, and nothing was.
    pub fn is_silent(&self, found: &EvidenceFolder) -> bool {
        ["skip", "refuse"].contains(&self.decision.as_str()) && !has_evidence(found)
    }

    /// The outcome of a check, where the job that measured ended like this.
    pub fn outcome(&self, gate_result: &str, found: &EvidenceFolder) -> Outcome {
        let of_evidence = of_evidence(found);
        // A job that decides by itself is not skipped.
        let gate_result = match (self.decision.as_str(), gate_result) {
            ("skip", "success") if self.is_silent(found) => "skipped",
            ("refuse", "failure") if self.is_silent(found) => "skipped",
            (_, result) => result,
        };
        Outcome::of_jobs(&self.decision, &self.reason, gate_result, &of_evidence)
    }
}

fn has_evidence(found: &EvidenceFolder) -> bool {
    found.judged().is_some() || found.ended.is_some() || !found.problems.is_empty()
}

/// The outcome that the evidence stands for, if the gate's job agrees. That job knows what the suite says of doubt.
fn of_evidence(found: &EvidenceFolder) -> Outcome {
    if !found.problems.is_empty() || !has_evidence(found) {
        return Outcome::of_gate(NO_VERDICT, OnInconclusive::Fail);
    }
    Outcome::of_gate(ExitCode::from(found.verdict()) as i32, OnInconclusive::Neutral)
}
