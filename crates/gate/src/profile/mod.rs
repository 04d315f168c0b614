//! Profiler counters: rules that name bottlenecks (data: `data/bottlenecks.toml`), and the comparison of two profiles.
//!
//! Counters say why, never how long: no time is derived from them, and none is compared here.

mod compare;
mod find;
mod rules;

pub use compare::compare;
pub use find::add_findings;
pub use rules::Rules;
