//! Cases small enough to be computed by hand.

use super::*;
use holdpoint_model::Report;
use holdpoint_model::roofline::*;
use holdpoint_model::suite::TIMER_CUDA_GRAPH;
use serde_json::{Value, json};

/// A measured workload: identity, median in ms, GB/s and GFLOP/s (0: not declared), launches (0: not on a device).
fn row(identity: Value, p50_ms: f64, [gb, gflops]: [f64; 2], launches: u32) -> Value {
    let mut throughput = json!({});
    if gb > 0.0 {
        throughput["gb_per_s"] = json!(gb);
    }
    if gflops > 0.0 {
        throughput["gflops"] = json!(gflops);
    }
    let mut row = json!({
        "identity": identity, "status": "measured", "p50_ms": p50_ms, "p95_ms": p50_ms, "p99_ms": p50_ms,
        "mean_ms": p50_ms, "min_ms": p50_ms, "throughput": throughput,
        "warmup": {"calls_count": 1, "stable": true}, "stopped": "target_width",
        "samples": {"calls_per_sample": 1, "rounds": []},
    });
    if launches > 0 {
        row["kernel"] = json!({
            "op_name": "x", "kernel_name": "x", "shape_bucket": "", "selection_source": "heuristic",
            "launches_per_call": launches,
        });
    }
    row
}

fn op(op: &str, dtype: &str, params: Value) -> Value {
    json!({"op": op, "dtype": dtype, "timer": TIMER_CUDA_GRAPH, "params": params})
}

fn report(devices: &[&str], rows: &[(&str, Value)]) -> Report {
    let benchmarks: serde_json::Map<String, Value> =
        rows.iter().map(|(name, row)| ((*name).to_owned(), row.clone())).collect();
    serde_json::from_value(json!({
        "schema_version": 1, "suite": "s", "timestamp_utc": "2026-11-15T00:00:00.000Z", "status": "ok",
        "environment": {"platform": "p", "device": "cuda", "cuda_available": true},
        "config": {"seed": 1, "percentile_rule": "r", "clock_resolution_ns": 30, "elapsed_s": 1.0},
        "machine": {
            "fingerprint": "f", "cpu_model": "some CPU", "cpus": 2, "memory_gib": 8, "arch": "x86_64",
            "os": "linux", "devices": devices,
        },
        "toolchain": {"holdpoint": "0", "rustc": "r", "profile": "release"},
        "metrics": {}, "benchmarks": benchmarks,
    }))
    .expect("a report")
}

/// Memory 1000 GB/s, 10 MB of cache 4000 GB/s, f32 10 and f16 100 TFLOP/s, a launch 2 µs.
fn ceilings() -> Ceilings {
    let copy = |rounds: u32| op("copy", "f32", json!({"rounds": rounds}));
    let rows = [
        // 8 rounds over 10 MB in 20 µs; once over 2 GB in 2 ms.
        ("copy_10m", row(copy(8), 0.02, [4000.0, 0.0], 1)),
        ("copy", row(copy(1), 2.0, [1000.0, 0.0], 1)),
        ("fma", row(op("fma", "f32", json!({})), 1.0, [0.0, 10_000.0], 1)),
        ("mma_tf32", row(op("mma", "f32", json!({})), 1.0, [0.0, 50_000.0], 1)),
        ("mma_f16", row(op("mma", "f16", json!({})), 1.0, [0.0, 100_000.0], 1)),
        ("launch", row(op("launch", "f32", json!({})), 0.002, [0.0, 0.0], 1)),
    ];
    ceilings_from(&report(&["Some GPU"], &rows)).expect("ceilings")
}

fn place(row: Value) -> Placement {
    let roofline = analyse(&report(&["Some GPU"], &[("w", row)]), ceilings()).expect("the same device");
    roofline.workloads["w"].clone()
}

fn placed(row: Value) -> Placed {
    match place(row) {
        Placement::Placed(placed) => *placed,
        Placement::Unplaced { reason } => panic!("{reason}"),
    }
}

#[test]
fn ceilings_are_found_in_their_report() {
    let ceilings = ceilings();
    assert_eq!((ceilings.memory.gb_per_s, ceilings.memory.working_set_bytes), (1000.0, 2e9));
    let [cache] = &ceilings.caches[..] else { panic!("{:?}", ceilings.caches) };
    assert_eq!((cache.gb_per_s, cache.working_set_bytes), (4000.0, 1e7));
    let compute: Vec<(&str, f64)> =
        ceilings.compute.iter().map(|(unit, c)| (unit.as_str(), c.gflops)).collect();
    assert_eq!(compute, [("f16", 100_000.0), ("f32", 10_000.0), ("tf32", 50_000.0)]);
    assert_eq!(ceilings.launch_ms[TIMER_CUDA_GRAPH], 0.002);
    let empty = ceilings_from(&report(&[], &[])).unwrap_err();
    assert!(empty.to_string().contains("roofline --measure"), "{empty}");
}

