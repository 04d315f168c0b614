//! A fresh pair of processes, one for each side.

use super::Sides;
use super::lane::Lane;
use super::numbers;
use super::trouble::{DeviceTurn, Watch, device_trouble};
use crate::audit::look_chance;
use crate::meter::{self, Batch, Meter, Seeds, Subject, batch_of_both, random_bits};
use crate::pace::samples_at_limit;
use crate::program;
use crate::program::{Copies, Place, WorkerError};
use crate::worker::{Coming, Commands, Worker};
use holdpoint_model::ab::{Clock, SideKernels};
use holdpoint_model::protocol::{RunRequest, RunResult};
use holdpoint_model::suite::{TIMER_HOST, WORKER_BUILTIN};
use holdpoint_model::{FailureCause, PairRound, SideName, SideNumbers, Suite, Workload};
use holdpoint_stats::random::Random;
use std::time::{Duration, Instant};

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
    meter: Meter<'a>,
    cpu: Option<usize>,
    copies: Copies,
}

impl<'a> Pair<'a> {
    pub(super) fn new(sides: &'a Sides, cpu: Option<usize>, copies: Copies) -> Self {
        Self { sides, meter: Meter::of_two(sides.pair(), copies.clone()), cpu, copies }
    }

    /// Starts the workload's processes in random order, unless another workload has. They load at the same time: importing a
    /// framework takes seconds.
    pub(super) fn start(&mut self, lane: &Lane<'a>, random: &mut Random) -> Result<(), Stop> {
        let order = side_order(random);
        let cpu = self.cpu.filter(|_| is_pinned(self.sides, &lane.specs()));
        for side in order {
            self.meter.launch(&lane.subjects[side], cpu).map_err(on_side(side))?;
        }
        let is_by_host = lane.plan.rounds > 0 && lane.specs().iter().all(|spec| spec.is_cuda_by_host_clock());
        for side in order {
            let process_id = self.meter.start(&lane.subjects[side]).map_err(on_side(side))?;
            // One thread waits for the device, and one CPU does that by a sixth quicker than another. Both sides have loaded by now, at the same time.
            if let (true, Some(cpu), Some(process_id)) = (is_by_host, self.cpu, process_id) {
                program::pin_first_thread(cpu, process_id);
            }
        }
        Ok(())
    }

    /// Whether every process that was started is alive, as far as is known.
    pub(super) fn is_whole(&self) -> bool {
        self.meter.is_whole()
    }

    /// A resumed comparison has lost what was learned about the workers, and some processes are drawn to be looked at again.
    fn look_closely(&mut self, lane: &mut Lane<'a>) -> Result<(), Stop> {
        let (calls, sample_ns) = (lane.calls_per_sample, (lane.spending.sample_s() * 1e9) as u64);
        for subject in lane.subjects.iter_mut().filter(|subject| subject.audit.wants_look()) {
            let side = subject.side;
            self.meter.look_closely(subject, calls, sample_ns).map_err(on_side(side))?;
        }
        Ok(())
    }

    /// Takes note of a failed step of a workload.
    pub(super) fn note(&mut self, lane: &Lane<'a>, stop: &Stop) {
        if let Stop::Failed(side, error) = stop {
            self.meter.note(&lane.subjects[*side as usize], &meter::Stop::Failed(error.clone()));
        }
    }

