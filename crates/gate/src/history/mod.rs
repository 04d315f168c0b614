//! The history of a metric: where its level changed, and whether a new run belongs to its level.
//!
//! [`rule`] is the rule of `gate --history`, [`judge_history`] applies it to a run, [`find_changes`] describes whole series.

mod events;
mod find;
mod judge;
pub mod rule;
#[cfg(test)]
mod tests;

pub use find::{
    Alerts, accepted_revision_of, find_changes, find_changes_in, last_good_of, level_of, trend_status,
};
pub use judge::{drifted, judge_history, needs_second_look};
pub use rule::Standing;
