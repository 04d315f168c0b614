//! A fresh pair of processes, one for each side.

use super::Sides;
use super::lane::Lane;
use super::numbers;
use super::trouble::{DeviceTurn, Watch, device_trouble};
use crate::ask::{self, Batch, Requester, Seeds, random_bits};
use crate::audit::{Audit, look_chance};
use crate::pace::{rest_after, samples_at_limit};
use crate::slot::Slot;
use crate::worker::{self, Coming, Commands, Copies, Place, Prepared, Worker, WorkerError};
use holdpoint_cuda::trace;
use holdpoint_model::ab::{Clock, SideKernels};
use holdpoint_model::protocol::{RunRequest, RunResult};
use holdpoint_model::suite::{TIMER_HOST, WORKER_BUILTIN, WORKER_CUDA};
use holdpoint_model::{FailureCause, PairRound, SideName, SideNumbers, Suite, WorkloadSpec};
use holdpoint_stats::random::Random;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Single calls on new inputs whose answers are checked, one after the other: of two in a row, a worker that computes every second
/// time or less often has one wrong.
const FRESH_CALLS: u32 = 2;

const SIDES: [SideName; 2] = [SideName::Base, SideName::Head];
/// So many samples of the slower side fit into a request's time-out, with the untimed calls before them and on a machine that slows down.
const SAMPLES_PER_TIMEOUT: f64 = 8.0;
/// Turns of at least so many samples are followed by a request for one in every second unit: it takes a fraction of the unit's time.
const SAMPLES_PER_ONE: u32 = 4;

/// Why a workload takes no further part in a unit.
#[derive(Clone)]
pub(super) enum Stop {
    Failed(SideName, Box<WorkerError>),
    /// It cannot run here, or is not on both sides.
    Skipped(String),
    /// Both sides run the same machine code in the same way: there is nothing to compare.
    SameCode(Box<SideKernels>),
    /// Both sides are the same build, and it works.
    SameBuild,
    /// Another workload ended the process that both were in; the next unit has a new one.
    ThisUnit,
}

pub(super) struct Pair<'a> {
    sides: &'a Sides,
    slots: [BTreeMap<&'a str, Slot<'a>>; 2],
    cpu: Option<usize>,
    copies: Copies,
    /// How long a device rests before each turn of the next round, whichever side's it is.
    rest: Duration,
}

impl<'a> Pair<'a> {
    pub(super) fn new(sides: &'a Sides, cpu: Option<usize>, copies: Copies) -> Self {
        Self { sides, slots: [BTreeMap::new(), BTreeMap::new()], cpu, copies, rest: Duration::ZERO }
    }

    /// Starts the workload's processes in random order, unless another workload has. They load at the same time: importing a
    /// framework takes seconds.
    pub(super) fn start(&mut self, lane: &Lane<'a>, random: &mut Random) -> Result<(), Stop> {
        let order = side_order(random);
        for side in order {
            let (suite, name) = (self.sides.pair()[side], lane.specs[side].worker.as_str());
            let cpu = self.cpu.filter(|_| is_pinned(self.sides, &lane.specs));
            let fresh = || Slot::new(suite, name, cpu).with_copies(self.copies.clone());
            let slot = self.slots[side].entry(name).or_insert_with(fresh);
            slot.launch().map_err(|error| side_failed(side, error))?;
        }
        let is_by_host = lane.plan.rounds > 0 && lane.specs.iter().all(|spec| spec.is_cuda_by_host_clock());
        for side in order {
            if let Some(slot) = self.slots[side].get_mut(lane.specs[side].worker.as_str()) {
                slot.worker().map_err(|error| side_failed(side, error))?;
                // One thread waits for the device, and one CPU does that by a sixth quicker than another. Both sides have loaded by now, at the same time.
                if let (true, Some(cpu), Some(process_id)) = (is_by_host, self.cpu, slot.process_id()) {
                    worker::pin_first_thread(cpu, process_id);
                }
            }
        }
        Ok(())
    }

    /// Whether every process that was started is alive, as far as is known.
    pub(super) fn is_whole(&self) -> bool {
        self.slots.iter().flat_map(BTreeMap::values).all(|slot| slot.process() == Some(0))
    }

