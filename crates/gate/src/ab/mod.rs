//! Two sides measured in the same seconds: from the units to decisions and evidence.
//!
//! [`estimate::unit`] makes one number of a unit, [`plan_unit`] says how the next one is measured, [`Deciding`] says after each whether a workload needs more;
//! [`crate::judge_sides`] makes verdicts of them. Nothing here measures.

mod deciding;
pub mod estimate;
pub(crate) mod evidence;
pub(crate) mod metrics;
mod resume;
pub(crate) mod times;
pub mod unit_plan;

pub(crate) use deciding::is_exact;
pub use deciding::{Compared, Deciding};
pub(crate) use evidence::Blocks;
pub use holdpoint_stats::sequential::{Decision, InvalidPlan};
pub use resume::differences;
pub use unit_plan::{noise_within, plan_unit};
