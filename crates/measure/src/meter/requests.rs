//! Requests to a worker, and checks of its answers.

use super::Subject;
use super::slot::Slot;
use crate::audit::{AuditedRun, CLOSE_LOOK_NS};
use crate::machine;
use crate::program::WorkerError;
use crate::schedstat::{Observation, Observer};
use holdpoint_model::FailureCause;
use holdpoint_model::limits::CALLS_PER_SAMPLE_MAX;
use holdpoint_model::protocol::{RunRequest, RunResult};
use holdpoint_model::report::Answer;
use std::sync::LazyLock;
use std::time::Instant;

/// A sample lasts at least this many clock steps, so that the clock's resolution blurs it by less than 0.1 %.
pub const STEPS_PER_SAMPLE: u64 = 1_000;
/// More samples add little to a round: they are correlated.
pub(crate) const SAMPLES_PER_ROUND_MAX: u64 = 20;
/// Samples may be so many times shorter than that where the other side's calls are very long: a clock step is then a tenth.
const SHORTER_MAX: u64 = 100;
/// Samples in a request whose only purpose is to show how long a sample takes.
const SAMPLES_FIRST: u64 = 3;
/// A sample of this length is long enough for any clock, whatever slowed it down.
const LONG_NS: u64 = 10_000_000;
/// How long a sample of a harness is, in nanoseconds: a step of one is a hundredth of a per cent.
const SCALED_NS: u64 = 10_000;
/// Close looks at a worker take about this long at most, unless one alone takes longer.
const LOOKS_NS_MAX: u64 = 2_000_000_000;
/// Most close looks at a worker. On a machine that is busy in every one of them, the worker is believed unless most of them
/// contradict it.
const LOOKS_MAX: u32 = 24;
/// The kernel may count CPU time in steps of its clock.
const TICK_NS: u128 = 20_000_000;
static CPUS: LazyLock<u128> = LazyLock::new(|| machine::cpus_online().into());
static MEMORY_BYTES: LazyLock<Option<u64>> = LazyLock::new(machine::memory_bytes);
/// No valid check passes an error that is larger than this in absolute and in relative terms.
const ERROR_MAX: f64 = 1e3;

/// A workload and its worker.
pub(super) struct Requester<'e, 's> {
    pub slot: &'e mut Slot<'s>,
    pub subject: &'e mut Subject<'s>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Batch {
    pub calls_per_sample: u64,
    pub sample_ns: u64,
}

impl Requester<'_, '_> {
    pub(super) fn run(
        &mut self,
        samples_count: u64,
        calls_per_sample: u64,
    ) -> Result<RunResult, WorkerError> {
        let (result, seen) = self.request(samples_count, calls_per_sample)?;
        match seen {
            Some(seen) => self.subject.audit.check(&AuditedRun { result: &result, seen })?,
            None => self.subject.audit.check_physics(&result)?,
        }
        Ok(result)
    }

    /// The worker's process, unless it is one of our own on a device: `cuda` is also what others may call theirs.
    pub(super) fn observed_process(&self) -> Option<u32> {
        let is_own_device =
            self.subject.spec.task.device().is_some() && (self.slot.is_own() || self.slot.has_device());
        self.slot.caller_id().filter(|_| !is_own_device)
    }

    fn request(
        &mut self,
        samples_count: u64,
        calls_per_sample: u64,
    ) -> Result<(RunResult, Option<Observation>), WorkerError> {
        let (workload, seed) = (self.subject.spec.name.clone(), self.subject.seeds.draw());
        let request = RunRequest { workload, seed, samples_count, calls_per_sample };
        self.slot.worker()?;
        let observed = self.observed_process();
        let worker = self.slot.worker()?;
        let observer = observed.map(Observer::begin);
        let start = Instant::now();
        let mut result = worker.run(&request)?;
        let wall_ns = start.elapsed().as_nanos();
        let seen = observer.map(|observer| observer.end(worker.reader_wait_ns()));
        let process_id = worker.caller_id();
        match self.subject.spec.task.bench() {
            // The calls of a harness are its own, and its times scaled to those asked for: they are checked where it runs.
            Some(_) => check_turn(&result, &request)?,
            None => check_result(&result, &request, Some(wall_ns))?,
        }
        if let Some(reported) = result.peak_rss_bytes {
            let own_peak = process_id.and_then(|id| machine::peak_rss_bytes_of(&id.to_string()));
            result.peak_rss_bytes = Some(bound_peak(reported, own_peak, *MEMORY_BYTES)?);
        }
        self.subject.audit.is_by_host = !self.slot.is_by_device(self.subject.spec);
        Ok((result, seen))
    }

