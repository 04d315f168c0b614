//! What a call costs on new inputs and a spoiled output, beside what the timed calls cost: these repeat the same inputs, so a
//! kernel could leave out what it has done before. Must not check answers.

use super::Prepared;
use super::prepared::input_seed;
use super::program::Program;
use crate::device::Gpu;
use holdpoint_cuda::{Call, CudaError, Device, Launch, TimedCall, Timing, trace};
use holdpoint_model::FailureCause;
use holdpoint_model::suite::Cache;
use holdpoint_stats as stats;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};

/// A call on new inputs may cost this many times what a timed one does, and so much more: what it reads has just been written, and
/// the call before does not hide its launch. On an H200 it was at most 1.1 times and 0.5 us.
const FACTOR_MAX: f64 = 1.3;
const LAUNCH_NS: f64 = 2_000.0;
/// The same by the host's clock, since the host has been doing something else before: it was 84 us against 56 once.
const HOST_FACTOR_MAX: f64 = 2.0;
const HOST_LAUNCH_NS: f64 = 10_000.0;
/// A kernel is accused if so many looks in a row say so.
const LOOKS_TO_ACCUSE: usize = 3;
/// Calls of a look: about this long together, and so many.
const LOOK_NS: f64 = 100_000.0;
const CALLS: std::ops::RangeInclusive<u64> = 3..=16;
/// Looks, of which the middle one counts.
const LOOKS: usize = 3;
/// At most one part in so many of a worker's time goes into looks.
const SHARE: u32 = 20;
/// The draws of looks are those of no request.
const SEED: u64 = 0x5eed_f4e5_0000_0000;

/// When to look, and what was seen last.
#[derive(Default)]
pub(super) struct Fresh {
    looked: Duration,
    timed: Duration,
    /// Calls of a sample at the last look: longer samples leave more room for calls that do nothing.
    calls_per_sample: u64,
    call_ns: f64,
}

/// Whether a look comes before the samples or after them is not for the kernel to know.
pub(super) enum Look {
    None,
    Before,
    After,
}

impl Fresh {
    pub(super) fn plan(&self, calls_per_sample: u64) -> Look {
        let is_due = calls_per_sample > self.calls_per_sample || self.looked * SHARE <= self.timed;
        match random() % 2 {
            _ if !is_due => Look::None,
            0 => Look::Before,
            _ => Look::After,
        }
    }

    pub(super) fn note_timed(&mut self, took: Duration, calls_per_sample: u64, elapsed_ns: &[u64]) {
        self.timed += took;
        let quickest_ns = elapsed_ns.iter().copied().min().unwrap_or(0);
        self.call_ns = quickest_ns as f64 / calls_per_sample.max(1) as f64;
    }
}

fn random() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// Several calls in a row, each after its inputs were drawn and its outputs spoiled; or all of that without the calls.
struct Batch<'a> {
    program: &'a mut Program,
    draws: &'a [Vec<Launch>],
    with_calls: bool,
}

impl Call for Batch<'_> {
    fn host(&mut self) -> Result<(), CudaError> {
        self.program.host()
    }

    fn enqueue(&mut self, device: &Device) -> Result<(), CudaError> {
        for draws in self.draws {
            draws.iter().try_for_each(|draw| draw.enqueue(device))?;
            self.program.poison()?;
            if self.with_calls {
                self.program.enqueue(device)?;
            }
        }
        Ok(())
    }
}

impl Prepared {
    /// Nanoseconds of a call on new inputs and spoiled outputs, which it must have written.
    pub(super) fn look_at_fresh_calls(
        &mut self,
        gpu: &mut Gpu,
        how: (Timing, Cache),
        calls_per_sample: u64,
    ) -> Result<f64, CudaError> {
        let start = Instant::now();
        let fitting = (LOOK_NS / self.fresh.call_ns.max(1.0)) as u64;
        let calls = fitting.clamp(*CALLS.start(), *CALLS.end()) + random() % 2;
        let fresh_ns = trace::step("look", &self.request.op.clone(), || match how {
            (Timing::Graph, Cache::Warm) => self.batches_ns(gpu, calls),
            _ => self.each_ns(gpu, how, calls),
        })?;
        self.fresh.looked += start.elapsed();
        self.fresh.calls_per_sample = self.fresh.calls_per_sample.max(calls_per_sample);
        Ok(fresh_ns)
    }

