//! How a history grows: adding and reading up to ten million points in 5 000 series, on SQLite and on PostgreSQL.
//!
//! `cargo bench -p holdpoint-history --bench scale` goes to a million points; `-- 10000000` to as many as named. PostgreSQL's server is
//! made in a temporary folder, with its own defaults: every commit reaches the disk.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "../tests/store/server.rs"]
mod server;

use holdpoint_gate::history::{Alerts, find_changes_in};
use holdpoint_history::{Access, Location, RunRecord, StoreTracks, open};
use holdpoint_model::{SeriesFilter, TimeRange, Timestamp, Trend, TrendMetric};
use std::fs;
use std::path::Path;
use std::time::Instant;

const SERIES: usize = 5_000;
/// Points of the one long series beside them.
const LONG: usize = 100_000;
/// Points between two changes of its level.
const LEVEL: usize = 10_000;
/// Points and runs that are added at a time, as `holdpoint history add` does.
const BATCH_POINTS: usize = 100_000;
const BATCH_RUNS: usize = 10_000;
const READS: usize = 15;

fn main() {
    let largest = std::env::args().filter_map(|word| word.parse().ok()).next().unwrap_or(1_000_000);
    let sizes = [100_000, 1_000_000, 10_000_000].into_iter().filter(|size| *size <= largest);
    println!(
        "| store | points | points/s added | points/s, one a run | read, changes found | CPU of it | read whole | list all | store size | peak memory |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let server = server::Server::start("");
    for points in sizes {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.db");
        measure("SQLite", &Location::file(&path), points, || folder_bytes(path.parent().unwrap()));
        if let Some(server) = &server {
            let location = server.create_database(&format!("points{points}"));
            let bytes = || server.size_bytes(&format!("points{points}"));
            measure("PostgreSQL", &location, points, bytes);
        }
    }
}

fn measure(name: &str, location: &Location, points: usize, size_bytes: impl Fn() -> u64) {
    // The kernel's mark of the highest memory starts anew.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let store = open(location, Access::Create, |_| Err("there are no two sides here".to_owned())).unwrap();
    let add = |runs: &mut dyn Iterator<Item = RunRecord>| {
        let (begin, mut batch, mut waiting, mut added) = (Instant::now(), Vec::new(), 0, 0);
        for run in runs {
            waiting += run.points.len();
            batch.push(run);
            if waiting >= BATCH_POINTS || batch.len() >= BATCH_RUNS {
                added += waiting;
                store.add(&std::mem::take(&mut batch)).unwrap();
                waiting = 0;
            }
        }
        store.add(&batch).unwrap();
        (added + waiting) as f64 / begin.elapsed().as_secs_f64()
    };
    let many = add(&mut (0..points / SERIES).map(|run| record("many", run, SERIES)));
    let single = add(&mut (0..LONG).map(|run| record("long", run, 1)));
    let filter = SeriesFilter { suite: Some("long".to_owned()), ..SeriesFilter::default() };
    let long = store.list(&filter).unwrap();
    let [changes_ms, changes_cpu_ms] = time(|| {
        let found = find_changes_in(&mut StoreTracks::new(&*store, &long), Alerts::Leave).unwrap();
        assert_eq!((found.series[0].points_count, found.events.len()), (LONG, LONG / LEVEL - 1));
    });
    let [read_ms, _] =
        time(|| assert_eq!(store.read(&long[0].id, TimeRange::default()).unwrap().points.len(), LONG));
    let begin = Instant::now();
    assert_eq!(store.list(&SeriesFilter::default()).unwrap().len(), SERIES + 1);
    let list_ms = begin.elapsed().as_secs_f64() * 1e3;
    println!(
        "| {name} | {points} | {many:.0} | {single:.0} | {changes_ms:.0} ms | {changes_cpu_ms:.0} ms | {read_ms:.0} ms | {list_ms:.0} ms | {} MB | {} MB |",
        size_bytes() / 1_000_000,
        peak_memory_kb() / 1_000
    );
}

/// The quickest of some calls, as whatever else the machine does only adds to it, and the mean of their CPU time in this thread.
fn time(mut call: impl FnMut()) -> [f64; 2] {
    let cpu_before = cpu_ns();
    let took = |_| {
        let begin = Instant::now();
        call();
        begin.elapsed().as_secs_f64() * 1e3
    };
    let quickest = (0..READS).map(took).fold(f64::INFINITY, f64::min);
    [quickest, (cpu_ns() - cpu_before) as f64 / 1e6 / READS as f64]
}

/// A run of a suite, made as one that is read from a trend: a minute after the one before.
fn record(suite: &str, run: usize, workloads: usize) -> RunRecord {
    let at = Timestamp::from_millis(1_700_000_000_000 + run as i64 * 60_000).unwrap();
    let metric = |workload: usize| TrendMetric {
        metric: format!("workload{workload}_p50_ms"),
        status: "pass".to_owned(),
        baseline_ms: None,
        allowed_max_ms: None,
        // Noise of 10 %, and a step up or down now and then.
        current_ms: Some((1.0 + 0.1 * noise(run, workload)) * [1.0, 1.2][run / LEVEL % 2]),
        regression_ratio: None,
    };
    let trend = Trend {
        schema_version: 1,
        suite: suite.to_owned(),
        timestamp_utc: at.to_string(),
        overall_status: "pass".to_owned(),
        total_metrics: workloads,
        failed_metrics: 0,
        metrics: (0..workloads).map(metric).collect(),
        revision: Some(holdpoint_model::Revision { commit: format!("{run:040x}"), dirty: false }),
    };
    RunRecord::trend(&trend).unwrap()
}

/// Evenly between 0 and 1, the same for the same point (SplitMix64).
fn noise(run: usize, workload: usize) -> f64 {
    let mut bits = (run * SERIES + workload) as u64;
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        bits = (bits ^ (bits >> 30)).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(factor);
    }
    (bits ^ (bits >> 31)) as f64 / u64::MAX as f64
}

/// CPU time of this thread; of a server's there is nothing in it.
fn cpu_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

fn peak_memory_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

fn folder_bytes(dir: &Path) -> u64 {
    fs::read_dir(dir).unwrap().flatten().map(|entry| entry.metadata().unwrap().len()).sum()
}
