//! `compare()` and `judge()`: the same files give the same verdict, byte for byte.
//!
//! Pure: no I/O, no clock, no randomness. `compare` finds facts and decides nothing; `judge` decides by a
//! [`Policy`] and finds nothing. A further policy is a further arm of `judge`.

pub mod compare;
pub mod confirm;
pub mod judge;
pub mod record;

pub use compare::{Allow, Comparison, Found, Row, compare};
pub use judge::{Policy, judge};
