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
/// A side that is this many times as fast must be faster on new inputs too, by this share of what it gains on known ones.
const GAIN_MIN: f64 = 1.5;
const GAIN_SHARE: f64 = 0.5;
/// Less than this may be lost in a first call.
const LOST_NS: f64 = 5_000.0;

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

    /// Calls of a side that says nothing of first calls are taken to cost the same on all inputs.
    fn factor(&self) -> f64 {
        if self.count == 0 { 1.0 } else { self.first_ns / self.timed_ns.max(1.0) }
    }

    fn is_known(&self) -> bool {
        self.count >= COUNT_MIN
    }

    /// Why this side's timed calls are not the work, if those of the other side are.
    pub(super) fn accuse(&self, other: &Self) -> Option<String> {
        let is_known = self.is_known() && (other.is_known() || other.count == 0);
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

/// Why a difference between base and head may be one of kept answers: a sentence for a reader, not a verdict.
pub(super) fn doubt(sides: &[FirstCalls; 2]) -> Option<String> {
    let names = ["base", "head"];
    [[0, 1], [1, 0]].into_iter().find_map(|[quick, slow]| {
        let (name, other) = (names[quick], names[slow]);
        let [quick, slow] = [&sides[quick], &sides[slow]];
        if slow.is_known() && quick.count == 0 {
            return Some(format!("only {other} tells how long calls on new inputs take, so whether {name} keeps answers is not known"));
        }
        let [gain, first_gain] = [slow.timed_ns / quick.timed_ns.max(1.0), slow.first_ns / quick.first_ns.max(1.0)];
        let must_gain_ns = GAIN_SHARE * (slow.timed_ns - quick.timed_ns) - LOST_NS;
        let is_doubtful = gain >= GAIN_MIN && slow.first_ns - quick.first_ns < must_gain_ns;
        (quick.is_known() && slow.is_known() && is_doubtful).then(|| {
            format!(
                "check this: {name} is {gain:.1} times as fast on inputs that it has seen, and {first_gain:.1} times on new ones; \
                 does it keep answers?"
            )
        })
    })
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
    fn a_side_that_says_nothing_is_not_accused_and_does_not_protect_the_other() {
        let mut none = FirstCalls::default();
        none.add(&RunResult { elapsed_ns: vec![5], calls_per_sample: 1, ..RunResult::default() });
        assert_eq!(none.accuse(&seen(&[1; 8], 1)), None);
        let (honest, kept) = (seen(&[210_000; 8], 200_000), seen(&[230_000; 8], 100));
        assert!(kept.accuse(&none).is_some());
        assert_eq!(honest.accuse(&none), None);
        assert_eq!(kept.accuse(&seen(&[210_000; 7], 200_000)), None, "it has not said enough yet");
        assert!(doubt(&[honest, none]).is_some_and(|doubt| doubt.contains("only base tells")));
        assert_eq!(doubt(&[none, none]), None);
    }

    #[test]
    fn a_gain_on_known_inputs_alone_is_doubted() {
        let base = seen(&[105_000; 8], 100_000);
        // An eighth of the work at each call, and the rest of it for new inputs.
        let kept = doubt(&[base, seen(&[112_000; 8], 13_000)]).unwrap();
        assert!(
            kept.contains("head is 7.7 times as fast on inputs that it has seen, and 0.9 times on new"),
            "{kept}"
        );
        // A device's cached answer behind a fingerprint of the inputs.
        assert!(doubt(&[seen(&[60_000; 8], 57_000), seen(&[80_000; 8], 23_000)]).is_some());
        for honest in [seen(&[25_000; 8], 20_000), seen(&[60_000; 8], 20_000), seen(&[120_000; 8], 80_000)] {
            assert_eq!(doubt(&[base, honest]), None, "{honest:?}");
            assert_eq!(doubt(&[honest, base]), None, "{honest:?}");
        }
        assert_eq!(doubt(&[seen(&[5_000; 8], 4_000), seen(&[6_000; 8], 1_000)]), None, "too short to tell");
    }
}
