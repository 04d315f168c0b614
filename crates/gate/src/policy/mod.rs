//! The policies by name. Each has a file of its own; adding one takes that file and an arm of each `match` here.
//!
//! A policy's tolerances are in the baseline, in the plan or in [`Policy`] itself, never hidden in code.

mod allowed_max;
pub mod disjoint_ci;
mod sequential;
mod stored;
mod threshold;

pub use stored::PASS_TIMES;
pub use threshold::THRESHOLD_PCT;

use crate::ab::{Blocks, Compared, Deciding};
use crate::compare::{Comparison, MetricRow};
use crate::{checks, too_fast};
use holdpoint_model::ab::{AbEvidence, DisjointCiKeys};
use holdpoint_model::{AbWorkload, BaselineMetric, Check, Verdict};
use holdpoint_stats::sequential::Plan;

/// A rule that turns facts into verdicts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// Three answers for a baseline, each only where the noise of its runs leaves no doubt.
    Stored,
    /// Apex-X's rule for a baseline.
    AllowedMax,
    /// cudadent42's rule for a baseline.
    Threshold {
        /// The least improvement that passes; negative allows a slowdown.
        threshold_pct: f64,
    },
    /// Decides two sides as soon as the evidence suffices, at stated error rates.
    Sequential,
    /// cudadent42's rule for two sides, with the sign corrected.
    DisjointCi,
}

impl Policy {
    pub const ALL: [Self; 5] = [
        Self::Stored,
        Self::AllowedMax,
        Self::Threshold { threshold_pct: THRESHOLD_PCT },
        Self::Sequential,
        Self::DisjointCi,
    ];

    /// The name in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::AllowedMax => "allowed-max",
            Self::Threshold { .. } => "threshold",
            Self::Sequential => "sequential",
            Self::DisjointCi => "disjoint-ci",
        }
    }

    /// One line for help texts.
    pub fn about(self) -> &'static str {
        match self {
            Self::Stored => {
                "A baseline: slower or not slower where its runs leave no doubt, else inconclusive"
            }
            Self::AllowedMax => {
                "Apex-X's rule: value x (1 + ratio) + abs from the baseline is the most allowed"
            }
            Self::Threshold { .. } => "cudadent42's rule: the least improvement in percent, from --threshold",
            Self::Sequential => {
                "Two sides: decides as soon as the evidence suffices, at the stated error rates"
            }
            Self::DisjointCi => {
                "cudadent42's rule for two sides: 3 % slower or 10 % faster, disjoint intervals, effect size"
            }
        }
    }

    /// The policy of that name; `threshold` needs its number.
    pub fn from_name(name: &str, threshold_pct: Option<f64>) -> Option<Self> {
        match Self::ALL.into_iter().find(|policy| policy.name() == name)? {
            Self::Threshold { .. } => threshold_pct.map(|threshold_pct| Self::Threshold { threshold_pct }),
            policy => Some(policy),
        }
    }

    /// Whether it compares a run with a baseline.
    pub fn takes_baseline(self) -> bool {
        matches!(self, Self::Stored | Self::AllowedMax | Self::Threshold { .. })
    }

    /// Whether it takes every unit of a plan, whatever the evidence.
    pub fn is_fixed_length(self) -> bool {
        self == Self::DisjointCi
    }

    /// The time above which a metric fails.
    pub(crate) fn allowed_max_ms(self, was: &BaselineMetric) -> Option<f64> {
        match self {
            Self::Stored | Self::AllowedMax => Some(was.allowed_max_ms()),
            Self::Threshold { threshold_pct } => Some(threshold::allowed_max_ms(was, threshold_pct)),
            Self::Sequential | Self::DisjointCi => None,
        }
    }

    /// Judges one metric of a run against a baseline.
    pub(crate) fn check(self, row: &MetricRow) -> Check {
        checks::check(row, self.allowed_max_ms(&row.baseline), |current_ms| match self {
            Self::Stored => stored::check(row, current_ms),
            Self::AllowedMax => too_fast::remarked(allowed_max::check(row, current_ms)),
            Self::Threshold { threshold_pct } => {
                too_fast::remarked(threshold::check(row, current_ms, threshold_pct))
            }
            Self::Sequential | Self::DisjointCi => {
                let reason = format!("policy {} needs the samples of two sides", self.name());
                checks::row_check(row, Verdict::Inconclusive, reason)
            }
        })
    }

    /// Notes about tolerances that are wider than a reader may think.
    pub(crate) fn notes(self, comparison: &Comparison) -> Vec<String> {
        if self == Self::AllowedMax { allowed_max::notes(comparison) } else { Vec::new() }
    }

    /// Judges one workload of two sides that has units.
    pub(crate) fn judge_pair(self, pair: &Pair<'_>) -> (Verdict, String, Option<DisjointCiKeys>) {
        let (verdict, reason, keys) = match self {
            Self::Sequential => {
                let (verdict, reason) = sequential::judge(pair);
                (verdict, reason, None)
            }
            Self::DisjointCi => disjoint_ci::judge(pair.blocks),
            Self::Stored | Self::AllowedMax | Self::Threshold { .. } => {
                let reason = format!("policy {} needs a baseline, not two sides", self.name());
                (Verdict::Inconclusive, reason, None)
            }
        };
        let better = if pair.metric.is_none() { "faster" } else { "better" };
        let (verdict, reason) =
            too_fast::checked(verdict, reason, pair.evidence.ratio, pair.speedup_max, better);
        (verdict, reason, keys)
    }
}

/// A workload of two sides, or a metric of it, with everything that a policy may look at.
pub(crate) struct Pair<'a> {
    pub workload: &'a AbWorkload,
    pub ended: holdpoint_model::ab::Ended,
    pub evidence: &'a AbEvidence,
    pub blocks: &'a Blocks,
    pub deciding: &'a Deciding,
    /// The question about this workload.
    pub plan: &'a Plan,
    /// Its row in the evidence.
    pub index: usize,
    /// The metric, where it is not the median time.
    pub metric: Option<&'a Compared>,
    /// How many times faster it may be before that is to be checked.
    pub speedup_max: Option<f64>,
}
