//! Roofline analysis: ceilings read from a report, each workload placed below them, and advice.

mod advice;
mod analyse;
mod ceilings;
#[cfg(test)]
mod tests;

pub use analyse::{Mismatch, analyse};
pub use ceilings::{ceilings_from, device_of};