#[test]
fn a_ceiling_is_the_quickest_sample_not_the_median() {
    let mut copy = row(op("copy", "f32", json!({})), 2.0, [1000.0, 0.0], 1);
    copy["min_ms"] = json!(1.6);
    let ceilings = ceilings_from(&report(&["Some GPU"], &[("copy", copy)])).unwrap();
    assert_eq!((ceilings.memory.gb_per_s, ceilings.memory.working_set_bytes), (1250.0, 2e9));
}

#[test]
fn few_operations_per_byte_are_bound_by_memory() {
    // 200 MB in 0.25 ms: 800 GB/s of 1000; 1 operation per byte, where arithmetic would allow 100.
    let placed = placed(row(op("gate", "f16", json!({})), 0.25, [800.0, 800.0], 1));
    assert_eq!((placed.bottleneck, placed.efficiency_pct), (Bottleneck::Memory, Some(80.0)));
    assert_eq!((placed.arithmetic_intensity, placed.bytes, placed.flops), (Some(1.0), Some(2e8), Some(2e8)));
    assert_eq!((placed.ceiling.workload.as_str(), placed.ceiling.value), ("copy", 1000.0));
    assert!(placed.recommendations[0].starts_with("800 GB/s of 1.00 TB/s measured (80 %): only fewer bytes"));
}

#[test]
fn many_operations_per_byte_are_bound_by_arithmetic_of_their_type() {
    // 100 GB/s of 1000 (10 %), 60 TFLOP/s of 100 in f16.
    let half = placed(row(op("product", "f16", json!({})), 1.0, [100.0, 60_000.0], 1));
    assert_eq!((half.bottleneck, half.efficiency_pct), (Bottleneck::Compute, Some(60.0)));
    // In f32 the roof is 10: 6 are 60 % as well, and tensor cores would do ten times that.
    let full = placed(row(op("product", "float32", json!({})), 1.0, [100.0, 6_000.0], 1));
    assert_eq!((full.bottleneck, full.efficiency_pct), (Bottleneck::Compute, Some(60.0)));
    assert!(full.recommendations[1].contains("100 TFLOP/s in f16, 10 times"), "{:?}", full.recommendations);
}

#[test]
fn what_fits_the_cache_is_held_against_the_cache() {
    // 8 MB in 4 µs: twice what memory gives, half of what the cache gives.
    let warm = || row(op("gate", "f16", json!({})), 0.004, [2000.0, 0.0], 0);
    let placed_warm = placed(warm());
    assert_eq!((placed_warm.bottleneck, placed_warm.efficiency_pct), (Bottleneck::Cache, Some(50.0)));
    assert_eq!(placed_warm.ceiling.workload, "copy_10m");
    // Just as large, but the cache was empty: then it cannot be.
    let mut cold = warm();
    cold["identity"]["params"]["cache"] = json!("cold");
    assert_eq!(placed(cold).bottleneck, Bottleneck::AboveCeiling);
    // 20 MB do not fit what was measured: neither can that be.
    let large = placed(row(op("gate", "f16", json!({})), 0.01, [2000.0, 0.0], 1));
    assert_eq!((large.bottleneck, large.efficiency_pct), (Bottleneck::AboveCeiling, None));
    let said = &large.recommendations[0];
    assert!(said.starts_with("2.00 times the 1.00 TB/s measured as copy, which cannot be"), "{said}");
}

#[test]
fn nothing_is_more_than_100_percent_efficient() {
    // 3 % above is scatter; 6 % is not.
    let scatter = placed(row(op("copy", "f32", json!({})), 2.0, [1030.0, 0.0], 1));
    assert_eq!((scatter.bottleneck, scatter.efficiency_pct), (Bottleneck::Memory, Some(100.0)));
    let wrong = placed(row(op("copy", "f32", json!({})), 2.0, [1060.0, 0.0], 1));
    assert_eq!((wrong.bottleneck, wrong.efficiency_pct), (Bottleneck::AboveCeiling, None));
    // Arithmetic too; fp32 above its units may be on tensor cores.
    let fp32 = placed(row(op("product", "f32", json!({})), 1.0, [1.0, 20_000.0], 1));
    assert_eq!(fp32.bottleneck, Bottleneck::AboveCeiling);
    assert!(fp32.recommendations[0].contains("tensor cores, which do 50.0 TFLOP/s in tf32"));
    let share = |placed: Placed| placed.efficiency_pct.unwrap_or(0.0);
    for gb in [1.0, 990.0, 1001.0, 1049.0, 1051.0, 5000.0] {
        for gflops in [0.0, 1.0, 99_999.0, 104_999.0, 1e6] {
            let row = row(op("product", "f16", json!({})), 3.0, [gb, gflops], 1);
            assert!(share(placed(row)) <= 100.0, "{gb} {gflops}");
        }
    }
}

