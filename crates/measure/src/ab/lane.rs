//! One workload of a comparison, from unit to unit.

use super::Decide;
use super::first_calls::{self, FirstCalls};
use super::pair::{Pair, Stop};
use crate::audit::Contest;
use crate::harness::{has_one_sample, share_a_process};
use crate::meter::Subject;
use crate::physics;
use holdpoint_model::ab::{Clock, Ended, QUANTILE, SameBuild, SideFailure, SideKernels};
use holdpoint_model::suite::Work;
use holdpoint_model::{AbReport, AbWorkload, PairRound, Unit, UnitCost, UnitPlan, Workload};
use std::time::Instant;

/// A workload while it is compared. Units measured at the same time each have a copy.
#[derive(Clone)]
pub(super) struct Lane<'a> {
    /// Position in the report.
    pub index: usize,
    /// Base's and head's.
    pub subjects: [Subject<'a>; 2],
    pub goes_on: bool,
    /// Whether a unit was begun, or one is there from before.
    had_turn: bool,
    /// Whether `calls_per_sample` has been chosen.
    pub has_batch: bool,
    pub calls_per_sample: u64,
    /// How this unit is measured.
    pub plan: UnitPlan,
    /// The most samples that a turn has: a benchmark's own settings may allow fewer than are planned.
    samples_max: u32,
    pub spending: Spending,
    units_count: usize,
    pub is_verified: bool,
    /// Whether both sides are the same build: then one call is enough.
    pub is_same_build: bool,
    /// Whether its sides fail when they run at the same time.
    pub is_one_by_one: bool,
    /// Whether its worker's processes serve several units. Known from its first unit on.
    pub shares_processes: bool,
    /// Whether each of its units has processes of its own all the same: it is timed by the host's clock, and the host is quicker in one process than
    /// in another; or it seems to be slower, and more pairs must say so.
    pub has_own_processes: bool,
    /// Of both sides' audits.
    pub contest: Contest,
    /// Base's and head's, of all units so far.
    pub first_calls: [FirstCalls; 2],
    /// Time spent in this unit.
    pub spent_s: f64,
    pub rounds_taken: Vec<PairRound>,
    /// For each of them whether both sides ran at the same time, and its seconds.
    round_costs: Vec<(bool, f64)>,
    /// Why it takes no further part in this unit.
    out: Option<Stop>,
}

impl<'a> Lane<'a> {
    pub(super) fn new(index: usize, specs: [&'a Workload; 2], before: &AbWorkload) -> Self {
        let spending = Spending::resume(before);
        Self {
            index,
            subjects: [Subject::new(0, specs[0]), Subject::new(1, specs[1])],
            goes_on: true,
            had_turn: !before.units.is_empty(),
            // A sample of a command is a call.
            has_batch: !before.units.is_empty() || is_command(&specs),
            calls_per_sample: before.calls_per_sample,
            plan: UnitPlan { rounds: 1, samples: 1, skip: 0, quantile: QUANTILE, clock: Default::default() },
            samples_max: u32::MAX,
            spending,
            units_count: before.units.len(),
            // Again after a resume: the signal may have come before the answers were checked.
            is_verified: false,
            is_same_build: before.same_build.is_some(),
            is_one_by_one: false,
            shares_processes: false,
            has_own_processes: false,
            contest: Contest::default(),
            first_calls: Default::default(),
            spent_s: 0.0,
            rounds_taken: Vec::new(),
            round_costs: Vec::new(),
            out: None,
        }
    }

    /// Plans the next unit, which `left_s` of the budget is left for.
    pub(super) fn plan_unit(&mut self, report: &AbReport, decide: &mut dyn Decide, left_s: f64) {
        if !self.has_batch {
            // No rounds yet: how long a sample is comes first.
            self.plan.rounds = 0;
            return;
        }
        let units = &report.workloads[self.index].units;
        let may_overlap = is_command(&self.specs()) && !self.is_one_by_one;
        let one_sample = self.specs().iter().any(|spec| spec.task.bench().is_some_and(has_one_sample));
        let long_turns = self.specs().iter().any(|spec| spec.task.bench().is_some());
        let cost =
            UnitCost { unit_s_max: left_s, may_overlap, one_sample, long_turns, ..self.spending.cost() };
        self.plan = decide.plan_unit(self.index, units, &cost);
        self.limit_samples(self.samples_max);
    }

    /// Plans turns of no more samples than these, from now on. In turns of few samples none can be left out.
    pub(super) fn limit_samples(&mut self, samples: u32) {
        self.samples_max = samples;
        self.plan.samples = self.plan.samples.min(samples);
        if self.plan.samples <= 2 * self.plan.skip {
            self.plan.skip = 0;
        }
    }

    /// Whether it has had its turn, and even the shortest unit would take longer than what is left.
    pub(super) fn is_over(&self, left_s: f64) -> bool {
        self.had_turn && self.spending.cost().unit_s(1, 1) > left_s
    }

    pub(super) fn specs(&self) -> [&'a Workload; 2] {
        self.subjects.each_ref().map(|subject| subject.spec)
    }

    pub(super) fn name(&self) -> &str {
        &self.subjects[1].spec.name
    }

    /// Of both sides, where the workers tell.
    pub(super) fn kernels(&self) -> Option<SideKernels> {
        let [base, head] = self.subjects.each_ref().map(|subject| subject.kernel.clone());
        Some(SideKernels { base: base?, head: head? })
    }

    /// Whether their calls keep answers, as their workers say.
    fn remembers(&self) -> [bool; 2] {
        self.subjects.each_ref().map(|subject| subject.remembers)
    }

    pub(super) fn units_count(&self) -> usize {
        self.units_count
    }

    /// Begins a unit.
    pub(super) fn begin(&mut self) {
        self.had_turn |= self.plan.rounds > 0;
        self.spent_s = 0.0;
        self.rounds_taken.clear();
        self.round_costs.clear();
        self.out = None;
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
            pair.note(self, &stop);
            self.out = Some(stop);
        }
        self.spent_s += start.elapsed().as_secs_f64();
    }

