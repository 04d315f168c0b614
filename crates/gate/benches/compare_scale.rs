//! Two reports of 10 000 workloads with 100 samples each: read both, compare, judge, write the result.
//!
//! `cargo bench -p holdpoint-gate --bench compare_scale` prints a Markdown table beside the bars; it exits
//! with 1 when one is missed.

#![allow(clippy::print_stdout)]

use holdpoint_gate::{Allow, Policy, compare, judge};
use holdpoint_model::machine::{Machine, MachineState, Toolchain};
use holdpoint_model::report::{Environment, Measured, RunConfig, Samples, Stopped, Warmup};
use holdpoint_model::{Identity, Measurement, Outcome, Report, Round, RunStatus, SCHEMA_VERSION};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

const WORKLOADS: usize = 10_000;
/// The default plan takes 20 rounds at least: the form with the most text around 100 samples.
const ROUNDS: u32 = 20;
const SAMPLES_PER_ROUND: u64 = 5;
const SECONDS_MAX: f64 = 1.0;
const PEAK_MB_MAX: f64 = 500.0;
/// Reading is repeated so that one descheduling does not decide; each pass does the whole work.
const PASSES: usize = 5;

fn main() -> ExitCode {
    // `cargo test --all-targets` runs benches too, without this flag.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [base, head, result] =
        ["base.json", "head.json", "comparison.json"].map(|name| folder.path().join(name));
    for (path, shift_ns) in [(&base, 0), (&head, 700)] {
        holdpoint_store::write_json(path, &report(shift_ns)).expect("a written report");
    }
    let size_mb = std::fs::metadata(&base).expect("a report").len() as f64 / 1e6;
    reset_peak();
    let mut seconds: Vec<f64> = (0..PASSES).map(|_| pass(&base, &head, &result)).collect();
    seconds.sort_by(f64::total_cmp);
    let (median_s, worst_s, peak_mb) = (seconds[PASSES / 2], seconds[PASSES - 1], peak_mb());
    println!("| what | measured | bar |");
    println!("|---|---:|---:|");
    println!("| workloads × samples | {WORKLOADS} × {} | |", u64::from(ROUNDS) * SAMPLES_PER_ROUND);
    println!("| size of each report | {size_mb:.1} MB | |");
    println!("| read both, compare, judge, write: median of {PASSES} | {median_s:.3} s | {SECONDS_MAX} s |");
    println!("| the same, slowest | {worst_s:.3} s | |");
    match peak_mb {
        Some(peak_mb) => println!("| peak memory (VmHWM) | {peak_mb:.0} MB | {PEAK_MB_MAX} MB |"),
        None => println!("| peak memory | not readable here | {PEAK_MB_MAX} MB |"),
    }
    let missed = median_s > SECONDS_MAX || peak_mb.is_some_and(|peak_mb| peak_mb > PEAK_MB_MAX);
    ExitCode::from(u8::from(missed))
}

/// What `holdpoint compare base.json head.json` does, in seconds.
fn pass(base: &Path, head: &Path, result: &Path) -> f64 {
    let start = Instant::now();
    let baseline = holdpoint_store::read_baseline(base).expect("a baseline");
    let current = holdpoint_store::read_current(head).expect("a report");
    let judgement = judge(&compare(&current, &baseline, Allow::default()), Policy::Stored);
    assert_eq!(judgement.checks.len(), WORKLOADS);
    holdpoint_store::write_json(result, &judgement).expect("a written judgement");
    start.elapsed().as_secs_f64()
}

/// Making the reports must not count. Linux forgets the peak when asked to.
fn reset_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? * 1024.0 / 1e6)
}

