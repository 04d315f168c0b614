//! Where and with what a run was made.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Settings besides the machine that change times: precision and determinism modes, threads, the seed, versions. By
/// name; unset ones are absent.
pub type EnvironmentLock = BTreeMap<String, String>;

/// Everything that two machines must have in common for their times to be compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Hash over every other field of this block: equal means comparable.
    pub fingerprint: String,
    /// CPU model as the kernel names it.
    pub cpu_model: String,
    /// Logical CPUs online.
    pub cpus: u32,
    /// Memory in GiB, rounded.
    pub memory_gib: u64,
    /// Instruction set, such as `x86_64`.
    pub arch: String,
    /// Operating system, such as `linux`.
    pub os: String,
    /// Accelerators by name; empty for a CPU run.
    #[serde(default)]
    pub devices: Vec<String>,
}

impl Machine {
    /// One line for people.
    pub fn describe(&self) -> String {
        let mut text =
            format!("{}, {} CPUs, {} GiB, {}", self.cpu_model, self.cpus, self.memory_gib, self.arch);
        for device in &self.devices {
            text.push_str(", ");
            text.push_str(device);
        }
        text
    }
}

/// Something that makes times on a machine vary, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// A code, such as `governor`.
    pub reason: String,
    /// The finding.
    pub detail: String,
    /// A command, or what else helps.
    pub remedy: String,
}

/// The machine's state while a round ran. Absent means not readable here, never zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineState {
    /// Load average over one minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load1: Option<f64>,
    /// Mean frequency over the CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_mhz: Option<f64>,
    /// Share of CPU time that the hypervisor gave to others during the round, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal: Option<f64>,
    /// How long the workers' processes were ready and had no CPU, as a share of the round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<f64>,
    /// The state of the device that was used, where one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceState>,
}

/// A device's state at the end of a round. Absent means not readable here, never zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceState {
    /// Clock of the multiprocessors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_mhz: Option<u32>,
    /// The highest that clock can go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_mhz_max: Option<u32>,
    /// Clock of the memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mhz: Option<u32>,
    /// Temperature of the chip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<u32>,
    /// Power drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// The most power that it may draw; absent in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_limit_w: Option<f64>,
    /// Energy drawn since the driver was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// Why its clocks were held back, in the driver's words; empty when they were not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttle_reasons: Vec<String>,
    /// Processes that had a context on the device, the worker's own included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<u32>,
}

/// The driver's words for clocks that were held back by heat, by the hardware or by others; being idle or set so by the owner is not.
const THROTTLED: &[&str] =
    &["HW_SLOWDOWN", "SYNC_BOOST", "SW_THERMAL_SLOWDOWN", "HW_THERMAL_SLOWDOWN", "HW_POWER_BRAKE_SLOWDOWN"];

/// The driver's word for clocks that were held back because the device drew as much power as it may.
const POWER_CAP: &str = "SW_POWER_CAP";

/// The driver's word for clocks that are low because nothing runs.
const IDLE: &str = "GPU_IDLE";

/// A kernel during which the clock is lower than this share of the highest draws more power than the device may: others were seen at 96 to
/// 100 % on an H200, dense attention and matrix products at 80 to 91 %.
const POWER_LIMITED_CLOCK: f64 = 0.94;

/// The key under which workers have the limit on a device's power in their environment lock: kernels that reach it are as fast as it allows.
pub const POWER_LIMIT: &str = "power_limit_w";

impl DeviceState {
    /// Whether it drew as much power as it may, and lowered its clocks for no other reason. That is how a device runs dense kernels, and
    /// no disturbance: times are comparable under the same limit.
    pub fn is_power_limited(&self) -> bool {
        self.throttle_reasons.iter().any(|reason| reason == POWER_CAP) && !self.is_throttled()
    }

    /// The same, by the clock of the samples as well: a device slows down for a kernel that draws too much long before it says so.
    pub fn is_power_limited_at(&self, sm_mhz: Option<f64>) -> bool {
        let is_free = self.throttle_reasons.iter().all(|reason| reason == IDLE);
        let is_slow = |(mhz, most): (f64, u32)| mhz > 0.0 && mhz < POWER_LIMITED_CLOCK * f64::from(most);
        self.is_power_limited() || is_free && sm_mhz.zip(self.sm_mhz_max).is_some_and(is_slow)
    }

    /// Whether its clocks were held back by heat, by the hardware or by others.
    pub fn is_throttled(&self) -> bool {
        self.throttle_reasons.iter().any(|reason| THROTTLED.contains(&reason.as_str()))
    }

    /// Whether processes use the device that are none of these, holdpoint's own. Others count only if one of these is listed too: in
    /// some containers the driver numbers them differently.
    pub fn is_shared(&self, own: &[u32]) -> bool {
        let known = self.processes.iter().filter(|id| own.contains(id)).count();
        known > 0 && known < self.processes.len()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Toolchain {
    pub holdpoint: String,
    /// Compiler that built holdpoint and its built-in workloads.
    pub rustc: String,
    /// Build profile of holdpoint: times from a `debug` build say little.
    pub profile: String,
    /// Kernel release.
    #[serde(default)]
    pub kernel: Option<String>,
    /// The device's driver and the compiler of its kernels, where a device was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<CudaVersions>,
}

/// The versions behind a device's numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CudaVersions {
    /// The driver, such as `580.159.04`.
    pub driver: String,
    /// The CUDA version that the driver speaks, such as `13.0`.
    pub cuda: String,
    /// NVRTC, such as `13.0`; absent where kernels came from the cache alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvrtc: Option<String>,
}

/// The revision of the code under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Revision {
    /// Full commit hash.
    pub commit: String,
    /// Whether tracked files differed from that commit.
    pub dirty: bool,
}
