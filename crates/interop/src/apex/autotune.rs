//! The kernels behind a report, in the form of Apex-X's autotune registry.

use holdpoint_model::report::{KernelInfo, Measured, Outcome, Report};
use serde::Serialize;
use std::collections::BTreeMap;

/// The registry at the end of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Autotune {
    pub summary: AutotuneSummary,
    /// One per kernel, sizes and constants, sorted by op, sizes and kernel.
    pub entries: Vec<AutotuneEntry>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AutotuneSummary {
    pub cache_entries: u64,
    pub launches: u64,
    pub cache_hits: u64,
    pub cache_misses: u64,
    /// Hits over hits and misses; null without any.
    pub cache_hit_rate: Option<f64>,
}

/// One kernel as it ran. Apex-X reports the constants it would have chosen; these are the ones that were compiled in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AutotuneEntry {
    pub op_name: String,
    /// Its name in the source; the first, where a call takes several.
    pub kernel_name: String,
    /// The sizes it was chosen for, as `key=value|…`.
    pub shape_bucket: String,
    pub selected_config: BTreeMap<String, i64>,
    /// Where they come from: `registry_cache` (measured before on this device), `triton_best_config` or `heuristic`.
    pub selection_source: String,
    /// Launches in all samples and in warm-up, of all kernels of a call: `calls · launches_per_call`. Calls that check an answer
    /// or record a graph are not counted.
    pub launches: u64,
    /// Launches that found the constants chosen: all but the misses, as Apex-X counts.
    pub cache_hits: u64,
    /// Launches that had to choose them: the first where they came from the `heuristic`, none where the `registry_cache` had them.
    pub cache_misses: u64,
}

impl Autotune {
    /// The kernels of all measured workloads. Workloads with the same kernel, sizes and constants share an entry.
    pub(super) fn from_report(report: &Report) -> Self {
        let mut launches = BTreeMap::new();
        for measurement in report.benchmarks.values() {
            let Outcome::Measured(measured) = &measurement.outcome else { continue };
            let Some(kernel) = &measured.kernel else { continue };
            let sum: &mut u64 = launches.entry(key(kernel)).or_default();
            *sum = sum.saturating_add(count_launches(measured, kernel));
        }
        let entries: Vec<_> = launches.into_iter().map(|(key, launches)| entry(key, launches)).collect();
        Self { summary: summary(&entries), entries }
    }
}

type Key<'a> = (&'a str, &'a str, &'a str, &'a BTreeMap<String, i64>, &'a str);

fn key(kernel: &KernelInfo) -> Key<'_> {
    let KernelInfo { op_name, shape_bucket, kernel_name, selected_config, selection_source, .. } = kernel;
    (op_name, shape_bucket, kernel_name, selected_config, selection_source)
}

fn count_launches(measured: &Measured, kernel: &KernelInfo) -> u64 {
    let samples: usize = measured.samples.rounds.iter().map(|round| round.elapsed_ns.len()).sum();
    let calls = (samples as u64).saturating_mul(measured.samples.calls_per_sample);
    calls.saturating_add(measured.warmup.calls_count).saturating_mul(kernel.launches_per_call.into())
}

fn entry((op_name, shape_bucket, kernel_name, config, source): Key<'_>, launches: u64) -> AutotuneEntry {
    let cache_misses = if source == "registry_cache" { 0 } else { launches.min(1) };
    AutotuneEntry {
        op_name: op_name.to_owned(),
        kernel_name: kernel_name.to_owned(),
        shape_bucket: shape_bucket.to_owned(),
        selected_config: config.clone(),
        selection_source: source.to_owned(),
        launches,
        cache_hits: launches - cache_misses,
        cache_misses,
    }
}

fn summary(entries: &[AutotuneEntry]) -> AutotuneSummary {
    let sum = |count: fn(&AutotuneEntry) -> u64| entries.iter().map(count).fold(0, u64::saturating_add);
    let (cache_hits, cache_misses) = (sum(|entry| entry.cache_hits), sum(|entry| entry.cache_misses));
    let looks = cache_hits.saturating_add(cache_misses);
    AutotuneSummary {
        cache_entries: entries.len() as u64,
        launches: sum(|entry| entry.launches),
        cache_hits,
        cache_misses,
        cache_hit_rate: (looks > 0).then(|| cache_hits as f64 / looks as f64),
    }
}