fn report(shift_ns: u64) -> Report {
    let benchmarks =
        (0..WORKLOADS).map(|index| (format!("workload_{index:05}"), measurement(index, shift_ns)));
    let benchmarks: Vec<(String, Measurement)> = benchmarks.collect();
    let metric = |(name, measurement): &(String, Measurement)| match &measurement.outcome {
        Outcome::Measured(measured) => (format!("{name}_p50_ms"), measured.p50_ms),
        Outcome::Skipped { .. } | Outcome::Failed(_) => unreachable!("all are measured"),
    };
    Report {
        schema_version: SCHEMA_VERSION,
        suite: "scale".to_owned(),
        timestamp_utc: "2026-02-14T10:00:00Z".to_owned(),
        status: RunStatus::Ok,
        reason: None,
        environment: Environment {
            platform: "linux x86_64".to_owned(),
            device: "cpu".to_owned(),
            cuda_available: false,
        },
        config: RunConfig {
            seed: 123,
            percentile_rule: "sorted[floor(q(n-1))]".to_owned(),
            clock_resolution_ns: 20,
            elapsed_s: 600.0,
            others_cpu: None,
        },
        machine: Some(Machine {
            fingerprint: "0123456789abcdef".repeat(4),
            cpu_model: "Example CPU @ 2.00GHz".to_owned(),
            cpus: 2,
            memory_gib: 16,
            arch: "x86_64".to_owned(),
            os: "linux".to_owned(),
            devices: Vec::new(),
        }),
        revision: None,
        branch: None,
        environment_lock: None,
        toolchain: Toolchain {
            holdpoint: "0.1.0".to_owned(),
            rustc: "1.95.0".to_owned(),
            profile: "release".to_owned(),
            kernel: None,
            cuda: None,
        },
        metrics: benchmarks.iter().map(metric).collect(),
        benchmarks: benchmarks.into_iter().collect(),
    }
}

fn measurement(index: usize, shift_ns: u64) -> Measurement {
    let base_ns = 120_000 + (index as u64 * 7_919) % 50_000 + shift_ns;
    let round = |round: u32| Round {
        process: 0,
        round,
        order: round % 7,
        elapsed_ns: (0..SAMPLES_PER_ROUND)
            .map(|i| base_ns + (i * 1_237 + u64::from(round) * 331) % 900)
            .collect(),
        cpu_ns: Vec::new(),
        peak_rss_bytes: None,
        sm_mhz: Vec::new(),
        peak_device_bytes: None,
        state: MachineState {
            load1: Some(0.37),
            cpu_mhz: Some(2_899.998),
            steal: Some(0.0),
            ..MachineState::default()
        },
    };
    let p50_ms = base_ns as f64 / 1e6 + 0.000_45;
    let measured = Measured {
        p50_ms,
        p95_ms: p50_ms * 1.01,
        p99_ms: p50_ms * 1.02,
        mean_ms: p50_ms * 1.001,
        min_ms: p50_ms * 0.99,
        cv: Some(0.012_345_678),
        p50_interval_ms: Some([p50_ms * 0.999, p50_ms * 1.001]),
        throughput: BTreeMap::from([("gb_per_s".to_owned(), 12.345_678_9 / p50_ms)]),
        peak_memory_mb: Some(12.5),
        cpu_p50_ms: None,
        answer: None,
        warmup: Warmup { calls_count: 100, stable: true },
        stopped: Stopped::TargetWidth,
        peak_device_memory_mb: None,
        distrust: None,
        sm_cycles_p50: None,
        power_limited: None,
        near_peak: None,
        slow_stretches: None,
        kernel: None,
        samples: Samples { calls_per_sample: 1, rounds: (0..ROUNDS).map(round).collect() },
    };
    Measurement {
        identity: Identity {
            op: "tile_pack".to_owned(),
            shape: vec![1, 64, 128, 128],
            dtype: "f32".to_owned(),
            timer: "host_monotonic".to_owned(),
            params: serde_json::Map::new(),
        },
        gated: vec!["p50_ms".to_owned()],
        outcome: Outcome::Measured(Box::new(measured)),
    }
}
