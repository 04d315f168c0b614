//! How much of a request's time its `untimed_ns` may explain.
//!
//! Work once in a request (drawing inputs, warming up) and work between samples (flushing a cache) is honest and may take
//! longer than the samples. Time of the calls that is reported as such grows with the calls of a sample: two call counts tell the two apart.

use holdpoint_model::protocol::RunResult;

/// Untimed work varies by this factor at most: a machine that slows down slows it too.
const VARIES: f64 = 2.0;
/// Untimed work between samples of more than this share of them must be shown not to grow with their calls.
const BETWEEN_SHARE: f64 = 0.1;

#[derive(Clone, Debug, Default)]
pub(super) struct Untimed {
    /// Once in a request, the most seen.
    once_ns: f64,
    /// Between two samples of so many calls each, the least seen.
    between: Vec<(u64, f64)>,
}

impl Untimed {
    /// Learns from a request for one sample and one for several, of as many calls each.
    pub(super) fn learn(&mut self, one: &RunResult, several: &RunResult) {
        let [first_ns, all_ns] = [one, several].map(|result| result.untimed_ns.unwrap_or(0) as f64);
        let more = several.elapsed_ns.len().saturating_sub(one.elapsed_ns.len());
        if more == 0 {
            return;
        }
        let between_ns = (all_ns - first_ns).max(0.0) / more as f64;
        self.once_ns = self.once_ns.max(first_ns - between_ns);
        match self.between.iter_mut().find(|(calls, _)| *calls == several.calls_per_sample) {
            Some((_, least_ns)) => *least_ns = least_ns.min(between_ns),
            None => self.between.push((several.calls_per_sample, between_ns)),
        }
    }

    /// Learns from a request for one sample among turns.
    pub(super) fn learn_once(&mut self, one: &RunResult) {
        if let Some(between_ns) = self.between_samples_ns() {
            self.once_ns = self.once_ns.max(one.untimed_ns.unwrap_or(0) as f64 - between_ns);
        }
    }

    /// Whether only samples of another number of calls show what the time between samples is spent on.
    pub(super) fn wants_other_calls(&self, sample_ns: u64) -> bool {
        matches!(self.between.as_slice(), [(_, between_ns)] if *between_ns > BETWEEN_SHARE * sample_ns as f64)
    }

    /// The part of a result's untimed time that counts as such: all of it as long as nothing is known.
    pub(super) fn explained_ns(&self, result: &RunResult) -> f64 {
        let untimed_ns = result.untimed_ns.unwrap_or(0) as f64;
        match self.between_samples_ns() {
            None => untimed_ns,
            Some(between_ns) => {
                untimed_ns.min(VARIES * (self.once_ns + between_ns * result.elapsed_ns.len() as f64))
            }
        }
    }

    /// What lies between two samples however many calls they have: the line through the fewest and the most calls, at none.
    fn between_samples_ns(&self) -> Option<f64> {
        let fewest = self.between.iter().min_by_key(|(calls, _)| *calls)?;
        let most = self.between.iter().max_by_key(|(calls, _)| *calls)?;
        let calls = (most.0 - fewest.0) as f64;
        let per_call_ns = if calls > 0.0 { (most.1 - fewest.1) / calls } else { 0.0 };
        Some((fewest.1 - per_call_ns.max(0.0) * fewest.0 as f64).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of calls of 10 µs, and `between` nanoseconds after each.
    fn result(samples: u64, calls: u64, between: impl Fn(u64) -> u64) -> RunResult {
        RunResult {
            calls_per_sample: calls,
            elapsed_ns: vec![10_000 * calls; samples as usize],
            untimed_ns: Some(50_000 + samples * between(calls)),
            ..RunResult::default()
        }
    }

    fn explained(between: impl Fn(u64) -> u64) -> [f64; 2] {
        let mut untimed = Untimed::default();
        let turn = result(20, 10, &between);
        let mut learn = |calls| {
            untimed.learn(&result(1, calls, &between), &result(20, calls, &between));
            (untimed.wants_other_calls(100_000), untimed.explained_ns(&turn))
        };
        let (wants_other, first) = learn(10);
        let second = if wants_other { learn(20).1 } else { first };
        [first, second]
    }

    #[test]
    fn flushing_a_cache_may_take_longer_than_the_samples() {
        assert_eq!(explained(|_| 300_000), [6_050_000.0; 2]);
    }

    #[test]
    fn time_between_samples_that_grows_with_their_calls_is_time_of_the_calls() {
        let [first, second] = explained(|calls| 10_000 * calls);
        assert_eq!(first, 2_050_000.0, "as much as the samples");
        assert_eq!(second, 100_000.0, "once in a request");
    }

    #[test]
    fn a_turn_does_not_explain_more_than_the_looks_did() {
        let mut untimed = Untimed::default();
        let honest = |samples, calls| result(samples, calls, |_| 1_000);
        untimed.learn(&honest(1, 10), &honest(20, 10));
        assert!(!untimed.wants_other_calls(100_000));
        let hides = RunResult { untimed_ns: Some(2_000_000), ..honest(20, 10) };
        assert!(untimed.explained_ns(&hides) < 200_000.0);
    }
}
