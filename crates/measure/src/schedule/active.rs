//! A workload while it is being measured.

use crate::meter::{Seeds, Stop, Subject};
use crate::program::WorkerError;
use crate::summary::{Facts, summarise};
use holdpoint_model::limits::SAMPLES_PER_RUN_MAX;
use holdpoint_model::report::{Answer, Stopped, Warmup};
use holdpoint_model::suite::{Identity, MeasurePlan};
use holdpoint_model::{Failure, FailureCause, Measurement, Outcome, Round, Samples};
use holdpoint_stats as stats;
use std::time::Duration;

pub(super) struct Active<'a> {
    pub subject: Subject<'a>,
    /// The start of the worker in which it is prepared.
    pub process: Option<u32>,
    pub answer: Option<Answer>,
    /// Whether the answer in this process was checked before anything was timed.
    pub is_checked_first: bool,
    /// Whether the answers of the timed calls are still to be checked.
    pub is_unchecked: bool,
    pub warmup: Warmup,
    pub calls_per_sample: u64,
    pub samples_per_round: u64,
    pub samples_per_request_max: u64,
    pub end: Option<Result<Stopped, Stop>>,
    rounds: Vec<Round>,
    times_ns: Vec<Vec<f64>>,
    spent_ns: u128,
    /// Rounds in which the device was throttled, and in which it was shared.
    troubled: [usize; 2],
}

impl<'a> Active<'a> {
    /// The requests' inputs follow from the seed.
    pub(super) fn new(subject: Subject<'a>, seed: u64) -> Self {
        Self {
            subject: Subject { seeds: Seeds::new(seed), ..subject },
            process: None,
            answer: None,
            is_checked_first: false,
            is_unchecked: false,
            warmup: Warmup::default(),
            calls_per_sample: 1,
            samples_per_round: 1,
            samples_per_request_max: SAMPLES_PER_RUN_MAX,
            end: None,
            rounds: Vec::new(),
            times_ns: Vec::new(),
            spent_ns: 0,
            troubled: [0, 0],
        }
    }

    pub(super) fn rounds_count(&self) -> u32 {
        u32::try_from(self.rounds.len()).unwrap_or(u32::MAX)
    }

    /// Samples of the next round. A fixed number is spread evenly over the least number of rounds.
    pub(super) fn samples_next(&self, plan: &MeasurePlan) -> u64 {
        let Some(iterations) = self.subject.spec.iterations else {
            return self.samples_per_round;
        };
        let left = u64::from(iterations).saturating_sub(self.samples_count());
        let rounds_left = plan.rounds_min.saturating_sub(self.rounds_count()).max(1);
        left.div_ceil(u64::from(rounds_left)).min(SAMPLES_PER_RUN_MAX).min(self.samples_per_request_max)
    }

    pub(super) fn p50_ms(&self) -> Option<f64> {
        stats::median(&self.times_ns.concat()).map(|ns| ns / 1e6)
    }

    /// Adds a round that took so long; `own` are the processes of the run's workers.
    pub(super) fn push(&mut self, round: Round, took: Duration, own: &[u32], plan: &MeasurePlan) {
        if let Some(device) = &round.state.device {
            self.troubled[0] += usize::from(device.is_throttled());
            self.troubled[1] += usize::from(device.is_shared(own));
        }
        self.spent_ns += match self.subject.spec.task.bench() {
            // Its harness spends most of a turn on other things than the samples.
            Some(_) => took.as_nanos(),
            None => round.elapsed_ns.iter().map(|ns| u128::from(*ns)).sum(),
        };
        self.times_ns.push(round.per_call_ns(self.calls_per_sample).collect());
        self.rounds.push(round);
        self.end = self.stopped(plan).map(Ok);
    }