    /// Whether it still takes part in this unit.
    pub(super) fn goes_on_here(&self) -> bool {
        self.out.is_none()
    }

    pub(super) fn add_round(&mut self, round: PairRound, is_tandem: bool, seconds: f64) {
        self.rounds_taken.push(round);
        self.round_costs.push((is_tandem, seconds));
    }

    /// Adds the seconds of a unit's rounds to each workload's spending. Benchmarks that share processes get equal parts.
    pub(super) fn book_rounds(lanes: &mut [Self]) {
        for first in 0..lanes.len() {
            let bench = lanes[first].subjects[0].spec.task.bench();
            let shares = |at: &usize| {
                let benches = bench.zip(lanes[*at].subjects[0].spec.task.bench());
                benches.is_some_and(|(bench, beside)| share_a_process(bench, beside))
            };
            let beside: Vec<usize> = (0..lanes.len()).filter(shares).collect();
            if beside.len() > 1 && beside.first() == Some(&first) {
                let spent_s: f64 = beside.iter().map(|at| lanes[*at].spent_s).sum();
                let costs = || beside.iter().flat_map(|at| &lanes[*at].round_costs);
                let (rounds_s, rounds): (f64, usize) = (costs().map(|cost| cost.1).sum(), costs().count());
                for at in &beside {
                    lanes[*at].spent_s = spent_s / beside.len() as f64;
                    lanes[*at].round_costs.iter_mut().for_each(|cost| cost.1 = rounds_s / rounds as f64);
                }
            }
        }
        for lane in lanes {
            for (round, (is_tandem, seconds)) in lane.rounds_taken.iter().zip(&lane.round_costs) {
                lane.spending.add_round(round, *is_tandem, *seconds);
            }
        }
    }

    /// Moves the failure to another workload of the same process, if that one is to blame.
    pub(super) fn pass_blame(lanes: &mut [Self], at: usize) {
        let Some(Stop::Failed(_, error)) = &lanes[at].out else { return };
        let is_other = |lane: &Self| error.blamed.as_deref() == Some(lane.name());
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
        for note in self.notes() {
            if !report.notes.contains(&note) {
                report.notes.push(note);
            }
        }
        let workload = &mut report.workloads[self.index];
        workload.spent_s += self.spent_s;
        workload.calls_per_sample = self.calls_per_sample;
        workload.kernels = self.kernels().or_else(|| workload.kernels.take());
        let rounds = std::mem::take(&mut self.rounds_taken);
        let UnitPlan { skip, quantile, clock, .. } = self.plan;
        let mut unit = Unit { process, x: 0.0, skip, quantile, clock, rounds };
        if decide.estimate(&mut unit).is_none() {
            let are_waits = clock == Clock::Unwaited && unit.rounds.iter().any(PairRound::tells_waits);
            if are_waits && workload.units.is_empty() {
                workload.reason = NO_SOUND_ROUND.to_owned();
            }
        } else {
            workload.reason.clear();
            if !decide.push(self.index, &unit) && self.goes_on {
                self.goes_on = false;
                workload.ended = Ended::Decided;
            }
            self.has_own_processes |= self.shares_processes && decide.lacks_pairs(self.index);
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
            Some(Stop::SameBuild) => {
                let reason = workload.same_build.as_ref().map(same_build).unwrap_or_default();
                self.end(workload, Ended::SameCode, reason, decide);
            }
            Some(Stop::ThisUnit) | None => {}
        }
        if self.goes_on && workload.units.len() >= units_max {
            self.goes_on = false;
            workload.ended = Ended::UnitsMax;
        }
    }

