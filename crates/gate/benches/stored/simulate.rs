//! Unchanged code against stored baselines, on synthetic noise, judged by the gate's own rules.

use holdpoint_gate::record::record;
use holdpoint_gate::{Allow, Policy, compare, confirm, judge};
use holdpoint_model::{Baseline, Current, MetricValue, Verdict};
use holdpoint_stats::random::Random;

/// How runs of one metric differ: in units of `SD` on the logarithm.
#[derive(Clone, Copy)]
pub enum Noise {
    Normal,
    /// Student's t with three degrees: one run in a hundred lies 4.5 standard deviations out.
    HeavyTails,
    /// Exponential: never much faster, now and then much slower.
    Skewed,
    /// One run in twenty is slower by ten standard deviations, whatever came before.
    SlowRuns,
    /// Every session has a level of its own; two differ by this standard deviation.
    Sessions(f64),
    /// One session in ten is slower by six standard deviations.
    SlowSessions,
    /// A level that wanders from run to run: correlation 0.9, twice the standard deviation of a run.
    Wander,
}

/// A baseline of so many sessions, each of so many runs.
#[derive(Clone, Copy)]
pub struct Recorded {
    pub sessions: usize,
    pub runs: usize,
}

/// Outcomes of many suites.
#[derive(Debug, Default)]
pub struct Outcome {
    pub suites: u32,
    /// Called slower by the first run alone.
    pub by_one_run: u32,
    /// Called slower by a gate: the first run and the median of three.
    pub by_gate: u32,
    /// The median of the smallest visible slowdowns, in standard deviations of a run.
    pub sees_sd: f64,
}

/// 1 %: so noisy that the floor of 2 % does not matter.
const SD: f64 = 0.01;
const WANDER_RHO: f64 = 0.9;
const METRICS: usize = 8;

/// One metric on one machine.
struct Metric {
    noise: Noise,
    level: f64,
}

impl Metric {
    fn begin_session(&mut self, random: &mut Random) {
        self.level = match self.noise {
            Noise::Sessions(sd) => sd / std::f64::consts::SQRT_2 * random.normal(),
            Noise::SlowSessions => f64::from(u8::from(random.uniform() < 0.1)) * 6.0,
            Noise::Wander => 2.0 * random.normal(),
            _ => 0.0,
        };
    }

    fn run(&mut self, random: &mut Random) -> f64 {
        if let Noise::Wander = self.noise {
            let fresh = (1.0 - WANDER_RHO * WANDER_RHO).sqrt();
            self.level = WANDER_RHO * self.level + fresh * 2.0 * random.normal();
        }
        let own = match self.noise {
            Noise::HeavyTails => {
                let square = (0..3).map(|_| random.normal().powi(2)).sum::<f64>();
                random.normal() / (square / 3.0).sqrt()
            }
            Noise::Skewed => -random.uniform().ln(),
            Noise::SlowRuns => random.normal() + f64::from(u8::from(random.uniform() < 0.05)) * 10.0,
            _ => random.normal(),
        };
        ((self.level + own) * SD).exp()
    }
}

/// Records a baseline and gates unchanged code against it in a later session, `suites` times.
pub fn simulate(noise: Noise, recorded: Recorded, alarm_rate: f64, suites: u32, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let mut outcome = Outcome { suites, ..Outcome::default() };
    let mut seen = Vec::new();
    for _ in 0..suites {
        let mut metrics: Vec<Metric> = (0..METRICS).map(|_| Metric { noise, level: 0.0 }).collect();
        let mut session = |runs: usize| -> Vec<Current> {
            metrics.iter_mut().for_each(|metric| metric.begin_session(&mut random));
            (0..runs).map(|_| one_run(metrics.iter_mut().map(|metric| metric.run(&mut random)))).collect()
        };
        let runs: Vec<Current> = (0..recorded.sessions).flat_map(|_| session(recorded.runs)).collect();
        let later = session(3);
        let baseline = record(&runs, alarm_rate).expect("runs of one suite");
        seen.extend(baseline.metrics.values().filter_map(|metric| metric.smallest_visible_slowdown));
        let judged = judge_gate(&baseline, &later);
        outcome.by_one_run += u32::from(judged.by_one_run == Verdict::Regressed);
        outcome.by_gate += u32::from(judged.by_gate == Verdict::Regressed);
    }
    outcome.sees_sd = holdpoint_stats::median(&seen).unwrap_or(0.0).ln_1p() / SD;
    outcome
}

/// The verdict of a gate: of the first run, or of the median of all where that is slower than allowed.
#[derive(Clone, Copy, Debug)]
pub struct Judged {
    pub by_one_run: Verdict,
    pub by_gate: Verdict,
}

pub fn judge_gate(baseline: &Baseline, runs: &[Current]) -> Judged {
    let judge = |run: &Current| judge(&compare(run, baseline, Allow::default()), Policy::Stored).verdict;
    let by_one_run = judge(&runs[0]);
    let confirmed = || confirm::median_run(runs).map(|median| judge(&median.current));
    let by_gate = if by_one_run == Verdict::Regressed { confirmed() } else { None };
    Judged { by_one_run, by_gate: by_gate.unwrap_or(by_one_run) }
}

pub fn one_run(values: impl Iterator<Item = f64>) -> Current {
    let value = |value_ms| MetricValue {
        value_ms,
        workload: None,
        identity: None,
        answer_checked: None,
        slow_stretches: None,
    };
    Current {
        suite: "simulated".to_owned(),
        status: Some("ok".to_owned()),
        metrics: values.enumerate().map(|(i, value_ms)| (format!("m{i}_ms"), value(value_ms))).collect(),
        ..Current::default()
    }
}
