//! Finds the fastest constants of a kernel on this device: measures, checks answers, measures the winner again.

use super::Prepared;
use crate::device::{Gpu, PrepareError, Winner};
use crate::registry::{PlannedOp, plan};
use crate::request::{Backend, Request};
use holdpoint_cuda::compile::Config;
use holdpoint_cuda::{CudaError, Timing};
use holdpoint_model::FailureCause;
use holdpoint_model::suite::{Cache, Variant};

/// Result of tuning one kernel for one set of sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneResult {
    pub kernel_name: String,
    pub shape_bucket: String,
    /// Its constants are empty when the op's own won.
    pub winner: Winner,
    /// Candidates that did not compile, did not fit or gave wrong answers, with the reasons.
    pub refused: Vec<(Config, String)>,
}

/// A sample lasts at least this long, so that events do not blur it.
const SAMPLE_NS: u64 = 300_000;
/// Samples of each candidate; the fastest counts.
const SAMPLES: u64 = 5;
/// Turns in which the winner and the defaults are measured again, alternating.
const TURNS: usize = 5;
/// A winner must be faster by this share to replace the defaults: less is noise.
const GAIN: f64 = 0.01;

/// Tunes the kernel of a request and stores the winner.
pub fn tune(gpu: &mut Gpu, request: &Request, how: (Timing, Cache)) -> Result<TuneResult, PrepareError> {
    let mut own = candidate(gpu, request, &Config::new())?;
    let default_ns = time(gpu, &mut own, how)?;
    let mut tuned = TuneResult {
        kernel_name: own.kernel_info().kernel_name,
        shape_bucket: own.kernel_info().shape_bucket,
        winner: Winner {
            config: Config::new(),
            p50_us: default_ns / 1e3,
            default_us: default_ns / 1e3,
            candidates_count: 1,
        },
        refused: Vec::new(),
    };
    drop(own);
    let mut best_ns = default_ns;
    let PlannedOp { op, dtype, .. } = plan(request, Some(Backend::Cuda))?;
    let is_ours = request.variant == Variant::Fast && request.kernel.is_none();
    let candidates = if is_ours { op.candidates(request, dtype) } else { Vec::new() };
    for config in candidates {
        let timed = candidate(gpu, request, &config).and_then(|mut c| Ok(time(gpu, &mut c, how)?));
        match timed {
            Ok(ns) => {
                tuned.winner.candidates_count += 1;
                if ns < best_ns {
                    (best_ns, tuned.winner.config) = (ns, config);
                }
            }
            Err(PrepareError::Device(error)) if error.fatal => return Err(error.into()),
            Err(error) => tuned.refused.push((config, error.to_string())),
        }
    }
    if !tuned.winner.config.is_empty() {
        confirm(gpu, request, how, &mut tuned.winner)?;
    }
    gpu.registry.put(&tuned.kernel_name, &tuned.shape_bucket, tuned.winner.clone()).map_err(|error| {
        CudaError::new(FailureCause::WorkerError, format!("the winner cannot be kept: {error}"))
    })?;
    Ok(tuned)
}

/// The fastest of many candidates is partly lucky, so it and the defaults are measured again, in turns.
fn confirm(
    gpu: &mut Gpu,
    request: &Request,
    how: (Timing, Cache),
    winner: &mut Winner,
) -> Result<(), PrepareError> {
    let mut times_ns = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (config, times_ns) in [Config::new(), winner.config.clone()].iter().zip(&mut times_ns) {
            let mut prepared = candidate(gpu, request, config)?;
            times_ns.push(time(gpu, &mut prepared, how)?);
        }
    }
    let [default_ns, best_ns] = times_ns.map(|mut times_ns| {
        times_ns.sort_by(f64::total_cmp);
        times_ns[TURNS / 2]
    });
    (winner.default_us, winner.p50_us) = (default_ns / 1e3, best_ns / 1e3);
    if best_ns > default_ns * (1.0 - GAIN) {
        winner.config = Config::new();
        winner.p50_us = winner.default_us;
    }
    Ok(())
}

/// Prepares the op with these constants and checks its answer.
fn candidate(gpu: &mut Gpu, request: &Request, config: &Config) -> Result<Prepared, PrepareError> {
    let request = Request { config: Some(config.clone()), ..request.clone() };
    let mut prepared = Prepared::new(gpu, &request)?;
    let check = prepared.check(gpu)?;
    match check.first_bad {
        None if check.passed => Ok(prepared),
        bad => {
            let detail = format!("wrong answer: {}", bad.unwrap_or_default());
            Err(CudaError::new(FailureCause::WrongAnswer, detail).into())
        }
    }
}

/// Nanoseconds per call, by the fastest of a few samples.
fn time(gpu: &mut Gpu, prepared: &mut Prepared, how: (Timing, Cache)) -> Result<f64, CudaError> {
    let one = prepared.run(gpu, how, 2, 1, 0.0)?.elapsed_ns;
    let call_ns = one.into_iter().min().unwrap_or(1).max(1);
    let calls = SAMPLE_NS.div_ceil(call_ns);
    let times = prepared.run(gpu, how, SAMPLES, calls, 0.0)?.elapsed_ns;
    Ok(times.into_iter().min().unwrap_or(u64::MAX) as f64 / calls as f64)
}
