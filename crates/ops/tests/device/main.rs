//! The ops on a device: right answers, every clock, and what goes wrong on purpose.
//!
//! Without a device each test says so and passes. The program needs no file of the repository, so it can be carried to a device.
#![allow(clippy::unwrap_used)]

mod cheats;

use holdpoint_cuda::compile::Unit;
use holdpoint_cuda::{CudaError, Dtype, Timing, device_count};
use holdpoint_model::FailureCause;
use holdpoint_model::suite::Cache;
use holdpoint_ops::cases::{CaseLimits, Draw};
use holdpoint_ops::cuda::{Gpu, PrepareError, Prepared, checked_units, tune};
use holdpoint_ops::{Backend, Case, Entry, Request, Variant, names, validate};
use holdpoint_stats::random::Random;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

const DTYPES: [Dtype; 4] = [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::E4m3];
const VARIANTS: [Variant; 2] = [Variant::Fast, Variant::Reference];

/// Tests take turns: a kernel that holds the device for a timer must not hold it for another test.
static TURN: Mutex<()> = Mutex::new(());

/// Says aloud what was not tested: straight to stderr, since what tests that pass print is held back.
fn skipped(what: &str) {
    drop(writeln!(std::io::stderr(), "skipped: {what}"));
}

/// Hands a device to a test, or says why there is none.
fn on_device(test: impl FnOnce(&mut Gpu)) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let cache = tempfile::tempdir().unwrap();
    match Gpu::open(0, cache.path()) {
        Ok(mut gpu) => test(&mut gpu),
        Err(error) => skipped(&format!("no device ({error})")),
    }
}

fn params(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} are no parameters"),
    }
}

fn request(op: &str, shape: &[usize], params: &Map<String, Value>, dtype: Dtype) -> Request {
    Request { seed: 7, ..Request::new(op, shape, dtype.name(), params) }
}