#[test]
fn what_takes_about_as_long_as_an_empty_launch_is_bound_by_it() {
    // One launch of 2 µs in 2.5 µs, and 10 KB.
    let small = |ms, launches| row(op("pack", "f16", json!({})), ms, [4.0, 0.0], launches);
    let one = placed(small(0.0025, 1));
    assert_eq!((one.bottleneck, one.efficiency_pct), (Bottleneck::Launch, Some(80.0)));
    assert!(one.recommendations[0].starts_with("2.00 µs of its 2.50 µs are what empty launches take (80 %)"));
    // Four launches in 10 µs are 80 % as well; one in 10 µs is not what it waits for.
    assert_eq!(placed(small(0.01, 4)).bottleneck, Bottleneck::Launch);
    let slow = placed(small(0.01, 1));
    assert_eq!(slow.bottleneck, Bottleneck::Cache);
    assert!(slow.recommendations[1].ends_with("empty launches take (20 %)"), "{:?}", slow.recommendations);
    // By the host's clock, which takes 9 µs with the first launch: 9 + 3·2 of 20.
    let mut ceilings = ceilings();
    ceilings.launch_ms.insert("host_monotonic".to_owned(), 0.009);
    let mut by_host = small(0.02, 4);
    by_host["identity"]["timer"] = json!("host_monotonic");
    let roofline = analyse(&report(&["Some GPU"], &[("w", by_host)]), ceilings).unwrap();
    let Placement::Placed(by_host) = &roofline.workloads["w"] else { panic!("{roofline:?}") };
    assert_eq!(
        (by_host.bottleneck, by_host.efficiency_pct.map(f64::round)),
        (Bottleneck::Launch, Some(75.0))
    );
    // As quick as the roof allows, it is the roof that counts: 9 MB in 2.5 µs of at least 2.25.
    let full = placed(row(op("gate", "f16", json!({})), 0.0025, [3600.0, 0.0], 1));
    assert_eq!(full.bottleneck, Bottleneck::Cache);
    // No work declared: the launch alone can be told.
    let bare = |ms| row(op("x", "f16", json!({})), ms, [0.0, 0.0], 1);
    assert_eq!(placed(bare(0.003)).bottleneck, Bottleneck::Launch);
    assert!(matches!(place(bare(1.0)), Placement::Unplaced { reason } if reason.contains("work =")));
}

#[test]
fn what_cannot_be_placed_says_why() {
    let why = |row| match place(row) {
        Placement::Unplaced { reason } => reason,
        Placement::Placed(placed) => panic!("{placed:?}"),
    };
    let identity = json!({"op": "sort", "dtype": "f32", "timer": "host_monotonic"});
    assert!(why(row(identity, 1.0, [1.0, 1.0], 0)).contains("ran on the CPU"));
    assert!(why(row(op("x", "f64", json!({})), 1.0, [0.0, 5.0], 1)).contains("f64"));
    let skipped = json!({"identity": op("x", "f16", json!({})), "status": "skipped", "reason": "no_reason"});
    assert_eq!(why(skipped), "skipped: no_reason");
    let failed = json!({"identity": op("x", "f16", json!({})), "status": "failed", "cause": "wrong_answer", "detail": ""});
    assert_eq!(why(failed), "failed: wrong_answer");
}

#[test]
fn ceilings_of_another_device_are_refused() {
    let refuse = |devices: &[&str]| analyse(&report(devices, &[]), ceilings()).unwrap_err().to_string();
    assert_eq!(refuse(&["Other GPU"]), "the ceilings are of Some GPU, the report is of Other GPU");
    assert_eq!(refuse(&[]), "the ceilings are of Some GPU, the report is of some CPU");
    let mut nowhere = report(&[], &[]);
    nowhere.machine = None;
    assert_eq!(analyse(&nowhere, ceilings()), Err(Mismatch::NoMachine));
}

