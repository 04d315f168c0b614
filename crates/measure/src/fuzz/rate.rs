//! How often a case fails: measured when it is found, so that a replay runs it often enough to see it again.

use super::Fuzzer;
use holdpoint_model::fuzz::{Evaluated, OnInaccurate, Replayed, Shown};
use holdpoint_model::{FindingKind, FuzzCase};
use std::time::{Duration, Instant};

/// A case that failed this many times in a row always fails.
const ALWAYS_COUNT: u64 = 6;
/// After this many failures the rate is known well enough, mostly to within a factor of two.
const FAILED_COUNT: u64 = 3;
/// Most runs of a case that is hardly ever wrong, and the time they may take.
const RUNS_MAX: u64 = 400;
const TIME_MAX: Duration = Duration::from_secs(30);
/// Most runs of a replay: enough for a case that failed once in three hundred.
const REPLAYS_MAX: u64 = 2_000;

impl Fuzzer<'_> {
    pub(super) fn measure_rate(&mut self, case: &FuzzCase) -> Shown {
        let (mut shown, start) = (Shown::default(), Instant::now());
        while shown.runs_count < RUNS_MAX && start.elapsed() < TIME_MAX && !self.is_too_slow() {
            let enough = if shown.is_always() { ALWAYS_COUNT } else { FAILED_COUNT };
            if shown.failed_count >= enough {
                break;
            }
            shown = count(shown, &self.evaluate(case));
        }
        shown
    }

    /// Runs a case that failed before as often as it takes to see it again; checks its times too if they were wrong.
    pub fn replay(&mut self, case: &FuzzCase, kind: FindingKind, before: Shown) -> Replayed {
        let runs_max = if kind.is_about_time() { 1 } else { before.runs_needed(REPLAYS_MAX) };
        let enough = if before.is_always() { 1 } else { FAILED_COUNT };
        if kind == FindingKind::LessAccurate {
            self.accuracy = OnInaccurate::Fail;
        }
        let mut shown = Shown { runs_count: 0, failed_count: 0 };
        let mut last = Evaluated::default();
        while shown.runs_count < runs_max && shown.failed_count < enough && !self.is_too_slow() {
            let evaluated = self.evaluate(case);
            if evaluated.skipped.is_some() {
                return Replayed { evaluated, shown };
            }
            shown = count(shown, &evaluated);
            if evaluated.finding.is_some() || last.finding.is_none() {
                last = evaluated;
            }
        }
        if last.finding.is_none() && kind.is_about_time() {
            last = self.check_times(case);
            shown.failed_count = u64::from(last.finding.is_some());
        }
        Replayed { evaluated: last, shown }
    }
}

fn count(shown: Shown, evaluated: &Evaluated) -> Shown {
    Shown {
        runs_count: shown.runs_count + 1,
        failed_count: shown.failed_count + u64::from(evaluated.finding.is_some()),
    }
}
