//! What counters mean: rules that are data (`data/bottlenecks.toml`), and two profiles beside each other.
//!
//! Counters say why, never how long: no time is derived from them, and none is compared here.

mod compare;
mod find;
mod rules;

pub use compare::compare;
pub use find::add_findings;
pub use rules::{Rules, RulesError};
