//! Tolerance and error rates of a decision.

use super::Evidence;

/// One false alarm in a thousand unchanged suites, so that an alarm is worth a look.
pub const ALARM_RATE: f64 = 0.001;
/// One miss in a hundred, because the next suite looks again.
pub const MISS_RATE: f64 = 0.01;

/// The question about each workload of a suite, and the error rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// How much slower is still fine: 0.01 is 1 %. Lines are drawn at `ln(1 + tolerance)` and its negative.
    pub tolerance: f64,
    /// How often a suite in which nothing changed may have a workload called slower; the same again for faster.
    pub alarm_rate: f64,
    /// How often a workload that is slower than the tolerance may be called not slower.
    pub miss_rate: f64,
    /// Workloads in the suite; they share the alarm rate.
    pub workloads_count: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self { tolerance: 0.01, alarm_rate: ALARM_RATE, miss_rate: MISS_RATE, workloads_count: 1 }
    }
}

impl Plan {
    /// The e-value at which a workload is called slower, or faster: by Ville's inequality unchanged code ever reaches it
    /// with a probability of at most `alarm_rate / workloads_count`, and by Boole's the suite with `alarm_rate`.
    pub fn alarm_e(&self) -> f64 {
        self.workloads_count as f64 / self.alarm_rate
    }

    /// The e-value at which a workload is called not slower.
    pub fn pass_e(&self) -> f64 {
        1.0 / self.miss_rate
    }

    /// The line, as the logarithm of a ratio.
    pub fn line(&self) -> f64 {
        self.tolerance.ln_1p()
    }

    /// The fewest units after which an alarm is possible at all: what an overwhelming slowdown costs.
    pub fn units_count_min(&self) -> usize {
        let mut evidence = Evidence::default();
        // A unit at most doubles an e-value, so this ends after 300 steps for the smallest of rates.
        (1..=UNITS_SEARCHED)
            .find(|_| {
                evidence.push(f64::MAX, 1.0);
                evidence.e() >= self.alarm_e()
            })
            .unwrap_or(UNITS_SEARCHED)
    }

    pub(super) fn check(&self) -> Result<(), InvalidPlan> {
        let is_rate = |rate: f64| rate > 0.0 && rate < 1.0;
        let Self { tolerance, alarm_rate, miss_rate, workloads_count } = *self;
        match () {
            () if !(tolerance.is_finite() && tolerance >= 0.0) => Err(InvalidPlan::Tolerance(tolerance)),
            () if !is_rate(alarm_rate) => Err(InvalidPlan::AlarmRate(alarm_rate)),
            () if !is_rate(miss_rate) => Err(InvalidPlan::MissRate(miss_rate)),
            () if workloads_count == 0 => Err(InvalidPlan::NoWorkloads),
            () => Ok(()),
        }
    }
}

const UNITS_SEARCHED: usize = 1200;

#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum InvalidPlan {
    #[error("tolerance is {0}; give 0 or more, 0.01 for 1 %")]
    Tolerance(f64),
    #[error("alarm rate is {0}; give a number between 0 and 1, 0.001 for 1 in 1000")]
    AlarmRate(f64),
    #[error("miss rate is {0}; give a number between 0 and 1, 0.01 for 1 in 100")]
    MissRate(f64),
    #[error("a plan for no workloads; give at least one")]
    NoWorkloads,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_shares_its_alarm_rate() {
        let plan = Plan { workloads_count: 8, ..Plan::default() };
        assert!((plan.alarm_e() - 8000.0).abs() < 1e-9);
        // 13 units would do if each doubled the evidence; not knowing how large the change is costs two more.
        assert_eq!(plan.units_count_min(), 15);
    }

    #[test]
    fn plans_that_make_no_sense_are_refused() {
        let plan = Plan::default();
        for (bad, word) in [
            (Plan { tolerance: -0.01, ..plan }, "tolerance"),
            (Plan { tolerance: f64::NAN, ..plan }, "tolerance"),
            (Plan { alarm_rate: 0.0, ..plan }, "alarm"),
            (Plan { miss_rate: 1.0, ..plan }, "miss"),
            (Plan { workloads_count: 0, ..plan }, "no workloads"),
        ] {
            assert!(bad.check().unwrap_err().to_string().contains(word), "{bad:?}");
        }
    }
}
