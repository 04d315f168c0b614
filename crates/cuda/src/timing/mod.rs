//! Three kinds of time, never mixed: events around a graph of calls, events around each call, and the host's clock around calls
//! that are waited for.
//!
//! Events are recorded while a kernel holds the device, until the host has queued everything: so the host's own pace is not
//! in the interval.

mod cold;
mod event;
mod graph;

use crate::compile::{Compiler, Source, Unit};
use crate::device::{Buffer, Device, Flag};
use crate::dtype::Dtype;
use crate::error::CudaError;
use crate::launch::{Arguments, Kernel, Launch, Module};
use cold::Flusher;
use event::Event;
use graph::Graph;
use holdpoint_model::FailureCause;
use holdpoint_model::suite::Cache;
use std::time::Instant;

/// Which clock, around what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Events around a graph of all calls of a sample.
    Graph,
    /// Events around each call.
    Events,
    /// The host's clock around each call and the wait for it.
    Host,
}

pub trait Call {
    /// Work of the host before a call is queued.
    fn host(&mut self) -> Result<(), CudaError>;
    fn enqueue(&mut self, device: &Device) -> Result<(), CudaError>;
}

/// A call to be timed, and its graph.
pub struct TimedCall<'a> {
    pub call: &'a mut dyn Call,
    /// Kept from sample to sample.
    pub graph: &'a mut CachedGraph,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// Per sample.
    pub elapsed_ns: Vec<u64>,
    /// Clock of the multiprocessors during each sample, 0 where unknown; empty for the host's clock.
    pub sm_mhz: Vec<u32>,
}

/// The kernels that timing itself needs.
pub static TIMING: Source = Source { name: "timing", text: include_str!("timing.cu"), headers: &[] };

/// A blocked device gives up waiting for the host after this: far longer than queueing takes.
const BLOCK_TIMEOUT_NS: usize = 2_000_000_000;
/// The device's clock steps by up to a microsecond; over less time than this it says little about cycles.
const CLOCK_NS_MIN: u64 = 50_000;

pub struct Timer {
    flag: Flag,
    block: Launch,
    stamps: [Launch; 2],
    stamped: [Buffer; 2],
    start: Event,
    stop: Event,
    flusher: Flusher,
    spin: Kernel,
    /// Added to each interval.
    slow_ns: u64,
    /// Share by which the host's time is lengthened.
    slowdown: f64,
}

/// A workload's graph and how many calls it has. Each workload keeps its own: one of another's would run the other.
pub type CachedGraph = Option<(u64, Graph)>;

impl Timer {
    pub fn new(device: &Device, compiler: &Compiler) -> Result<Self, CudaError> {
        let module = Module::load(device, compiler, &Unit::new(&TIMING, Dtype::F32))?;
        let flag = Flag::new()?;
        let stamped = [Buffer::new(device, 24, 0)?, Buffer::new(device, 24, 0)?];
        let stamp = module.kernel("stamp")?;
        let stamps = [0, 1].map(|at| stamp.launch(1, 1, Arguments::new().buffer(&stamped[at])));
        let arguments = Arguments::new().ptr(flag.ptr).int(BLOCK_TIMEOUT_NS);
        let block = module.kernel("block")?.launch(1, 1, arguments);
        let (start, stop) = (Event::new()?, Event::new()?);
        let flusher = Flusher::new(&module);
        Ok(Self {
            flag,
            block,
            stamps,
            stamped,
            start,
            stop,
            flusher,
            spin: module.kernel("spin")?,
            slow_ns: 0,
            slowdown: 0.0,
        })
    }

