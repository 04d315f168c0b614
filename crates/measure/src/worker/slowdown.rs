//! An artificial slowdown, to show that it is detected: real work in addition to the calls of a sample.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Extends a sample that began at `start`, and whose calls are done, by a share of its time: 0.02 makes it 2 % longer.
/// A share of what the calls took now, not earlier: whatever slows them down today slows the extra work too.
pub(super) fn prolong(start: Instant, share: f64) -> Duration {
    let until = start.elapsed().mul_f64(1.0 + share);
    loop {
        work();
        let elapsed = start.elapsed();
        if elapsed >= until {
            return elapsed;
        }
    }
}

/// A few nanoseconds of dependent multiplications.
fn work() {
    let mut x = black_box(1_u64);
    for _ in 0..8 {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
    black_box(x);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_prolonged_by_its_share() {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(2) {}
        assert!(prolong(start, 0.5) >= Duration::from_millis(3));
    }
}
