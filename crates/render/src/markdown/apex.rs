//! The pages of a GPU report and of a sweep of Apex-X, with the titles that its readers know; times are milliseconds with four decimals, as theirs.

use super::{escape, joined, section};
use crate::table::{Cell, Column, EmptyColumns, Grid, numbers, words};
use holdpoint_interop::apex::{
    ApexGpuReport, ApexSweepCase, ApexSweepReport, AutotuneEntry, Part, Section, SkipRecord, Times,
};

/// Apex-X's word for a missing value.
const MISSING: &str = "n/a";
const TILE_OPS: [(&str, &str); 3] =
    [("tilepack", "TilePack"), ("tileunpack", "TileUnpack"), ("fusion_gate", "FusionGate")];
/// Sections with tables of their own.
const SECTIONS: [&str; 3] = ["tile_ops", "tilessm", "end_to_end_infer"];

pub fn apex_gpu(r: &ApexGpuReport) -> String {
    let mut sections = vec![head(r), section("Triton Autotune Registry", summary(r)), kernels(r)];
    if r.status != "ok" {
        sections.push(fact("reason", r.reason.as_deref()));
    }
    if !r.benchmarks.parts.is_empty() {
        sections.extend([
            section("Tile Ops", tile_ops(&r.benchmarks)),
            section("TileSSM", tile_ssm(&r.benchmarks)),
            section("End-to-End Infer", end_to_end(&r.benchmarks)),
            section("Other Workloads", others(&r.benchmarks)),
        ]);
    }
    joined(&sections)
}

fn head(r: &ApexGpuReport) -> String {
    let environment = &r.environment;
    let mut out = "# Apex-X GPU Benchmark Report\n\n".to_owned();
    out += &fact("status", Some(&r.status));
    out += &fact("device", Some(&environment.device));
    out += &fact("requested_dtype", environment.requested_dtype.as_deref());
    out += &fact("effective_dtype", environment.effective_dtype.as_deref());
    out += &fact("timestamp_utc", Some(&r.timestamp_utc));
    match (environment.fp8_requested, environment.fp8_enabled) {
        (false, _) => {}
        (true, true) => out += &fact("fp8", Some("enabled")),
        (true, false) => {
            let reason = environment.fp8_fallback_reason.as_deref().unwrap_or(MISSING);
            out += &format!("- fp8: `fallback` reason={}\n", escape::name(reason));
        }
    }
    out
}

fn fact(what: &str, is: Option<&str>) -> String {
    format!("- {what}: {}\n", escape::name(is.unwrap_or(MISSING)))
}

fn summary(r: &ApexGpuReport) -> String {
    let summary = &r.triton_autotune.summary;
    let counts = [
        ("cache_entries", summary.cache_entries),
        ("launches", summary.launches),
        ("cache_hits", summary.cache_hits),
        ("cache_misses", summary.cache_misses),
    ];
    let mut out: String = counts.iter().map(|(what, count)| fact(what, Some(&count.to_string()))).collect();
    out += &fact("cache_hit_rate", Some(&shown(summary.cache_hit_rate)));
    out
}

