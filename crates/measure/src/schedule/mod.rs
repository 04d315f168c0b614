//! Scheduling and stopping rules.
//!
//! Workloads take turns in short rounds, in a new random order each round, so that a busy second of the machine falls
//! on all of them and not on one.

mod active;

use crate::ask::{self, Batch, Requester, random_bits};
use crate::audit::{Audit, Lack};
use crate::harness::has_one_sample;
use crate::machine::StateReader;
use crate::pace::rest_after;
use crate::slot::Slot;
use crate::worker::Prepared;
use active::{Active, NotMeasured};
use holdpoint_cuda::trace;
use holdpoint_model::protocol::{RunResult, WorkerInfo};
use holdpoint_model::suite::WORKER_CUDA;
use holdpoint_model::{MachineState, Measurement, Round, Suite, WorkloadSpec};
use holdpoint_stats as stats;
use holdpoint_stats::random::Random;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// A workload's answers are being checked.
    Checking(&'a str),
    /// A workload is being prepared, checked and warmed up.
    Preparing(&'a str),
    Round {
        workload: &'a str,
        rounds_count: u32,
        p50_ms: Option<f64>,
    },
    /// A workload is done, whatever its outcome.
    Done(&'a str),
}

/// Workloads that have buffers at the same time.
pub(crate) const ALIVE_MAX: usize = 16;
/// More samples add little to a round: they are correlated.
pub const SAMPLES_PER_ROUND_MAX: u64 = 20;
/// Warm-up ends when the medians of successive windows differ by less than this.
pub const WARM_DIFFERENCE: f64 = 0.02;
/// …this many times in a row.
pub const WARM_WINDOWS: u32 = 2;

/// One round in so many, drawn at random, is followed by a request for one sample.
const ROUNDS_PER_ONE: usize = 4;
/// Requests after the last round: on a busy machine not each of them says something.
const SETTLING_MAX: u32 = 32;

/// Measures every workload, in the suite's order; also returns what each worker reported about itself, by name.
pub(crate) fn measure(
    suite: &Suite,
    on_event: &mut dyn FnMut(Event),
) -> (Vec<(String, Measurement)>, BTreeMap<String, WorkerInfo>) {
    let mut scheduler = Scheduler {
        suite,
        slots: BTreeMap::new(),
        state: StateReader::default(),
        random: Random::new(suite.seed),
        hidden: Random::new(random_bits()),
        rest: Duration::ZERO,
        on_event,
    };
    let measured =
        suite.workloads.chunks(ALIVE_MAX).flat_map(|group| scheduler.measure_group(group)).collect();
    let info = |(name, slot): (&&str, &Slot<'_>)| Some(((*name).to_owned(), slot.info()?.clone()));
    (measured, scheduler.slots.iter().filter_map(info).collect())
}

struct Scheduler<'a, 'e> {
    suite: &'a Suite,
    slots: BTreeMap<&'a str, Slot<'a>>,
    state: StateReader,
    random: Random,
    /// What a worker must not foresee: inputs of its requests, and when it is looked at.
    hidden: Random,
    /// How long a device rests before the next turn.
    rest: Duration,
    on_event: &'e mut dyn FnMut(Event),
}

impl<'a> Scheduler<'a, '_> {
    fn measure_group(&mut self, group: &'a [WorkloadSpec]) -> Vec<(String, Measurement)> {
        // Other inputs in every run: an answer that an earlier one left on disk must not count.
        let mut actives: Vec<Active> =
            group.iter().map(|spec| Active::new(spec, self.hidden.bits())).collect();
        // All are prepared before the first is checked, so that the answers can be computed side by side.
        for index in 0..actives.len() {
            (self.on_event)(Event::Preparing(&actives[index].spec.name));
            self.attempt(&mut actives, index, Self::prepare);
        }
        for index in 0..actives.len() {
            if actives[index].end.is_none() {
                (self.on_event)(Event::Preparing(&actives[index].spec.name));
                self.attempt(&mut actives, index, Self::begin);
            }
        }
        let mut round = 0;
        loop {
            let mut order: Vec<usize> = (0..actives.len()).filter(|i| actives[*i].end.is_none()).collect();
            if order.is_empty() {
                break;
            }
            self.random.shuffle(&mut order);
            for (position, index) in order.into_iter().enumerate() {
                let position = u32::try_from(position).unwrap_or(u32::MAX);
                // It may have ended in another workload's turn.
                if actives[index].end.is_none() {
                    self.attempt(&mut actives, index, |this, active| this.round(active, round, position));
                }
            }
            round += 1;
        }
        for index in 0..actives.len() {
            if actives[index].is_unchecked {
                self.attempt(&mut actives, index, Self::check_last);
            }
        }
        actives.into_iter().map(|active| self.finish(active)).collect()
    }

    /// Runs a step of a workload. A failure is that workload's outcome alone. If another workload turns out to be at
    /// fault, it gets the failure, and the step is repeated.
    fn attempt(
        &mut self,
        actives: &mut [Active<'a>],
        index: usize,
        step: impl Fn(&mut Self, &mut Active<'a>) -> Result<(), NotMeasured>,
    ) {
        let was_done = actives[index].end.is_some();
        while let Err(reason) = step(self, &mut actives[index]) {
            let mut blamed = index;
            if let NotMeasured::Failed(error) = &reason {
                if error.fatal {
                    self.slot(actives[index].spec).forget();
                }
                let is_other = |active: &Active<'_>| {
                    error.blamed.as_ref() == Some(&active.spec.name) && !matches!(active.end, Some(Err(_)))
                };
                blamed = actives.iter().position(is_other).unwrap_or(index);
            }
            let was_done = actives[blamed].end.replace(Err(reason)).is_some();
            if blamed == index {
                break;
            }
            if !was_done {
                (self.on_event)(Event::Done(&actives[blamed].spec.name));
            }
        }
        if !was_done && actives[index].end.is_some() {
            (self.on_event)(Event::Done(&actives[index].spec.name));
        }
    }

    fn slot(&mut self, spec: &'a WorkloadSpec) -> &mut Slot<'a> {
        let suite = self.suite;
        self.slots.entry(&spec.worker).or_insert_with(|| Slot::new(suite, &spec.worker, None))
    }

    fn begin(&mut self, active: &mut Active<'a>) -> Result<(), NotMeasured> {
        self.prepare(active)?;
        self.check_first(active)?;
        let name = &active.spec.name;
        trace::step("choose batch", name, || self.choose_batch(active))?;
        trace::step("warm up", name, || self.warm_up(active))
    }

    /// Prepares the workload in the worker's current process.
    fn prepare(&mut self, active: &mut Active<'a>) -> Result<(), NotMeasured> {
        let (spec, seed) = (active.spec, self.suite.seed_of(active.spec));
        let slot = self.slot(spec);
        slot.worker()?;
        if slot.process() == active.process {
            return Ok(());
        }
        slot.check_listed(spec)?;
        active.timer = slot.timer(spec);
        match slot.worker()?.prepare(&spec.name, seed)? {
            Prepared::Skipped(reason) => return Err(NotMeasured::Skipped(reason)),
            Prepared::Ready(known) => {
                active.work = spec.work.clone().or(known.work);
                active.kernel = known.kernel;
            }
        }
        if active.process.is_none() {
            active.executor = slot.executor(spec);
            active.audit = Audit::new(active.work.as_ref(), &spec.dtype, &active.executor);
        }
        active.process = slot.process();
        active.is_checked_first = false;
        Ok(())
    }

    /// Checks its answer, once for each process that it is prepared in.
    fn check_first(&mut self, active: &mut Active<'a>) -> Result<(), NotMeasured> {
        if !active.is_checked_first {
            active.answer = ask::verify(self.slot(active.spec), active.spec, "before timing")?;
            active.is_checked_first = true;
        }
        Ok(())
    }

    /// Checks the answers that the last timed calls left. If the process that held them was ended by another workload, calls are made
    /// again.
    fn check_last(&mut self, active: &mut Active<'a>) -> Result<(), NotMeasured> {
        self.prepare(active)?;
        if !active.is_checked_first {
            self.check_first(active)?;
            self.run(active, active.samples_per_round)?;
        }
        active.answer = ask::verify(self.slot(active.spec), active.spec, "after timing")?;
        active.is_unchecked = false;
        Ok(())
    }

    /// Chooses the calls per sample and the samples per round.
    fn choose_batch(&mut self, active: &mut Active<'a>) -> Result<(), NotMeasured> {
        let calls_first = active.calls_per_sample;
        let Batch { calls_per_sample, sample_ns } = self.requester(active).choose_batch(calls_first)?;
        active.calls_per_sample = calls_per_sample;
        let plan = &self.suite.measure;
        let samples = (plan.round_ms * 1e6 / sample_ns as f64) as u64;
        let is_one = active.spec.bench.as_ref().is_some_and(has_one_sample);
        active.samples_per_round = samples.clamp(1, if is_one { 1 } else { SAMPLES_PER_ROUND_MAX });
        // A quarter of a request's timeout: the estimate is rough and the machine may slow down.
        active.samples_per_request_max = ((plan.timeout_ms * 1e6 / 4.0 / sample_ns as f64) as u64).max(1);
        Ok(())
    }

    fn warm_up(&mut self, active: &mut Active<'a>) -> Result<(), NotMeasured> {
        let start = Instant::now();
        let (mut before_ns, mut agreed) = (f64::INFINITY, 0);
        while start.elapsed().as_secs_f64() * 1e3 < self.suite.measure.warmup_ms_max {
            let result = self.run(active, active.samples_per_round)?;
            active.warmup.calls_count += result.elapsed_ns.len() as u64 * result.calls_per_sample;
            let times: Vec<f64> = result.elapsed_ns.iter().map(|ns| *ns as f64).collect();
            let now_ns = stats::median(&times).unwrap_or(f64::INFINITY);
            agreed = if (now_ns / before_ns - 1.0).abs() < WARM_DIFFERENCE { agreed + 1 } else { 0 };
            if agreed == WARM_WINDOWS {
                active.warmup.stable = true;
                break;
            }
            before_ns = now_ns;
        }
        Ok(())
    }

    fn round(&mut self, active: &mut Active<'a>, round: u32, order: u32) -> Result<(), NotMeasured> {
        let before = active.process;
        self.prepare(active)?;
        self.check_first(active)?;
        if active.process != before {
            self.warm_up(active)?;
        }
        let start = Instant::now();
        let result = self.run(active, active.samples_next(&self.suite.measure))?;
        let took = start.elapsed();
        let round = Round {
            process: active.process.unwrap_or(0),
            round,
            order,
            elapsed_ns: result.elapsed_ns,
            cpu_ns: result.cpu_ns,
            peak_rss_bytes: result.peak_rss_bytes,
            sm_mhz: result.sm_mhz,
            peak_device_bytes: result.peak_device_bytes,
            state: MachineState { device: result.device, ..self.state.read() },
        };
        let own: Vec<u32> = self.slots.values().filter_map(Slot::process_id).collect();
        active.push(round, took, &own, &self.suite.measure);
        let (workload, rounds_count, p50_ms) = (&*active.spec.name, active.rounds_count(), active.p50_ms());
        (self.on_event)(Event::Round { workload, rounds_count, p50_ms });
        match active.end {
            None if self.hidden.below(ROUNDS_PER_ONE) > 0 => Ok(()),
            None => self.ask_for_one(active),
            // Together with all others, beside each other and beside nothing that is timed.
            Some(_) if active.spec.worker == WORKER_CUDA => {
                active.is_unchecked = true;
                Ok(())
            }
            // Before another workload can end the process that holds what the timed calls left behind.
            Some(_) => {
                self.settle(active)?;
                active.answer = ask::verify(self.slot(active.spec), active.spec, "after timing")?;
                Ok(())
            }
        }
    }

    fn ask_for_one(&mut self, active: &mut Active<'a>) -> Result<(), NotMeasured> {
        let calls_per_sample = active.calls_per_sample;
        Ok(self.requester(active).ask_for_one(calls_per_sample)?)
    }

    /// Turns that may be a lie, and are too few to tell, are followed by others.
    fn settle(&mut self, active: &mut Active<'a>) -> Result<(), NotMeasured> {
        for _ in 0..SETTLING_MAX {
            match active.audit.lack() {
                Some(Lack::One) => self.ask_for_one(active)?,
                Some(Lack::Turn) => _ = self.run(active, active.samples_per_round)?,
                None => break,
            }
        }
        Ok(())
    }

    fn run(&mut self, active: &mut Active<'a>, samples_count: u64) -> Result<RunResult, NotMeasured> {
        if !self.rest.is_zero() {
            trace::step("rest", &active.spec.name, || std::thread::sleep(self.rest));
        }
        let (calls_per_sample, start) = (active.calls_per_sample, Instant::now());
        let result = self.requester(active).run(samples_count, calls_per_sample)?;
        self.rest = rest_after(&result, start.elapsed());
        Ok(result)
    }

    fn requester<'s>(&'s mut self, active: &'s mut Active<'a>) -> Requester<'s, 'a> {
        let spec = active.spec;
        Requester { slot: self.slot(spec), spec, seeds: &mut active.seeds, audit: &mut active.audit }
    }

    fn finish(&mut self, active: Active<'a>) -> (String, Measurement) {
        let name = active.spec.name.clone();
        let slot = self.slot(active.spec);
        if active.process.is_some() && slot.process() == active.process {
            let released = slot.worker().and_then(|worker| worker.release(&name));
            // The times stay valid; a worker that fails to release is restarted for the next workload.
            if released.is_err() {
                slot.forget();
            }
        }
        (name, active.finish())
    }
}
