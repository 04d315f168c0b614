//! Compiles every kernel for every architecture, without a GPU, and compares its registers and memory with `usage.txt` in the
//! op's folder: a kernel that begins to spill is slower long before a test is red.

use holdpoint_cuda::compile::{self, Nvrtc, Unit, Usage};
use holdpoint_ops::cuda::{ARCHS, Compilation, checked_units};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

/// Registers are handed out to a thread in steps of 8: fewer more than recorded cost at most one step.
const REGISTERS_SLACK: u32 = 8;
/// The ops' folders.
const FOLDERS: &str = "crates/ops/src";
/// The recorded needs, in each of them.
const FILE: &str = "usage.txt";

/// Registers and memory by kernel, architecture, element type and constants.
type Table = BTreeMap<String, Needs>;
/// The same by folder.
type Tables = BTreeMap<&'static str, Table>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Needs {
    registers: u32,
    spill_bytes: u32,
    stack_bytes: u32,
}

/// Compiles, and compares or (`--record`) records; the problems, if any. Names of ops restrict it to them. Without a compiler it
/// says so, which is a problem only with `--require`.
pub fn check(root: &Path, arguments: &[String]) -> Vec<String> {
    let (flags, ops): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(String::as_str).partition(|argument| argument.starts_with('-'));
    if let Some(stray) = flags.iter().find(|flag| !["--record", "--require"].contains(flag)) {
        return vec![format!("{stray:?} is none of --record, --require")];
    }
    let nvrtc = match compile::search().and_then(|found| Nvrtc::load(&found)) {
        Ok(nvrtc) => nvrtc,
        Err(error) if flags.contains(&"--require") => return vec![format!("no NVRTC ({error})")],
        Err(error) => {
            println!("kernels: skipped, no NVRTC ({error})");
            return Vec::new();
        }
    };
    let mut jobs = checked_units();
    jobs.retain(|job| ops.is_empty() || ops.contains(&job.folder));
    let start = Instant::now();
    let (tables, mut problems) = compile_all(&nvrtc, &jobs);
    println!(
        "kernels: {} kernels compiled by NVRTC {} for {} in {:.0} s",
        tables.values().map(Table::len).sum::<usize>(),
        nvrtc.version,
        ARCHS.join(", "),
        start.elapsed().as_secs_f64()
    );
    if !problems.is_empty() {
        return problems;
    }
    for (folder, now) in &tables {
        let path = root.join(FOLDERS).join(folder).join(FILE);
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        if flags.contains(&"--record") {
            problems.extend(fs::write(&path, write(now, &nvrtc.version)).err().map(failed));
            continue;
        }
        match fs::read_to_string(&path) {
            Ok(text) => {
                if !text.contains(&version_line(&nvrtc.version)) {
                    println!(
                        "kernels: {folder} recorded with another NVRTC: what differs may be the compiler's doing"
                    );
                }
                problems.extend(compare(&read(&text), now));
            }
            Err(error) => problems.push(format!("{}; run \"cargo xtask kernels --record\"", failed(error))),
        }
    }
    problems
}

/// Every unit that is to be checked, shared out over the CPUs; what does not compile is a problem.
fn compile_all(nvrtc: &Nvrtc, jobs: &[Compilation]) -> (Tables, Vec<String>) {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((job, compile::compile_for(nvrtc, &job.unit, job.arch)));
        }
        done
    };
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let (mut tables, mut problems) = (Tables::new(), Vec::new());
    thread::scope(|scope| {
        let threads: Vec<_> = (0..cpus).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            let Ok(done) = thread.join() else {
                problems.push("a compiling thread panicked".to_owned());
                continue;
            };
            for (Compilation { folder, unit, arch }, compiled) in done {
                let table = tables.entry(folder).or_default();
                match compiled {
                    Ok(kernels) => table.extend(kernels.iter().map(|usage| entry(unit, arch, usage))),
                    Err(error) => problems.push(format!("{}: {error}", key(unit.source.name, unit, arch))),
                }
            }
        }
    });
    problems.sort();
    (tables, problems)
}

