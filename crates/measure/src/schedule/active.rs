//! A workload while it is being measured.

use crate::summary::{Facts, summarise};
use crate::worker::WorkerError;
use holdpoint_model::limits::SAMPLES_PER_RUN_MAX;
use holdpoint_model::report::{Answer, KernelInfo, Stopped, Warmup};
use holdpoint_model::suite::{Identity, MeasurePlan, Work};
use holdpoint_model::{Failure, FailureCause, Measurement, Outcome, Round, Samples, WorkloadSpec};
use holdpoint_stats as stats;

/// Why a workload is out before it has been measured.
pub(super) enum Unfit {
    Skipped(String),
    Failed(WorkerError),
}

impl From<WorkerError> for Unfit {
    fn from(error: WorkerError) -> Self {
        Self::Failed(error)
    }
}

/// A workload while it is being measured.
pub(super) struct Active<'a> {
    pub spec: &'a WorkloadSpec,
    /// The process in which it is prepared.
    pub process: Option<u32>,
    pub timer: Option<String>,
    pub work: Option<Work>,
    pub kernel: Option<KernelInfo>,
    pub answer: Option<Answer>,
    pub warmup: Warmup,
    pub calls_per_sample: u64,
    pub samples_per_round: u64,
    pub samples_per_request_max: u64,
    pub end: Option<Result<Stopped, Unfit>>,
    rounds: Vec<Round>,
    times_ns: Vec<Vec<f64>>,
    spent_ns: u128,
}

impl<'a> Active<'a> {
    pub(super) fn new(spec: &'a WorkloadSpec) -> Self {
        Self {
            spec,
            process: None,
            timer: None,
            work: spec.work.clone(),
            kernel: None,
            answer: None,
            warmup: Warmup::default(),
            calls_per_sample: 1,
            samples_per_round: 1,
            samples_per_request_max: SAMPLES_PER_RUN_MAX,
            end: None,
            rounds: Vec::new(),
            times_ns: Vec::new(),
            spent_ns: 0,
        }
    }

    pub(super) fn rounds_count(&self) -> u32 {
        u32::try_from(self.rounds.len()).unwrap_or(u32::MAX)
    }

    /// How many samples the next round takes. A fixed number is spread evenly over the least number of rounds.
    pub(super) fn samples_next(&self, plan: &MeasurePlan) -> u64 {
        let Some(iterations) = self.spec.iterations else {
            return self.samples_per_round;
        };
        let left = u64::from(iterations).saturating_sub(self.samples_count());
        let rounds_left = plan.rounds_min.saturating_sub(self.rounds_count()).max(1);
        left.div_ceil(u64::from(rounds_left)).min(SAMPLES_PER_RUN_MAX).min(self.samples_per_request_max)
    }

    /// The median so far, for a progress line.
    pub(super) fn p50_ms(&self) -> Option<f64> {
        stats::median(&self.times_ns.concat()).map(|ns| ns / 1e6)
    }

    pub(super) fn push(&mut self, round: Round, plan: &MeasurePlan) {
        self.spent_ns += round.elapsed_ns.iter().map(|ns| u128::from(*ns)).sum::<u128>();
        self.times_ns.push(round.per_call_ns(self.calls_per_sample).collect());
        self.rounds.push(round);
        self.end = self.stopped(plan).map(Ok);
    }

    /// Enough is: the fixed number of iterations; or the least number of rounds, and then whichever comes
    /// first of a narrow interval, the cap on time and the cap on rounds.
    fn stopped(&self, plan: &MeasurePlan) -> Option<Stopped> {
        if let Some(iterations) = self.spec.iterations {
            return (self.samples_count() >= u64::from(iterations)).then_some(Stopped::Iterations);
        }
        if self.rounds_count() < plan.rounds_min {
            return None;
        }
        let budget_ms = self.spec.time_budget_ms.unwrap_or(plan.time_budget_ms);
        if self.relative_width().is_some_and(|width| width <= plan.target_width) {
            Some(Stopped::TargetWidth)
        } else if self.spent_ns as f64 >= budget_ms * 1e6 {
            Some(Stopped::TimeBudget)
        } else {
            (self.rounds_count() >= plan.rounds_max).then_some(Stopped::RoundsMax)
        }
    }

    fn relative_width(&self) -> Option<f64> {
        let [low, high] = stats::median_interval_of_rounds(&self.times_ns)?;
        Some((high - low) / stats::median(&self.times_ns.concat())?)
    }

    fn samples_count(&self) -> u64 {
        self.rounds.iter().map(|round| round.elapsed_ns.len() as u64).sum()
    }

    /// The outcome, samples included, whatever happened.
    pub(super) fn finish(self) -> Measurement {
        let timer = self.timer.as_deref().unwrap_or(self.spec.timer());
        let identity: Identity = self.spec.identity(timer);
        let gated = self.spec.metrics.clone();
        let samples = Samples { calls_per_sample: self.calls_per_sample, rounds: self.rounds };
        let outcome = match self.end {
            Some(Ok(stopped)) => {
                let Self { answer, warmup, work, kernel, .. } = self;
                let facts = Facts { answer, warmup, stopped, work, kernel };
                match summarise(samples, facts) {
                    Some(measured) => Outcome::Measured(Box::new(measured)),
                    None => failed(WorkerError::new(FailureCause::BadTime, "no samples were taken"), None),
                }
            }
            Some(Err(Unfit::Skipped(reason))) => Outcome::Skipped { reason },
            Some(Err(Unfit::Failed(error))) => failed(error, Some(samples)),
            None => failed(
                WorkerError::new(FailureCause::WorkerError, "measuring was not finished"),
                Some(samples),
            ),
        };
        Measurement { identity, gated, outcome }
    }
}

fn failed(error: WorkerError, samples: Option<Samples>) -> Outcome {
    let samples = samples.filter(|samples| !samples.rounds.is_empty());
    Outcome::Failed(Failure { samples, ..Failure::from(error) })
}