    /// Finds how many calls make a sample long enough for the clock, starting from `calls_first`.
    pub(super) fn choose_batch(&mut self, calls_first: u64) -> Result<Batch, WorkerError> {
        if self.subject.spec.task.bench().is_some() {
            return self.choose_scale(calls_first);
        }
        let resolution_ns = self.slot.info().map_or(1, |info| info.clock_resolution_ns.max(1));
        let target_ns = resolution_ns.saturating_mul(STEPS_PER_SAMPLE);
        let (mut calls, mut samples_count) = (calls_first, 1);
        loop {
            let result = self.run(samples_count, calls)?;
            let sample_ns = result.elapsed_ns.iter().copied().min().unwrap_or(1).max(1);
            // A long call need not be made again only to see that it is long.
            if samples_count == 1 && sample_ns < LONG_NS {
                samples_count = SAMPLES_FIRST;
                continue;
            }
            if sample_ns >= target_ns {
                self.look_closely(calls, sample_ns)?;
                return Ok(Batch { calls_per_sample: calls, sample_ns });
            }
            // A fifth more than needed, and at least twice as many as before: the first guesses are rough.
            let needed = (calls as f64 * target_ns as f64 / sample_ns as f64 * 1.2).ceil() as u64;
            calls = needed.clamp(calls * 2, calls * 1_000);
            if calls > CALLS_PER_SAMPLE_MAX {
                let detail = "a call takes no measurable time; does it do anything?";
                return Err(WorkerError::new(FailureCause::BadTime, detail));
            }
        }
    }

    /// How many calls a harness's times are scaled to, so that whole nanoseconds are fine enough.
    fn choose_scale(&mut self, calls_first: u64) -> Result<Batch, WorkerError> {
        if calls_first > 1 {
            return Ok(Batch { calls_per_sample: calls_first, sample_ns: SCALED_NS });
        }
        let result = self.run(1, SCALED_NS)?;
        let call_ns = result.elapsed_ns.iter().copied().min().unwrap_or(1) as f64 / SCALED_NS as f64;
        let calls_per_sample = (SCALED_NS as f64 / call_ns).ceil().clamp(1.0, 1e9) as u64;
        Ok(Batch { calls_per_sample, sample_ns: (call_ns * calls_per_sample as f64) as u64 })
    }

    /// Measures what a request costs besides its samples, and whether more samples take as much longer as the worker
    /// reports.
    pub(super) fn look_closely(&mut self, calls_per_sample: u64, sample_ns: u64) -> Result<(), WorkerError> {
        if self.observed_process().is_none() {
            return Ok(());
        }
        let sample_ns = sample_ns.max(1);
        let samples_count = CLOSE_LOOK_NS.div_ceil(sample_ns).clamp(SAMPLES_FIRST, SAMPLES_PER_ROUND_MAX);
        // Rather longer samples than more of them.
        let longer = CLOSE_LOOK_NS.div_ceil(sample_ns.saturating_mul(samples_count)).max(1);
        let calls_per_sample = calls_per_sample.saturating_mul(longer).min(CALLS_PER_SAMPLE_MAX);
        self.subject.audit.begin_look();
        // Each look also makes untimed calls, about a sample's worth in each of its two requests.
        let look_ns = sample_ns.saturating_mul(longer).saturating_mul(samples_count + 3);
        let looks_max = LOOKS_NS_MAX.div_ceil(look_ns).clamp(1, LOOKS_MAX.into());
        for _ in 0..looks_max {
            let wants_other_calls = self.subject.audit.wants_other_calls(sample_ns.saturating_mul(longer));
            let calls_per_sample = calls_per_sample.saturating_mul(if wants_other_calls { 2 } else { 1 });
            let (one, seen_one) = self.request(1, calls_per_sample)?;
            let one_seen = seen_one.map(|seen| AuditedRun { result: &one, seen });
            if let Some(one) = &one_seen {
                self.subject.audit.set_cost(one);
            }
            let (several, seen) = self.request(samples_count, calls_per_sample)?;
            match (&one_seen, seen) {
                (Some(one), Some(seen)) => {
                    self.subject.audit.check_look(one, &AuditedRun { result: &several, seen })?
                }
                _ => self.subject.audit.check_physics(&several)?,
            }
            self.subject.audit.learn_untimed(&one, &several);
            if self.subject.audit.is_settled()
                && !self.subject.audit.wants_other_calls(sample_ns.saturating_mul(longer))
            {
                break;
            }
        }
        Ok(())
    }

