//! Scheduling and stopping rules.
//!
//! Workloads take turns in short rounds, in a new random order each round, so that a busy second of the machine falls
//! on all of them and not on one.

mod active;

use crate::audit::Lack;
use crate::harness::has_one_sample;
use crate::machine::StateReader;
use crate::meter::{ALIVE_MAX, Batch, Meter, SAMPLES_PER_ROUND_MAX, Stop, Subject, random_bits};
use crate::ready::ReadySuite;
use active::Active;
use holdpoint_cuda::trace;
use holdpoint_model::protocol::{RunResult, WorkerInfo};
use holdpoint_model::{MachineState, Measurement, Round, Suite, Workload};
use holdpoint_stats as stats;
use holdpoint_stats::random::Random;
use std::collections::BTreeMap;
use std::time::Instant;

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
    suite: &ReadySuite,
    on_event: &mut dyn FnMut(Event),
) -> (Vec<(String, Measurement)>, BTreeMap<String, WorkerInfo>) {
    let mut scheduler = Scheduler {
        suite,
        meter: Meter::of_one(suite),
        state: StateReader::default(),
        random: Random::new(suite.seed),
        hidden: Random::new(random_bits()),
        on_event,
    };
    let measured =
        suite.workloads.chunks(ALIVE_MAX).flat_map(|group| scheduler.measure_group(group)).collect();
    (measured, scheduler.meter.infos(0))
}

struct Scheduler<'a, 'e> {
    suite: &'a Suite,
    meter: Meter<'a>,
    state: StateReader,
    random: Random,
    /// What a worker must not foresee: inputs of its requests, and when it is looked at.
    hidden: Random,
    on_event: &'e mut dyn FnMut(Event),
}

