//! The host's clocks.

use holdpoint_model::Timestamp;
use std::time::{Duration, Instant, SystemTime};

/// Smallest step between two clock reads that differ: the clock's resolution together with the cost of
/// reading it, which is what blurs the edges of a sample.
pub(crate) fn resolution_ns() -> u64 {
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

/// Days from an ISO 8601 time in UTC to now; `None` if it is not a time.
pub fn days_since(timestamp_utc: &str) -> Option<f64> {
    let then = Timestamp::parse(timestamp_utc)?;
    Some((Timestamp::from(SystemTime::now()).millis() - then.millis()) as f64 / 86_400_000.0)
}

/// Now in ISO 8601, UTC, to the millisecond.
pub fn timestamp_utc() -> String {
    format_utc(SystemTime::now())
}

/// A time in ISO 8601, UTC, to the millisecond.
pub fn format_utc(time: SystemTime) -> String {
    Timestamp::from(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_and_read_back() {
        let now = timestamp_utc();
        assert_eq!((now.len(), &now[10..11], &now[23..]), (24, "T", "Z"), "{now}");
        assert!(days_since(&now).unwrap().abs() < 1.0);
        assert!(days_since("2000-01-01T00:00:00.000Z").unwrap() > 9_000.0);
        assert!(days_since("9999-01-01T00:00:00Z").unwrap() < 0.0);
        assert_eq!(days_since("yesterday"), None);
    }
}
