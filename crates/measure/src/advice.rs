//! Advice for steadier times on this machine: settings of the kernel, other processes, other machines. Each piece of
//! advice has the command that follows it; there is none where all is well.

use crate::machine::{OthersCpu, StateReader};
use crate::program;
use holdpoint_model::Advice;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// How long other processes are observed: fifty ticks of the kernel's accounting.
const OBSERVED: Duration = Duration::from_millis(500);
/// Ticks per second of the kernel's accounting, on every architecture that Linux has today.
const TICKS_PER_S: f64 = 100.0;
/// Shares of the machine's CPU time that others may use without being named.
const OTHERS_MAX: f64 = 0.05;
/// Share of CPU time that other machines may take without being named.
const STEAL_MAX: f64 = 0.01;

/// Looks at this machine; takes half a second.
pub fn advise() -> Vec<Advice> {
    let busy = observe_others();
    let mut all = from_settings(Path::new("/"), program::cpus_allowed().len());
    all.splice(0..0, busy);
    all
}

fn advice(reason: &str, detail: String, remedy: String) -> Advice {
    Advice { reason: reason.to_owned(), detail, remedy }
}

/// Other processes and other machines that take CPU time now.
fn observe_others() -> Vec<Advice> {
    let (before, others, mut state) = (ticks_by_process(), OthersCpu::begin(), StateReader::default());
    state.read();
    std::thread::sleep(OBSERVED);
    let steal = state.read().steal.filter(|steal| *steal > STEAL_MAX);
    let share = others.share().filter(|share| *share > OTHERS_MAX);
    let share = share.map(|share| busy(share, busiest(&before, &ticks_by_process())));
    let steal = steal.map(|steal| {
        let detail = format!("the hypervisor gives {:.0} % of the CPU time to other machines", steal * 100.0);
        advice("stolen_time", detail, "rent dedicated CPUs, or move to another host".to_owned())
    });
    [share, steal].into_iter().flatten().collect()
}

fn busy(share: f64, busiest: Option<Busiest>) -> Advice {
    let detail = format!("other processes use {:.0} % of this machine's CPUs", share * 100.0);
    match busiest {
        Some(Busiest { pid, name, cpus }) => advice(
            "busy",
            format!("{detail}, most of all {name} ({pid}) with {:.0} % of one", cpus * 100.0),
            "wait until it has ended".to_owned(),
        ),
        None => {
            advice("busy", detail, "wait until they have ended; each lives for less than a second".to_owned())
        }
    }
}

struct Busiest {
    pid: u32,
    name: String,
    cpus: f64,
}

type Ticks = HashMap<u32, (String, u64)>;

fn busiest(before: &Ticks, after: &Ticks) -> Option<Busiest> {
    let used =
        after.iter().filter(|(pid, _)| **pid != std::process::id()).filter_map(|(pid, (name, now))| {
            let (_, was) = before.get(pid)?;
            Some((now.saturating_sub(*was), *pid, name.clone()))
        });
    let (ticks, pid, name) = used.filter(|(ticks, ..)| *ticks > 0).max()?;
    Some(Busiest { pid, name, cpus: ticks as f64 / TICKS_PER_S / OBSERVED.as_secs_f64() })
}

/// Name and CPU time of every process, in ticks.
fn ticks_by_process() -> Ticks {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let read = |entry: fs::DirEntry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let (name, fields) = stat.split_once('(')?.1.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        Some((pid, (name.to_owned(), ticks()? + ticks()?)))
    };
    entries.filter_map(read).collect()
}

/// Whether stack, heap and libraries of each process lie elsewhere.
const LAYOUT: &str = "proc/sys/kernel/randomize_va_space";