    /// The launches that draw all inputs anew.
    fn draws(&mut self, gpu: &mut Gpu) -> Result<Vec<Launch>, CudaError> {
        // Pending answers of an oracle are those of earlier inputs.
        self.draws_count += 1;
        let mut draws = Vec::new();
        for (index, input) in self.program.inputs.iter().enumerate() {
            let seed = input_seed(self.request.seed ^ SEED, index) ^ (self.draws_count << 8);
            if let Some(buffer) = &input.buffer {
                draws.extend(gpu.draw_launch(buffer, self.program.dtype, &input.spec.draw, seed)?);
            }
        }
        Ok(draws)
    }

    /// Of calls in a graph: what they add to the draws before each.
    fn batches_ns(&mut self, gpu: &mut Gpu, calls: u64) -> Result<f64, CudaError> {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..LOOKS {
            for (times, with_calls) in times.iter_mut().zip([false, true]) {
                let draws = (0..calls).map(|_| self.draws(gpu)).collect::<Result<Vec<_>, _>>()?;
                let mut batch = Batch { program: &mut self.program, draws: &draws, with_calls };
                times.push(gpu.timer.once(&gpu.device, &mut batch)? as f64);
            }
            self.look_for_poison(gpu)?;
        }
        self.has_answer = true;
        let [without, with] = times.map(|times| stats::median(&times).unwrap_or(0.0));
        Ok((with - without) / calls as f64)
    }

    /// Of calls that are timed one by one anyway.
    fn each_ns(&mut self, gpu: &mut Gpu, how: (Timing, Cache), calls: u64) -> Result<f64, CudaError> {
        let mut timed = TimedCall { call: &mut self.program, graph: &mut self.graph };
        gpu.timer.ready(&gpu.device, &mut timed, how, 1, 0.0)?;
        let mut times = Vec::new();
        for _ in 0..calls {
            self.draws(gpu)?.iter().try_for_each(|draw| draw.enqueue(&gpu.device))?;
            self.program.poison()?;
            gpu.device.synchronize()?;
            let mut timed = TimedCall { call: &mut self.program, graph: &mut self.graph };
            times.push(gpu.timer.sample(&gpu.device, &mut timed, how, 1)?.0 as f64);
            self.look_for_poison(gpu)?;
        }
        self.has_answer = true;
        Ok(times.into_iter().fold(f64::INFINITY, f64::min))
    }

    /// Whether the timed calls cost what such calls cost: after a look that says they do not, others are asked.
    pub(super) fn weigh_fresh_calls(
        &mut self,
        gpu: &mut Gpu,
        how: (Timing, Cache),
        first_ns: f64,
    ) -> Result<(), CudaError> {
        let call_ns = self.fresh.call_ns;
        let limit_ns = match how.0 {
            Timing::Host => HOST_FACTOR_MAX * call_ns + HOST_LAUNCH_NS,
            Timing::Graph | Timing::Events => FACTOR_MAX * call_ns + LAUNCH_NS,
        };
        let (mut fresh_ns, mut looks) = (first_ns, 1);
        while fresh_ns > limit_ns && looks < LOOKS_TO_ACCUSE {
            fresh_ns = self.look_at_fresh_calls(gpu, how, self.fresh.calls_per_sample)?;
            looks += 1;
        }
        if fresh_ns <= limit_ns {
            return Ok(());
        }
        let detail = format!(
            "a timed call takes {:.1} us, one on new inputs and an output that is not written yet {:.1} us: does it leave out \
             what an earlier call has done?",
            call_ns / 1e3,
            fresh_ns / 1e3
        );
        Err(CudaError::new(FailureCause::BadTime, detail))
    }
}
