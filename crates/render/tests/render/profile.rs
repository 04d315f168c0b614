//! The tables after profiling and sanitizing.

use crate::values::HOSTILE;
use holdpoint_model::{Profile, SanitizeReport};
use holdpoint_render::{Style, terminal};
use insta::assert_snapshot;
use serde_json::json;

const NARROW: Style = Style { color: false, width: Some(80), ascii: false };

fn profile(name: &str) -> Profile {
    let kernel = |kernel: &str, launches: u32| {
        json!({
            "name": kernel, "grid": "(64, 1, 1)", "block": "(128, 1, 1)", "launches_count": launches, "replayed_ns": 3648.0,
            "metrics": {
                "sm__throughput.avg.pct_of_peak_sustained_elapsed": 1.83,
                "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 9.52,
                "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 9.52,
                "sm__warps_active.avg.pct_of_peak_sustained_active": 10.25,
                "launch__registers_per_thread": 40,
            },
            "findings": [
                {
                    "rule": "small_grid", "severity": "medium", "remedy": "more, smaller blocks, or more work in a launch",
                    "what": "the grid is 0.04 of what fits on the device at a time", "evidence": {},
                },
                {
                    "rule": "uncoalesced_loads", "severity": "high", "remedy": "read vectors",
                    "what": "global loads use 49.7 % of the bytes that they fetch", "evidence": {},
                },
            ],
        })
    };
    let identity = json!({"op": "x", "timer": "cuda_graph"});
    let value = json!({
        "schema_version": 1, "suite": "gpu", "timestamp_utc": "2025-01-01T00:00:00Z",
        "profiler": {"name": "ncu", "version": "2025.3.1.0", "path": "/usr/bin/ncu"},
        "device": {"ordinal": 0, "name": "NVIDIA H200", "versions": {"driver": "580.159.04", "cuda": "13.0"}},
        "missing_metrics": ["a__b.sum"],
        "profiles": {
            name: {"identity": identity, "status": "profiled", "kernels": [kernel("tile_pack_fast", 1), kernel("gate", 3)]},
            "refused": {
                "identity": identity, "status": "unavailable", "reason": "ncu_no_permission",
                "detail": "==ERROR== ERR_NVGPUCTRPERM", "remedy": "run as root",
            },
            "no_device": {"identity": identity, "status": "unavailable", "reason": "cuda_unavailable"},
            "wrong": {"identity": identity, "status": "failed", "cause": "wrong_answer", "detail": "out[7]"},
        },
    });
    serde_json::from_value(value).expect("a profile")
}

#[test]
fn a_profile_in_a_narrow_terminal() {
    assert_snapshot!(terminal::profile(&profile("tile_ops.tilepack.dispatch"), NARROW));
}

#[test]
fn what_a_sanitizer_found() {
    let unavailable =
        json!({"status": "unavailable", "reason": "sanitizer_blind", "detail": "memcheck called it clean"});
    let value = json!({
        "schema_version": 1, "suite": "gpu", "timestamp_utc": "2025-01-01T00:00:00Z",
        "sanitized": {
            "clean": {"memcheck": {"status": "clean"}, "racecheck": {"status": "clean"}},
            "bad": {
                "memcheck": {
                    "status": "errors", "errors_count": 5,
                    "errors": [{
                        "what": "Invalid __global__ write of size 4 bytes", "kernel": "k", "place": "k+0x80 in k.cu:3",
                        "thread": "thread (0,0,0) in block (0,0,0)",
                    }],
                },
                "racecheck": {"status": "failed", "cause": "crashed", "detail": "it ended with signal: 9"},
            },
            "blind": {"memcheck": unavailable, "racecheck": unavailable},
        },
    });
    let report: SanitizeReport = serde_json::from_value(value).expect("a report");
    assert_snapshot!(terminal::sanitize(&report, NARROW));
}

#[test]
fn hostile_names_cannot_paint() {
    let text = terminal::profile(&profile(HOSTILE), NARROW);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text:?}");
}
