//! Two sides measured in the same seconds: from the units to decisions, verdicts and evidence.
//!
//! [`estimate::unit`] makes one number of a unit, [`Deciding`] says after each whether a workload needs more, and [`judge`]
//! says what it all amounts to. Nothing here measures, and nothing knows how the units came about.

mod again;
mod deciding;
pub mod disjoint_ci;
pub mod estimate;
mod evidence;
mod reason;
mod reports;
mod resume;
mod times;

pub use again::judge_again;
pub use deciding::Deciding;
pub use holdpoint_stats::sequential::{Decision, InvalidPlan};
pub use reports::compare_reports_disjoint_ci;
pub use resume::differences;

use evidence::Blocks;
use holdpoint_model::ab::{AbEvidence, Ended};
use holdpoint_model::{AbReport, AbWorkload, ExitCode, Verdict};

/// A rule by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AbPolicy {
    /// Evidence that may be looked at after every unit; see METHODOLOGY.md.
    #[default]
    Sequential,
    /// The second seed's rule, with the sign right: [`disjoint_ci`].
    DisjointCi,
}

impl AbPolicy {
    /// The policy's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::DisjointCi => disjoint_ci::NAME,
        }
    }

    /// The policy of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Sequential, Self::DisjointCi].into_iter().find(|policy| policy.name() == name)
    }
}

/// Gives each workload its verdict, reason and evidence, and the report its policy and verdict: the worst of all.
///
/// `deciding` must have seen the units of the report, and be finished. Workloads that failed or were skipped come in
/// with `ended` and `failure` set, skipped ones with their reason.
pub fn judge(report: &mut AbReport, deciding: &Deciding, policy: AbPolicy) {
    let (finished, units_max) = (report.finished, report.plan.units_max as usize);
    for (index, workload) in report.workloads.values_mut().enumerate() {
        // Whoever measures sees that no more units are wanted, and not why.
        let may_be_full = matches!(workload.ended, Ended::Decided | Ended::Interrupted);
        let is_full = finished && workload.units.len() >= units_max;
        if may_be_full && is_full && deciding.decision(index) == Decision::Undecided {
            workload.ended = Ended::UnitsMax;
        }
        judge_workload(workload, deciding, index, policy);
    }
    policy.name().clone_into(&mut report.policy);
    // Nothing judged is nothing known: missing is never good.
    let worst = report.workloads.values().map(|workload| workload.verdict).max();
    report.verdict = worst.unwrap_or(Verdict::Inconclusive);
}

fn judge_workload(workload: &mut AbWorkload, deciding: &Deciding, index: usize, policy: AbPolicy) {
    let blocks = Blocks::of(workload);
    workload.evidence =
        deciding.evidence(index).and_then(|known| evidence::evidence(workload, &blocks, known));
    workload.disjoint_ci = None;
    let (verdict, reason) = match (&workload.failure, workload.ended, &workload.evidence) {
        (_, Ended::Skipped, _) => (Verdict::Skipped, skipped(workload)),
        (None, Ended::SameCode, _) => (Verdict::Pass, workload.reason.clone()),
        (Some(_), ..) | (_, Ended::Failed, _) => (Verdict::Broken, failed(workload)),
        (None, _, None) => (Verdict::Inconclusive, not_measured(workload).to_owned()),
        (None, _, Some(evidence)) => match policy {
            AbPolicy::Sequential => sequential(workload, evidence, deciding, index),
            AbPolicy::DisjointCi => match disjoint_ci::compare(&blocks.base, &blocks.head) {
                None => (
                    Verdict::Inconclusive,
                    "too few units for an interval: give it a longer --budget".to_owned(),
                ),
                Some((keys, verdict)) => {
                    let reason = keys.verdict.clone();
                    workload.disjoint_ci = Some(keys);
                    (verdict, reason)
                }
            },
        },
    };
    (workload.verdict, workload.reason) = (verdict, reason);
}

fn sequential(
    workload: &AbWorkload,
    evidence: &AbEvidence,
    deciding: &Deciding,
    index: usize,
) -> (Verdict, String) {
    let verdict = match deciding.decision(index) {
        Decision::Slower => Verdict::Regressed,
        Decision::NotSlower => Verdict::Pass,
        Decision::Faster => Verdict::Improved,
        Decision::Undecided => Verdict::Inconclusive,
    };
    (verdict, reason::reason(workload, evidence, deciding, index))
}

fn skipped(workload: &AbWorkload) -> String {
    if !workload.reason.is_empty() {
        return workload.reason.clone();
    }
    workload.failure.as_ref().map_or("it could not be measured here".to_owned(), |f| f.failure.detail.clone())
}

fn failed(workload: &AbWorkload) -> String {
    let Some(failure) = &workload.failure else { return "a side failed".to_owned() };
    let what = &failure.failure;
    format!("{} failed: {}: {}", failure.side.as_str(), what.cause.as_str(), what.detail)
}

fn not_measured(workload: &AbWorkload) -> &'static str {
    match workload.ended {
        Ended::Interrupted => "interrupted before its first unit: --resume goes on",
        Ended::Budget => "the budget was spent before its first unit: give it a longer --budget",
        _ => "there are no units",
    }
}

/// How a command ends with this report: by its verdict. Under the policy `disjoint-ci` no significant difference is the
/// seed's 2.
#[must_use]
pub fn exit_code(report: &AbReport) -> ExitCode {
    exit_code_of(&report.policy, report.verdict)
}

/// The same for a judgement of two reports.
#[must_use]
pub fn exit_code_of(policy: &str, verdict: Verdict) -> ExitCode {
    match verdict {
        Verdict::Inconclusive if policy == disjoint_ci::NAME => ExitCode::Skipped,
        verdict => verdict.into(),
    }
}