/// A table with columns of words, then of numbers.
fn table<const W: usize, const N: usize>(
    titles: [&'static str; W],
    number_titles: [&'static str; N],
    rows: impl IntoIterator<Item = Vec<Cell>>,
) -> String {
    let columns: Vec<Column> = titles.map(words).into_iter().chain(number_titles.map(numbers)).collect();
    let mut grid = Grid::new(&columns);
    rows.into_iter().for_each(|row| grid.push(row));
    grid.markdown(EmptyColumns::Keep)
}

fn kernels(r: &ApexGpuReport) -> String {
    let titles = ["op", "kernel", "shape bucket", "selected config", "source"];
    table(titles, ["launches"], r.triton_autotune.entries.iter().map(kernel))
}

fn kernel(entry: &AutotuneEntry) -> Vec<Cell> {
    let config = entry.selected_config.iter().map(|(key, value)| format!("{key:?}: {value}"));
    let config = format!("{{{}}}", config.collect::<Vec<_>>().join(", "));
    let AutotuneEntry { op_name, kernel_name, shape_bucket, selection_source, launches, .. } = entry;
    [op_name, kernel_name, shape_bucket, &config, selection_source, &launches.to_string()]
        .map(|text| Cell::new(text))
        .into()
}

fn tile_ops(benchmarks: &Section) -> String {
    let rows = TILE_OPS.map(|(key, title)| {
        let place = format!("tile_ops.{key}");
        let reference = times(benchmarks, &format!("{place}.reference"));
        let dispatch = times(benchmarks, &format!("{place}.dispatch"));
        vec![
            Cell::new(title),
            Cell::new(&backend(benchmarks, &place)),
            number(reference.map(|t| t.p50_ms)),
            number(dispatch.map(|t| t.p50_ms)),
            number(reference.map(|t| t.p95_ms)),
            number(dispatch.map(|t| t.p95_ms)),
        ]
    });
    let number_titles = ["ref p50 ms", "dispatch p50 ms", "ref p95 ms", "dispatch p95 ms"];
    table(["op", "dispatch backend"], number_titles, rows)
}

fn tile_ssm(benchmarks: &Section) -> String {
    let row = |title: &str, backend: &str, times: Option<&Times>| {
        vec![
            Cell::new(title),
            Cell::new(backend),
            number(times.map(|t| t.p50_ms)),
            number(times.map(|t| t.p95_ms)),
            number(times.and_then(|t| t.throughput.get("tokens_per_s").copied())),
        ]
    };
    let reference = times(benchmarks, "tilessm.torch_reference");
    let plugin = skip(benchmarks, "tilessm.tensorrt_plugin").map_or(MISSING, |record| &record.status);
    let rows = [
        row("torch ref", if reference.is_some() { "reference" } else { MISSING }, reference),
        row("dispatch", &backend(benchmarks, "tilessm"), times(benchmarks, "tilessm.triton_dispatch")),
        row("TensorRT plugin", plugin, times(benchmarks, "tilessm.tensorrt_plugin")),
    ];
    table(["path", "backend"], ["p50 ms", "p95 ms", "tokens/s"], rows)
}

fn end_to_end(benchmarks: &Section) -> String {
    let paths = [
        ("torch_eager", "torch eager"),
        ("torch_triton_fastpath", "torch + triton fast-path"),
        ("tensorrt_engine", "TensorRT engine"),
    ];
    let rows = paths.map(|(key, title)| {
        let times = times(benchmarks, &format!("end_to_end_infer.{key}"));
        vec![
            Cell::new(title),
            number(times.map(|t| t.p50_ms)),
            number(times.map(|t| t.p95_ms)),
            number(times.and_then(|t| t.throughput.get("frames_per_s").copied())),
            number(times.and_then(|t| t.peak_memory_mb)),
        ]
    });
    let mut out = table(["path"], ["p50 ms", "p95 ms", "frames/s", "peak memory mb"], rows);
    if let Some(record) = skip(benchmarks, "end_to_end_infer.tensorrt_engine") {
        out += &format!("\nTensorRT engine benchmark skipped: {}.\n", escape::name(&record.reason));
    }
    out
}

/// Workloads that Apex-X's page has no place for, and those that were not measured.
fn others(benchmarks: &Section) -> String {
    let mut rows = Vec::new();
    walk("", benchmarks, &mut |name, part| {
        let is_shown = SECTIONS.iter().any(|section| name.split('.').next() == Some(section));
        let (status, times) = match part {
            Part::Times(times) if !is_shown => ("ok".to_owned(), Some(times)),
            Part::Skip(record) if !name.contains(".tensorrt_") => {
                (format!("{}: {}", record.status, record.reason), None)
            }
            _ => return,
        };
        rows.push(vec![
            Cell::name(name),
            Cell::new(&status),
            number(times.map(|t| t.p50_ms)),
            number(times.map(|t| t.p95_ms)),
            number(times.and_then(|t| t.peak_memory_mb)),
        ]);
    });
    table(["workload", "status"], ["p50 ms", "p95 ms", "peak memory mb"], rows)
}

/// Every workload below a section, by its dotted name.
fn walk(prefix: &str, section: &Section, visit: &mut dyn FnMut(&str, &Part)) {
    for (key, part) in &section.parts {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match part {
            Part::Section(section) => walk(&name, section, visit),
            part => visit(&name, part),
        }
    }
}

fn times<'a>(benchmarks: &'a Section, name: &str) -> Option<&'a Times> {
    match benchmarks.get(name)? {
        Part::Times(times) => Some(times),
        _ => None,
    }
}