    /// The slot of a side, if the process that was started for this unit is alive.
    fn slot(&mut self, lane: &Lane<'a>, side: usize) -> Result<&mut Slot<'a>, Stop> {
        let slot = self.slots[side].get_mut(lane.specs[side].worker.as_str());
        slot.filter(|slot| slot.process() == Some(0)).ok_or(Stop::ThisUnit)
    }

    fn requester<'s>(&'s mut self, lane: &'s mut Lane<'a>, side: usize) -> Result<Requester<'s, 'a>, Stop> {
        let (slot, spec) = (self.slot(lane, side)?, lane.specs[side]);
        Ok(Requester { slot, spec, seeds: &mut lane.seeds[side], audit: &mut lane.audits[side] })
    }

    /// A resumed comparison has lost what was learned about the workers, and some processes are drawn to be looked at again.
    fn look_closely(&mut self, lane: &mut Lane<'a>) -> Result<(), Stop> {
        let (calls, sample_ns) = (lane.calls_per_sample, (lane.spending.sample_s() * 1e9) as u64);
        for side in (0..SIDES.len()).filter(|side| lane.audits[*side].wants_look()).collect::<Vec<_>>() {
            self.requester(lane, side)?
                .look_closely(calls, sample_ns)
                .map_err(|error| side_failed(side, error))?;
        }
        Ok(())
    }

    /// A process that has died must not be taken for a fresh one.
    pub(super) fn forget_if_dead(&mut self, lane: &Lane<'a>, stop: &Stop) {
        if let Stop::Failed(side, error) = stop
            && error.fatal
            && let Some(slot) = self.slots[*side as usize].get_mut(lane.specs[*side as usize].worker.as_str())
        {
            slot.forget();
        }
    }

    /// Prepares both sides. The first time it also chooses the length of a sample from the slower side, so that it is
    /// the same for both.
    pub(super) fn prepare(&mut self, lane: &mut Lane<'a>, random: &mut Random) -> Result<(), Stop> {
        let start = Instant::now();
        let mut kernels = [None, None];
        // Other inputs in every unit, the same on both sides.
        let draw = random.bits();
        // The plan's seed may be known to what is measured.
        let drawn = Random::new(random_bits()).uniform();
        let is_look_due = drawn < look_chance(lane.spending.unit_s());
        lane.audits.iter_mut().for_each(|audit| audit.begin_process(is_look_due));
        for side in side_order(random) {
            let (spec, suite) = (lane.specs[side], self.sides.pair()[side]);
            let seed = suite.seed_of(spec) ^ draw;
            let slot = self.slot(lane, side)?;
            slot.check_listed(spec).map_err(|error| side_lacks(side, error))?;
            let is_shared =
                suite.workers.get(&spec.worker).is_some_and(|worker| worker.units_per_process > 1);
            lane.shares_processes |= is_shared;
            lane.has_own_processes |= is_shared && is_by_host_clock(slot, spec);
            let worker = slot.worker().map_err(|error| side_failed(side, error))?;
            match worker.prepare(&spec.name, seed).map_err(|error| side_failed(side, error))? {
                Prepared::Ready(known) => {
                    if !lane.audits[side].had_close_look {
                        let work = spec.work.as_ref().or(known.work.as_ref());
                        lane.audits[side] = Audit::new(work, &spec.dtype, &slot.executor(spec));
                    }
                    let work = spec.work.clone().or(known.work);
                    lane.work[side] = work.map(|work| (work, slot.executor(spec)));
                    lane.remembers[side] = slot.remembers(spec);
                    kernels[side] = known.kernel;
                }
                Prepared::Skipped(reason) => {
                    return Err(Stop::Skipped(format!("{}: {reason}", SIDES[side].as_str())));
                }
            }
            lane.seeds[side] = Seeds::new(seed);
        }
        self.check_timers(lane)?;
        lane.spending.add_fixed(start.elapsed().as_secs_f64());
        if let Some(side) = lane.remembers_alone() {
            return Err(Stop::Skipped(format!(
                "not the same work: only {side} remembers answers, by its worker"
            )));
        }
        if let [Some(base), Some(head)] = kernels {
            lane.kernels = Some(SideKernels { base, head });
        }
        if lane.is_same_build {
            for side in side_order(random) {
                self.requester(lane, side)?.run(1, 1).map_err(|error| side_failed(side, error))?;
            }
            self.check_answers(lane, "after one call")?;
            return Err(Stop::SameBuild);
        }
        if lane.has_batch {
            return self.look_closely(lane);
        }
        if let Some(kernels) = lane.kernels.clone()
            && !self.sides.measure_same_code
            && kernels.are_same()
            && is_same_work(lane.specs, self.sides)
        {
            // Answers are checked even if nothing is timed.
            self.check_answers(lane, "without timing")?;
            return Err(Stop::SameCode(Box::new(kernels)));
        }
        // Each by its own: calls that one side reports to be short must not keep the other busy.
        let (mut batches, mut turn_s) = ([Batch { calls_per_sample: 1, sample_ns: 1 }; 2], 0.0);
        for side in side_order(random) {
            let (calls, start) = (lane.calls_per_sample, Instant::now());
            let batch = self.requester(lane, side)?.choose_batch(calls);
            turn_s = start.elapsed().as_secs_f64().max(turn_s);
            batches[side] = batch.map_err(|error| side_failed(side, error))?;
        }
        let timeout_ms = self.sides.base.measure.timeout_ms.min(self.sides.head.measure.timeout_ms);
        let both = ask::batch_of_both(batches, (timeout_ms * 1e6 / SAMPLES_PER_TIMEOUT) as u64)
            .map_err(|(side, error)| side_failed(side, error))?;
        lane.calls_per_sample = both.calls_per_sample;
        lane.spending.set_sample(both.sample_ns);
        if lane.specs.iter().all(|spec| spec.bench.is_some()) {
            lane.spending.set_turn(turn_s);
        }
        lane.has_batch = true;
        Ok(())
    }