#[test]
fn devices_are_found_by_their_whole_name() {
    let bandwidth = |name: &str| public_peaks(name).map(|peaks| peaks.gb_per_s);
    assert_eq!(bandwidth("NVIDIA L4"), Some(300.0));
    assert_eq!(bandwidth("NVIDIA L40S"), Some(864.0));
    assert_eq!(bandwidth("Tesla V100-SXM2-16GB"), Some(900.0));
    assert_eq!(bandwidth("NVIDIA A100-SXM4-40GB"), Some(1555.0));
    assert_eq!(bandwidth("NVIDIA A100-SXM4-80GB"), Some(2039.0));
    assert_eq!(bandwidth("NVIDIA H100 80GB HBM3"), Some(3350.0));
    assert_eq!(bandwidth("NVIDIA H100 PCIe"), Some(2000.0));
    for other in
        ["NVIDIA L400", "NVIDIA A10G", "NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 4090 D", "L", ""]
    {
        assert_eq!(public_peaks(other), None, "{other}");
    }
    assert!(!public_peaks("Tesla V100-PCIE-32GB").unwrap().tflops.contains_key("e4m3"));
}

#[test]
fn the_table_agrees_with_itself() {
    let mut names: Vec<&str> = PEAKS.iter().flat_map(|peak| peak.names).copied().collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), PEAKS.iter().map(|peak| peak.names.len()).sum::<usize>(), "a name comes twice");
    // Data sheets round: 362.05 beside 733, 1100 beside 2250.
    let twice = |wide: f64, narrow: f64| (narrow / wide / 2.0 - 1.0).abs() < 0.03;
    for peak in PEAKS {
        assert!(peak.tf32 == 0.0 || twice(peak.tf32, peak.f16), "{peak:?}: fp16 is twice tf32");
        assert!(peak.bf16 == 0.0 || peak.bf16 == peak.f16, "{peak:?}");
        assert!(peak.e4m3 == 0.0 || twice(peak.f16, peak.e4m3), "{peak:?}: fp8 is twice fp16");
        assert!(peak.tf32 == 0.0 || peak.tf32 >= peak.f32, "{peak:?}: tensor cores are no slower");
        // What a byte from memory must be used for before fp32 arithmetic is the limit; a slip of units would be 1000 off.
        let balance = 1e3 * peak.f32 / peak.gb_per_s;
        assert!((9.0..120.0).contains(&balance), "{peak:?}: {balance} operations per byte");
        assert!(!peak.source.is_empty() && peak.dated.len() == 7, "{peak:?}");
    }
}

#[test]
fn ceilings_measured_on_an_h200_lie_between_half_of_its_data_sheet_and_a_tenth_above_it() {
    let text = include_str!("../../../../docs/results/h200/ceilings-gpu.json");
    let report: Report = serde_json::from_str(text).expect("a report");
    let ceilings = ceilings_from(&report).expect("ceilings");
    let peaks = public_peaks(&ceilings.device).expect("an H200 is in the table");
    let share = ceilings.memory.gb_per_s / peaks.gb_per_s;
    assert!((0.8..1.0).contains(&share), "{share}");
    for unit in ["f32", "tf32", "f16", "bf16", "e4m3"] {
        let share = ceilings.compute[unit].gflops / 1e3 / peaks.tflops[unit];
        // Data sheets are for 1.83 GHz, the clock goes to 1.98.
        assert!((0.5..1.1).contains(&share), "{unit}: {share}");
    }
    let roofline = analyse(&report, ceilings.clone()).expect("its own device");
    assert_eq!(roofline.notes, [""; 0]);
    // Each ceiling under itself: its median is close to its best, and nothing is above.
    for (name, placement) in &roofline.workloads {
        let Placement::Placed(placed) = placement else { panic!("{name}: {placement:?}") };
        assert!(placed.efficiency_pct.is_some_and(|pct| pct > 70.0), "{name}: {placed:?}");
    }
}

#[test]
fn ceilings_far_from_the_makers_numbers_are_told() {
    let copy = |gb| [("copy", row(op("copy", "f32", json!({})), 2.0, [gb, 0.0], 1))];
    let notes = |gb| {
        let report = report(&["NVIDIA L4"], &copy(gb));
        analyse(&report, ceilings_from(&report).unwrap()).unwrap().notes
    };
    assert_eq!(notes(250.0), [""; 0]);
    assert_eq!(notes(120.0), ["memory: measured 120 GB/s, 40 % of the 300 its maker gives"]);
    assert_eq!(notes(450.0), ["memory: measured 450 GB/s, 150 % of the 300 its maker gives"]);
}
