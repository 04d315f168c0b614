//! Where and with what a run was made.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What makes two machines the same for a comparison of times.
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
    #[must_use]
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
}

/// The versions behind the numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Toolchain {
    /// Version of holdpoint.
    pub holdpoint: String,
    /// Compiler that built holdpoint and its built-in workloads.
    pub rustc: String,
    /// Build profile of holdpoint: times from a `debug` build say little.
    pub profile: String,
    /// Kernel release.
    #[serde(default)]
    pub kernel: Option<String>,
}

/// The revision of the code under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Revision {
    /// Full commit hash.
    pub commit: String,
    /// Whether tracked files differed from that commit.
    pub dirty: bool,
}