    /// Prepares both sides. The first time it also chooses the length of a sample from the slower side, so that it is
    /// the same for both.
    pub(super) fn prepare(&mut self, lane: &mut Lane<'a>, random: &mut Random) -> Result<(), Stop> {
        let start = Instant::now();
        // Other inputs in every unit, the same on both sides.
        let draw = random.bits();
        // The plan's seed may be known to what is measured.
        let drawn = Random::new(random_bits()).uniform();
        let is_look_due = drawn < look_chance(lane.spending.unit_s());
        for side in side_order(random) {
            let suite = self.meter.suite(side);
            let subject = &mut lane.subjects[side];
            subject.audit.begin_process(is_look_due);
            let seed = suite.seed_of(subject.spec) ^ draw;
            self.meter.prepare(subject, seed).map_err(on_side(side))?;
            subject.seeds = Seeds::new(seed);
            let worker = suite.workers.get(subject.spec.worker());
            let is_shared = worker.is_some_and(|worker| worker.units_per_process > 1);
            lane.has_own_processes |= is_shared && is_by_host_clock(subject);
            lane.shares_processes |= is_shared;
        }
        self.check_timers(lane)?;
        lane.spending.add_fixed(start.elapsed().as_secs_f64());
        if let Some(side) = lane.remembers_alone() {
            return Err(Stop::Skipped(format!(
                "not the same work: only {side} remembers answers, by its worker"
            )));
        }
        if lane.is_same_build {
            for side in side_order(random) {
                self.meter.run(&mut lane.subjects[side], 1, 1).map_err(on_side(side))?;
            }
            self.check_answers(lane, "after one call")?;
            return Err(Stop::SameBuild);
        }
        if lane.has_batch {
            return self.look_closely(lane);
        }
        if let Some(kernels) = lane.kernels()
            && !self.sides.measure_same_code
            && kernels.are_same()
            && is_same_work(lane.specs(), self.sides)
        {
            // Answers are checked even if nothing is timed.
            self.check_answers(lane, "without timing")?;
            return Err(Stop::SameCode(Box::new(kernels)));
        }
        // Each by its own: calls that one side reports to be short must not keep the other busy.
        let (mut batches, mut turn_s) = ([Batch { calls_per_sample: 1, sample_ns: 1 }; 2], 0.0);
        for side in side_order(random) {
            let (calls, start) = (lane.calls_per_sample, Instant::now());
            let batch = self.meter.choose_batch(&mut lane.subjects[side], calls);
            turn_s = start.elapsed().as_secs_f64().max(turn_s);
            batches[side] = batch.map_err(on_side(side))?;
        }
        let timeout_ms = self.sides.base.measure.timeout_ms.min(self.sides.head.measure.timeout_ms);
        let both = batch_of_both(batches, (timeout_ms * 1e6 / SAMPLES_PER_TIMEOUT) as u64)
            .map_err(|(side, error)| side_failed(side, error))?;
        lane.calls_per_sample = both.calls_per_sample;
        lane.spending.set_sample(both.sample_ns);
        if lane.specs().iter().all(|spec| spec.task.bench().is_some()) {
            lane.spending.set_turn(turn_s);
        }
        lane.has_batch = true;
        Ok(())
    }

    /// The clock is what a worker says it is: times of two kinds are not compared.
    fn check_timers(&self, lane: &Lane<'a>) -> Result<(), Stop> {
        let [base, head] =
            lane.subjects.each_ref().map(|subject| subject.timer.as_deref().unwrap_or_default());
        if base == head {
            return Ok(());
        }
        Err(Stop::Skipped(format!("not the same timer: base's worker names {base}, head's {head}")))
    }

