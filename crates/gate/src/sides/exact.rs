//! Quantities that need no statistics: counted, compared, done.

use crate::too_fast;
use holdpoint_model::ab::{ExactValues, SideKernels};
use holdpoint_model::metric::{Exact, Metric, MetricPlan};
use holdpoint_model::report::KernelInfo;
use holdpoint_model::{AbWorkload, Verdict};

/// Verdict and reason for one of them.
pub(super) struct ExactVerdict {
    pub(super) verdict: Verdict,
    pub(super) reason: String,
    /// Base's and head's.
    pub(super) values: Option<[f64; 2]>,
}

pub(super) fn judge(
    workload: &AbWorkload,
    name: &str,
    plan: MetricPlan,
    speedup_max: Option<f64>,
) -> ExactVerdict {
    let unknown = |reason: String| ExactVerdict { verdict: Verdict::Inconclusive, reason, values: None };
    let Some(counted) = counted(workload, name) else { return unknown("it was not counted".to_owned()) };
    let (Some(base), Some(head)) = (counted.base.iter().min(), counted.head.iter().min()) else {
        return unknown(if counted.reason.is_empty() {
            "it was not counted".to_owned()
        } else {
            counted.reason
        });
    };
    let spread = spread(&counted.base).max(spread(&counted.head));
    let (base, head, allowed) = (*base as f64, *head as f64, 1.0 + plan.tolerance);
    let tolerance = format!("{} %", plan.tolerance * 100.0);
    let (verdict, relation) = match () {
        () if spread > plan.tolerance / 2.0 => {
            let values = Some([base, head]);
            let reason = format!(
                "it differs by {:.2} % from one call to the next: give it a tolerance of more than twice that",
                spread * 100.0
            );
            return ExactVerdict { verdict: Verdict::Inconclusive, reason, values };
        }
        () if head > base * allowed => (Verdict::Regressed, "more than the tolerance of"),
        () if head * allowed < base => (Verdict::Improved, "less by more than the tolerance of"),
        () => (Verdict::Pass, "not more than the tolerance of"),
    };
    let reason = format!("{head} instead of {base}, {relation} {tolerance}");
    // Sizes and registers are no work.
    let (verdict, reason) = match Metric::from_name(name) {
        Metric::Exact(Exact::Instructions) => {
            too_fast::checked(verdict, reason, head / base, speedup_max, "fewer")
        }
        _ => (verdict, reason),
    };
    ExactVerdict { verdict, reason, values: Some([base, head]) }
}

/// The counts of a metric: stored, or of the kernels.
fn counted(workload: &AbWorkload, name: &str) -> Option<ExactValues> {
    let of_kernels = |tell: fn(&KernelInfo) -> Option<u64>| {
        let SideKernels { base, head } = workload.kernels.as_ref()?;
        Some(ExactValues { base: vec![tell(base)?], head: vec![tell(head)?], reason: String::new() })
    };
    match Metric::from_name(name) {
        Metric::Exact(Exact::Registers) => of_kernels(|kernel| kernel.registers.map(u64::from)),
        Metric::Exact(Exact::SpillBytes) => of_kernels(|kernel| kernel.local_bytes.map(u64::from)),
        Metric::Exact(Exact::CodeBytes) => of_kernels(|kernel| kernel.code_bytes),
        _ => workload.exact.get(name).cloned(),
    }
}

/// How far counts of one side differ, as a share.
fn spread(counts: &[u64]) -> f64 {
    match (counts.iter().min(), counts.iter().max()) {
        (Some(least), Some(most)) if most > least => (most - least) as f64 / (*least).max(1) as f64,
        _ => 0.0,
    }
}
