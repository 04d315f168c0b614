//! Upper limits on speed: measured on this machine's CPUs, or from a device's data sheet.

use holdpoint_model::protocol::DeviceInfo;
use holdpoint_model::roofline::public_peaks;
use holdpoint_model::suite::Work;
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

/// The least time that a call can take, and the reason; `None` if nothing is known.
pub(crate) fn call_ns_min(work: &Work, dtype: &str, device: Option<&DeviceInfo>) -> Option<(f64, String)> {
    let (rates, what) = match device {
        Some(device) => (sheet(&device.name)?, device.name.clone()),
        None => (cpus(dtype), "this machine".to_owned()),
    };
    let flops = (
        work.flops as f64 / rates.flops,
        format!("{} operations on {what}, at {:.1} GFLOP/s,", work.flops, rates.flops),
    );
    let bytes = (
        work.bytes as f64 / rates.bytes,
        format!("{} bytes on {what}, at {:.1} GB/s,", work.bytes, rates.bytes),
    );
    let slowest = if flops.0 > bytes.0 { flops } else { bytes };
    (slowest.0.is_finite() && slowest.0 > 0.0).then_some(slowest)
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
    let cpus_count = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
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

    #[test]
    fn what_our_own_kernels_do_can_be_and_a_thousand_times_that_cannot() {
        let work = Work { flops: 1_000_000_000, ..Work::default() };
        let (least_ns, why) = call_ns_min(&work, "f32", None).unwrap();
        let reached = rate("fma", 2_048, |work| work.flops).max(THREAD_MIN.flops);
        assert!(least_ns < 1e9 / reached && least_ns > 1e9 / (reached * 1e3), "{least_ns} {reached}");
        assert!(why.contains("1000000000 operations on this machine"), "{why}");
        assert_eq!(call_ns_min(&Work::default(), "f32", None), None);
    }

    #[test]
    fn a_known_device_is_held_against_its_data_sheet() {
        let device = |name: &str| DeviceInfo {
            ordinal: 0,
            name: name.to_owned(),
            uuid: String::new(),
            compute_capability: String::new(),
            versions: Default::default(),
        };
        let work = Work { flops: 1_979_000_000, ..Work::default() };
        let (least_ns, _) = call_ns_min(&work, "f16", Some(&device("NVIDIA H200"))).unwrap();
        assert!((least_ns - 800.0).abs() < 1.0, "{least_ns}");
        assert_eq!(call_ns_min(&work, "f16", Some(&device("unheard of"))), None);
    }
}
