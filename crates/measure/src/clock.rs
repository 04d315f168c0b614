//! The host's clocks.

use std::time::{Duration, Instant};

/// Smallest step between two clock reads that differ: the clock's resolution together with the cost of
/// reading it, which is what blurs the edges of a sample.
pub fn resolution_ns() -> u64 {
    let mut steps: Vec<u64> = (0..READS).map(|_| step_ns()).collect();
    steps.sort_unstable();
    steps[READS / 2].max(1)
}

/// Enough for a steady median, in about 10 µs.
const READS: usize = 201;

fn step_ns() -> u64 {
    let start = Instant::now();
    loop {
        let elapsed_ns = nanos(start.elapsed());
        if elapsed_ns > 0 {
            return elapsed_ns;
        }
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Days from an ISO 8601 time to now; `None` if it is not a time.
pub fn days_since(timestamp_utc: &str) -> Option<f64> {
    let then: jiff::Timestamp = timestamp_utc.parse().ok()?;
    Some(jiff::Timestamp::now().duration_since(then).as_secs_f64() / 86_400.0)
}

/// Now in ISO 8601, UTC, to the millisecond.
pub fn timestamp_utc() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