/// Shapes and parameters of an op: tails, primes, one of everything, rows no access divides.
fn cases(op: &str) -> Vec<(Vec<usize>, Map<String, Value>)> {
    let of = |all: &[(&[usize], Value)]| -> Vec<(Vec<usize>, Map<String, Value>)> {
        all.iter().map(|(shape, value)| (shape.to_vec(), params(value.clone()))).collect()
    };
    match op {
        "tile_pack" => of(&[
            (&[1, 1, 8, 8], json!({"tile_size": 8, "kmax": 1})),
            (&[1, 3, 5, 7], json!({"tile_size": 1, "kmax": 11})),
            (&[2, 3, 24, 40], json!({"tile_size": 8, "kmax": 7})),
            (&[1, 5, 21, 35], json!({"tile_size": 7, "kmax": 5})),
            (&[3, 17, 12, 20], json!({"tile_size": 4, "kmax": 15})),
            (&[1, 131, 32, 32], json!({"tile_size": 16, "indices": [3, 0, 3]})),
            (&[1, 2, 66, 66], json!({"tile_size": 33, "kmax": 3, "order_mode": "none"})),
            (&[2, 3, 32, 48], json!({"order_mode": "u2d"})),
        ]),
        "tile_unpack" => of(&[
            (&[1, 1, 8, 8], json!({"tile_size": 8, "kmax": 1})),
            (&[1, 3, 5, 7], json!({"tile_size": 1, "kmax": 11})),
            (&[2, 3, 24, 40], json!({"tile_size": 8, "kmax": 7, "levels": [1, 0, 2, 1, 0, 0, 2]})),
            (&[1, 5, 21, 35], json!({"tile_size": 7, "kmax": 5})),
            (&[1, 131, 32, 32], json!({"tile_size": 16, "indices": [3, 0, 3, 3], "levels": [2, 0, 1, 2]})),
            (
                &[2, 7, 24, 40],
                json!({"tile_size": 8, "kmax": 13, "overlap_mode": "blend", "blend_alpha": 0.3}),
            ),
            (&[1, 3, 32, 32], json!({"tile_size": 8, "indices": [5, 5, 2], "overlap_mode": "blend"})),
            (&[1, 5, 40, 24], json!({"tile_size": 8, "kmax": 15, "overlap_shift": 3})),
            (
                &[1, 3, 16, 16],
                json!({"tile_size": 8, "overlap_shift": 5, "levels": [0, 2, 1, 0], "order_mode": "none"}),
            ),
            (
                &[2, 33, 21, 35],
                json!({"tile_size": 7, "kmax": 9, "overlap_shift": 5, "overlap_mode": "blend", "blend_alpha": 0.7}),
            ),
        ]),
        "fused_pack_op_unpack" => of(&[
            (&[1, 1, 8, 8], json!({"tile_size": 8, "kmax": 1})),
            (&[1, 3, 5, 7], json!({"tile_size": 1, "kmax": 11})),
            (&[2, 3, 24, 40], json!({"tile_size": 8, "kmax": 7})),
            (&[1, 37, 21, 35], json!({"tile_size": 7, "kmax": 15, "gate_bias": -0.5})),
            (&[3, 17, 12, 20], json!({"tile_size": 4, "kmax": 5, "value_scale": 1.3, "value_bias": -0.2})),
        ]),
        "fusion_gate" => of(&[
            (&[1, 1, 1, 1], json!({})),
            (&[2, 3, 7, 5], json!({})),
            (&[1, 17, 9, 11], json!({"bias": -1.5})),
            (&[3, 2, 16, 16], json!({"boundary_log_weight": 1.0})),
            (&[1, 131, 32, 40], json!({})),
            (&[1, 1, 1, 1], json!({"apply_fusion": false})),
            (&[3, 5, 13, 17], json!({"apply_fusion": false})),
            (&[2, 1, 64, 64], json!({"apply_fusion": false})),
        ]),
        "tile_ssm" => {
            // The last two have blocks enough to stream.
            let shapes: [&[usize]; 8] = [
                &[1, 1, 1],
                &[2, 1, 7],
                &[1, 17, 3],
                &[3, 131, 33],
                &[1, 257, 64],
                &[2, 1031, 5],
                &[66, 301, 64],
                &[40, 2111, 56],
            ];
            let ways = [
                json!({"direction": "forward"}),
                json!({"direction": "backward", "clamp_value": 1.0}),
                json!({"direction": "bidirectional", "merge_mode": "sum"}),
                json!({"direction": "bidirectional", "merge_mode": "avg"}),
                json!({"direction": "bidirectional", "merge_mode": "gated"}),
            ];
            let with = |shape: &[usize]| ways.clone().map(|way| (shape.to_vec(), params(way)));
            shapes.into_iter().flat_map(with).collect()
        }
        "attention" => {
            let shapes: [&[usize]; 7] = [
                &[1, 1, 1, 32],
                &[1, 2, 17, 64],
                &[2, 1, 65, 96],
                &[1, 3, 131, 128],
                &[1, 1, 257, 32],
                &[3, 2, 128, 64],
                &[1, 1, 1031, 128],
            ];
            let with =
                |shape: &[usize]| [false, true].map(|c| (shape.to_vec(), params(json!({"causal": c}))));
            shapes.into_iter().flat_map(with).collect()
        }
        "ff_path" => of(&[
            (&[1, 16, 16, 16], json!({"kmax_l0": 1, "kmax_l1": 4, "budget_b1": 1.0})),
            (&[1, 48, 48, 80], json!({"kmax_l0": 15, "kmax_l1": 7})),
            (&[2, 16, 32, 48], json!({"kmax_l0": 5, "kmax_l1": 20, "nesting": false})),
            (&[1, 16, 32, 32], json!({"kmax_l0": 4, "kmax_l1": 8, "cost_heavy": 5.0})),
            (&[1, 32, 24, 40], json!({"tile_size_l0": 8, "tile_size_l1": 4, "kmax_l0": 7, "kmax_l1": 9})),
            (&[1, 16, 30, 50], json!({"tile_size_l0": 10, "tile_size_l1": 5, "kmax_l0": 3, "kmax_l1": 5})),
            // Any number of channels: the plain kernels only.
            (&[1, 7, 32, 32], json!({"kmax_l0": 3, "kmax_l1": 5})),
        ]),
        "copy" => of(&[
            (&[1], json!({})),
            (&[7], json!({})),
            (&[64], json!({})),
            (&[8_191], json!({})),
            (&[1_000_003], json!({})),
            (&[1_000_003], json!({"rounds": 3})),
            (&[1 << 20], json!({"rounds": 5})),
        ]),
        "fma" => {
            of(&[(&[1], json!({})), (&[2_049], json!({"rounds": 1})), (&[100_003], json!({"rounds": 1_000}))])
        }
        // Fewer products than are summed at a time, just as many, and more by one.
        "mma" => of(&[
            (&[1], json!({"rounds": 1})),
            (&[3], json!({"rounds": 16})),
            (&[131], json!({"rounds": 17})),
            (&[2], json!({"rounds": 512})),
        ]),
        "launch" => of(&[(&[1], json!({})), (&[1_031], json!({}))]),
        // An op without shapes of its own here has those that its definition draws.
        other => drawn(other),
    }
}

