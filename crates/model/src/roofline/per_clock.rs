//! What a multiprocessor of a GPU can do in one clock, by compute capability.
//!
//! Ordinary arithmetic: CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions". Tensor cores: NVIDIA's whitepapers
//! on Volta, Turing, Ampere (GA100, GA102), Ada, Hopper and Blackwell; dense products, the larger figure where it depends on the
//! accumulator. A fused multiply-add counts as two operations.

use crate::protocol::DeviceInfo;

/// Operations per clock of one multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PerClock {
    /// The generation: a compute capability, or all that begin with it.
    capability: &'static str,
    f64: f64,
    /// By its own units, and with fp32 operands on tensor cores.
    f32: f64,
    f16: f64,
    /// 8-bit operands.
    e4m3: f64,
}

const fn per_clock(capability: &'static str, [f64, f32, f16, e4m3]: [f64; 4]) -> PerClock {
    PerClock { capability, f64, f32, f16, e4m3 }
}

/// The more special ones first.
const PER_CLOCK: &[PerClock] = &[
    per_clock("7.0", [64.0, 128.0, 1024.0, 1024.0]),
    per_clock("7.5", [4.0, 128.0, 1024.0, 2048.0]),
    per_clock("8.0", [128.0, 1024.0, 2048.0, 4096.0]),
    per_clock("8.6", [4.0, 512.0, 1024.0, 2048.0]),
    per_clock("8.9", [4.0, 512.0, 1024.0, 2048.0]),
    per_clock("9.0", [256.0, 2048.0, 4096.0, 8192.0]),
    per_clock("10.", [256.0, 4096.0, 8192.0, 16384.0]),
    per_clock("12.", [4.0, 512.0, 1024.0, 2048.0]),
];

/// Bytes per clock between a multiprocessor and the L2 cache: 64 in each direction since Volta (Jia and others, "Dissecting the
/// NVIDIA Volta GPU Architecture via Microbenchmarking", 2018; an H200 was seen at a quarter of both together).
const L2_BYTES: f64 = 128.0;

/// The most that a device can do, by its own description.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DevicePeaks {
    pub flops_per_ns: f64,
    /// Of what its L2 cache holds.
    pub l2_bytes_per_ns: f64,
    /// Of everything else; absent where the memory is not described.
    pub memory_bytes_per_ns: Option<f64>,
    /// Size of the L2 cache.
    pub l2_bytes: f64,
}

/// The peaks of a device for an element type; those of the quickest type where it is not a known one. `None` where the device does
/// not say enough, or is of an unknown generation.
pub fn device_peaks(device: &DeviceInfo, dtype: &str) -> Option<DevicePeaks> {
    let known = PER_CLOCK.iter().find(|known| {
        let is_all = known.capability.ends_with('.');
        let capability = device.compute_capability.as_str();
        if is_all { capability.starts_with(known.capability) } else { capability == known.capability }
    })?;
    let per_clock = match dtype {
        "f64" => known.f64,
        "f32" => known.f32,
        "f16" | "bf16" => known.f16,
        _ => known.e4m3,
    };
    let clocks_per_ns = f64::from(device.multiprocessors?) * f64::from(device.sm_mhz_max?) / 1e3;
    // Two transfers per clock.
    let memory = device.memory_mhz_max.zip(device.memory_bus_bits);
    Some(DevicePeaks {
        flops_per_ns: per_clock * clocks_per_ns,
        l2_bytes_per_ns: L2_BYTES * clocks_per_ns,
        memory_bytes_per_ns: memory.map(|(mhz, bits)| 2.0 * f64::from(mhz) / 1e3 * f64::from(bits) / 8.0),
        l2_bytes: device.l2_bytes.unwrap_or(0) as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roofline::public_peaks;

    fn device(
        name: &str,
        capability: &str,
        [multiprocessors, sm_mhz, memory_mhz, bits]: [u32; 4],
    ) -> DeviceInfo {
        DeviceInfo {
            name: name.to_owned(),
            compute_capability: capability.to_owned(),
            multiprocessors: Some(multiprocessors),
            sm_mhz_max: Some(sm_mhz),
            memory_mhz_max: Some(memory_mhz),
            memory_bus_bits: Some(bits),
            ..DeviceInfo::default()
        }
    }

    #[test]
    fn peaks_by_clock_are_those_of_the_data_sheets() {
        for device in [
            device("V100-SXM2-16GB", "7.0", [80, 1530, 877, 4096]),
            device("A100-SXM4-80GB", "8.0", [108, 1410, 1593, 5120]),
            device("A10", "8.6", [72, 1695, 6251, 384]),
            device("L40S", "8.9", [142, 2520, 9001, 384]),
            device("H200", "9.0", [132, 1980, 3201, 6144]),
            device("B200", "10.0", [148, 1965, 3996, 8192]),
        ] {
            let sheet = public_peaks(&device.name).unwrap();
            for (dtype, tflops) in
                sheet.tflops.iter().filter(|(dtype, _)| *dtype == "f16" || *dtype == "e4m3")
            {
                let ratio = device_peaks(&device, dtype).unwrap().flops_per_ns / 1e3 / tflops;
                // Sheets state lower clocks than the highest.
                assert!((0.97..1.11).contains(&ratio), "{} {dtype}: {ratio}", device.name);
            }
            let memory = device_peaks(&device, "f32").unwrap().memory_bytes_per_ns.unwrap();
            assert!((0.97..1.06).contains(&(memory / sheet.gb_per_s)), "{}: {memory}", device.name);
        }
    }

    #[test]
    fn an_unknown_generation_or_a_device_that_says_nothing_has_none() {
        assert_eq!(device_peaks(&device("new", "13.0", [1; 4]), "f16"), None);
        let silent = DeviceInfo { compute_capability: "9.0".to_owned(), ..DeviceInfo::default() };
        assert_eq!(device_peaks(&silent, "f16"), None);
    }
}
