//! One workload of a comparison, from unit to unit.

use super::Decide;
use super::pair::{Pair, Stop};
use crate::ask::Seeds;
use crate::audit::Audit;
use holdpoint_model::ab::{Ended, SideFailure, SideKernels};
use holdpoint_model::suite::WORKER_COMMAND;
use holdpoint_model::{AbReport, AbWorkload, PairRound, Unit, WorkloadSpec};
use std::time::Instant;

/// About as many units as it takes to decide the plainest slowdown.
pub const UNITS_PER_DOUBLING: usize = 16;
/// Most rounds in a unit: with more, most of the noise comes from the luck of its processes.
pub const ROUNDS_MAX: u32 = 16;

/// A workload while it is compared. Units measured at the same time each have a copy.
#[derive(Clone)]
pub(super) struct Lane<'a> {
    /// Position in the report.
    pub index: usize,
    /// Base's and head's.
    pub specs: [&'a WorkloadSpec; 2],
    pub goes_on: bool,
    /// Chosen in the first unit, 0 before that.
    pub samples_count: u64,
    pub calls_per_sample: u64,
    /// How long a sample took when the comparison began.
    pub sample_ns: u64,
    /// Rounds in the first units.
    pub rounds_first: u32,
    pub rounds: u32,
    units_count: usize,
    pub is_verified: bool,
    /// Of this unit's inputs, base's and head's.
    pub seeds: [Seeds; 2],
    /// Base's and head's.
    pub audits: [Audit; 2],
    /// Time spent in this unit.
    pub spent_s: f64,
    pub rounds_taken: Vec<PairRound>,
    /// Of both sides, where the workers tell.
    pub kernels: Option<SideKernels>,
    /// Why it takes no further part in this unit.
    out: Option<Stop>,
}

