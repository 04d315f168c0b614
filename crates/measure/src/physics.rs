//! Upper limits on speed: measured on this machine's CPUs; of a device by its generation and clocks, or else its data sheet.

use crate::machine;
use holdpoint_model::protocol::DeviceInfo;
use holdpoint_model::roofline::{device_peaks, public_peaks};
use holdpoint_model::suite::{TIMER_HOST, Work};
use holdpoint_ops::{Prepared, Request};
use serde_json::Map;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Every CPU may reach the rate of one of our threads; wider vectors and higher clocks at most double it.
const CPU_HEADROOM: f64 = 2.0;
/// At least this per nanosecond and thread: two fused multiply-adds of eight floats each cycle, two loads, at 2 GHz.
/// Less may be measured on a busy machine or in an unoptimised build.
const THREAD_MIN: Rates = Rates { flops: 64.0, bytes: 128.0 };
/// Reading alone is faster than the copying that is measured.
const READ_HEADROOM: f64 = 2.0;
/// Matrix units for 16 and 8 bits, which our CPU ops do not use.
const NARROW_HEADROOM: f64 = 32.0;
/// Boost clocks above those of the data sheet.
const SHEET_HEADROOM: f64 = 1.25;
/// Long enough for the clock to rise. Measured once, and only if a user's worker counts its work.
const LOOK: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, Debug)]
struct Rates {
    flops: f64,
    bytes: f64,
}

/// Of what a device can do at most: nearer than this, a time is marked. Right kernels were seen at 80 %.
const NEAR: f64 = 0.9;
/// Beyond it by more than this is impossible: a device may raise its clock above what it states.
const CLOCK_HEADROOM: f64 = 1.1;

/// What may do the work of a call, which is then no quicker than this allows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Executor {
    #[default]
    Cpus,
    Device(Box<DeviceInfo>),
    /// The worker has a device, and the host times this workload: it may use that or not.
    Either(Box<DeviceInfo>),
}

impl Executor {
    /// Of a worker with this device, or none, by the timer of a workload.
    pub(crate) fn new(device: Option<&DeviceInfo>, timer: &str) -> Self {
        match device {
            None => Self::Cpus,
            Some(device) if timer == TIMER_HOST => Self::Either(Box::new(device.clone())),
            Some(device) => Self::Device(Box::new(device.clone())),
        }
    }

    /// The least time of a call by `of_device`, or by the CPUs; the shorter one where either may do it.
    fn least(
        &self,
        of_device: impl Fn(&DeviceInfo) -> Option<(f64, String)>,
        of_cpus: impl Fn() -> (f64, String),
    ) -> Option<(f64, String)> {
        match self {
            Self::Cpus => Some(of_cpus()),
            Self::Device(device) => of_device(device),
            Self::Either(device) => {
                let (by_device, by_cpus) = (of_device(device)?, of_cpus());
                Some(if by_cpus.0 < by_device.0 { by_cpus } else { by_device })
            }
        }
    }
}

/// The least time that a call can take, and the reason; `None` if nothing is known.
pub(crate) fn call_ns_min(work: &Work, dtype: &str, executor: &Executor) -> Option<(f64, String)> {
    let of_device = |device: &DeviceInfo| {
        let described = on_device(work, dtype, device).map(|(ns, why)| (ns / CLOCK_HEADROOM, why));
        described.or_else(|| Some(by_rates(work, sheet(&device.name)?, &device.name)))
    };
    let (ns, why) = executor.least(of_device, || on_cpus(work, dtype))?;
    (ns.is_finite() && ns > 0.0).then_some((ns, why))
}

/// The share of the most that a device or this machine can do, from [`NEAR`] on, at which such a call works; absent where it is further
/// away, or nothing is known.
pub(crate) fn near_peak(work: &Work, dtype: &str, executor: &Executor, call_ns: f64) -> Option<f64> {
    let of_device = |device: &DeviceInfo| on_device(work, dtype, device);
    let (least_ns, _) = executor.least(of_device, || on_cpus(work, dtype))?;
    let share = least_ns / call_ns;
    (share >= NEAR && share.is_finite()).then_some(share)
}

