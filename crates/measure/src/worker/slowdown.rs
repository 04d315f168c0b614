//! A known slowdown, to show that it is found: real work on top of every call.

use std::hint::black_box;
use std::time::Instant;

/// Extra work as a share of a call's own time.
pub(super) struct Slowdown {
    share: f64,
    step_ns: f64,
}

impl Slowdown {
    /// 0.02 makes every call 2 % longer.
    pub(super) fn new(share: f64) -> Self {
        let timed = || {
            let start = Instant::now();
            work(STEPS_TIMED);
            start.elapsed().as_nanos() as f64 / STEPS_TIMED as f64
        };
        // The fastest: whatever else the machine does, a step does not get shorter.
        let step_ns = (0..20).map(|_| timed()).fold(f64::INFINITY, f64::min);
        Self { share, step_ns }
    }

    /// How many steps make a call longer by the share, when it takes so long by itself.
    pub(super) fn steps(&self, call_ns: f64) -> u64 {
        (self.share * call_ns / self.step_ns) as u64
    }
}

/// About 15 µs.
const STEPS_TIMED: u64 = 10_000;

/// A chain of multiplications, each waiting for the one before: as long on a busy core as on an idle one.
pub(super) fn work(steps: u64) {
    let mut x = black_box(1_u64);
    for _ in 0..steps {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
    black_box(x);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_grow_with_the_share_and_the_call() {
        let slowdown = Slowdown { share: 0.02, step_ns: 2.0 };
        assert_eq!(slowdown.steps(1_000_000.0), 10_000);
        assert_eq!(slowdown.steps(100.0), 1);
        assert!(Slowdown::new(0.5).step_ns > 0.0);
    }
}