/// Cases as for fuzzing.
fn drawn(op: &str) -> Vec<(Vec<usize>, Map<String, Value>)> {
    let Some(entry) = Entry::find(op).filter(|entry| entry.cases.is_some()) else { return Vec::new() };
    let (mut random, limits) = (Random::new(1), CaseLimits { operations: 1_500_000, elements: 40_000 });
    let draw = |_| {
        let mut draw =
            Draw { backend: Some(Backend::Cuda), limits, large: None, boundaries: &[], random: &mut random };
        entry.draw(&mut draw)
    };
    (0..40).filter_map(draw).collect()
}

/// Checks an op in every element type, variant and shape, aligned and not. All that is wrong is told at once.
fn check_all(op: &str) {
    on_device(|gpu| {
        let mut problems = Vec::new();
        let mut checked_count = 0;
        for (shape, params) in cases(op) {
            for (dtype, variant) in DTYPES.iter().flat_map(|dtype| VARIANTS.map(|variant| (*dtype, variant)))
            {
                for misalign in [0, dtype.bytes()] {
                    let request = Request { variant, misalign, ..request(op, &shape, &params, dtype) };
                    let what = format!("{op} {shape:?} {dtype:?} {variant:?} +{misalign} {}", json!(params));
                    match check(gpu, &request) {
                        Ok(Some(problem)) => problems.push(format!("{what}: {problem}")),
                        Ok(None) => checked_count += 1,
                        Err(PrepareError::Skipped(reason)) => skipped(&format!("{what}: {reason}")),
                        // An op says by itself what it does not do.
                        Err(PrepareError::Request(error)) => skipped(&format!("{what}: {error}")),
                        Err(PrepareError::Device(error)) => {
                            problems.push(format!("{what}: {error}"));
                            assert!(!error.fatal, "the device is lost:\n{}", problems.join("\n"));
                        }
                    }
                }
            }
        }
        assert!(problems.is_empty(), "{} wrong:\n{}", problems.len(), problems.join("\n"));
        assert!(checked_count > 0, "{op}: nothing was checked");
    });
}

/// What is wrong with the answer of one call, and of calls that were timed.
fn check(gpu: &mut Gpu, request: &Request) -> Result<Option<String>, PrepareError> {
    let mut prepared = Prepared::new(gpu, request)?;
    for how in [None, Some((Timing::Graph, Cache::Warm))] {
        if let Some(how) = how {
            prepared.run(gpu, how, 1, 2, 0.0)?;
        }
        let check = prepared.check(gpu)?;
        if !check.passed {
            let first = check.first_bad.clone().unwrap_or_default();
            let call = if how.is_some() { "timed calls" } else { "one call" };
            return Ok(Some(format!(
                "after {call} {} of {} values, at most {:e} off: {first}",
                check.mismatches, check.total, check.max_abs_err
            )));
        }
    }
    Ok(None)
}