/// The least time by a device's own description: its operations, its L2 cache, and its memory for what the cache cannot hold.
fn on_device(work: &Work, dtype: &str, device: &DeviceInfo) -> Option<(f64, String)> {
    let peaks = device_peaks(device, dtype)?;
    let (flops, bytes) = (work.flops as f64, work.bytes as f64);
    let name = &device.name;
    let of_bytes = |what: &str, rate: f64| format!("{what} on {name}, at {rate:.0} GB/s,");
    let beyond_cache = (bytes - peaks.l2_bytes).max(0.0);
    let memory = peaks.memory_bytes_per_ns.map(|rate| {
        (
            beyond_cache / rate,
            of_bytes(&format!("memory of {beyond_cache:.0} bytes beyond the L2 cache"), rate),
        )
    });
    let l2 = peaks.l2_bytes_per_ns;
    let tflops = peaks.flops_per_ns / 1e3;
    let limits = [
        (
            flops / peaks.flops_per_ns,
            format!("{flops} operations in {dtype} on {name}, at {tflops:.0} TFLOP/s,"),
        ),
        (bytes / l2, of_bytes(&format!("{bytes} bytes"), l2)),
    ];
    limits.into_iter().chain(memory).max_by(|a, b| a.0.total_cmp(&b.0))
}

fn on_cpus(work: &Work, dtype: &str) -> (f64, String) {
    by_rates(work, cpus(dtype), "this machine")
}

fn by_rates(work: &Work, rates: Rates, what: &str) -> (f64, String) {
    let flops = (
        work.flops as f64 / rates.flops,
        format!("{} operations on {what}, at {:.1} GFLOP/s,", work.flops, rates.flops),
    );
    let bytes = (
        work.bytes as f64 / rates.bytes,
        format!("{} bytes on {what}, at {:.1} GB/s,", work.bytes, rates.bytes),
    );
    if flops.0 > bytes.0 { flops } else { bytes }
}

fn sheet(device: &str) -> Option<Rates> {
    let peaks = public_peaks(device)?;
    let tflops = peaks.tflops.values().copied().fold(0.0, f64::max);
    // Caches are faster than the data sheet's memory, by an unknown factor.
    Some(Rates { flops: tflops * 1e3 * SHEET_HEADROOM, bytes: f64::INFINITY })
}

fn cpus(dtype: &str) -> Rates {
    static THREAD: LazyLock<Rates> = LazyLock::new(|| Rates {
        flops: rate("fma", 2_048, |work| work.flops).max(THREAD_MIN.flops),
        bytes: rate("copy", 4_096, |work| work.bytes).max(THREAD_MIN.bytes),
    });
    // Not those that this process may use: a quota leaves a short call all of them.
    let cpus_count = f64::from(machine::cpus_online());
    let narrow = if matches!(dtype, "f32" | "f64") { 1.0 } else { NARROW_HEADROOM };
    Rates {
        flops: THREAD.flops * cpus_count * CPU_HEADROOM * narrow,
        bytes: THREAD.bytes * cpus_count * CPU_HEADROOM * READ_HEADROOM,
    }
}

