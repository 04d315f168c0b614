//! Two sides measured in the same seconds: from the units to decisions, verdicts and evidence.
//!
//! [`estimate::unit`] makes one number of a unit, [`plan_unit`] says how the next one is measured, [`Deciding`] says after each whether a workload needs more, and [`judge_sides`]
//! decides. Nothing here measures.

mod deciding;
pub mod estimate;
mod evidence;
mod exact;
mod judge;
mod metrics;
mod power;
mod resolution;
mod resume;
pub(crate) mod times;
pub mod unit_plan;

pub use deciding::{Compared, Deciding};
pub(crate) use evidence::Blocks;
pub use holdpoint_stats::sequential::{Decision, InvalidPlan};
pub(crate) use judge::paired_ms;
pub use judge::{POLICY_CONDITION, SidesError, judge_recorded, judge_sides, recorded_policy};
pub use resume::differences;
pub use unit_plan::{noise_within, plan_unit};