#[test]
fn every_op_has_shapes_that_its_plain_kernel_takes() {
    for op in names(Backend::Cuda) {
        for (shape, params) in cases(op) {
            let reference =
                Request { variant: Variant::Reference, ..request(op, &shape, &params, Dtype::F32) };
            validate(&reference, Backend::Cuda).unwrap_or_else(|error| panic!("{op} {shape:?}: {error}"));
        }
    }
}

#[test]
fn every_op_is_right() {
    // Faults are wrong on purpose, and looked at below.
    for op in names(Backend::Cuda).filter(|op| *op != "fault") {
        check_all(op);
    }
}

/// Compares the answers of a device and the CPU to the same inputs, passed by name, for every op that both have.
#[test]
fn a_device_computes_on_inputs_that_are_brought() {
    on_device(|gpu| {
        let both = |op: &&str| names(Backend::Cpu).any(|cpu| cpu == *op);
        for op in names(Backend::Cuda).filter(both) {
            for (shape, params) in cases(op) {
                let request = request(op, &shape, &params, Dtype::F32);
                let mut case = match Case::new(&Request { seed: 11, ..request.clone() }) {
                    Ok(case) => case,
                    Err(error) => panic!("{op} {shape:?}: {error}"),
                };
                // Weights are drawn from the seed, on both sides from the same.
                let request = Request { seed: 11, ..request };
                let mut prepared = match Prepared::new(gpu, &request) {
                    Ok(prepared) => prepared,
                    Err(PrepareError::Device(error)) => panic!("{op} {shape:?}: {error}"),
                    Err(other) => {
                        skipped(&format!("{op} {shape:?}: {other}"));
                        continue;
                    }
                };
                let computed = prepared.compute(gpu, case.inputs(), 1).unwrap();
                case.complete_integers();
                for got in &computed.outputs {
                    let output = case.outputs().iter_mut().find(|output| output.name == got.name);
                    output.unwrap_or_else(|| panic!("{op}: {}", got.name)).set(&got.values());
                }
                let check = case.check(holdpoint_ops::Leeway::NONE);
                assert!(check.passed, "{op} {shape:?} {}: {check:?}", json!(params));
            }
        }
    });
}

#[test]
fn every_clock_gives_positive_times_warm_and_cold() {
    on_device(|gpu| {
        let none = Map::new();
        let request = request("copy", &[1_000_003], &none, Dtype::F16);
        for timing in [Timing::Graph, Timing::Events, Timing::Host] {
            for cache in [Cache::Warm, Cache::Cold] {
                for slowdown in [0.0, 0.5] {
                    let mut prepared = Prepared::new(gpu, &request).unwrap();
                    let times = prepared.run(gpu, (timing, cache), 3, 2, slowdown).unwrap();
                    assert_eq!(times.elapsed_ns.len(), 3, "{timing:?} {cache:?}");
                    assert!(times.elapsed_ns.iter().all(|ns| *ns > 0), "{timing:?} {cache:?}: {times:?}");
                    let clocks_count = if timing == Timing::Host { 0 } else { 3 };
                    assert_eq!(times.sm_mhz.len(), clocks_count, "{timing:?} {cache:?}");
                    assert!(prepared.check(gpu).unwrap().passed, "{timing:?} {cache:?}");
                }
            }
        }
    });
}

#[test]
fn an_oracle_that_was_begun_is_asked_about_the_inputs_it_was_begun_with() {
    on_device(|gpu| {
        let none = Map::new();
        for request in [
            request("fusion_gate", &[1, 16, 33, 35], &none, Dtype::F16),
            request("rms_norm", &[8, 1024, 4096], &none, Dtype::Bf16),
        ] {
            let mut prepared = Prepared::new(gpu, &request).unwrap();
            prepared.begin_check().unwrap();
            assert!(prepared.is_checked_with(true) && prepared.check(gpu).unwrap().passed, "{request:?}");
            prepared.begin_check().unwrap();
            prepared.run(gpu, WARM, 1, 1, 0.0).unwrap();
            // Begun with inputs that the run has replaced: those answers would be wrong.
            assert!(prepared.check(gpu).unwrap().passed, "{request:?}");
            prepared.begin_check().unwrap();
            assert!(prepared.is_checked_with(false) && prepared.check(gpu).unwrap().passed, "{request:?}");
        }
    });
}