/// The best rate of one thread; infinite if it cannot be measured.
fn rate(op: &str, size: usize, count_work: impl Fn(&Work) -> u64) -> f64 {
    let shape = [size];
    // Short calls, so that some are not interrupted.
    let params = Map::from_iter((op == "fma").then(|| ("rounds".to_owned(), 64.into())));
    let request = Request::new(op, &shape, "f32", &params);
    let Ok(mut op) = Prepared::new(&request) else { return f64::INFINITY };
    let (start, mut best_ns) = (Instant::now(), f64::INFINITY);
    while start.elapsed() < LOOK {
        let call = Instant::now();
        op.call();
        best_ns = best_ns.min(call.elapsed().as_nanos() as f64);
    }
    count_work(op.work()) as f64 / best_ns.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdpoint_model::suite::TIMER_CUDA_GRAPH;
    use rustix::thread::{CpuSet, sched_setaffinity};

    #[test]
    fn what_our_own_kernels_do_can_be_and_a_thousand_times_that_cannot() {
        let work = Work { flops: 1_000_000_000, ..Work::default() };
        let (least_ns, why) = call_ns_min(&work, "f32", &Executor::Cpus).unwrap();
        let reached = rate("fma", 2_048, |work| work.flops).max(THREAD_MIN.flops);
        assert!(least_ns < 1e9 / reached && least_ns > 1e9 / (reached * 1e3), "{least_ns} {reached}");
        assert!(why.contains("1000000000 operations on this machine"), "{why}");
        assert_eq!(call_ns_min(&Work::default(), "f32", &Executor::Cpus), None);
    }

    #[test]
    fn what_this_process_may_use_is_not_what_the_machine_can_do() {
        let before = cpus("f32").flops;
        let mut one = CpuSet::new();
        one.set(crate::program::cpus_allowed()[0]);
        sched_setaffinity(None, &one).unwrap();
        assert_eq!(cpus("f32").flops, before);
    }

    #[test]
    fn a_known_device_is_held_against_its_data_sheet() {
        let device = |name: &str| by_device(&DeviceInfo { name: name.to_owned(), ..DeviceInfo::default() });
        let work = Work { flops: 1_979_000_000, ..Work::default() };
        let (least_ns, _) = call_ns_min(&work, "f16", &device("NVIDIA H200")).unwrap();
        assert!((least_ns - 800.0).abs() < 1.0, "{least_ns}");
        assert_eq!(call_ns_min(&work, "f16", &device("unheard of")), None);
    }

    fn by_device(device: &DeviceInfo) -> Executor {
        Executor::new(Some(device), TIMER_CUDA_GRAPH)
    }

    fn h200() -> DeviceInfo {
        DeviceInfo {
            name: "NVIDIA H200".to_owned(),
            compute_capability: "9.0".to_owned(),
            multiprocessors: Some(132),
            sm_mhz_max: Some(1980),
            memory_mhz_max: Some(3201),
            memory_bus_bits: Some(6144),
            l2_bytes: Some(60 << 20),
            ..DeviceInfo::default()
        }
    }

    #[test]
    fn a_device_is_held_against_its_clocks_by_element_type() {
        let attention = Work { flops: 137_438_953_472, bytes: 134_217_728, ..Work::default() };
        let ns_at = |tflops: f64| attention.flops as f64 / tflops / 1e3;
        let (least_ns, why) = call_ns_min(&attention, "f16", &by_device(&h200())).unwrap();
        assert!(ns_at(1_413.3) < least_ns && least_ns < ns_at(1_071.0), "{least_ns}");
        assert!(why.contains("operations in f16 on NVIDIA H200, at 1071 TFLOP/s"), "{why}");
        let (least_ns, _) = call_ns_min(&attention, "e4m3", &by_device(&h200())).unwrap();
        assert!(least_ns < ns_at(1_413.3), "twice as fast in eight bits: {least_ns}");
    }

    #[test]
    fn what_the_cache_holds_may_be_faster_than_memory_and_not_than_the_cache() {
        let copy = |bytes: u64| Work { bytes, ..Work::default() };
        let gb_per_s =
            |bytes: u64| bytes as f64 / call_ns_min(&copy(bytes), "f16", &by_device(&h200())).unwrap().0;
        // 7.6 TB/s were measured there.
        assert!((30e3..40e3).contains(&gb_per_s(32 << 20)), "{}", gb_per_s(32 << 20));
        assert!((4.8e3..5.8e3).contains(&gb_per_s(4 << 30)), "{}", gb_per_s(4 << 30));
    }

    #[test]
    fn times_near_the_peak_are_marked_and_others_not() {
        let work = Work { flops: 1_000_000_000, ..Work::default() };
        let near =
            |tflops: f64| near_peak(&work, "f16", &by_device(&h200()), work.flops as f64 / tflops / 1e3);
        assert_eq!(near(800.0), None);
        assert!(near(1_000.0).is_some_and(|share| (0.93..0.94).contains(&share)));
        assert_eq!(near_peak(&Work::default(), "f16", &by_device(&h200()), 100.0), None);
        let unknown = DeviceInfo { name: "unheard of".to_owned(), ..DeviceInfo::default() };
        assert_eq!(near_peak(&work, "f16", &by_device(&unknown), 1.0), None);
    }

    #[test]
    fn a_workload_that_the_host_times_beside_a_device_is_held_against_the_quicker_of_both() {
        // Double precision is slow on small devices, and CPUs need not be.
        let small = DeviceInfo { compute_capability: "7.5".to_owned(), multiprocessors: Some(1), ..h200() };
        let work = Work { flops: 1_000_000_000, ..Work::default() };
        let least_ns = |executor: &Executor| call_ns_min(&work, "f64", executor).unwrap().0;
        let by_cpus = least_ns(&Executor::Cpus);
        assert!(least_ns(&by_device(&small)) > by_cpus);
        assert_eq!(least_ns(&Executor::new(Some(&small), TIMER_HOST)), by_cpus);
        let large = DeviceInfo { multiprocessors: Some(1 << 20), ..h200() };
        assert_eq!(least_ns(&Executor::new(Some(&large), TIMER_HOST)), least_ns(&by_device(&large)));
        let unknown = DeviceInfo { name: "unheard of".to_owned(), ..DeviceInfo::default() };
        assert_eq!(call_ns_min(&work, "f64", &Executor::new(Some(&unknown), TIMER_HOST)), None);
        assert_eq!(near_peak(&work, "f64", &Executor::new(Some(&unknown), TIMER_HOST), 1.0), None);
    }
}
