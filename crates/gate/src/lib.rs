//! `compare()` and `judge()`: the same files give the same verdict, byte for byte.
//!
//! Pure: no I/O, no clock, no randomness but seeded. `compare` finds facts and decides nothing; `judge` decides by a
//! [`Policy`] and finds nothing. [`ab`] is the same for two sides that were measured side by side. Verdicts are made in this crate
//! and nowhere else.

pub mod ab;
mod again;
mod bisect;
pub mod calibrate;
mod checks;
pub mod compare;
pub mod confirm;
mod contradiction;
mod ended;
mod exit_code;
pub mod history;
pub mod judge;
mod judgement;
mod kernel_checks;
pub mod noise;
mod policy;
pub mod profile;
pub mod promote;
pub mod record;
pub mod rejudge;
pub mod roofline;
mod serves;
mod sides;
pub mod tolerance;
pub mod too_fast;
mod two_reports;
mod waive;
pub mod waivers;

pub use again::{Evidence, judge_again};
pub use bisect::{bisect_step, half_of_change, is_search_finished};
pub use compare::{Comparison, compare};
pub use contradiction::contradiction;
pub use ended::{Ended, overall};
pub use exit_code::HasExitCode;
pub use holdpoint_model::Allow;
pub use judge::{judge, judge_run, set_tolerances, tolerance_asked};
pub use judgement::Judgement;
pub use kernel_checks::{KernelChecks, Unchecked};
pub use policy::{PASS_TIMES, Policy, THRESHOLD_PCT, disjoint_ci};
pub use serves::blind_spots;
pub use sides::{POLICY_CONDITION, judge_recorded, judge_sides, recorded_policy};
pub use two_reports::compare_reports_disjoint_ci;
pub use waive::waive;