#[test]
fn a_device_and_a_kernel_say_who_they_are() {
    on_device(|gpu| {
        assert!(!gpu.info().name.is_empty() && gpu.info().uuid.starts_with("GPU-"), "{:?}", gpu.info());
        let none = Map::new();
        let prepared = Prepared::new(gpu, &request("copy", &[4_099], &none, Dtype::F32)).unwrap();
        let kernel = prepared.kernel_info();
        assert_eq!((kernel.kernel_name.as_str(), kernel.launches_per_call), ("copy_fast", 1));
        assert_eq!(kernel.code_sha256.as_deref().map(str::len), Some(64));
        assert!(kernel.registers.is_some_and(|registers| registers > 0) && kernel.local_bytes == Some(0));
        assert!(prepared.peak_bytes(gpu).is_some_and(|bytes| bytes >= 2 * 4 * 4_099));
    });
}

/// Shapes like those of the built-in suites, one for each set of constants that an op may choose.
fn usual() -> Vec<(&'static str, Vec<usize>, Value)> {
    let mut all = vec![
        ("fma", vec![4_096], json!({"rounds": 64})),
        ("mma", vec![4], json!({"rounds": 64})),
        ("launch", vec![1], json!({})),
        ("tile_pack", vec![1, 16, 128, 128], json!({"tile_size": 8, "kmax": 32})),
        ("tile_pack", vec![1, 16, 256, 256], json!({"tile_size": 8, "kmax": 512})),
        ("tile_unpack", vec![1, 16, 128, 128], json!({"tile_size": 8, "kmax": 32})),
        ("tile_unpack", vec![1, 16, 64, 64], json!({"tile_size": 8, "kmax": 32, "overlap_mode": "blend"})),
        ("fused_pack_op_unpack", vec![1, 16, 128, 128], json!({"tile_size": 8, "kmax": 32})),
        ("fusion_gate", vec![1, 16, 128, 128], json!({})),
        ("ff_path", vec![1, 128, 128, 128], json!({})),
        ("copy", vec![1 << 16], json!({})),
    ];
    for direction in ["forward", "backward", "bidirectional"] {
        for steps in [256, 4096] {
            all.push(("tile_ssm", vec![1, steps, 32], json!({"direction": direction})));
        }
    }
    for (direction, steps) in [("forward", 512), ("forward", 4096), ("backward", 512), ("backward", 4096)] {
        all.push(("tile_ssm", vec![64, steps, 64], json!({"direction": direction})));
    }
    for (width, causal) in [32, 64, 96, 128].into_iter().flat_map(|width| [(width, false), (width, true)]) {
        all.push(("attention", vec![1, 2, 256, width], json!({"causal": causal})));
    }
    all
}

#[test]
fn ops_compile_only_units_that_are_checked_without_a_device() {
    on_device(|gpu| {
        for (op, shape, value) in usual() {
            let params = params(value);
            for (dtype, variant) in DTYPES.iter().flat_map(|dtype| VARIANTS.map(|variant| (*dtype, variant)))
            {
                let request = Request { variant, ..request(op, &shape, &params, dtype) };
                match Prepared::new(gpu, &request) {
                    Err(PrepareError::Device(error)) => panic!("{op} {shape:?} {dtype:?}: {error}"),
                    // What an op or the device does not do, it does not compile.
                    Ok(_) | Err(PrepareError::Skipped(_) | PrepareError::Request(_)) => {}
                }
            }
        }
        let checked = checked_units();
        // Constants beyond those that were compiled with are those of another kernel of the same source.
        let covers = |checked: &Unit, unit: &Unit| {
            let has =
                |(name, value): (&String, &i64)| name == "CLUSTER" || checked.config.get(name) == Some(value);
            (checked.source.name, checked.dtype) == (unit.source.name, unit.dtype)
                && unit.config.iter().all(has)
        };
        let missing: Vec<String> = gpu
            .units()
            .filter(|unit| !checked.iter().any(|checked| covers(&checked.unit, unit)))
            .map(|unit| format!("{unit:?}"))
            .collect();
        assert!(missing.is_empty(), "add to the KERNELS of their op:\n{}", missing.join("\n"));
    });
}