fn skip<'a>(benchmarks: &'a Section, name: &str) -> Option<&'a SkipRecord> {
    match benchmarks.get(name)? {
        Part::Skip(record) => Some(record),
        _ => None,
    }
}

/// The kernel that a section dispatched to: `cuda (tile_pack_fast)`.
fn backend(benchmarks: &Section, name: &str) -> String {
    let Some(Part::Section(Section { dispatch: Some(dispatch), .. })) = benchmarks.get(name) else {
        return MISSING.to_owned();
    };
    match (&dispatch.backend, &dispatch.kernel_name) {
        (Some(backend), Some(kernel)) => format!("{backend} ({kernel})"),
        (Some(backend), None) => backend.clone(),
        (None, _) => MISSING.to_owned(),
    }
}

fn shown(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(|| MISSING.to_owned(), |value| format!("{value:.4}"))
}

fn number(value: Option<f64>) -> Cell {
    Cell::new(&shown(value))
}

/// The sweep of a model over input shapes.
pub fn apex_sweep(r: &ApexSweepReport) -> String {
    let mut out = "# Apex-X TensorRT Engine Shape Sweep\n\n".to_owned();
    out += &fact("status", Some(&r.status));
    out += &fact("timestamp_utc", Some(&r.timestamp_utc));
    out += &fact("trt_engine_path", Some(&r.config.trt_engine_path));
    if let Some(reason) = &r.reason {
        out += &fact("reason", Some(reason));
    }
    let counts = [
        ("ok", r.summary.ok_count),
        ("skipped", r.summary.skipped_count),
        ("failed", r.summary.failed_count),
    ];
    let mut summary: String =
        counts.iter().map(|(what, count)| fact(&format!("{what}_count"), Some(&count.to_string()))).collect();
    let times = [
        ("p50_ms_min", r.summary.p50_ms_min),
        ("p50_ms_median", r.summary.p50_ms_median),
        ("p50_ms_max", r.summary.p50_ms_max),
    ];
    summary
        .extend(times.iter().filter(|(_, ms)| ms.is_some()).map(|(what, ms)| fact(what, Some(&shown(*ms)))));
    let columns: Vec<Column> = ["case", "status", "mode"]
        .map(words)
        .into_iter()
        .chain(["p50 ms", "p95 ms", "fps"].map(numbers))
        .chain([words("reason")])
        .collect();
    let mut grid = Grid::new(&columns);
    r.cases.iter().for_each(|case| grid.push(sweep_case(case)));
    let cases = grid.markdown(EmptyColumns::Keep);
    joined(&[out, section("Summary", summary), section("Cases", cases)])
}

fn sweep_case(case: &ApexSweepCase) -> Vec<Cell> {
    let word = |word: Option<&String>| Cell::new(word.map_or("", String::as_str));
    let metrics = case.metrics.as_ref();
    let numbers = [
        metrics.map(|times| times.p50_ms),
        metrics.map(|times| times.p95_ms),
        metrics.and_then(|times| times.throughput.get("frames_per_s").copied()),
    ];
    let first = [Some(&case.label), Some(&case.status), case.mode.as_ref()].map(word);
    first.into_iter().chain(numbers.map(number)).chain([word(case.reason.as_ref())]).collect()
}