    /// Tells the workers which turns of benchmarks come next, and in which order.
    pub(super) fn announce(&mut self, lanes: &[Lane<'a>], order: &[usize]) {
        for side in 0..SIDES.len() {
            self.meter.announce(side, |name| {
                let wanted = |at: &usize| {
                    let (lane, spec) = (&lanes[*at], lanes[*at].subjects[side].spec);
                    let is_turn = spec.worker() == name && spec.task.bench().is_some() && lane.goes_on_here();
                    is_turn.then(|| Coming {
                        workload: spec.name.clone(),
                        samples_count: lane.plan.samples.into(),
                        requests: lane.plan.rounds,
                    })
                };
                order.iter().filter_map(wanted).collect()
            });
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
        lane.subjects.iter_mut().for_each(|subject| subject.seeds.begin_round(round));
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
            let process_id = self.meter.caller_id(&lane.subjects[side]);
            process_id.into_iter().for_each(numbers::reset_peak);
            let turn =
                self.meter.run(&mut lane.subjects[side], samples.into(), calls).map_err(on_side(side))?;
            (rest, longest) = (rest.max(turn.rest), longest.max(turn.took));
            results[side] = turn.result;
            numbers[side] = numbers::take(&mut results[side], process_id);
        }
        let audited = lane.subjects.each_mut().map(|subject| subject.audit.take_turn());
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
        self.meter.rest = rest;
        if !rest.is_zero() {
            lane.limit_samples(samples_at_limit(lane.plan.samples, longest));
        }
        let (mut state, mut trouble) = watch.end(&processes, self.cpu);
        limit_to_shorter(&mut results, lane);
        // Workers of other workloads wait beside this one's, with memory on the device.
        let own = self.meter.process_ids();
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
        let mut seeds = lane.subjects[0].seeds;
        let request = RunRequest {
            workload: lane.name().to_owned(),
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

    fn processes(&self, lane: &Lane<'a>) -> Vec<u32> {
        lane.subjects.iter().filter_map(|subject| self.meter.caller_id(subject)).collect()
    }

    /// Asks each side for one sample, to see what a request costs beside one: what turns hide shows against it.
    pub(super) fn ask_for_one(&mut self, lane: &mut Lane<'a>, random: &mut Random) -> Result<(), Stop> {
        let is_due = lane.plan.samples >= SAMPLES_PER_ONE && lane.units_count().is_multiple_of(2);
        if lane.rounds_taken.is_empty() || !is_due {
            return Ok(());
        }
        for side in side_order(random) {
            let calls = lane.calls_per_sample;
            self.meter.ask_for_one(&mut lane.subjects[side], calls).map_err(on_side(side))?;
        }
        Ok(())
    }

    /// Checks the answers that the timed calls left behind, if a check is due.
    pub(super) fn verify(&mut self, lane: &mut Lane<'a>) -> Result<(), Stop> {
        if lane.rounds_taken.is_empty() || lane.is_verified && !lane.is_check_due() {
            return Ok(());
        }
        self.check_answers(lane, "after timing")?;
        for subject in &mut lane.subjects {
            let side = subject.side;
            self.meter.verify_fresh(subject).map_err(on_side(side))?;
        }
        lane.is_verified = true;
        Ok(())
    }

    /// Fails too if base's answer is checked and head's no longer is.
    fn check_answers(&mut self, lane: &Lane<'a>, when: &str) -> Result<(), Stop> {
        let mut is_checked = [false, false];
        for (subject, is_checked) in lane.subjects.iter().zip(&mut is_checked) {
            *is_checked = self.meter.verify(subject, when).map_err(on_side(subject.side))?.is_some();
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
fn is_same_work([base, head]: [&Workload; 2], sides: &Sides) -> bool {
    let seed = |suite: &Suite, spec: &Workload| suite.seed_of(spec);
    base == head && base.timer() != TIMER_HOST && seed(&sides.base, base) == seed(&sides.head, head)
}

/// Whether a workload's times are the host's: as the suite says of our CUDA worker, and as others say themselves.
fn is_by_host_clock(subject: &Subject<'_>) -> bool {
    let spec = subject.spec;
    spec.is_cuda_by_host_clock()
        || spec.task.device().is_none() && subject.timer.as_deref() == Some(TIMER_HOST)
}

/// Whether a workload's processes are pinned to one CPU. Pinning one side only would make the comparison unfair.
pub(super) fn is_pinned(sides: &Sides, specs: &[&Workload; 2]) -> bool {
    let is_single_threaded = |side: usize| {
        let name = specs[side].worker();
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

/// Turns a stop of one side into one of the workload.
fn on_side(side: usize) -> impl Fn(meter::Stop) -> Stop {
    let name = SIDES[side].as_str();
    move |stop| match stop {
        meter::Stop::Failed(error) => Stop::Failed(SIDES[side], error),
        meter::Stop::Skipped(reason) => Stop::Skipped(format!("{name}: {reason}")),
        // A worker without the workload makes it missing on that side.
        meter::Stop::NotListed(error) => {
            Stop::Skipped(format!("not the same workloads on both sides: {name}'s {}", error.detail))
        }
        meter::Stop::Gone => Stop::ThisUnit,
    }
}
