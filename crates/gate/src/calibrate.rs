//! Calibration: error rates on a machine, from comparing code with itself many times.

use crate::Judgement;
use holdpoint_model::ab::Ended;
use holdpoint_model::calibration::{TrialUnit, Visible};
use holdpoint_model::{
    AbReport, AbWorkload, Calibrated, Calibration, Check, Machine, SCHEMA_VERSION, Verdict,
};
use holdpoint_stats as stats;
use holdpoint_stats::classic::binomial_upper;
use holdpoint_stats::sequential::{Plan, Sequential};
use indexmap::IndexMap;

/// Times for which the smallest visible slowdown is told, in seconds per workload.
const VISIBLE_IN_S: [f64; 3] = [1.0, 3.0, 10.0];
/// Stretches of units over which the smallest visible slowdown is taken; more say little more.
const STRETCHES_MAX: usize = 25;
/// Confidence of the bound on the rate of false alarms.
const CONFIDENCE: f64 = 0.95;

/// Collects trials.
#[derive(Clone, Debug)]
pub struct Trials {
    inject: f64,
    plan: Option<Plan>,
    trials: u32,
    decided: u32,
    false_alarms: u32,
    suites_s: Vec<f64>,
    workloads: IndexMap<String, Vec<Trial>>,
}

/// One workload in one trial.
#[derive(Clone, Debug)]
struct Trial {
    verdict: Verdict,
    seconds: f64,
    busy_s: Option<f64>,
    units: Vec<TrialUnit>,
    unit_sd: Option<f64>,
    visible: Option<f64>,
}

impl Trial {
    fn new(workload: &AbWorkload, check: &Check, share: f64) -> Self {
        let evidence = check.evidence();
        Self {
            verdict: check.verdict,
            seconds: workload.spent_s * share,
            busy_s: workload.busy_s(),
            units: workload.units.iter().map(|unit| TrialUnit { process: unit.process, x: unit.x }).collect(),
            unit_sd: evidence.and_then(|evidence| evidence.unit_sd),
            visible: evidence.and_then(|evidence| evidence.smallest_visible_slowdown),
        }
    }
}

impl Trials {
    /// None yet; `inject` is the slowdown put into head.
    pub fn new(inject: f64) -> Self {
        let (workloads, suites_s) = (IndexMap::new(), Vec::new());
        Self { inject, plan: None, trials: 0, decided: 0, false_alarms: 0, suites_s, workloads }
    }

    /// One more judged comparison. Samples are not kept, only what they amount to.
    pub fn push(&mut self, report: &AbReport, judgement: &Judgement) {
        self.trials += 1;
        let alarmed = judgement.checks.iter().any(|check| check.verdict == Verdict::Regressed);
        self.false_alarms += u32::from(alarmed && self.inject == 0.0);
        let is_decided =
            |check: &Check| matches!(check.verdict, Verdict::Pass | Verdict::Improved | Verdict::Regressed);
        self.decided += u32::from(alarmed || judgement.checks.iter().all(is_decided));
        self.suites_s.push(report.elapsed_s);
        // The workloads share the time that a user waits.
        let spent_s: f64 = report.workloads.values().map(|workload| workload.spent_s).sum();
        let share = if spent_s > 0.0 { report.elapsed_s / spent_s } else { 1.0 };
        self.plan = Some(Plan {
            tolerance: report.plan.tolerance,
            alarm_rate: report.plan.alarm_rate,
            miss_rate: report.plan.miss_rate,
            workloads_count: report.workloads.len().max(1),
        });
        for ((name, workload), check) in report.workloads.iter().zip(&judgement.checks) {
            // A trial that was cut off says nothing.
            if workload.ended != Ended::Interrupted {
                let trials = self.workloads.entry(name.clone()).or_default();
                trials.push(Trial::new(workload, check, share));
            }
        }
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.trials
    }