    /// Takes one sample among turns: what a request costs there shows what a turn took besides its samples.
    pub(super) fn ask_for_one(&mut self, calls_per_sample: u64) -> Result<(), WorkerError> {
        if self.observed_process().is_none() {
            return Ok(());
        }
        let (result, seen) = self.request(1, calls_per_sample)?;
        if let Some(seen) = seen {
            self.subject.audit.add_cost(&AuditedRun { result: &result, seen });
        }
        Ok(())
    }
}

/// One number of calls for both sides, from each one's own: that of the side which needs more, unless a sample of the other
/// then takes longer than `sample_ns_max`. Fails, with the side, where the quicker one's samples are then too short for a clock.
pub(crate) fn batch_of_both(batches: [Batch; 2], sample_ns_max: u64) -> Result<Batch, (usize, WorkerError)> {
    let call_ns = batches.map(|batch| batch.sample_ns as f64 / batch.calls_per_sample as f64);
    let slow_ns = call_ns[0].max(call_ns[1]);
    let [most, least] =
        [u64::max, u64::min].map(|of| of(batches[0].calls_per_sample, batches[1].calls_per_sample));
    let fitting = (sample_ns_max as f64 / slow_ns) as u64;
    let calls_per_sample = most.min(fitting.max(least));
    let quick = usize::from(call_ns[1] < call_ns[0]);
    let own = batches[quick];
    if calls_per_sample < own.calls_per_sample / SHORTER_MAX {
        let detail = format!(
            "a call of {:.1} ns, beside one of {:.0} ns on the other side: no sample suits both; does it do anything?",
            call_ns[quick], slow_ns
        );
        return Err((quick, WorkerError::new(FailureCause::BadTime, detail)));
    }
    Ok(Batch { calls_per_sample, sample_ns: (slow_ns * calls_per_sample as f64) as u64 })
}

/// Why an answer is wrong, whatever the worker concluded; `None` if it is right.
pub(crate) fn why_wrong(answer: &Answer) -> Option<String> {
    let errors = [answer.max_abs_err, answer.max_rel_err];
    let passes = |what: &str| Some(format!("the worker's check passes {what}"));
    if !answer.passed {
        Some(answer.first_bad.clone().unwrap_or_else(|| "by the worker's own check".to_owned()))
    } else if answer.values_count == 0 {
        passes("without having compared a value")
    } else if !answer.max_abs_err.is_finite() {
        Some("an error without bound".to_owned())
    } else if errors.iter().any(|error| *error < 0.0 || error.is_nan()) {
        passes(&format!("errors of {errors:?}, which no difference can be"))
    } else if errors.iter().all(|error| *error > ERROR_MAX) {
        passes(&format!("errors of {errors:?}, absolute and relative"))
    } else {
        None
    }
}

/// The peak of memory that a worker reported, but not below that of its process as seen from outside; a process that makes the calls
/// for it may have more. Fails beyond the machine's memory.
fn bound_peak(reported: u64, seen: Option<u64>, memory_bytes: Option<u64>) -> Result<u64, WorkerError> {
    match memory_bytes {
        Some(most) if reported > most => {
            let detail =
                format!("the worker reported a peak of {reported} bytes, the machine has {most} bytes");
            Err(WorkerError::new(FailureCause::Mismatch, detail))
        }
        _ => Ok(seen.map_or(reported, |seen| seen.max(reported))),
    }
}

/// Checks a turn of a harness. Benchmarks may be set to take fewer samples than are asked for.
fn check_turn(result: &RunResult, request: &RunRequest) -> Result<(), WorkerError> {
    let got = (result.elapsed_ns.len() as u64).clamp(1, request.samples_count.max(1));
    check_result(result, &RunRequest { samples_count: got, ..request.clone() }, None)
}

fn check_result(result: &RunResult, request: &RunRequest, wall_ns: Option<u128>) -> Result<(), WorkerError> {
    let failed = |cause, detail: &str| Err(WorkerError::new(cause, detail));
    let (samples_count, calls) = (request.samples_count, request.calls_per_sample);
    let RunResult { elapsed_ns, cpu_ns, wait_ns, .. } = result;
    let got = elapsed_ns.len();
    if got as u64 != samples_count || result.calls_per_sample != calls {
        let got_calls = result.calls_per_sample;
        let detail = format!("asked for {samples_count} samples of {calls} calls, got {got} of {got_calls}");
        return failed(FailureCause::Mismatch, &detail);
    }
    if !cpu_ns.is_empty() && cpu_ns.len() != got {
        return failed(FailureCause::Mismatch, "as many CPU times as samples are needed, or none");
    }
    // One that is longer than its sample may be honest, booked between reading the counter and the clock. It is not taken off.
    if !wait_ns.is_empty() && wait_ns.len() != got {
        return failed(FailureCause::Mismatch, "as many waits as samples are needed, or none");
    }
    if elapsed_ns.contains(&0) {
        return failed(FailureCause::BadTime, "a sample took 0 ns");
    }
    let times_ns = elapsed_ns.iter().chain(&result.untimed_ns);
    let reported_ns: u128 = times_ns.map(|ns| u128::from(*ns)).sum();
    // Clocks may differ between processes, but by less than 1 % and a millisecond.
    if let Some(wall_ns) = wall_ns
        && reported_ns > wall_ns + wall_ns / 100 + 1_000_000
    {
        let detail = format!("the worker reported {reported_ns} ns of work during {wall_ns} ns of wall time");
        return failed(FailureCause::BadTime, &detail);
    }
    let cpu_ns: u128 = cpu_ns.iter().map(|ns| u128::from(*ns)).sum();
    let cpus = *CPUS;
    if let Some(wall_ns) = wall_ns
        && cpu_ns > cpus * (wall_ns + wall_ns / 100 + TICK_NS)
    {
        let detail =
            format!("the worker reported {cpu_ns} ns of CPU time during {wall_ns} ns on {cpus} CPUs");
        return failed(FailureCause::BadTime, &detail);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(samples: usize) -> RunResult {
        RunResult { calls_per_sample: 1, elapsed_ns: vec![1_000_000; samples], ..RunResult::default() }
    }

    fn check(result: &RunResult) -> Result<(), FailureCause> {
        let (samples_count, calls_per_sample) = (result.elapsed_ns.len() as u64, 1);
        let request = RunRequest { samples_count, calls_per_sample, workload: String::new(), seed: 0 };
        check_result(result, &request, Some(20_000_000)).map_err(|error| error.cause)
    }

    #[test]
    fn calls_that_one_side_reports_to_be_short_do_not_keep_the_other_busy() {
        let batch = |calls_per_sample, sample_ns| Batch { calls_per_sample, sample_ns };
        let ask_both = |base, head| batch_of_both([base, head], 7_500_000_000);
        let of_both = |base, head| {
            let both = ask_both(base, head).map_err(|(side, error)| (side, error.cause));
            let swapped = ask_both(head, base).map_err(|(side, error)| (1 - side, error.cause));
            assert_eq!(both, swapped, "whichever side it is");
            both
        };
        let millisecond = batch(1, 1_000_000);
        assert_eq!(of_both(millisecond, batch(30, 30_000)), Ok(batch(30, 30_000_000)));
        assert_eq!(of_both(millisecond, batch(30_000, 30_000)), Ok(batch(7_500, 7_500_000_000)));
        let pretends = batch(3_000_000_000, 30_000);
        assert_eq!(of_both(millisecond, pretends), Err((1, FailureCause::BadTime)));
        assert_eq!(of_both(batch(1, 20_000_000_000), batch(1, 19_000_000_000)), Ok(batch(1, 20_000_000_000)));
    }

    #[test]
    fn waits_that_do_not_fit_are_no_fault_of_the_worker() {
        assert_eq!(check(&RunResult { wait_ns: vec![1_400_000, 0], ..result(2) }), Ok(()));
        assert_eq!(check(&RunResult { wait_ns: vec![0], ..result(2) }), Err(FailureCause::Mismatch));
    }

    #[test]
    fn no_more_cpu_time_is_believed_than_the_machine_has() {
        assert_eq!(check(&RunResult { cpu_ns: vec![900_000; 2], ..result(2) }), Ok(()));
        let huge = RunResult { cpu_ns: vec![u64::MAX, 1], ..result(2) };
        assert_eq!(check(&huge), Err(FailureCause::BadTime));
    }

    #[test]
    fn a_peak_of_memory_lies_between_that_of_the_process_and_the_machines() {
        let peak = |reported| bound_peak(reported, Some(1000), Some(9000)).map_err(|error| error.cause);
        assert_eq!(peak(10), Ok(1000), "less than was seen");
        assert_eq!(peak(2000), Ok(2000), "of a process that works for it");
        assert_eq!(peak(9001), Err(FailureCause::Mismatch));
    }
}