    /// The clock is what a worker says it is: times of two kinds are not compared.
    fn check_timers(&mut self, lane: &Lane<'a>) -> Result<(), Stop> {
        let [mut base, mut head] = [String::new(), String::new()];
        for (side, timer) in [&mut base, &mut head].into_iter().enumerate() {
            *timer = self.slot(lane, side)?.timer(lane.specs[side]).unwrap_or_default();
        }
        if base == head {
            return Ok(());
        }
        Err(Stop::Skipped(format!("not the same timer: base's worker names {base}, head's {head}")))
    }

    /// Tells the workers which turns of benchmarks come next, and in which order.
    pub(super) fn announce(&mut self, lanes: &[Lane<'a>], order: &[usize]) {
        for (side, slots) in self.slots.iter_mut().enumerate() {
            for (name, slot) in slots {
                let wanted = |at: &usize| {
                    let (lane, spec) = (&lanes[*at], lanes[*at].specs[side]);
                    let is_turn = spec.worker == **name && spec.bench.is_some() && lane.goes_on_here();
                    is_turn.then(|| Coming {
                        workload: spec.name.clone(),
                        samples_count: lane.plan.samples.into(),
                        requests: lane.plan.rounds,
                    })
                };
                if let (true, Ok(worker)) = (slot.process().is_some(), slot.worker()) {
                    worker.announce(order.iter().filter_map(wanted).collect());
                }
            }
        }
    }

    /// Measures both sides in random order, and watches the machine meanwhile.
    pub(super) fn round(
        &mut self,
        lane: &mut Lane<'a>,
        [round, order]: [u32; 2],
        random: &mut Random,
        watch: &mut Watch,
    ) -> Result<(), Stop> {
        let (start, turns) = (Instant::now(), side_order(random));
        let processes = self.processes(lane);
        let mut results = [RunResult::default(), RunResult::default()];
        let mut numbers = [SideNumbers::default(), SideNumbers::default()];
        let (mut rest, mut longest) = (Duration::ZERO, Duration::ZERO);
        lane.seeds.iter_mut().for_each(|seeds| seeds.begin_round(round));
        watch.begin(&processes, self.cpu);
        let tandem = if lane.plan.clock == Clock::Tandem { self.tandem(lane, turns) } else { None };
        let is_tandem = tandem.is_some();
        if let Some(together) = tandem {
            results = together;
            numbers = results.each_mut().map(|result| numbers::take(result, None));
        } else if lane.plan.clock == Clock::Tandem {
            // They disturb each other, or one of them fails anyway: that shows by itself.
            (lane.is_one_by_one, lane.plan.clock) = (true, Clock::Cpu);
        }
        for side in turns.into_iter().filter(|_| !is_tandem) {
            let (samples, calls) = (lane.plan.samples, lane.calls_per_sample);
            let process_id = self.slot(lane, side)?.caller_id();
            process_id.into_iter().for_each(numbers::reset_peak);
            if !self.rest.is_zero() {
                trace::step("rest", &lane.specs[side].name, || std::thread::sleep(self.rest));
            }
            let turn = Instant::now();
            let result = self.requester(lane, side)?.run(samples.into(), calls);
            results[side] = result.map_err(|error| side_failed(side, error))?;
            let took = turn.elapsed();
            (rest, longest) = (rest.max(rest_after(&results[side], took)), longest.max(took));
            numbers[side] = numbers::take(&mut results[side], process_id);
        }
        let audited = lane.audits.each_mut().map(Audit::take_turn);
        if let Some((side, error)) = lane.contest.add(audited) {
            return Err(side_failed(side, error));
        }
        for (calls, result) in lane.first_calls.iter_mut().zip(&results) {
            calls.add(result);
        }
        let [base, head] = &lane.first_calls;
        if let Some((side, why)) = [base.accuse(head), head.accuse(base)]
            .into_iter()
            .zip(0..)
            .find_map(|(why, side)| Some((side, why?)))
        {
            return Err(side_failed(side, WorkerError::new(FailureCause::BadTime, why)));
        }
        self.rest = rest;
        if !rest.is_zero() {
            lane.limit_samples(samples_at_limit(lane.plan.samples, longest));
        }
        let (mut state, mut trouble) = watch.end(&processes, self.cpu);
        limit_to_shorter(&mut results, lane);
        // Workers of other workloads wait beside this one's, with memory on the device.
        let own: Vec<u32> =
            self.slots.iter().flat_map(BTreeMap::values).filter_map(Slot::process_id).collect();
        let turn =
            |side: usize| DeviceTurn { state: results[side].device.as_ref(), sm_mhz: &numbers[side].sm_mhz };
        trouble.extend(device_trouble([turn(0), turn(1)], &own));
        trouble.sort_unstable();
        trouble.dedup();
        // The device's state after both sides.
        state.device = results[turns[1]].device.take();
        let ([base, head], [base_numbers, head_numbers]) = (results, numbers);
        let round = PairRound {
            round,
            order,
            first: SIDES[turns[0]],
            base_ns: base.elapsed_ns,
            head_ns: head.elapsed_ns,
            base_wait_ns: base.wait_ns,
            head_wait_ns: head.wait_ns,
            base_numbers,
            head_numbers,
            trouble,
            left_out: false,
            state,
        };
        lane.add_round(round, is_tandem, start.elapsed().as_secs_f64());
        Ok(())
    }

    /// Both sides at the same time on this unit's CPU; absent where that does not work.
    fn tandem(&self, lane: &Lane<'a>, turns: [usize; 2]) -> Option<[RunResult; 2]> {
        let (cpu, copies, suites) = (Some(self.cpu?), &self.copies, self.sides.pair());
        let mut seeds = lane.seeds[0];
        let request = RunRequest {
            workload: lane.specs[0].name.clone(),
            seed: seeds.draw(),
            samples_count: lane.plan.samples.into(),
            calls_per_sample: lane.calls_per_sample,
        };
        let run = |side: usize| {
            let suite: &Suite = suites[side];
            let place = Place { dir: suite.dir.clone(), cpu, copies: copies.clone() };
            let timeout = Duration::from_secs_f64(suite.measure.timeout_ms / 1e3);
            Commands::new(&suite.workloads, place, timeout).run(&request)
        };
        let run = &run;
        let mut results = [None, None];
        std::thread::scope(|scope| {
            let threads = turns.map(|side| (side, scope.spawn(move || run(side))));
            for (side, thread) in threads {
                results[side] = thread.join().ok().and_then(Result::ok);
            }
        });
        let [base, head] = results;
        Some([base?, head?])
    }

    fn processes(&mut self, lane: &Lane<'a>) -> Vec<u32> {
        let caller_id = |side: usize| self.slots[side].get(lane.specs[side].worker.as_str())?.caller_id();
        [caller_id(0), caller_id(1)].into_iter().flatten().collect()
    }

    /// Asks each side for one sample, to see what a request costs beside one: what turns hide shows against it.
    pub(super) fn ask_for_one(&mut self, lane: &mut Lane<'a>, random: &mut Random) -> Result<(), Stop> {
        let is_due = lane.plan.samples >= SAMPLES_PER_ONE && lane.units_count().is_multiple_of(2);
        if lane.rounds_taken.is_empty() || !is_due {
            return Ok(());
        }
        for side in side_order(random) {
            let calls = lane.calls_per_sample;
            self.requester(lane, side)?.ask_for_one(calls).map_err(|error| side_failed(side, error))?;
        }
        Ok(())
    }

    /// Checks the answers that the timed calls left behind, if a check is due.
    pub(super) fn verify(&mut self, lane: &mut Lane<'a>) -> Result<(), Stop> {
        if lane.rounds_taken.is_empty() || lane.is_verified && !lane.is_check_due() {
            return Ok(());
        }
        self.check_answers(lane, "after timing")?;
        self.check_fresh_answers(lane)?;
        lane.is_verified = true;
        Ok(())
    }

    /// Checks single calls on new inputs: a worker that computes only every so often has no answer to them.
    fn check_fresh_answers(&mut self, lane: &mut Lane<'a>) -> Result<(), Stop> {
        for side in 0..SIDES.len() {
            let spec = lane.specs[side];
            let is_own = self.slot(lane, side)?.is_own();
            for _ in (0..FRESH_CALLS).filter(|_| !is_own) {
                let seed = lane.seeds[side].draw();
                let slot = self.slot(lane, side)?;
                let worker = slot.worker().map_err(|error| side_failed(side, error))?;
                worker.prepare(&spec.name, seed).map_err(|error| side_failed(side, error))?;
                let answer = ask::verify(slot, spec, "after one call on new inputs");
                if answer.map_err(|error| side_failed(side, error))?.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Fails too if base's answer is checked and head's no longer is.
    fn check_answers(&mut self, lane: &Lane<'a>, when: &str) -> Result<(), Stop> {
        let mut is_checked = [false, false];
        for (side, is_checked) in is_checked.iter_mut().enumerate() {
            let answer = ask::verify(self.slot(lane, side)?, lane.specs[side], when);
            *is_checked = answer.map_err(|error| side_failed(side, error))?.is_some();
        }
        if is_checked != [true, false] {
            return Ok(());
        }
        let detail = "base's answer is checked, head's is not; times of unchecked answers are not compared";
        Err(side_failed(1, WorkerError::new(FailureCause::WrongAnswer, detail)))
    }
}

/// Benchmarks may take fewer samples than were asked for. The fastest of more would be faster, so both sides have as many.
fn limit_to_shorter(results: &mut [RunResult; 2], lane: &mut Lane) {
    let count = results.iter().map(|result| result.elapsed_ns.len()).min().unwrap_or(0);
    let samples = u32::try_from(count).unwrap_or(u32::MAX);
    if samples < lane.plan.samples {
        results.iter_mut().for_each(|result| result.elapsed_ns.truncate(count));
        lane.limit_samples(samples);
    }
}

/// Whether both sides do the same, timed by a clock that does not include the host's code.
fn is_same_work([base, head]: [&WorkloadSpec; 2], sides: &Sides) -> bool {
    let seed = |suite: &Suite, spec: &WorkloadSpec| suite.seed_of(spec);
    base == head && base.timer() != TIMER_HOST && seed(&sides.base, base) == seed(&sides.head, head)
}

/// Whether a workload's times are the host's: as the suite says of our CUDA worker, and as others say themselves.
fn is_by_host_clock(slot: &Slot<'_>, spec: &WorkloadSpec) -> bool {
    spec.is_cuda_by_host_clock()
        || spec.worker != WORKER_CUDA && slot.timer(spec).as_deref() == Some(TIMER_HOST)
}

/// Whether a workload's processes are pinned to one CPU. Pinning one side only would make the comparison unfair.
pub(super) fn is_pinned(sides: &Sides, specs: &[&WorkloadSpec; 2]) -> bool {
    let is_single_threaded = |side: usize| {
        let name = specs[side].worker.as_str();
        let declared = sides.pair()[side].workers.get(name).map(|worker| worker.single_threaded);
        declared.unwrap_or(name == WORKER_BUILTIN)
    };
    sides.pin || (is_single_threaded(0) && is_single_threaded(1))
}

fn side_order(random: &mut Random) -> [usize; 2] {
    if random.below(2) == 0 { [0, 1] } else { [1, 0] }
}

fn side_failed(side: usize, error: WorkerError) -> Stop {
    Stop::Failed(SIDES[side], Box::new(error))
}

/// A worker without the workload makes the workload missing on that side; other errors are failures.
fn side_lacks(side: usize, error: WorkerError) -> Stop {
    let name = SIDES[side].as_str();
    match error.cause {
        FailureCause::Mismatch => {
            Stop::Skipped(format!("not the same workloads on both sides: {name}'s {}", error.detail))
        }
        _ => side_failed(side, error),
    }
}
