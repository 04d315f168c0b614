//! Judging two sides again from their rounds.

use super::{AbPolicy, Deciding, estimate, judge};
use holdpoint_model::AbReport;

/// More than a plan can ask for.
const UNITS_MAX: usize = 2_000;

/// The report as it must be by its plan, its rounds and how each workload ended, before any waiver. Absent where its plan, its policy or a unit
/// makes no sense.
#[must_use]
pub fn judge_again(report: &AbReport) -> Option<AbReport> {
    // Units that were under way when the last one was decided are kept.
    let most = report.plan.units_max.saturating_add(report.plan.units_at_once) as usize;
    if report.workloads.values().any(|workload| workload.units.len() > most.min(UNITS_MAX)) {
        return None;
    }
    let mut again = report.clone();
    for unit in again.workloads.values_mut().flat_map(|workload| &mut workload.units) {
        unit.x = estimate::unit(&mut unit.rounds)?;
    }
    let mut deciding = Deciding::replay(&again).ok()?;
    deciding.finish();
    judge(&mut again, &deciding, AbPolicy::from_name(&report.policy)?);
    Some(again)
}