    /// Measuring ends with the fixed number of iterations; or after the least number of rounds, with a narrow interval,
    /// the time budget or the most rounds, whichever comes first.
    fn stopped(&self, plan: &MeasurePlan) -> Option<Stopped> {
        if let Some(iterations) = self.subject.spec.iterations {
            return (self.samples_count() >= u64::from(iterations)).then_some(Stopped::Iterations);
        }
        if self.rounds_count() < plan.rounds_min {
            return None;
        }
        let budget_ms = self.subject.spec.time_budget_ms.unwrap_or(plan.time_budget_ms);
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

    /// The disturbance of the device in most rounds.
    fn distrust(&self) -> Option<String> {
        let names = ["device_throttled", "device_shared"];
        let most = |count: &usize| 2 * count > self.rounds.len();
        let found = self.troubled.iter().position(most);
        found.map(|at| names[at].to_owned())
    }

    fn samples_count(&self) -> u64 {
        self.rounds.iter().map(|round| round.elapsed_ns.len() as u64).sum()
    }

    pub(super) fn finish(self) -> Measurement {
        let distrust = self.distrust();
        let timer = self.subject.timer.as_deref().unwrap_or(self.subject.spec.timer());
        let identity: Identity = self.subject.spec.identity(timer);
        let gated = self.subject.spec.metrics.of_runs();
        let samples = Samples { calls_per_sample: self.calls_per_sample, rounds: self.rounds };
        let outcome = match self.end {
            Some(Ok(stopped)) => {
                let Self { answer, warmup, subject, .. } = self;
                let Subject { work, kernel, executor, .. } = subject;
                let dtype = subject.spec.dtype.clone();
                let facts = Facts { answer, warmup, stopped, work, kernel, distrust, dtype, executor };
                match summarise(samples, facts) {
                    Some(measured) => Outcome::Measured(Box::new(measured)),
                    None => failed(WorkerError::new(FailureCause::BadTime, "no samples were taken"), None),
                }
            }
            Some(Err(Stop::Skipped(reason))) => Outcome::Skipped { reason },
            Some(Err(Stop::Failed(error) | Stop::NotListed(error))) => failed(*error, Some(samples)),
            Some(Err(Stop::Gone)) | None => failed(
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

#[cfg(test)]
mod tests {
    use super::*;
    use holdpoint_model::machine::DeviceState;
    use holdpoint_model::report::{Measured, PowerLimited};
    use holdpoint_model::suite::{BenchTask, CommandTask, HarnessKind, Task};
    use holdpoint_model::{MachineState, Suite};

    /// Six rounds. The device is throttled in the first `throttled`, and shared in the first `shared` of them.
    fn measured(throttled: usize, shared: usize) -> (Option<String>, usize) {
        let measured = measured_in("HW_SLOWDOWN", throttled, shared);
        (measured.distrust, measured.samples.rounds.len())
    }

    /// The same, throttled for a reason.
    fn measured_in(reason: &str, throttled: usize, shared: usize) -> Box<Measured> {
        let text = "schema_version = 1\nname = \"s\"\n[[workload]]\nname = \"w\"\nop = \"copy\"\nworker = \"cuda\"\n";
        let suite = Suite::parse(text).unwrap();
        let mut active = Active::new(Subject::new(0, &suite.workloads[0]), 1);
        for at in 0..6 {
            let device = DeviceState {
                throttle_reasons: (at < throttled).then(|| reason.to_owned()).into_iter().collect(),
                sm_mhz_max: Some(1980),
                power_w: Some(698.0),
                power_limit_w: Some(700.0),
                processes: if at < shared { vec![7, 8] } else { vec![7, 9] },
                ..DeviceState::default()
            };
            let state = MachineState { device: Some(device), ..MachineState::default() };
            let round = Round { elapsed_ns: vec![1_000_000], sm_mhz: vec![1900], state, ..round() };
            active.push(round, Duration::ZERO, &[7, 9], &suite.measure);
        }
        active.end = Some(Ok(Stopped::RoundsMax));
        match active.finish().outcome {
            Outcome::Measured(measured) => measured,
            other => panic!("{other:?}"),
        }
    }

    fn round() -> Round {
        serde_json::from_str(r#"{"process": 0, "round": 0, "order": 0, "elapsed_ns": []}"#).unwrap()
    }

    #[test]
    fn the_time_budget_of_a_benchmark_is_spent_by_its_harness() {
        let mut suite = Suite::parse(
            "schema_version = 1\nname = \"s\"\n[measure]\nrounds_min = 2\n[[workload]]\nname = \"w\"\ncommand = [\"bench\"]\n",
        )
        .unwrap();
        let stopped = |suite: &Suite| {
            let mut active = Active::new(Subject::new(0, &suite.workloads[0]), 1);
            for ns in [1000, 2000] {
                let round = Round { elapsed_ns: vec![ns], ..round() };
                active.push(round, Duration::from_secs(1), &[], &suite.measure);
            }
            active.end.map(|end| end.is_ok_and(|stopped| stopped == Stopped::TimeBudget))
        };
        assert_eq!(stopped(&suite), None);
        suite.workloads[0].task = Task::Benchmark(Box::new(BenchTask {
            kind: HarnessKind("criterion".to_owned()),
            id: String::new(),
            folder: String::new(),
            call: CommandTask::default(),
        }));
        assert_eq!(stopped(&suite), Some(true));
    }

    #[test]
    fn times_at_the_power_limit_are_trusted_and_say_so() {
        let limited = measured_in("SW_POWER_CAP", 6, 0);
        assert_eq!((limited.distrust, limited.sm_cycles_p50), (None, Some(1_900_000.0)));
        let limited = limited.power_limited.unwrap();
        assert_eq!(limited.describe(), "1900 of 1980 MHz at 698 of 700 W, 698.000 mJ a call");
        assert_eq!(limited.rounds_count, 6);
        let rested = PowerLimited { energy_mj: None, ..limited };
        assert_eq!(rested.describe(), "1900 of 1980 MHz under a limit of 700 W");
        assert_eq!(measured_in("SW_POWER_CAP", 3, 0).power_limited, None, "not in most rounds");
        let hot = measured_in("HW_THERMAL_SLOWDOWN", 6, 0);
        assert_eq!((hot.distrust.as_deref(), hot.power_limited), (Some("device_throttled"), None));
    }

    #[test]
    fn times_from_a_device_in_trouble_are_kept_and_not_trusted() {
        assert_eq!(measured(0, 0), (None, 6));
        assert_eq!(measured(3, 3), (None, 6), "half of the rounds are sound");
        assert_eq!(measured(6, 0), (Some("device_throttled".to_owned()), 6));
        assert_eq!(measured(0, 4), (Some("device_shared".to_owned()), 6));
    }
}