/// Settings that make times vary, below `root`.
fn from_settings(root: &Path, usable_cpus: usize) -> Vec<Advice> {
    let read = |path: &str| Some(fs::read_to_string(root.join(path)).ok()?.trim().to_owned());
    let is = |path: &str, value: &str| read(path).is_some_and(|found| found == value);
    let mut all = Vec::new();
    let cpus: Vec<String> =
        (0..).map_while(|cpu| read(&format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor"))).collect();
    let slow: Vec<&String> = cpus.iter().filter(|governor| *governor != "performance").collect();
    if let Some(governor) = slow.first() {
        let detail = format!(
            "{} of {} CPUs have the governor {governor} (/{CPUS}/cpu*/cpufreq/scaling_governor)",
            slow.len(),
            cpus.len()
        );
        all.push(advice("governor", detail, "sudo cpupower frequency-set --governor performance".to_owned()));
    }
    let is_virtual = read("proc/cpuinfo").is_some_and(|text| has_flag(&text, "hypervisor"));
    if is_virtual && cpus.is_empty() {
        let detail =
            "this is a virtual machine: the host sets its clock and shares its CPUs with others".to_owned();
        let remedy = "measure on dedicated hardware, or compare side by side, which suffers least".to_owned();
        all.push(advice("virtual_machine", detail, remedy));
    }
    let turbo =
        [(format!("{CPUS}/intel_pstate/no_turbo"), "0", "1"), (format!("{CPUS}/cpufreq/boost"), "1", "0")];
    if let Some((path, _, off)) = turbo.iter().find(|(path, on, _)| is(path, on)) {
        let detail = format!("the clock depends on how many CPUs are busy and how warm they are (/{path})");
        all.push(advice("turbo", detail, format!("echo {off} | sudo tee /{path}")));
    }
    if is(&format!("{CPUS}/smt/active"), "1") {
        let pair = read(&format!("{CPUS}/cpu0/topology/thread_siblings_list")).unwrap_or_default();
        let detail = format!("two CPUs share a core (such as {pair}), and each slows the other down");
        all.push(advice("smt", detail, format!("echo off | sudo tee /{CPUS}/smt/control")));
    }
    if read(LAYOUT).is_some_and(|value| value != "2") {
        let detail = format!(
            "every process has the same layout in memory (/{LAYOUT}): a verdict may belong to it instead of the program"
        );
        all.push(advice("fixed_layout", detail, format!("echo 2 | sudo tee /{LAYOUT}")));
    }
    match usable_cpus {
        0 => {
            let detail = "processes cannot be held on one CPU: sched_getaffinity is refused".to_owned();
            all.push(advice("no_pinning", detail, "allow it in the container's seccomp profile".to_owned()));
        }
        1 => {
            let detail = "only one CPU may be used: whatever else runs takes its time from it".to_owned();
            all.push(advice(
                "one_cpu",
                detail,
                "allow two or more: taskset --cpu-list 0,1 holdpoint …".to_owned(),
            ));
        }
        _ => {}
    }
    if let Some(quota) = read("sys/fs/cgroup/cpu.max").filter(|quota| !quota.starts_with("max")) {
        let detail = format!("the container is stopped when its CPU time is used up (cpu.max is {quota:?})");
        all.push(advice(
            "cpu_quota",
            detail,
            "start it without a quota, with CPUs of its own: --cpuset-cpus".to_owned(),
        ));
    }
    let huge_pages = "sys/kernel/mm/transparent_hugepage/enabled";
    if read(huge_pages).is_some_and(|text| text.contains("[always]")) {
        let detail =
            "whether a buffer gets huge pages depends on what is free (transparent_hugepage is \"always\")"
                .to_owned();
        all.push(advice("huge_pages", detail, format!("echo madvise | sudo tee /{huge_pages}")));
    }
    all
}

const CPUS: &str = "sys/devices/system/cpu";

fn has_flag(cpuinfo: &str, flag: &str) -> bool {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|flags| flags.split_ascii_whitespace().any(|word| word == flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(files: &[(&str, &str)], usable_cpus: usize) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        from_settings(root.path(), usable_cpus).into_iter().map(|advice| advice.reason).collect()
    }

    #[test]
    fn a_machine_that_is_set_up_well_gets_no_advice() {
        let well = [
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
            ("sys/devices/system/cpu/smt/active", "0\n"),
            ("sys/fs/cgroup/cpu.max", "max 100000\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("proc/cpuinfo", "flags\t\t: fpu sse2\n"),
            ("proc/sys/kernel/randomize_va_space", "2\n"),
        ];
        assert_eq!(reasons(&well, 2), [""; 0]);
    }

    #[test]
    fn each_setting_that_makes_times_vary_is_named() {
        for (path, text, reason) in [
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n", "governor"),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n", "turbo"),
            ("sys/devices/system/cpu/cpufreq/boost", "1\n", "turbo"),
            ("sys/devices/system/cpu/smt/active", "1\n", "smt"),
            ("sys/fs/cgroup/cpu.max", "150000 100000\n", "cpu_quota"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n", "huge_pages"),
            ("proc/cpuinfo", "flags\t\t: fpu hypervisor sse2\n", "virtual_machine"),
            ("proc/sys/kernel/randomize_va_space", "0\n", "fixed_layout"),
        ] {
            assert_eq!(reasons(&[(path, text)], 2), [reason]);
        }
        assert_eq!(reasons(&[], 1), ["one_cpu"]);
        assert_eq!(reasons(&[], 0), ["no_pinning"]);
    }

    #[test]
    fn the_process_that_used_most_is_named() {
        let ticks = |of: [u64; 3]| {
            let own = std::process::id();
            let pids = [own, own + 1, own + 2];
            pids.into_iter().zip(of).map(|(pid, ticks)| (pid, (format!("p{}", pid - own), ticks))).collect()
        };
        let found = busiest(&ticks([0, 100, 7]), &ticks([500, 125, 8])).unwrap();
        assert_eq!((found.name.as_str(), found.cpus), ("p1", 0.5));
        assert!(busiest(&ticks([0, 1, 1]), &ticks([9, 1, 1])).is_none());
    }
}
