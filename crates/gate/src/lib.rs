//! `compare()` and `judge()`: the same files give the same verdict, byte for byte.
//!
//! Pure: no I/O, no clock, no randomness but seeded. `compare` finds facts and decides nothing; `judge` decides by a
//! [`Policy`] and finds nothing. A further policy is a further arm of `judge`. [`ab`] is the same for two sides that were
//! measured side by side.

pub mod ab;
mod again;
pub mod calibrate;
pub mod compare;
pub mod confirm;
mod contradiction;
pub mod judge;
mod noise;
pub mod profile;
pub mod promote;
pub mod record;
pub mod roofline;
mod waive;
pub mod waivers;

pub use again::{judge_again, judge_run};
pub use compare::{Comparison, Found, Row, compare};
pub use contradiction::contradiction;
pub use holdpoint_model::Allow;
pub use judge::{Policy, judge};
pub use waive::{waive, waive_ab};