    /// Summarises the trials. `last` is any of the reports, for what is the same in all; absent without trials.
    pub fn summarise(
        &self,
        last: &AbReport,
        machine: Machine,
        elapsed_s: f64,
        finished: bool,
    ) -> Option<Calibration> {
        let plan = self.plan?;
        let workloads: IndexMap<String, Calibrated> =
            self.workloads.iter().map(|(name, trials)| (name.clone(), self.workload(trials, plan))).collect();
        let comparisons: u32 = workloads.values().map(|workload| workload.trials).sum();
        Some(Calibration {
            schema_version: SCHEMA_VERSION,
            suite: last.suite.clone(),
            timestamp_utc: last.timestamp_utc.clone(),
            machine,
            toolchain: last.toolchain.clone(),
            tolerance: plan.tolerance,
            alarm_rate: plan.alarm_rate,
            inject: self.inject,
            trials: self.trials,
            decided: Some(self.decided),
            false_alarms: self.false_alarms,
            false_alarm_rate_upper: (self.inject == 0.0)
                .then(|| binomial_upper(self.false_alarms as usize, self.decided as usize, CONFIDENCE))
                .flatten(),
            comparisons,
            detected: workloads.values().map(|workload| workload.detected).sum(),
            inconclusive: workloads.values().map(|workload| workload.inconclusive).sum(),
            // A median would leave out the few that take long, and with them most of the wait.
            seconds: elapsed_s / f64::from(comparisons.max(1)),
            busy_share: busy_share(self.workloads.values().flatten(), elapsed_s),
            suite_seconds: stats::median(&self.suites_s),
            elapsed_s,
            finished,
            advice: Vec::new(),
            workloads,
        })
    }

    fn workload(&self, trials: &[Trial], plan: Plan) -> Calibrated {
        let count = |verdict: Verdict| trials.iter().filter(|trial| trial.verdict == verdict).count() as u32;
        let seconds: Vec<f64> = trials.iter().map(|trial| trial.seconds).collect();
        let units: Vec<f64> = trials.iter().map(|trial| trial.units.len() as f64).collect();
        let median_of = |of: fn(&Trial) -> Option<f64>| {
            stats::median(&trials.iter().filter_map(of).collect::<Vec<f64>>())
        };
        let (slower, injected) = (count(Verdict::Regressed), self.inject > 0.0);
        let alarms = trials.iter().filter(|trial| trial.verdict == Verdict::Regressed && !injected);
        let inconclusive = count(Verdict::Inconclusive);
        Calibrated {
            tolerance: plan.tolerance,
            inject: self.inject,
            trials: trials.len() as u32,
            false_alarms: if injected { 0 } else { slower },
            alarms: alarms.map(|trial| trial.units.clone()).collect(),
            detected: if injected { slower } else { 0 },
            passed: count(Verdict::Pass),
            faster: count(Verdict::Improved),
            inconclusive,
            failed: count(Verdict::Broken) + count(Verdict::Skipped),
            seconds: stats::mean(&seconds).unwrap_or(0.0),
            busy_share: busy_share(trials.iter(), seconds.iter().sum()),
            seconds_p90: stats::percentile_floor(&seconds, 0.9).unwrap_or(0.0),
            units: stats::median(&units).unwrap_or(0.0),
            unit_sd: median_of(|trial| trial.unit_sd),
            smallest_visible_slowdown: median_of(|trial| trial.visible),
            visible: visible(trials, plan),
            too_noisy: 2 * inconclusive as usize > trials.len(),
        }
    }
}

/// Share of the time in which timed calls ran on a device, where there is one.
fn busy_share<'t>(trials: impl Iterator<Item = &'t Trial>, seconds: f64) -> Option<f64> {
    let busy: Vec<f64> = trials.filter_map(|trial| trial.busy_s).collect();
    (!busy.is_empty() && seconds > 0.0).then(|| (busy.iter().sum::<f64>() / seconds).min(1.0))
}

/// The units of a trial: whether the pair of processes was fresh, and x.
fn fresh_units(units: &[TrialUnit]) -> impl Iterator<Item = (bool, f64)> {
    let before = std::iter::once(None).chain(units.iter().map(|unit| Some(unit.process)));
    units.iter().zip(before).map(|(unit, before)| (before != Some(unit.process), unit.x))
}

/// Slowdowns that would have been found, and the time needed, given the noise of all trials together.
fn visible(trials: &[Trial], plan: Plan) -> Vec<Visible> {
    let units: Vec<(bool, f64)> = trials.iter().flat_map(|trial| fresh_units(&trial.units)).collect();
    let spent_s: f64 = trials.iter().map(|trial| trial.seconds).sum();
    let unit_s = spent_s / units.len().max(1) as f64;
    let of = |seconds: f64| {
        let units_count = (seconds / unit_s) as usize;
        if units.is_empty() || units_count == 0 || units_count > units.len() {
            return None;
        }
        let seen: Vec<f64> = units
            .chunks_exact(units_count)
            .take(STRETCHES_MAX)
            .filter_map(|stretch| {
                let mut evidence = Sequential::new(plan).ok()?;
                stretch.iter().for_each(|(is_fresh, x)| _ = evidence.push_from(*is_fresh, *x));
                evidence.smallest_visible_slowdown()
            })
            .collect();
        stats::median(&seen)
    };
    VISIBLE_IN_S.into_iter().map(|seconds| Visible { seconds, slowdown: of(seconds) }).collect()
}