    /// Prepares for samples: one untimed call, and a graph where one is needed.
    pub fn ready(
        &mut self,
        device: &Device,
        timed: &mut TimedCall<'_>,
        (timing, cache): (Timing, Cache),
        calls_per_sample: u64,
        slowdown: f64,
    ) -> Result<(), CudaError> {
        (self.slow_ns, self.slowdown) = (0, slowdown);
        timed.call.host()?;
        timed.call.enqueue(device)?;
        device.synchronize()?;
        if cache == Cache::Cold {
            self.flusher.verify(device)?;
        }
        if timing == Timing::Graph {
            // Between cold calls there is a flush, so they cannot be in one graph.
            let calls = if cache == Cache::Cold { 1 } else { calls_per_sample };
            if timed.graph.as_ref().is_none_or(|(of, _)| *of != calls) {
                *timed.graph = Some((calls, Graph::capture(device, timed.call, calls)?));
            }
            self.interval(device, timed, true)?;
        }
        if slowdown > 0.0 && timing != Timing::Host {
            let as_graph = timing == Timing::Graph;
            let mut times = [0; 3];
            for ns in &mut times {
                *ns = self.interval(device, timed, as_graph)?.0;
            }
            times.sort_unstable();
            self.slow_ns = (times[1] as f64 * slowdown) as u64;
        }
        Ok(())
    }

    /// [`Timer::ready`] comes first.
    pub fn sample(
        &mut self,
        device: &Device,
        timed: &mut TimedCall<'_>,
        (timing, cache): (Timing, Cache),
        calls_per_sample: u64,
    ) -> Result<(u64, Option<u32>), CudaError> {
        match (timing, cache) {
            (Timing::Host, _) => Ok((host_ns(device, timed.call, calls_per_sample, self.slowdown)?, None)),
            (Timing::Graph, Cache::Warm) => self.interval(device, timed, true),
            (Timing::Graph, Cache::Cold) => self.several(device, timed, calls_per_sample, cache, true),
            (Timing::Events, _) => self.several(device, timed, calls_per_sample, cache, false),
        }
    }

    /// Nanoseconds of a call that is made only once, as a graph: nothing in it has run before.
    pub fn once(&mut self, device: &Device, call: &mut dyn Call) -> Result<u64, CudaError> {
        self.slow_ns = 0;
        let mut graph = Some((1, Graph::capture(device, call, 1)?));
        Ok(self.interval(device, &mut TimedCall { call, graph: &mut graph }, true)?.0)
    }

    /// Calls timed one by one, as one sample.
    fn several(
        &mut self,
        device: &Device,
        timed: &mut TimedCall<'_>,
        calls_count: u64,
        cache: Cache,
        as_graph: bool,
    ) -> Result<(u64, Option<u32>), CudaError> {
        let (mut total_ns, mut mhz) = (0, Some(0));
        for _ in 0..calls_count {
            if cache == Cache::Cold {
                self.flusher.flush(device)?;
            }
            let (ns, now) = self.interval(device, timed, as_graph)?;
            total_ns += ns;
            mhz = now;
        }
        Ok((total_ns, mhz))
    }

    /// One interval between two events, everything queued while the device waits.
    fn interval(
        &mut self,
        device: &Device,
        timed: &mut TimedCall<'_>,
        as_graph: bool,
    ) -> Result<(u64, Option<u32>), CudaError> {
        self.flag.set(0);
        self.block.enqueue(device)?;
        let queued = self.queue(device, timed, as_graph);
        // Whatever happened, the device must not be left waiting.
        let timed_out = self.flag.get() == 2;
        self.flag.set(1);
        queued?;
        device.synchronize()?;
        if timed_out {
            let detail = "queueing one sample took the host longer than the device waits (2 s)";
            return Err(CudaError::new(FailureCause::BadTime, detail));
        }
        let ns = positive_ns(self.start.elapsed_ms(&self.stop)?)?;
        let stamps = [self.stamp(0)?, self.stamp(1)?];
        Ok((ns, Some(clock_mhz(stamps))))
    }