    /// The side that keeps answers from call to call, by its own word, if the other does not.
    pub(super) fn remembers_alone(&self) -> Option<&'static str> {
        match self.remembers() {
            [true, false] => Some("base"),
            [false, true] => Some("head"),
            _ => None,
        }
    }

    /// Notes for readers about what both sides did in this unit and in those before.
    fn notes(&self) -> Vec<String> {
        let name = self.name();
        let mut notes: Vec<String> = self.notes_on_peaks().into_iter().flatten().collect();
        if let [Some(base), Some(head)] = self.subjects.each_ref().map(|subject| &subject.work)
            && (base.flops, base.bytes) != (head.flops, head.bytes)
        {
            let count = |work: &Work| format!("{} operations and {} bytes", work.flops, work.bytes);
            let (base, head) = (count(base), count(head));
            notes.push(format!(
                "{name}: not the same work, as the sides count it: base {base}, head {head} a call"
            ));
        }
        if self.remembers() == [true; 2] {
            notes.push(format!("{name}: it remembers answers, so a cache is what is measured"));
        }
        notes.extend(first_calls::doubt(&self.first_calls).map(|doubt| format!("{name}: {doubt}")));
        notes
    }

    /// A note on each side whose calls are nearer to what the machine can do than right kernels are.
    fn notes_on_peaks(&self) -> [Option<String>; 2] {
        let times = [|round: &PairRound| round.base_ns.clone(), |round: &PairRound| round.head_ns.clone()];
        std::array::from_fn(|side| {
            let Subject { spec, work, executor, .. } = &self.subjects[side];
            let quickest_ns = self.rounds_taken.iter().flat_map(times[side]).min()? as f64;
            let call_ns = quickest_ns / self.calls_per_sample.max(1) as f64;
            physics::near_peak(work.as_ref()?, &spec.dtype, executor, call_ns)?;
            let name = ["base", "head"][side];
            Some(format!(
                "{}: {name} is near what the machine can do at most: is its work counted right, and does every call do it?",
                spec.name
            ))
        })
    }

    fn end(&mut self, workload: &mut AbWorkload, ended: Ended, reason: String, decide: &mut dyn Decide) {
        self.goes_on = false;
        (workload.ended, workload.reason) = (ended, reason);
        decide.drop_out(self.index);
    }
}

/// Why a workload whose rounds were measured has no unit.
const NO_SOUND_ROUND: &str = "its samples waited for a CPU for most of their time, in every round on at least one side: it takes a quieter machine";

fn same_build(same: &SameBuild) -> String {
    let hash = same.head_sha256.get(..12).unwrap_or_default();
    let but = match same.ignored.as_slice() {
        [] => String::new(),
        [one] => format!(" but {one}"),
        [first, others @ ..] => format!(" but {first} and {} others", others.len()),
    };
    format!("the same build ({hash}) on both sides, all files alike{but}: called once, not measured")
}

/// Every call of a command is a process of its own.
fn is_command(specs: &[&Workload; 2]) -> bool {
    specs.iter().all(|spec| spec.task.command().is_some())
}

/// Where the time of a workload's units went.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spending {
    units: f64,
    /// Starting processes and preparing inputs.
    fixed_s: f64,
    rounds: f64,
    rounds_s: f64,
    samples: f64,
    samples_s: f64,
    /// Of a harness.
    turns: Option<Turns>,
}

