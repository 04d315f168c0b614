//! Runs a suite and reports.

use crate::ReadySuite;
use crate::{clock, machine, schedule};
use holdpoint_cuda::trace;
use holdpoint_model::machine::{CudaVersions, EnvironmentLock};
use holdpoint_model::protocol::WorkerInfo;
use holdpoint_model::report::RunConfig;
use holdpoint_model::suite::WORKER_CUDA;
use holdpoint_model::{Outcome, Report, RunStatus, SCHEMA_VERSION, Suite, Toolchain};
use holdpoint_stats as stats;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// Measures the suite. `repository` is where the code under test is checked out. Whatever goes wrong with a workload
/// becomes its outcome.
pub fn run_suite(suite: &ReadySuite, repository: &Path, on_event: &mut dyn FnMut(schedule::Event)) -> Report {
    let (timestamp_utc, start) = (clock::timestamp_utc(), Instant::now());
    let others = machine::OthersCpu::begin();
    let (measurements, workers) =
        trace::step("measure suite", &suite.name, || schedule::measure(suite, on_event));
    crate::jobs::sweep();
    let cuda = workers.values().find_map(|worker| Some(worker.device.as_ref()?.versions.clone()));
    // Of the device that the suite names: other workers may use others.
    let own = workers.get(WORKER_CUDA).and_then(|worker| worker.device.as_ref());
    let device = own.filter(|device| device.ordinal == suite.device).map(|device| device.name.clone());
    let benchmarks: indexmap::IndexMap<_, _> = measurements.into_iter().collect();
    let status = RunStatus::from_measurements(benchmarks.values());
    let mut report = Report {
        schema_version: SCHEMA_VERSION,
        suite: suite.name.clone(),
        timestamp_utc,
        status,
        reason: None,
        environment: machine::environment(suite),
        config: RunConfig {
            seed: suite.seed,
            percentile_rule: stats::PERCENTILE_RULE.to_owned(),
            clock_resolution_ns: clock::resolution_ns(),
            elapsed_s: start.elapsed().as_secs_f64(),
            others_cpu: others.share(),
        },
        machine: Some(machine::machine_with(suite, device.as_deref())),
        revision: machine::revision(repository),
        branch: machine::branch(repository),
        environment_lock: Some(environment_lock(suite, cuda.as_ref(), &workers)),
        toolchain: Toolchain { cuda, ..machine::toolchain() },
        metrics: std::collections::BTreeMap::new(),
        benchmarks,
    };
    report.reason = reason(&report);
    report.metrics = metrics(&report);
    report
}

/// Environment variables that change how fast something is computed, or the result.
const VARIABLES: &[&str] = &[
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_LAUNCH_BLOCKING",
    "GLIBC_TUNABLES",
    "LD_PRELOAD",
    "MALLOC_ARENA_MAX",
    "MKL_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "PYTHONHASHSEED",
    "PYTORCH_CUDA_ALLOC_CONF",
    "RAYON_NUM_THREADS",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
];

/// Conditions that must match for a comparison: our environment, and what workers report about theirs.
pub fn environment_lock(
    suite: &Suite,
    cuda: Option<&CudaVersions>,
    workers: &BTreeMap<String, WorkerInfo>,
) -> EnvironmentLock {
    let set = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
    let mut lock: EnvironmentLock = VARIABLES.iter().filter_map(set).collect();
    lock.insert("seed".to_owned(), suite.seed.to_string());
    if let Some(cuda) = cuda {
        lock.insert("cuda_driver".to_owned(), cuda.driver.clone());
        lock.extend(cuda.nvrtc.iter().map(|version| ("nvrtc".to_owned(), version.clone())));
    }
    for (worker, info) in workers {
        lock.extend(
            info.environment_lock.iter().map(|(name, value)| (format!("{worker}.{name}"), value.clone())),
        );
    }
    lock
}

/// The first workload that keeps the run from being `ok`.
fn reason(report: &Report) -> Option<String> {
    let failed = report.benchmarks.iter().find_map(|(name, measurement)| match &measurement.outcome {
        Outcome::Failed(failure) => Some(format!("{name}: {}", failure.cause.as_str())),
        _ => None,
    });
    let skipped = || {
        report.benchmarks.values().find_map(|measurement| match &measurement.outcome {
            Outcome::Skipped { reason } => Some(reason.clone()),
            Outcome::Measured(measured) => measured.distrust.clone(),
            Outcome::Failed(_) => None,
        })
    };
    failed.or_else(skipped)
}

fn metrics(report: &Report) -> std::collections::BTreeMap<String, f64> {
    let current = holdpoint_model::Current::from(report);
    current.metrics.into_iter().map(|(name, metric)| (name, metric.value_ms)).collect()
}