    fn queue(&mut self, device: &Device, timed: &mut TimedCall<'_>, as_graph: bool) -> Result<(), CudaError> {
        let stream = &device.stream;
        self.stamps[0].enqueue(device)?;
        self.start.record(stream)?;
        self.queue_calls(device, timed, as_graph)?;
        self.stop.record(stream)?;
        self.stamps[1].enqueue(device)
    }

    /// Queues a graph or a call; returns how many calls that is.
    fn queue_calls(
        &self,
        device: &Device,
        timed: &mut TimedCall<'_>,
        as_graph: bool,
    ) -> Result<u64, CudaError> {
        let calls = match &timed.graph {
            Some((calls, graph)) if as_graph => {
                graph.launch(&device.stream)?;
                *calls
            }
            _ => {
                timed.call.enqueue(device)?;
                1
            }
        };
        if self.slow_ns > 0 {
            let arguments = Arguments::new().int(self.slow_ns as usize);
            self.spin.launch(1, 1, arguments).enqueue(device)?;
        }
        Ok(calls)
    }

    /// Queues at least this many calls, one right after the other, untimed; returns how many. [`Timer::ready`] comes first.
    pub fn queue_untimed(
        &self,
        device: &Device,
        timed: &mut TimedCall<'_>,
        timing: Timing,
        calls_count: u64,
    ) -> Result<u64, CudaError> {
        let mut calls = 0;
        while calls < calls_count {
            calls += self.queue_calls(device, timed, timing == Timing::Graph)?;
        }
        Ok(calls)
    }

    fn stamp(&self, at: usize) -> Result<[u64; 3], CudaError> {
        let bytes = self.stamped[at].download()?;
        let mut words = [0; 3];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Ok(words)
    }
}

/// The latency that a caller sees: from before the call until its results are there.
fn host_ns(device: &Device, call: &mut dyn Call, calls_count: u64, slowdown: f64) -> Result<u64, CudaError> {
    let start = Instant::now();
    for _ in 0..calls_count {
        call.host()?;
        call.enqueue(device)?;
        device.synchronize()?;
    }
    let until = start.elapsed().mul_f64(1.0 + slowdown);
    while start.elapsed() < until {
        std::hint::spin_loop();
    }
    Ok(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// Events can be wrong: under confidential computing they have been seen to give negative times.
fn positive_ns(ms: f32) -> Result<u64, CudaError> {
    if ms.is_finite() && ms > 0.0 {
        return Ok((f64::from(ms) * 1e6).round() as u64);
    }
    let detail = format!("the events are {ms} ms apart; their clock cannot be trusted here");
    Err(CudaError::new(FailureCause::BadTime, detail))
}

/// Cycles over time, when both stamps come from the same multiprocessor and lie far enough apart; else 0.
fn clock_mhz([before, after]: [[u64; 3]; 2]) -> u32 {
    let (ns, cycles) = (after[0].saturating_sub(before[0]), after[1].saturating_sub(before[1]));
    if before[2] != after[2] || ns < CLOCK_NS_MIN {
        return 0;
    }
    u32::try_from(cycles * 1000 / ns).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_not_positive_is_an_error_and_no_number() {
        assert_eq!(positive_ns(0.0125), Ok(12_500));
        for ms in [0.0, -1.5, f32::NAN, f32::INFINITY] {
            assert_eq!(positive_ns(ms).unwrap_err().cause, FailureCause::BadTime, "{ms}");
        }
    }

    #[test]
    fn a_clock_is_reported_only_where_it_is_known() {
        let stamp = |ns, cycles, sm| [ns, cycles, sm];
        assert_eq!(clock_mhz([stamp(0, 5, 3), stamp(1_000_000, 1_980_005, 3)]), 1980);
        assert_eq!(clock_mhz([stamp(0, 5, 3), stamp(1_000_000, 1_980_005, 4)]), 0, "two multiprocessors");
        assert_eq!(clock_mhz([stamp(0, 5, 3), stamp(1_000, 1_985, 3)]), 0, "too short");
    }
}
