//! Judging two sides again from their rounds.

use super::{AbPolicy, Deciding, estimate, judge};
use holdpoint_model::AbReport;

/// The report as it must be by its plan, its rounds and how each workload ended, before any waiver. Absent where its plan, its policy or a unit
/// makes no sense.
#[must_use]
pub fn judge_again(report: &AbReport) -> Option<AbReport> {
    let mut again = report.clone();
    for unit in again.workloads.values_mut().flat_map(|workload| &mut workload.units) {
        unit.x = estimate::unit(&mut unit.rounds)?;
    }
    let mut deciding = Deciding::replay(&again).ok()?;
    deciding.finish();
    judge(&mut again, &deciding, AbPolicy::from_name(&report.policy)?);
    Some(again)
}
