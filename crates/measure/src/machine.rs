//! The machine's fingerprint and state, and the revision checked out.

use holdpoint_model::report::Environment;
use holdpoint_model::{Machine, MachineState, Revision, Suite, Toolchain};
use holdpoint_process::git::Repository;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

/// The machine this runs on. Host names and kernel versions stay out of the fingerprint: two runners of one
/// kind are the same machine for a baseline.
pub fn machine() -> Machine {
    with_device(None)
}

pub fn machine_for(suite: &Suite) -> Machine {
    with_device(if suite.uses_cuda() { holdpoint_cuda::device_name(suite.device) } else { None })
}

/// The same, with the device's name as the worker said it, if it did: asking the driver here takes a fifth of a second.
pub(crate) fn machine_with(suite: &Suite, device: Option<&str>) -> Machine {
    match device.filter(|_| suite.uses_cuda()) {
        Some(device) => with_device(Some(device.to_owned())),
        None => machine_for(suite),
    }
}

fn with_device(device: Option<String>) -> Machine {
    let cpu_model = cpu_model();
    let cpus = cpus_online();
    let memory_gib = memory_kib().map_or(0, |kib| (kib + (1 << 19)) >> 20);
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    let mut text = format!("{cpu_model}\n{cpus}\n{memory_gib}\n{arch}\n{os}\n");
    text.extend(device.iter().map(|device| format!("{device}\n")));
    Machine {
        fingerprint: hex(&Sha256::digest(text.as_bytes())),
        cpu_model,
        cpus,
        memory_gib,
        arch: arch.to_owned(),
        os: os.to_owned(),
        devices: device.into_iter().collect(),
    }
}

/// ARM kernels report numbers instead of a name.
fn cpu_model() -> String {
    let by_numbers = || Some(format!("CPU {} {}", cpuinfo("CPU implementer")?, cpuinfo("CPU part")?));
    cpuinfo("model name").or_else(by_numbers).unwrap_or_else(|| "unknown CPU".to_owned())
}

/// All CPUs online: an affinity mask does not make another machine.
pub(crate) fn cpus_online() -> u32 {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let count = text.lines().filter(|line| field(line, "processor").is_some()).count();
    u32::try_from(count.max(1)).unwrap_or(u32::MAX)
}

pub fn toolchain() -> Toolchain {
    Toolchain {
        holdpoint: env!("CARGO_PKG_VERSION").to_owned(),
        rustc: env!("HOLDPOINT_RUSTC").to_owned(),
        profile: env!("HOLDPOINT_PROFILE").to_owned(),
        kernel: read_line("/proc/sys/kernel/osrelease"),
        cuda: None,
    }
}

pub fn environment(suite: &Suite) -> Environment {
    let kernel = read_line("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned());
    Environment {
        platform: format!("{}-{kernel}-{}", std::env::consts::OS, std::env::consts::ARCH),
        device: if suite.uses_cuda() { "cuda" } else { "cpu" }.to_owned(),
        cuda_available: cuda_is_visible(),
    }
}

/// The revision checked out in `dir`; `None` outside a git work tree or where git cannot tell.
pub fn revision(dir: &Path) -> Option<Revision> {
    let head = Repository::around(dir).head().ok().flatten()?;
    Some(Revision { commit: head.commit, dirty: !head.changes.is_empty() })
}

/// The branch that is measured in `dir`: the one checked out, or else, as CI checks out commits, the one that CI names.
pub fn branch(dir: &Path) -> Option<String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let of_github = || variable("GITHUB_HEAD_REF");
    let of_gitlab = || variable("CI_COMMIT_REF_NAME").filter(|_| variable("CI_COMMIT_TAG").is_none());
    Repository::around(dir).current_branch().or_else(of_github).or_else(of_gitlab)
}

pub fn peak_rss_bytes() -> Option<u64> {
    peak_rss_bytes_of("self")
}

/// All memory of the machine.
pub(crate) fn memory_bytes() -> Option<u64> {
    memory_kib().map(|kib| kib << 10)
}

