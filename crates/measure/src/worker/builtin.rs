//! The built-in ops as a worker in this process.

use super::{Computed, Prepared, Worker, op_request};
use crate::program::WorkerError;
use crate::schedstat::{ThreadWaits, wait_within};
use crate::{clock, machine};
use holdpoint_model::fuzz::{Evaluated, Evaluation};
use holdpoint_model::metric::SIDE_METRICS;
use holdpoint_model::protocol::{RunRequest, RunResult, WorkerInfo, WorkloadInfo};
use holdpoint_model::report::Answer;
use holdpoint_model::suite::{TIMER_HOST, Task, WORKER_BUILTIN, Workload};
use holdpoint_model::{FailureCause, FuzzCase};
use holdpoint_ops::Prepared as PreparedOp;
use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The built-in ops on the CPU.
pub struct Builtin {
    specs: Vec<Workload>,
    prepared: HashMap<String, PreparedWorkload>,
    slowdown: f64,
    /// Real work added to one sample in [`TAIL_EVERY`], as a share of its time.
    tail: f64,
    samples_count: u64,
    waits: Option<ThreadWaits>,
    clock_resolution_ns: u64,
}

struct PreparedWorkload {
    op: PreparedOp,
    /// Of the inputs at hand.
    seed: u64,
    /// Whether it has been called in this process.
    has_run: bool,
    /// Whether the output buffers hold a call's answer, and not poison.
    has_answer: bool,
}

impl Builtin {
    /// `slowdown` is real work added to each sample, as a share of its time.
    pub fn new(workloads: &[Workload], slowdown: f64) -> Self {
        Self {
            specs: workloads.iter().filter(|w| w.task == Task::Op).cloned().collect(),
            prepared: HashMap::new(),
            slowdown,
            tail: 0.0,
            samples_count: 0,
            waits: ThreadWaits::of_this_thread(),
            clock_resolution_ns: clock::resolution_ns(),
        }
    }

    /// Prolongs one sample in [`TAIL_EVERY`] by this share: the median stays as it is.
    pub fn with_tail(self, tail: f64) -> Self {
        Self { tail, ..self }
    }

    fn prepared(&mut self, name: &str) -> Result<&mut PreparedWorkload, WorkerError> {
        self.prepared.get_mut(name).ok_or_else(|| WorkerError::no_workload(name))
    }
}

/// More than one in a hundred, so that it is the p99 that they raise, and less than one in twenty.
const TAIL_EVERY: u64 = 32;

/// Waits are reported for samples of at least this length, and where quantiles are compared. Reading them costs the caches a microsecond, which a short
/// sample would show; and among many short samples some are never interrupted.
const WAITS_FROM: Duration = Duration::from_micros(500);

impl Worker for Builtin {
    fn hello(&mut self) -> Result<WorkerInfo, WorkerError> {
        Ok(super::worker_info(WORKER_BUILTIN, TIMER_HOST, self.clock_resolution_ns))
    }

    fn list(&mut self) -> Result<Vec<WorkloadInfo>, WorkerError> {
        Ok(self.specs.iter().map(super::workload_info).collect())
    }

    fn prepare(&mut self, workload: &str, seed: u64) -> Result<Prepared, WorkerError> {
        let spec = self.specs.iter().find(|spec| spec.name == workload);
        let spec = spec.ok_or_else(|| WorkerError::no_workload(workload))?;
        let op = PreparedOp::new(&op_request(spec, seed))
            .map_err(|error| WorkerError::new(FailureCause::WorkerError, error.to_string()))?;
        let work = Some(op.work().clone());
        self.prepared
            .insert(workload.to_owned(), PreparedWorkload { op, seed, has_run: false, has_answer: false });
        Ok(Prepared::ready(work, None))
    }

