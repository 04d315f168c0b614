//! Statistics of the samples, which are kept beside them.

use crate::physics::{self, Executor};
use holdpoint_model::report::{Answer, KernelInfo, Measured, PowerLimited, Stopped, Warmup};
use holdpoint_model::suite::Work;
use holdpoint_model::{Round, Samples};
use holdpoint_stats as stats;
use std::collections::BTreeMap;

/// Facts about a workload besides its samples.
pub(crate) struct Facts {
    pub answer: Option<Answer>,
    pub warmup: Warmup,
    pub stopped: Stopped,
    pub work: Option<Work>,
    pub kernel: Option<KernelInfo>,
    pub distrust: Option<String>,
    pub dtype: String,
    pub executor: Executor,
}

/// `None` if there are no samples.
pub(crate) fn summarise(samples: Samples, facts: Facts) -> Option<Measured> {
    let calls = samples.calls_per_sample;
    let rounds_ms: Vec<Vec<f64>> =
        samples.rounds.iter().map(|round| round.per_call_ns(calls).map(ns_to_ms).collect()).collect();
    let times_ms = rounds_ms.concat();
    let p50_ms = stats::median(&times_ms)?;
    let cpu_ms: Vec<f64> = samples
        .rounds
        .iter()
        .flat_map(|round| &round.cpu_ns)
        .map(|ns| ns_to_ms(*ns as f64 / calls as f64))
        .collect();
    Some(Measured {
        p50_ms,
        p95_ms: stats::percentile_floor(&times_ms, 0.95)?,
        p99_ms: stats::percentile_floor(&times_ms, 0.99)?,
        mean_ms: stats::mean(&times_ms)?,
        min_ms: stats::percentile_floor(&times_ms, 0.0)?,
        cv: stats::coefficient_of_variation(&times_ms),
        p50_interval_ms: stats::median_interval_of_rounds(&rounds_ms),
        slow_stretches: stats::slow_stretches(&rounds_ms),
        near_peak: facts
            .work
            .as_ref()
            .and_then(|work| physics::near_peak(work, &facts.dtype, &facts.executor, p50_ms * 1e6)),
        throughput: facts.work.map(|work| throughput(&work, p50_ms)).unwrap_or_default(),
        peak_memory_mb: peak_mb(samples.rounds.iter().map(|round| round.peak_rss_bytes)),
        // A clock too coarse for the call reports 0, which is no time.
        cpu_p50_ms: stats::median(&cpu_ms).filter(|ms| *ms > 0.0),
        answer: facts.answer,
        warmup: facts.warmup,
        stopped: facts.stopped,
        peak_device_memory_mb: peak_mb(samples.rounds.iter().map(|round| round.peak_device_bytes)),
        distrust: facts.distrust,
        sm_cycles_p50: sm_cycles(&samples),
        power_limited: power_limited(&samples, p50_ms),
        kernel: facts.kernel,
        samples,
    })
}

/// Cycles per call, median over the samples whose clock is known.
fn sm_cycles(samples: &Samples) -> Option<f64> {
    let clocked = |round: &Round| {
        let times = round.per_call_ns(samples.calls_per_sample).collect::<Vec<f64>>();
        let clocks = round.sm_mhz.clone();
        times.into_iter().zip(clocks).filter(|(_, mhz)| *mhz > 0).map(|(ns, mhz)| ns * f64::from(mhz) / 1e3)
    };
    stats::median(&samples.rounds.iter().flat_map(clocked).collect::<Vec<f64>>())
}

/// The device's state at its power limit, if it was there in most rounds.
fn power_limited(samples: &Samples, p50_ms: f64) -> Option<PowerLimited> {
    let clock = |round: &Round| {
        let known = round.sm_mhz.iter().filter(|mhz| **mhz > 0).map(|mhz| f64::from(*mhz));
        stats::median(&known.collect::<Vec<f64>>())
    };
    let is_limited = |round: &&Round| {
        round.state.device.as_ref().is_some_and(|device| device.is_power_limited_at(clock(round)))
    };
    let rounds: Vec<&Round> = samples.rounds.iter().filter(is_limited).collect();
    if 2 * rounds.len() <= samples.rounds.len() {
        return None;
    }
    let devices = || rounds.iter().filter_map(|round| round.state.device.as_ref());
    let clocks: Vec<f64> = rounds
        .iter()
        .flat_map(|round| &round.sm_mhz)
        .filter(|mhz| **mhz > 0)
        .map(|mhz| f64::from(*mhz))
        .collect();
    let is_at_limit = 2 * devices().filter(|device| device.is_power_limited()).count() > rounds.len();
    let power_w = stats::median(&devices().filter_map(|device| device.power_w).collect::<Vec<f64>>());
    Some(PowerLimited {
        rounds_count: rounds.len() as u64,
        sm_mhz: stats::median(&clocks),
        sm_mhz_max: devices().filter_map(|device| device.sm_mhz_max).max(),
        power_w,
        power_limit_w: devices().find_map(|device| device.power_limit_w),
        // Between rests it is not the power of the calls that is read.
        energy_mj: power_w.filter(|_| is_at_limit).map(|watts| watts * p50_ms),
    })
}

fn peak_mb(bytes: impl Iterator<Item = Option<u64>>) -> Option<f64> {
    bytes.flatten().max().map(|bytes| bytes as f64 / 1e6)
}

fn throughput(work: &Work, p50_ms: f64) -> BTreeMap<String, f64> {
    let per_s = |count: u64| count as f64 / (p50_ms / 1e3);
    let mut rates = BTreeMap::new();
    if work.items > 0 && !work.item.is_empty() {
        rates.insert(format!("{}_per_s", work.item), per_s(work.items));
    }
    if work.bytes > 0 {
        rates.insert("gb_per_s".to_owned(), per_s(work.bytes) / 1e9);
    }
    if work.flops > 0 {
        rates.insert("gflops".to_owned(), per_s(work.flops) / 1e9);
    }
    rates
}

fn ns_to_ms(ns: f64) -> f64 {
    ns / 1e6
}