#[test]
fn a_winner_is_kept_and_taken_the_next_time() {
    on_device(|gpu| {
        let tiles = params(json!({"tile_size": 8, "kmax": 7}));
        let request = request("tile_pack", &[1, 16, 64, 64], &tiles, Dtype::F16);
        let source = |gpu: &mut Gpu| Prepared::new(gpu, &request).unwrap().kernel_info().selection_source;
        assert_eq!(source(gpu), "heuristic");
        let tuned = tune(gpu, &request, (Timing::Graph, Cache::Warm)).unwrap();
        let winner = &tuned.winner;
        assert!(winner.p50_us > 0.0 && winner.p50_us <= winner.default_us, "{tuned:?}");
        assert!(winner.candidates_count > 1, "{tuned:?}");
        assert_eq!(source(gpu), "registry_cache");
        assert!(gpu.registry().path().exists());
    });
}

fn fault(gpu: &mut Gpu, kind: &str) -> Result<Prepared, PrepareError> {
    let kind = params(json!({"kind": kind}));
    Prepared::new(gpu, &request("fault", &[64], &kind, Dtype::F16))
}

fn device_error(error: PrepareError) -> CudaError {
    match error {
        PrepareError::Device(error) => error,
        other => panic!("{other}"),
    }
}

const WARM: (Timing, Cache) = (Timing::Graph, Cache::Warm);

#[test]
fn an_output_that_stays_unwritten_is_found_by_the_timed_call() {
    on_device(|gpu| {
        let mut prepared = fault(gpu, "unwritten").unwrap();
        let error = prepared.run(gpu, WARM, 1, 1, 0.0).unwrap_err();
        assert_eq!((error.cause, error.fatal), (FailureCause::WrongAnswer, false), "{error}");
        assert!(error.detail.contains("32 of 64"), "{error}");
    });
}

#[test]
fn one_wrong_value_is_found_by_the_check() {
    on_device(|gpu| {
        let mut prepared = fault(gpu, "wrong").unwrap();
        prepared.run(gpu, WARM, 1, 1, 0.0).unwrap();
        let check = prepared.check(gpu).unwrap();
        assert_eq!((check.passed, check.mismatches), (false, 1), "{check:?}");
    });
}

#[test]
fn running_out_of_memory_is_reported_and_survived() {
    on_device(|gpu| {
        let error = device_error(fault(gpu, "memory").err().unwrap());
        assert_eq!((error.cause, error.fatal), (FailureCause::OutOfMemory, false), "{error}");
        let none = Map::new();
        assert_eq!(check(gpu, &request("copy", &[64], &none, Dtype::F16)).unwrap(), None);
    });
}

/// Set for the process that is to be lost.
const CHILD: &str = "HOLDPOINT_TEST_FAULT";

#[test]
fn a_write_to_nowhere_is_a_fault_that_costs_the_process() {
    if std::env::var_os(CHILD).is_some() {
        on_device(|gpu| {
            let run = |gpu: &mut Gpu| fault(gpu, "address")?.run(gpu, WARM, 1, 1, 0.0).map_err(Into::into);
            let error = device_error(run(gpu).map(drop).unwrap_err());
            assert_eq!((error.cause, error.fatal), (FailureCause::DeviceFault, true), "{error}");
            let again = device_error(fault(gpu, "wrong").err().unwrap());
            assert!(again.fatal, "{again}");
            println!("the fault was seen");
        });
        return;
    }
    if let Err(error) = device_count() {
        skipped(&format!("no device ({error})"));
        return;
    }
    let name = "a_write_to_nowhere_is_a_fault_that_costs_the_process";
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.contains("the fault was seen") || stderr.contains("skipped: "), "{stdout}\n{stderr}");
}