    fn run(&mut self, request: &RunRequest) -> Result<RunResult, WorkerError> {
        let RunRequest { workload, seed, samples_count, calls_per_sample } = request;
        let (samples_count, calls_per_sample) = (*samples_count, *calls_per_sample);
        // A sample that was interrupted would be taken for a slow one.
        let is_tail_asked = self.specs.iter().any(|spec| spec.name == *workload && has_quantile(spec));
        let prepared = self.prepared.get_mut(workload).ok_or_else(|| WorkerError::no_workload(workload))?;
        let is_new = prepared.seed != *seed;
        if is_new {
            // Drawing all of them would take longer than a round.
            prepared.op.vary(*seed);
            prepared.seed = *seed;
        }
        let op = &mut prepared.op;
        // An old answer must not be taken for that of the timed calls.
        op.poison();
        let start = Instant::now();
        op.call();
        let first_ns = Some(clock::nanos(start.elapsed())).filter(|_| is_new && prepared.has_run);
        (1..calls_per_sample).for_each(|_| op.call());
        let waits = self.waits.as_ref().filter(|_| start.elapsed() > WAITS_FROM || is_tail_asked);
        let mut elapsed_ns = Vec::with_capacity(usize::try_from(samples_count).unwrap_or(0));
        let mut wait_ns = Vec::new();
        let loop_start = Instant::now();
        for _ in 0..samples_count {
            let outer = Instant::now();
            let waited_ns = waits.and_then(ThreadWaits::total_ns);
            let start = Instant::now();
            for _ in 0..calls_per_sample {
                black_box(&mut *op).call();
            }
            let mut elapsed = start.elapsed();
            self.samples_count += 1;
            let tail = if self.samples_count.is_multiple_of(TAIL_EVERY) { self.tail } else { 0.0 };
            if self.slowdown + tail > 0.0 {
                elapsed = prolong(start, self.slowdown + tail);
            }
            let sample_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
            elapsed_ns.push(sample_ns);
            let booked_ns = waits.and_then(ThreadWaits::total_ns).zip(waited_ns);
            wait_ns.extend(booked_ns.map(|(after, before)| {
                let beside_ns = clock::nanos(outer.elapsed()).saturating_sub(sample_ns);
                wait_within(after.saturating_sub(before), sample_ns, beside_ns)
            }));
        }
        // Reading waits takes about as long as a short sample.
        let untimed_ns = clock::nanos(loop_start.elapsed()).saturating_sub(elapsed_ns.iter().sum());
        (prepared.has_answer, prepared.has_run) = (true, true);
        Ok(RunResult {
            first_ns,
            workload: workload.clone(),
            calls_per_sample,
            elapsed_ns,
            cpu_ns: Vec::new(),
            wait_ns,
            untimed_ns: is_tail_asked.then_some(untimed_ns),
            peak_rss_bytes: machine::peak_rss_bytes(),
            ..RunResult::default()
        })
    }

    fn verify(&mut self, workload: &str) -> Result<Option<Answer>, WorkerError> {
        let prepared = self.prepared(workload)?;
        if !prepared.has_answer {
            prepared.op.poison();
            prepared.op.call();
            prepared.has_answer = true;
        }
        Ok(Some(super::to_answer(prepared.op.check())))
    }

    fn fuzz(&mut self, case: &FuzzCase) -> Result<Evaluated, WorkerError> {
        super::own::evaluate(case)
            .map_err(|error| WorkerError::new(FailureCause::WorkerError, error.to_string()))
    }

    fn evaluate(&mut self, evaluation: &Evaluation) -> Result<Computed, WorkerError> {
        super::evaluate::compute_on_cpu(evaluation)
    }

    fn release(&mut self, workload: &str) -> Result<(), WorkerError> {
        self.prepared.remove(workload);
        Ok(())
    }
}

/// Whether two sides are compared by a quantile of its samples.
fn has_quantile(spec: &Workload) -> bool {
    let quantiles = SIDE_METRICS.iter().filter(|(_, metric)| metric.samples_min() > 1);
    quantiles.into_iter().any(|(name, _)| spec.metrics.is_of_sides(name))
}

/// Extends a sample that began at `start`, and whose calls are done, by a share of its time: 0.02 makes it 2 % longer.
/// A share of what the calls took now, not earlier: whatever slows them down today slows the extra work too.
fn prolong(start: Instant, share: f64) -> Duration {
    let until = start.elapsed().mul_f64(1.0 + share);
    loop {
        work();
        let elapsed = start.elapsed();
        if elapsed >= until {
            return elapsed;
        }
    }
}

/// A few nanoseconds of dependent multiplications.
fn work() {
    let mut x = black_box(1_u64);
    for _ in 0..8 {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
    black_box(x);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_prolonged_by_its_share() {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(2) {}
        assert!(prolong(start, 0.5) >= Duration::from_millis(3));
    }
}