impl<'a> Scheduler<'a, '_> {
    fn measure_group(&mut self, group: &'a [Workload]) -> Vec<(String, Measurement)> {
        // Other inputs in every run: an answer that an earlier one left on disk must not count.
        let mut actives: Vec<Active> =
            group.iter().map(|spec| Active::new(Subject::new(0, spec), self.hidden.bits())).collect();
        // All are prepared before the first is checked, so that the answers can be computed side by side.
        for index in 0..actives.len() {
            (self.on_event)(Event::Preparing(&actives[index].subject.spec.name));
            self.attempt(&mut actives, index, Self::prepare);
        }
        for index in 0..actives.len() {
            if actives[index].end.is_none() {
                (self.on_event)(Event::Preparing(&actives[index].subject.spec.name));
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
        step: impl Fn(&mut Self, &mut Active<'a>) -> Result<(), Stop>,
    ) {
        let was_done = actives[index].end.is_some();
        while let Err(reason) = step(self, &mut actives[index]) {
            self.meter.note(&actives[index].subject, &reason);
            let is_other = |active: &Active<'_>| {
                reason.blames(active.subject.spec) && !matches!(active.end, Some(Err(_)))
            };
            let blamed = actives.iter().position(is_other).unwrap_or(index);
            let was_done = actives[blamed].end.replace(Err(reason)).is_some();
            if blamed == index {
                break;
            }
            if !was_done {
                (self.on_event)(Event::Done(&actives[blamed].subject.spec.name));
            }
        }
        if !was_done && actives[index].end.is_some() {
            (self.on_event)(Event::Done(&actives[index].subject.spec.name));
        }
    }

    fn begin(&mut self, active: &mut Active<'a>) -> Result<(), Stop> {
        self.prepare(active)?;
        self.check_first(active)?;
        let name = &active.subject.spec.name;
        trace::step("choose batch", name, || self.choose_batch(active))?;
        trace::step("warm up", name, || self.warm_up(active))
    }

    /// Prepares the workload in the worker's current process.
    fn prepare(&mut self, active: &mut Active<'a>) -> Result<(), Stop> {
        self.meter.start(&active.subject)?;
        let process = self.meter.process(&active.subject);
        if process != active.process {
            let seed = self.suite.seed_of(active.subject.spec);
            self.meter.prepare(&mut active.subject, seed)?;
            active.process = process;
            active.is_checked_first = false;
        }
        Ok(())
    }

    /// Checks its answer, once for each process that it is prepared in.
    fn check_first(&mut self, active: &mut Active<'a>) -> Result<(), Stop> {
        if !active.is_checked_first {
            active.answer = self.meter.verify(&active.subject, "before timing")?;
            active.is_checked_first = true;
        }
        Ok(())
    }

    /// Checks the answers that the last timed calls left. If the process that held them was ended by another workload, calls are made
    /// again.
    fn check_last(&mut self, active: &mut Active<'a>) -> Result<(), Stop> {
        self.prepare(active)?;
        if !active.is_checked_first {
            self.check_first(active)?;
            self.run(active, active.samples_per_round)?;
        }
        active.answer = self.meter.verify(&active.subject, "after timing")?;
        active.is_unchecked = false;
        Ok(())
    }

    /// Chooses the calls per sample and the samples per round.
    fn choose_batch(&mut self, active: &mut Active<'a>) -> Result<(), Stop> {
        let calls_first = active.calls_per_sample;
        let Batch { calls_per_sample, sample_ns } =
            self.meter.choose_batch(&mut active.subject, calls_first)?;
        active.calls_per_sample = calls_per_sample;
        let plan = &self.suite.measure;
        let samples = (plan.round_ms * 1e6 / sample_ns as f64) as u64;
        let is_one = active.subject.spec.task.bench().is_some_and(has_one_sample);
        active.samples_per_round = samples.clamp(1, if is_one { 1 } else { SAMPLES_PER_ROUND_MAX });
        // A quarter of a request's timeout: the estimate is rough and the machine may slow down.
        active.samples_per_request_max = ((plan.timeout_ms * 1e6 / 4.0 / sample_ns as f64) as u64).max(1);
        Ok(())
    }

    fn warm_up(&mut self, active: &mut Active<'a>) -> Result<(), Stop> {
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

    fn round(&mut self, active: &mut Active<'a>, round: u32, order: u32) -> Result<(), Stop> {
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
        let own = self.meter.process_ids();
        active.push(round, took, &own, &self.suite.measure);
        let (workload, rounds_count, p50_ms) =
            (&*active.subject.spec.name, active.rounds_count(), active.p50_ms());
        (self.on_event)(Event::Round { workload, rounds_count, p50_ms });
        match active.end {
            None if self.hidden.below(ROUNDS_PER_ONE) > 0 => Ok(()),
            None => self.ask_for_one(active),
            // Together with all others, beside each other and beside nothing that is timed.
            Some(_) if active.subject.spec.task.device().is_some() => {
                active.is_unchecked = true;
                Ok(())
            }
            // Before another workload can end the process that holds what the timed calls left behind.
            Some(_) => {
                self.settle(active)?;
                active.answer = self.meter.verify(&active.subject, "after timing")?;
                Ok(())
            }
        }
    }

    fn ask_for_one(&mut self, active: &mut Active<'a>) -> Result<(), Stop> {
        self.meter.ask_for_one(&mut active.subject, active.calls_per_sample)
    }

    /// Turns that may be a lie, and are too few to tell, are followed by others.
    fn settle(&mut self, active: &mut Active<'a>) -> Result<(), Stop> {
        for _ in 0..SETTLING_MAX {
            match active.subject.audit.lack() {
                Some(Lack::One) => self.ask_for_one(active)?,
                Some(Lack::Turn) => _ = self.run(active, active.samples_per_round)?,
                None => break,
            }
        }
        Ok(())
    }

    fn run(&mut self, active: &mut Active<'a>, samples_count: u64) -> Result<RunResult, Stop> {
        let turn = self.meter.run(&mut active.subject, samples_count, active.calls_per_sample)?;
        self.meter.rest = turn.rest;
        Ok(turn.result)
    }

    fn finish(&mut self, active: Active<'a>) -> (String, Measurement) {
        let name = active.subject.spec.name.clone();
        if active.process.is_some() && self.meter.process(&active.subject) == active.process {
            self.meter.release(&active.subject);
        }
        (name, active.finish())
    }
}