fn entry(unit: &Unit, arch: &str, usage: &Usage) -> (String, Needs) {
    let Usage { kernel, registers, spill_bytes, stack_bytes } = usage;
    let needs = Needs { registers: *registers, spill_bytes: *spill_bytes, stack_bytes: *stack_bytes };
    (key(kernel, unit, arch), needs)
}

/// `attention_fast sm_90a f16 CAUSAL=0,HEAD_DIM=64`.
fn key(kernel: &str, unit: &Unit, arch: &str) -> String {
    let constants: Vec<String> = unit.config.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let constants = if constants.is_empty() { "-".to_owned() } else { constants.join(",") };
    format!("{kernel} {arch} {} {constants}", unit.dtype.name())
}

/// Names every kernel that needs more than was recorded, and every line that is out of date.
fn compare(recorded: &Table, now: &Table) -> Vec<String> {
    let mut problems = Vec::new();
    for (key, needs) in now {
        let Some(before) = recorded.get(key) else {
            problems.push(format!("{key}: not recorded; run \"cargo xtask kernels --record\""));
            continue;
        };
        let mut more = |what: &str, now: u32, before: u32, slack: u32| {
            if now > before + slack {
                problems.push(format!(
                    "{key}: {now} {what}, recorded {before}; if that is meant, run \"cargo xtask kernels --record\""
                ));
            }
        };
        more("registers", needs.registers, before.registers, REGISTERS_SLACK);
        more("bytes spilled", needs.spill_bytes, before.spill_bytes, 0);
        // Arrays that are not held in registers cost what a spill costs.
        more("bytes of stack", needs.stack_bytes, before.stack_bytes, 0);
    }
    let gone = recorded.keys().filter(|key| !now.contains_key(*key));
    problems.extend(gone.map(|key| format!("{key}: recorded, but there is no such kernel any more")));
    problems
}

fn version_line(version: &str) -> String {
    format!("# What the kernels need, written by `cargo xtask kernels --record` with NVRTC {version}.\n")
}

fn write(table: &Table, version: &str) -> String {
    let mut text = version_line(version);
    text += "# kernel, architecture, element type, constants, registers, bytes spilled, bytes of stack\n";
    for (key, Needs { registers, spill_bytes, stack_bytes }) in table {
        text += &format!("{key} {registers} {spill_bytes} {stack_bytes}\n");
    }
    text
}

/// Lines that cannot be read are left out, and then missed.
fn read(text: &str) -> Table {
    let line = |line: &str| {
        let parts: Vec<&str> = line.split_whitespace().collect();
        let [kernel, arch, dtype, constants, registers, spill_bytes, stack_bytes] = *parts else {
            return None;
        };
        let needs = Needs {
            registers: registers.parse().ok()?,
            spill_bytes: spill_bytes.parse().ok()?,
            stack_bytes: stack_bytes.parse().ok()?,
        };
        Some((format!("{kernel} {arch} {dtype} {constants}"), needs))
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(registers: u32, spill_bytes: u32, stack_bytes: u32) -> Table {
        Table::from([("a sm_80 f16 -".to_owned(), Needs { registers, spill_bytes, stack_bytes })])
    }

    #[test]
    fn what_is_written_is_read_back() {
        let table = table(40, 0, 16);
        assert_eq!(read(&write(&table, "13.0")), table);
    }

    #[test]
    fn a_step_of_registers_is_let_pass_and_any_spill_is_not() {
        let recorded = table(40, 0, 0);
        for fine in [table(40, 0, 0), table(48, 0, 0), table(32, 0, 0)] {
            assert_eq!(compare(&recorded, &fine), [""; 0]);
        }
        for worse in [table(49, 0, 0), table(40, 4, 0), table(40, 0, 8)] {
            let problems = compare(&recorded, &worse);
            assert!(problems.len() == 1 && problems[0].contains("a sm_80 f16 -"), "{problems:?}");
        }
    }

    #[test]
    fn a_kernel_that_came_or_went_is_named() {
        let one = table(40, 0, 0);
        assert!(compare(&Table::new(), &one)[0].contains("not recorded"));
        assert!(compare(&one, &Table::new())[0].contains("no such kernel"));
    }
}
