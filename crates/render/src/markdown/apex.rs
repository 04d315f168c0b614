//! The page of a GPU report of Apex-X, with the titles that its readers know; times are milliseconds with four decimals, as theirs.

use super::tables::{self, left, right};
use super::{escape, joined, section};
use holdpoint_interop::apex::{ApexGpuReport, AutotuneEntry, Part, Section, SkipRecord, Times};

/// Apex-X's word for a missing value.
const MISSING: &str = "n/a";
const TILE_OPS: [(&str, &str); 3] =
    [("tilepack", "TilePack"), ("tileunpack", "TileUnpack"), ("fusion_gate", "FusionGate")];
/// Sections with tables of their own.
const SECTIONS: [&str; 3] = ["tile_ops", "tilessm", "end_to_end_infer"];

/// The environment, the kernels and the times.
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
    out += &fact("cache_hit_rate", Some(&number(summary.cache_hit_rate)));
    out
}

fn kernels(r: &ApexGpuReport) -> String {
    let columns = ["op", "kernel", "shape bucket", "selected config", "source"].map(left);
    let columns: Vec<_> = columns.into_iter().chain([right("launches")]).collect();
    let rows: Vec<_> = r.triton_autotune.entries.iter().map(kernel).collect();
    tables::table(&columns, &rows)
}

fn kernel(entry: &AutotuneEntry) -> Vec<String> {
    let config = entry.selected_config.iter().map(|(key, value)| format!("{key:?}: {value}"));
    let config = format!("{{{}}}", config.collect::<Vec<_>>().join(", "));
    vec![
        escape::prose(&entry.op_name),
        escape::prose(&entry.kernel_name),
        escape::prose(&entry.shape_bucket),
        escape::prose(&config),
        escape::prose(&entry.selection_source),
        entry.launches.to_string(),
    ]
}

fn tile_ops(benchmarks: &Section) -> String {
    let columns = [left("op"), left("dispatch backend")].into_iter();
    let numbers = ["ref p50 ms", "dispatch p50 ms", "ref p95 ms", "dispatch p95 ms"].map(right);
    let columns: Vec<_> = columns.chain(numbers).collect();
    let rows = TILE_OPS.map(|(key, title)| {
        let place = format!("tile_ops.{key}");
        let reference = times(benchmarks, &format!("{place}.reference"));
        let dispatch = times(benchmarks, &format!("{place}.dispatch"));
        vec![
            title.to_owned(),
            backend(benchmarks, &place),
            number(reference.map(|t| t.p50_ms)),
            number(dispatch.map(|t| t.p50_ms)),
            number(reference.map(|t| t.p95_ms)),
            number(dispatch.map(|t| t.p95_ms)),
        ]
    });
    tables::table(&columns, &rows)
}

fn tile_ssm(benchmarks: &Section) -> String {
    let columns = [left("path"), left("backend"), right("p50 ms"), right("p95 ms"), right("tokens/s")];
    let row = |title: &str, backend: String, times: Option<&Times>| {
        vec![
            title.to_owned(),
            backend,
            number(times.map(|t| t.p50_ms)),
            number(times.map(|t| t.p95_ms)),
            number(times.and_then(|t| t.throughput.get("tokens_per_s").copied())),
        ]
    };
    let reference = times(benchmarks, "tilessm.torch_reference");
    let plugin = skip(benchmarks, "tilessm.tensorrt_plugin").map(|record| escape::prose(&record.status));
    let rows = [
        row("torch ref", if reference.is_some() { "reference" } else { MISSING }.to_owned(), reference),
        row("dispatch", backend(benchmarks, "tilessm"), times(benchmarks, "tilessm.triton_dispatch")),
        row(
            "TensorRT plugin",
            plugin.unwrap_or_else(|| MISSING.to_owned()),
            times(benchmarks, "tilessm.tensorrt_plugin"),
        ),
    ];
    tables::table(&columns, &rows)
}

fn end_to_end(benchmarks: &Section) -> String {
    let columns = ["p50 ms", "p95 ms", "frames/s", "peak memory mb"].map(right);
    let columns: Vec<_> = [left("path")].into_iter().chain(columns).collect();
    let paths = [
        ("torch_eager", "torch eager"),
        ("torch_triton_fastpath", "torch + triton fast-path"),
        ("tensorrt_engine", "TensorRT engine"),
    ];
    let rows = paths.map(|(key, title)| {
        let times = times(benchmarks, &format!("end_to_end_infer.{key}"));
        vec![
            title.to_owned(),
            number(times.map(|t| t.p50_ms)),
            number(times.map(|t| t.p95_ms)),
            number(times.and_then(|t| t.throughput.get("frames_per_s").copied())),
            number(times.and_then(|t| t.peak_memory_mb)),
        ]
    });
    let mut out = tables::table(&columns, &rows);
    if let Some(record) = skip(benchmarks, "end_to_end_infer.tensorrt_engine") {
        out += &format!("\nTensorRT engine benchmark skipped: {}.\n", escape::name(&record.reason));
    }
    out
}

/// Workloads that Apex-X's page has no place for, and those that were not measured.
fn others(benchmarks: &Section) -> String {
    let columns = ["p50 ms", "p95 ms", "peak memory mb"].map(right);
    let columns: Vec<_> = [left("workload"), left("status")].into_iter().chain(columns).collect();
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
            escape::name(name),
            escape::prose(&status),
            number(times.map(|t| t.p50_ms)),
            number(times.map(|t| t.p95_ms)),
            number(times.and_then(|t| t.peak_memory_mb)),
        ]);
    });
    tables::table(&columns, &rows)
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
        (Some(backend), Some(kernel)) => escape::prose(&format!("{backend} ({kernel})")),
        (Some(backend), None) => escape::prose(backend),
        (None, _) => MISSING.to_owned(),
    }
}

fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(|| MISSING.to_owned(), |value| format!("{value:.4}"))
}