/// Of another process, by its number.
pub(crate) fn peak_rss_bytes_of(process: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

#[derive(Debug, Default)]
pub struct StateReader {
    cpu_ticks: Option<CpuTicks>,
}

#[derive(Clone, Copy, Debug)]
struct CpuTicks {
    all: u64,
    idle: u64,
    steal: u64,
}

/// Counts the CPU time that others use, from now on.
#[derive(Debug)]
pub(crate) struct OthersCpu {
    before: Option<(CpuTicks, u64)>,
}

impl OthersCpu {
    pub fn begin() -> Self {
        Self { before: cpu_ticks().zip(own_ticks()) }
    }

    /// The share of the machine's CPU time that neither this process nor the children it waited for used. Time that the
    /// hypervisor gave to other machines counts as others'.
    pub fn share(&self) -> Option<f64> {
        let (before, own_before) = self.before?;
        let (now, own_now) = cpu_ticks().zip(own_ticks())?;
        let all = now.all.checked_sub(before.all).filter(|all| *all > 0)?;
        let busy = all.saturating_sub(now.idle.saturating_sub(before.idle));
        Some(busy.saturating_sub(own_now.saturating_sub(own_before)) as f64 / all as f64)
    }
}

/// Ticks of CPU time that this process and the children it waited for used.
fn own_ticks() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    // utime, stime, cutime and cstime are fields 14 to 17 of proc(5); the first here is the third there.
    fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum()
}

impl StateReader {
    /// Stolen time is counted since the previous call.
    pub fn read(&mut self) -> MachineState {
        MachineState { load1: load1(), cpu_mhz: cpu_mhz(), steal: self.steal(), ..MachineState::default() }
    }

    /// Ticks are 10 ms. If none has passed, there is no answer and the old count is kept.
    pub(crate) fn steal(&mut self) -> Option<f64> {
        let now = cpu_ticks()?;
        let before = self.cpu_ticks.replace(now)?;
        let all = now.all.checked_sub(before.all)?;
        if all == 0 {
            self.cpu_ticks = Some(before);
            return None;
        }
        Some(now.steal.saturating_sub(before.steal) as f64 / all as f64)
    }
}

pub(crate) fn load1() -> Option<f64> {
    read_line("/proc/loadavg")?.split(' ').next()?.parse().ok()
}

/// Mean frequency of the CPUs, from the kernel's governor or else from `/proc/cpuinfo`.
pub fn cpu_mhz() -> Option<f64> {
    let governed: Vec<f64> = (0..)
        .map_while(|cpu| read_line(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq")))
        .filter_map(|khz| Some(khz.parse::<f64>().ok()? / 1e3))
        .collect();
    if !governed.is_empty() {
        return Some(governed.iter().sum::<f64>() / governed.len() as f64);
    }
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let mhz: Vec<f64> = text.lines().filter_map(|line| field(line, "cpu MHz")?.parse().ok()).collect();
    (!mhz.is_empty()).then(|| mhz.iter().sum::<f64>() / mhz.len() as f64)
}

fn cpu_ticks() -> Option<CpuTicks> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<u64> =
        text.lines().next()?.split_whitespace().skip(1).filter_map(|t| t.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; the rest is already counted in user and nice.
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some(CpuTicks { all: ticks.iter().take(8).sum(), idle, steal: *ticks.get(7)? })
}

pub(crate) fn steal_is_readable() -> bool {
    cpu_ticks().is_some()
}

fn memory_kib() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse().ok())
}

fn cpuinfo(key: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    text.lines().find_map(|line| field(line, key).map(str::to_owned))
}

fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (name, value) = line.split_once(':')?;
    (name.trim() == key).then(|| value.trim())
}

pub(crate) fn read_line(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether the driver's library and a device node are there; quick enough for every run.
fn cuda_is_visible() -> bool {
    library("libcuda.so.1").is_some() && Path::new("/dev/nvidiactl").exists()
}

/// The path at which the loader would find a library.
fn library(name: &str) -> Option<String> {
    let paths = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = paths.split(':').chain([
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
        "/usr/local/nvidia/lib64",
        "/usr/local/cuda/lib64",
        "/usr/lib/wsl/lib",
    ]);
    folders
        .filter(|folder| !folder.is_empty())
        .map(|folder| format!("{folder}/{name}"))
        .find(|p| Path::new(p).exists())
}
