//! Files of other tools: read in the place of ours, and written for programs that keep or draw numbers.

pub(crate) mod exports;
pub mod imports;
