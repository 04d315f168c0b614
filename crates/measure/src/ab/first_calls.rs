//! Calls on new inputs beside calls on the same inputs again: only the first one shows what is not remembered.

use holdpoint_model::protocol::RunResult;

/// So many first calls of a side are needed: the quickest of them met nothing else that takes time.
const COUNT_MIN: u32 = 8;
/// A first call that takes this many times as long as the timed ones computed what they only looked up. Cold caches explain less.
const FACTOR: f64 = 8.0;
/// A difference that caches explain, however short the calls are.
const COLD_NS: f64 = 20_000.0;
/// Compared with the other side's factor: data that prepare something at the first call do so on both sides.
const OTHER_FACTOR: f64 = 4.0;

/// The quickest calls of one side so far, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FirstCalls {
    count: u32,
    first_ns: f64,
    timed_ns: f64,
}

impl FirstCalls {
    pub(super) fn add(&mut self, result: &RunResult) {
        let quickest_ns = result.elapsed_ns.iter().copied().min();
        let (Some(first_ns), Some(sample_ns)) = (result.first_ns, quickest_ns) else { return };
        let (first_ns, timed_ns) =
            (first_ns as f64, sample_ns as f64 / result.calls_per_sample.max(1) as f64);
        let least = |known: f64, new: f64| if self.count == 0 { new } else { known.min(new) };
        (self.first_ns, self.timed_ns) = (least(self.first_ns, first_ns), least(self.timed_ns, timed_ns));
        self.count += 1;
    }

    fn factor(&self) -> f64 {
        self.first_ns / self.timed_ns.max(1.0)
    }

    /// Why this side's timed calls are not the work, if those of the other side are.
    pub(super) fn accuse(&self, other: &Self) -> Option<String> {
        let is_known = self.count.min(other.count) >= COUNT_MIN;
        let is_remembered = self.factor() >= FACTOR && self.first_ns - self.timed_ns >= COLD_NS;
        (is_known && is_remembered && self.factor() >= OTHER_FACTOR * other.factor()).then(|| {
            format!(
                "a call on new inputs takes at least {:.1} us, on the same inputs again {:.3} us, and only on this side: answers are \
                 kept from call to call",
                self.first_ns / 1e3,
                self.timed_ns / 1e3
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(first_ns: &[u64], timed_ns: u64) -> FirstCalls {
        let mut calls = FirstCalls::default();
        for first_ns in first_ns {
            let elapsed_ns = vec![timed_ns * 10, timed_ns * 11];
            let first_ns = Some(*first_ns);
            calls.add(&RunResult { first_ns, elapsed_ns, calls_per_sample: 10, ..RunResult::default() });
        }
        calls
    }

    #[test]
    fn a_side_that_looks_answers_up_is_accused_whichever_it_is() {
        let (honest, kept) = (seen(&[210_000; 8], 200_000), seen(&[230_000; 8], 100));
        assert!(kept.accuse(&honest).is_some_and(|why| why.contains("new inputs takes at least 230.0 us")));
        assert_eq!(honest.accuse(&kept), None);
    }

    #[test]
    fn cold_caches_a_slow_first_call_and_inputs_that_are_prepared_once_accuse_nobody() {
        let honest = seen(&[210_000; 8], 200_000);
        assert_eq!(seen(&[15_000; 8], 100).accuse(&honest), None, "less than a cold cache");
        assert_eq!(seen(&[900_000; 8], 200_000).accuse(&honest), None, "a factor of four and a half");
        let mut once = vec![900_000_000; 7];
        once.push(210_000);
        assert_eq!(seen(&once, 100_000).accuse(&honest), None, "one quick first call is enough");
        assert_eq!(seen(&[900_000_000; 7], 100).accuse(&honest), None, "too few to tell");
        let (base, head) = (seen(&[2_000_000; 8], 5_000), seen(&[2_000_000; 8], 2_500));
        assert_eq!((base.accuse(&head), head.accuse(&base)), (None, None), "both prepare theirs");
    }

    #[test]
    fn without_first_calls_nothing_is_known() {
        let mut none = FirstCalls::default();
        none.add(&RunResult { elapsed_ns: vec![5], calls_per_sample: 1, ..RunResult::default() });
        assert_eq!(none.accuse(&seen(&[1; 8], 1)), None);
    }
}