impl<'a> Lane<'a> {
    pub(super) fn new(index: usize, specs: [&'a WorkloadSpec; 2], before: &AbWorkload) -> Self {
        let first = before.units.first();
        // A unit that was cut short by a signal has fewer rounds.
        let rounds = before.units.iter().take(UNITS_PER_DOUBLING).map(|unit| unit.rounds.len()).max();
        let first_round = first.and_then(|unit| unit.rounds.first());
        let samples = first_round.map_or(0, |round| round.base_ns.len());
        Self {
            index,
            specs,
            goes_on: true,
            samples_count: samples as u64,
            calls_per_sample: before.calls_per_sample,
            sample_ns: first_round.and_then(|round| round.base_ns.first().copied()).unwrap_or(1),
            rounds_first: rounds.and_then(|rounds| u32::try_from(rounds).ok()).unwrap_or(1),
            rounds: 1,
            units_count: before.units.len(),
            // Again after a resume: the signal may have come before the answers were checked.
            is_verified: false,
            seeds: [Seeds::fixed(0); 2],
            audits: [Audit::default(), Audit::default()],
            spent_s: 0.0,
            rounds_taken: Vec::new(),
            kernels: None,
            out: None,
        }
    }

    /// Begins a unit. More rounds make a unit less noisy, but waste time where the answer is plain; so rounds are added
    /// once plain cases have been decided. Their number depends on the number of units alone.
    pub(super) fn begin(&mut self) {
        let doublings = u32::try_from(self.units_count / UNITS_PER_DOUBLING).unwrap_or(u32::MAX).min(5);
        let more = (self.rounds_first << doublings).min(ROUNDS_MAX.max(self.rounds_first));
        self.rounds = if self.is_command() { self.rounds_first } else { more };
        self.spent_s = 0.0;
        self.rounds_taken.clear();
        self.out = None;
    }

    /// Every call of a command is a process of its own, so one round is a unit.
    pub(super) fn is_command(&self) -> bool {
        self.specs.iter().all(|spec| spec.worker == WORKER_COMMAND)
    }

    /// Whether answers are checked again in this unit: in the 4th, the 16th, the 64th and so on, because a check may
    /// take longer than the calls it checks.
    pub(super) fn is_check_due(&self) -> bool {
        let unit = self.units_count + 1;
        unit.is_power_of_two() && unit.trailing_zeros().is_multiple_of(2)
    }

    /// Runs a step. A failure is this workload's outcome, and nobody else's.
    pub(super) fn attempt(
        &mut self,
        pair: &mut Pair<'a>,
        step: impl FnOnce(&mut Self, &mut Pair<'a>) -> Result<(), Stop>,
    ) {
        if self.out.is_some() {
            return;
        }
        let start = Instant::now();
        if let Err(stop) = step(self, pair) {
            pair.forget_if_dead(self, &stop);
            self.out = Some(stop);
        }
        self.spent_s += start.elapsed().as_secs_f64();
    }

    /// Moves the failure to another workload of the same process, if that one is to blame.
    pub(super) fn pass_blame(lanes: &mut [Self], at: usize) {
        let Some(Stop::Failed(_, error)) = &lanes[at].out else { return };
        let is_other = |lane: &Self| error.blamed.as_ref() == Some(&lane.specs[0].name);
        if let Some(other) = lanes.iter().position(is_other).filter(|other| *other != at) {
            lanes[other].out = lanes[at].out.replace(Stop::ThisUnit);
        }
    }

    /// Takes what a unit measured, and what it learned for later units.
    pub(super) fn take_over(&mut self, measured: Self) {
        let (goes_on, units_count) = (self.goes_on, self.units_count);
        let is_verified = self.is_verified || measured.is_verified;
        *self = Self { goes_on, units_count, is_verified, ..measured };
    }

    /// Ends the unit: its rounds go into the report, its number to the decision.
    pub(super) fn finish(
        &mut self,
        process: u32,
        report: &mut AbReport,
        decide: &mut dyn Decide,
        stopped: bool,
    ) {
        let units_max = report.plan.units_max as usize;
        let workload = &mut report.workloads[self.index];
        workload.spent_s += self.spent_s;
        workload.calls_per_sample = self.calls_per_sample;
        workload.kernels = self.kernels.take().or_else(|| workload.kernels.take());
        let mut rounds = std::mem::take(&mut self.rounds_taken);
        if let Some(x) = decide.estimate(&mut rounds) {
            let unit = Unit { process, x, rounds };
            if !decide.push(self.index, &unit) && self.goes_on {
                self.goes_on = false;
                workload.ended = Ended::Decided;
            }
            workload.units.push(unit);
            self.units_count += 1;
        }
        match self.out.take() {
            // A process that was killed to stop the comparison is not a failure of the workload.
            Some(_) if stopped => {}
            Some(Stop::Failed(side, error)) => {
                self.end(workload, Ended::Failed, String::new(), decide);
                workload.failure = Some(SideFailure { side, failure: (*error).into() });
            }
            Some(Stop::Skipped(reason)) => self.end(workload, Ended::Skipped, reason, decide),
            Some(Stop::SameCode(kernels)) => {
                let code = kernels.head.code_sha256.as_deref().unwrap_or_default();
                let code = code.get(..12).unwrap_or(code);
                let reason = format!(
                    "the same machine code ({code}), launches and inputs on both sides: not measured"
                );
                self.end(workload, Ended::SameCode, reason, decide);
                workload.kernels = Some(*kernels);
            }
            Some(Stop::ThisUnit) | None => {}
        }
        if self.goes_on && workload.units.len() >= units_max {
            self.goes_on = false;
            workload.ended = Ended::UnitsMax;
        }
    }

    fn end(&mut self, workload: &mut AbWorkload, ended: Ended, reason: String, decide: &mut dyn Decide) {
        self.goes_on = false;
        (workload.ended, workload.reason) = (ended, reason);
        decide.drop_out(self.index);
    }
}
