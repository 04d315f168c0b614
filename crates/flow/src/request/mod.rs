//! Parts of requests that several commands share: plain values, with no trace of how they were given.

pub use holdpoint_history::Location;
