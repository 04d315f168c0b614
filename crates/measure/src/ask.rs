//! Asking a worker, and believing nothing about what it answers.

use crate::slot::Slot;
use crate::worker::WorkerError;
use holdpoint_model::limits::CALLS_PER_SAMPLE_MAX;
use holdpoint_model::protocol::RunResult;
use holdpoint_model::report::Answer;
use holdpoint_model::{FailureCause, WorkloadSpec};
use std::time::Instant;

/// A sample lasts at least this many steps of the clock, so that the clock blurs it by less than 0.1 %.
pub const STEPS_PER_SAMPLE: u64 = 1_000;

/// Asks for samples.
pub(crate) fn run(
    slot: &mut Slot,
    spec: &WorkloadSpec,
    samples_count: u64,
    calls_per_sample: u64,
) -> Result<RunResult, WorkerError> {
    let worker = slot.worker()?;
    let start = Instant::now();
    let result = worker.run(&spec.name, samples_count, calls_per_sample)?;
    check_result(&result, samples_count, calls_per_sample, start.elapsed().as_nanos())?;
    Ok(result)
}

/// Asks whether the answer is right.
pub(crate) fn verify(
    slot: &mut Slot,
    spec: &WorkloadSpec,
    when: &str,
) -> Result<Option<Answer>, WorkerError> {
    match slot.worker()?.verify(&spec.name)? {
        // An error without bound is a wrong answer, whatever the worker makes of it.
        Some(answer) if !(answer.passed && answer.max_abs_err.is_finite()) => {
            let first_bad = answer.first_bad.unwrap_or_else(|| "by the worker's own check".to_owned());
            Err(WorkerError::new(FailureCause::WrongAnswer, format!("wrong answer {when}: {first_bad}")))
        }
        answer => Ok(answer),
    }
}

/// How many calls make a sample, and how long such a sample takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Batch {
    pub calls_per_sample: u64,
    pub sample_ns: u64,
}

/// Finds how many calls make a sample that the clock does not blur, from so many on.
pub(crate) fn choose_batch(
    slot: &mut Slot,
    spec: &WorkloadSpec,
    calls_first: u64,
) -> Result<Batch, WorkerError> {
    let resolution_ns = slot.info().map_or(1, |info| info.clock_resolution_ns.max(1));
    let target_ns = resolution_ns.saturating_mul(STEPS_PER_SAMPLE);
    let mut calls = calls_first;
    loop {
        let result = run(slot, spec, 3, calls)?;
        let sample_ns = result.elapsed_ns.iter().copied().min().unwrap_or(1).max(1);
        if sample_ns >= target_ns {
            return Ok(Batch { calls_per_sample: calls, sample_ns });
        }
        // A fifth more than is needed, and at least twice what was: the first guesses are rough.
        let needed = (calls as f64 * target_ns as f64 / sample_ns as f64 * 1.2).ceil() as u64;
        calls = needed.clamp(calls * 2, calls * 1_000);
        if calls > CALLS_PER_SAMPLE_MAX {
            let detail = "a call takes no measurable time; does it do anything?";
            return Err(WorkerError::new(FailureCause::BadTime, detail));
        }
    }
}

fn check_result(
    result: &RunResult,
    samples_count: u64,
    calls: u64,
    wall_ns: u128,
) -> Result<(), WorkerError> {
    let got = result.elapsed_ns.len() as u64;
    if got != samples_count || result.calls_per_sample != calls {
        let detail = format!(
            "asked for {samples_count} samples of {calls} calls, got {got} of {}",
            result.calls_per_sample
        );
        return Err(WorkerError::new(FailureCause::Mismatch, detail));
    }
    if !result.cpu_ns.is_empty() && result.cpu_ns.len() != result.elapsed_ns.len() {
        return Err(WorkerError::new(
            FailureCause::Mismatch,
            "as many CPU times as samples are needed, or none",
        ));
    }
    if !result.wait_ns.is_empty() {
        let fits = result.wait_ns.len() == result.elapsed_ns.len();
        if !fits || result.wait_ns.iter().zip(&result.elapsed_ns).any(|(wait, elapsed)| wait >= elapsed) {
            let detail = "as many waits as samples are needed, each shorter than its sample, or none";
            return Err(WorkerError::new(FailureCause::Mismatch, detail));
        }
    }
    if result.elapsed_ns.contains(&0) {
        return Err(WorkerError::new(FailureCause::BadTime, "a sample took 0 ns"));
    }
    let told_ns: u128 = result.elapsed_ns.iter().map(|ns| u128::from(*ns)).sum();
    // Clocks may differ a little between processes; a hundredth and a millisecond is not a little.
    if told_ns > wall_ns + wall_ns / 100 + 1_000_000 {
        let detail = format!("it tells of {told_ns} ns of work within {wall_ns} ns");
        return Err(WorkerError::new(FailureCause::BadTime, detail));
    }
    Ok(())
}