impl Spending {
    /// Restores it from the samples of earlier units.
    fn resume(before: &AbWorkload) -> Self {
        let mut spending = Self::default();
        for unit in &before.units {
            unit.rounds.iter().for_each(|round| spending.add_samples(round, unit.clock == Clock::Tandem));
        }
        spending.rounds_s = spending.samples_s;
        spending
    }

    pub(super) fn add_fixed(&mut self, seconds: f64) {
        self.units += 1.0;
        self.add_start(seconds);
    }

    /// This workload's part of starting a unit's processes.
    pub(super) fn add_start(&mut self, seconds: f64) {
        self.fixed_s += seconds;
    }

    pub(super) fn add_round(&mut self, round: &PairRound, is_tandem: bool, seconds: f64) {
        self.add_samples(round, is_tandem);
        self.rounds_s += seconds;
        let samples = round.base_ns.len() as f64;
        self.turns.iter_mut().for_each(|turns| turns.add(samples, seconds / 2.0));
    }

    fn add_samples(&mut self, round: &PairRound, is_tandem: bool) {
        self.rounds += 1.0;
        self.samples += (round.base_ns.len() + round.head_ns.len()) as f64;
        let wall_s = round.base_ns.iter().chain(&round.head_ns).map(|ns| *ns as f64 / 1e9).sum::<f64>();
        // At the same time, both take as long as one after the other.
        self.samples_s += if is_tandem { wall_s / 2.0 } else { wall_s };
    }

    /// One sample, as seen before the first round.
    pub(super) fn set_sample(&mut self, sample_ns: u64) {
        (self.samples, self.samples_s) = (1.0, sample_ns as f64 / 1e9);
    }

    /// A turn of a harness with one sample, as seen before the first round.
    pub(super) fn set_turn(&mut self, turn_s: f64) {
        self.turns.insert(Turns::default()).add(1.0, turn_s);
    }

    /// The mean sample; 0 as long as there is none.
    pub(super) fn sample_s(&self) -> f64 {
        self.samples_s / self.samples.max(1.0)
    }

    /// The mean unit; 0 as long as there is none.
    pub(super) fn unit_s(&self) -> f64 {
        (self.fixed_s + self.rounds_s) / self.units.max(1.0)
    }

    pub(super) fn cost(&self) -> UnitCost {
        let fixed_s = self.fixed_s / self.units.max(1.0);
        let (round_s, sample_s) = match self.turns {
            Some(turns) => {
                let sample_s = turns.sample_s().max(self.sample_s());
                (2.0 * turns.rest_s(sample_s), sample_s)
            }
            None => ((self.rounds_s - self.samples_s) / self.rounds.max(1.0), self.sample_s()),
        };
        UnitCost { fixed_s, round_s: round_s.max(0.0), sample_s, ..UnitCost::default() }
    }
}

/// How long turns of a harness were with so many samples. It may do more for each sample than time it: collect garbage, or look for
/// the number of calls.
#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    count: f64,
    samples: f64,
    seconds: f64,
    samples_squared: f64,
    samples_seconds: f64,
}

impl Turns {
    fn add(&mut self, samples: f64, seconds: f64) {
        self.count += 1.0;
        self.samples += samples;
        self.seconds += seconds;
        self.samples_squared += samples * samples;
        self.samples_seconds += samples * seconds;
    }

    /// By how much one more sample lengthens a turn, by least squares; 0 as long as all turns had as many.
    fn sample_s(&self) -> f64 {
        let spread = self.count * self.samples_squared - self.samples * self.samples;
        let together = self.count * self.samples_seconds - self.samples * self.seconds;
        if spread > 0.0 { together / spread } else { 0.0 }
    }

    /// A turn without its samples.
    fn rest_s(&self, sample_s: f64) -> f64 {
        (self.seconds - self.samples * sample_s) / self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sample_of_a_harness_takes_shows_in_turns_of_different_length() {
        let mut spending = Spending::default();
        // 10 µs of 20 ms: the rest is the harness's.
        spending.set_sample(10_000);
        spending.set_turn(0.03);
        assert_eq!(spending.cost().sample_s, 1e-5);
        let round = PairRound { base_ns: vec![10_000; 4], head_ns: vec![10_000; 4], ..PairRound::default() };
        spending.add_round(&round, false, 0.18);
        let UnitCost { round_s, sample_s, .. } = spending.cost();
        assert!((sample_s - 0.02).abs() < 1e-9 && (round_s - 0.02).abs() < 1e-9, "{round_s} {sample_s}");
    }
}
