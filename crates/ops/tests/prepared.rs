//! The public surface: requests that are refused say why, prepared ops check themselves.

// Helpers outside #[test] functions are test code all the same: a bad file should stop the test.
#![allow(clippy::unwrap_used)]

use holdpoint_ops::cases::{CaseLimits, Draw};
use holdpoint_ops::{
    Backend, BuildError, Entry, Prepared, Request, Tolerance, Variant, load, names, validate,
};
use holdpoint_stats::random::Random;
use serde_json::{Map, Value, json};

fn request(op: &str, shape: &[usize], params: &Map<String, Value>) -> Request {
    Request { seed: 123, ..Request::new(op, shape, "f32", params) }
}

fn object(params: Value) -> Map<String, Value> {
    params.as_object().cloned().unwrap()
}

/// The cases that the definition of every op draws.
fn drawn() -> Vec<(&'static str, Vec<usize>, Map<String, Value>)> {
    let (mut random, limits) = (Random::new(1), CaseLimits { operations: 100_000, elements: 5_000 });
    let mut all = Vec::new();
    for op in names(Backend::Cpu) {
        let entry = Entry::find(op).unwrap();
        let count = all.len();
        for _ in 0..20 {
            let mut draw = Draw {
                backend: Some(Backend::Cpu),
                limits,
                large: None,
                boundaries: &[],
                random: &mut random,
            };
            let (shape, params) = entry.draw(&mut draw).unwrap();
            if validate(&request(op, &shape, &params), Backend::Cpu).is_ok() {
                all.push((op, shape, params));
            }
        }
        assert!(all.len() > count, "{op} has no cases");
    }
    all
}

/// One small valid request per op and mode, and what definitions draw.
fn samples() -> Vec<(&'static str, Vec<usize>, Map<String, Value>)> {
    chosen().into_iter().chain(drawn()).collect()
}

fn chosen() -> Vec<(&'static str, Vec<usize>, Map<String, Value>)> {
    let map = || vec![2, 3, 32, 48];
    let tiles = json!({"tile_size": 16, "indices": [5, 0, 3]});
    let levels = json!({"tile_size": 16, "indices": [5, 0, 3], "levels": [2, 0, 1], "overlap_mode": "blend"});
    let both = json!({"direction": "bidirectional", "merge_mode": "gated"});
    let ff = json!({"tile_size_l0": 16, "tile_size_l1": 8, "kmax_l0": 4, "kmax_l1": 8, "budget_b1": 2.4});
    vec![
        ("infer", vec![1, 3, 128, 128], object(json!({}))),
        ("infer", vec![1, 3, 256, 128], object(json!({"budget_b1": 1.0}))),
        ("tile_pack", map(), object(tiles.clone())),
        ("tile_pack", map(), object(json!({"tile_size": 8, "indices": [1, 1, 7], "order_mode": "none"}))),
        ("tile_pack", map(), object(json!({"tile_size": 8, "indices": []}))),
        // Every tile.
        ("tile_pack", map(), object(json!({}))),
        ("tile_unpack", map(), object(json!({"tile_size": 8}))),
        ("fused_pack_op_unpack", map(), object(json!({}))),
        ("tile_unpack", map(), object(tiles.clone())),
        ("tile_unpack", map(), object(levels)),
        ("fusion_gate", map(), object(json!({"bias": -0.5}))),
        ("tile_ssm", vec![2, 9, 21], object(json!({}))),
        ("tile_ssm", vec![1, 9, 80], object(both)),
        ("fused_pack_op_unpack", map(), object(tiles)),
        ("ff_path", map(), object(ff)),
        ("attention", vec![1, 2, 33, 24], object(json!({"causal": true}))),
        ("copy", vec![1000], object(json!({}))),
        ("fma", vec![333], object(json!({"rounds": 100}))),
        ("fusion_gate", map(), object(json!({"apply_fusion": false}))),
        (
            "tile_unpack",
            map(),
            object(json!({"tile_size": 8, "kmax": 7, "overlap_shift": 3, "overlap_mode": "blend"})),
        ),
        ("copy", vec![100], object(json!({"rounds": 3}))),
    ]
}

#[test]
fn the_load_of_an_op_is_at_least_its_tensors() {
    for (op, shape, params) in samples() {
        let request = request(op, &shape, &params);
        let mut prepared = Prepared::new(&request).unwrap();
        let inputs: usize = prepared.inputs().iter().map(|tensor| tensor.len()).sum();
        let outputs: usize = prepared.outputs().iter().map(|tensor| tensor.len()).sum();
        // The oracle's answer is as large as the op's own.
        let held = inputs + 2 * outputs;
        assert!(load(&request).elements >= held as u64, "{op} {shape:?}: {held}");
    }
}

/// Each is small by its main input, or nearly so.
#[test]
fn requests_that_would_take_all_memory_are_refused_before_anything_is_allocated() {
    let many: Vec<u32> = vec![0; 1000];
    for (op, shape, params) in [
        ("attention", vec![1, 1, 1 << 27, 1], json!({})),
        ("ff_path", vec![1, 1 << 20, 16, 16], json!({"kmax_l0": 1, "kmax_l1": 1})),
        ("tile_pack", vec![1, 1, 1 << 13, 1 << 13], json!({"tile_size": 1 << 13, "indices": many})),
        ("tile_unpack", vec![1 << 26, 1, 1, 1], json!({"tile_size": 1, "indices": [0, 0, 0, 0, 0, 0, 0, 0]})),
        ("fused_pack_op_unpack", vec![1, 1, 1 << 15, 1 << 15], json!({"tile_size": 1})),
        ("fusion_gate", vec![1, 1, 1 << 15, 1 << 15], json!({})),
        ("tile_ssm", vec![usize::MAX, 2, 2], json!({})),
        ("infer", vec![1, 3, 1 << 14, 1 << 15], json!({})),
        ("copy", vec![1 << 30], json!({})),
    ] {
        let params = object(params);
        let error = validate(&request(op, &shape, &params), Backend::Cpu).unwrap_err().to_string();
        assert!(error.contains("elements") && error.contains("at most"), "{op}: {error}");
    }
}

#[test]
fn both_variants_pass_their_check_again_and_again() {
    for (op, shape, params) in samples() {
        let dtypes = Entry::find(op).unwrap().dtypes(Backend::Cpu);
        for (variant, dtype) in
            dtypes.iter().flat_map(|dtype| [(Variant::Fast, dtype), (Variant::Reference, dtype)])
        {
            let request = Request { variant, dtype: dtype.name().to_owned(), ..request(op, &shape, &params) };
            validate(&request, Backend::Cpu).unwrap();
            let mut prepared = Prepared::new(&request).unwrap();
            for _ in 0..3 {
                prepared.call();
                let check = prepared.check();
                assert!(check.passed && check.mismatches == 0, "{op} {variant:?} {dtype:?}: {check:?}");
            }
            let work = prepared.work();
            assert!((work.bytes > 0 || work.items == 0) && !work.item.is_empty(), "{op}: {work:?}");
        }
    }
}

#[test]
fn the_right_answer_does_not_depend_on_when_it_is_asked_for() {
    for (op, shape, params) in samples() {
        for variant in [Variant::Fast, Variant::Reference] {
            let request = Request { variant, ..request(op, &shape, &params) };
            let [mut early, mut late] = [(); 2].map(|()| Prepared::new(&request).unwrap());
            let fresh = early.check();
            assert_eq!(fresh, early.check(), "{op} {variant:?}: asking leaves the outputs alone");
            assert_eq!(early.work(), late.work(), "{op} {variant:?}");
            early.call();
            (0..3).for_each(|_| late.call());
            assert_eq!(early.check(), late.check(), "{op} {variant:?}");
            late.poison();
            let poisoned = late.check();
            assert_eq!((fresh.total, fresh.passed), (poisoned.total, poisoned.passed), "{op} {variant:?}");
        }
    }
}

#[test]
fn outputs_that_were_never_written_fail_the_check() {
    for (op, shape, params) in samples() {
        let empty_output = params.get("indices") == Some(&json!([])) && op == "tile_pack";
        let mut prepared = Prepared::new(&request(op, &shape, &params)).unwrap();
        assert!(empty_output || !prepared.check().passed, "{op}: fresh buffers");
        prepared.call();
        assert!(prepared.check().passed, "{op}: after a call");
        prepared.poison();
        let check = prepared.check();
        assert!(empty_output || (!check.passed && check.first_bad.is_some()), "{op}: poisoned: {check:?}");
        prepared.call();
        assert!(prepared.check().passed, "{op}: a call writes everything again");
    }
}

#[test]
fn a_zero_tolerance_catches_a_single_rounding_and_a_loose_one_no_nan() {
    let params = object(json!({}));
    let shape = [1, 2, 16, 16];
    let exact = Request { tolerance: Some(Tolerance::EXACT), ..request("fusion_gate", &shape, &params) };
    let mut prepared = Prepared::new(&exact).unwrap();
    prepared.call();
    let check = prepared.check();
    assert_eq!(check.passed, check.max_abs_err == 0.0, "{check:?}");
    let loose = Tolerance::new(1e9, 1e9);
    let prepared = Prepared::new(&Request { tolerance: Some(loose), ..exact }).unwrap();
    assert!(!prepared.check().passed);
}

#[test]
fn seeds_change_the_inputs_and_repeat_them() {
    let params = object(json!({}));
    let shape = [1, 3, 128, 128];
    let report = |seed| {
        let mut prepared = Prepared::new(&Request { seed, ..request("infer", &shape, &params) }).unwrap();
        prepared.call();
        prepared.poison();
        prepared.check().first_bad.unwrap()
    };
    assert_eq!(report(1), report(1));
    assert_ne!(report(1), report(2));
}

/// Both entry points refuse, with the same words.
fn refusal(op: &str, shape: &[usize], params: Value) -> String {
    let params = object(params);
    let request = request(op, shape, &params);
    let error = validate(&request, Backend::Cpu).unwrap_err();
    assert_eq!(Prepared::new(&request).err(), Some(error.clone()));
    error.to_string()
}

#[test]
fn refusals_say_what_where_and_what_would_be_valid() {
    let map = [1, 4, 32, 32];
    let cases: &[(&str, &[usize], Value, &[&str])] = &[
        ("tile_pak", &map, json!({}), &["unknown op \"tile_pak\"", "tile_pack", "attention"]),
        ("tile_pack", &[4, 32, 32], json!({"indices": [0]}), &["feature_map must be [B,C,H,W]"]),
        ("tile_pack", &[1, 0, 32, 32], json!({"indices": [0]}), &["every size must be > 0"]),
        ("tile_pack", &[1 << 40, 1 << 40, 1, 1], json!({}), &["2^31"]),
        ("tile_pack", &[1, 1, 2048, 2048], json!({"tile_size": 1}), &["params.indices", "name the tiles"]),
        ("tile_pack", &map, json!({"indices": [4]}), &["indices contain out-of-bounds tile ids: 4", "0..4"]),
        ("tile_pack", &map, json!({"indices": [-1]}), &["indices", "-1"]),
        (
            "tile_pack",
            &map,
            json!({"indices": [0], "tile_size": 5}),
            &["params.tile_size", "divisible by tile_size"],
        ),
        ("tile_pack", &map, json!({"indices": [0], "tile_size": 0}), &["tile_size must be > 0"]),
        ("tile_pack", &map, json!({"indices": [0], "tile_size": "x"}), &["tile_size", "\"x\""]),
        (
            "tile_pack",
            &map,
            json!({"indices": [0], "order_mode": "zig"}),
            &["Unsupported order mode: \"zig\"", "none"],
        ),
        ("tile_pack", &map, json!({"kmax": 5}), &["params.kmax", "kmax=5 must be <= total l0 tiles (4)"]),
        ("tile_pack", &map, json!({"indices": [0], "kmax": "x"}), &["kmax"]),
        (
            "tile_pack",
            &map,
            json!({"indices": [0], "tilesize": 8}),
            &["unknown field `tilesize`", "tile_size"],
        ),
        (
            "tile_unpack",
            &map,
            json!({"indices": [0], "overlap_mode": "mix"}),
            &["overlap_mode must be 'override' or 'blend'"],
        ),
        (
            "tile_unpack",
            &map,
            json!({"indices": [0], "blend_alpha": 1.5}),
            &["params.blend_alpha", "within [0, 1]"],
        ),
        ("tile_unpack", &map, json!({"indices": [0], "levels": [1, 2]}), &["params.levels", "length 1"]),
        ("tile_ssm", &map, json!({}), &["tokens must be [B,K,C]"]),
        (
            "tile_ssm",
            &[1, 2, 3],
            json!({"direction": "up"}),
            &["direction must be one of: forward, backward, bidirectional"],
        ),
        (
            "tile_ssm",
            &[1, 2, 3],
            json!({"merge_mode": "max"}),
            &["merge_mode must be one of: sum, avg, gated"],
        ),
        ("fused_pack_op_unpack", &map, json!({"indices": [1, 1]}), &["indices must be unique per batch"]),
        ("fusion_gate", &map, json!({"bias": 1e300}), &["params.bias", "finite"]),
        ("infer", &[2, 3, 128, 128], json!({}), &["batch size 1"]),
        ("infer", &[1, 4, 128, 128], json!({}), &["3 channels"]),
        ("infer", &[1, 3, 64, 64], json!({}), &["params.tile_size_l0", "divisible by tile_size"]),
        ("infer", &[1, 3, 128, 128], json!({"theta_on": 0.1}), &["theta_on must be > theta_off"]),
        ("ff_path", &map, json!({"kmax_l0": 5}), &["kmax=5 must be <= total l0 tiles (4)"]),
        ("ff_path", &map, json!({"kmax_l0": 4, "tile_size_l1": 4}), &["twice tile_size_l1"]),
        ("ff_path", &map, json!({"kmax_l0": 4, "budget_b1": -1.0}), &["params.budget_b1", ">= 0"]),
        ("attention", &[1, 2, 3], json!({}), &["[B,H,S,D]"]),
    ];
    for (op, shape, params, words) in cases {
        let text = refusal(op, shape, params.clone());
        for word in *words {
            assert!(text.contains(word), "{op} {params}: {text:?} lacks {word:?}");
        }
    }
}

#[test]
fn dtypes_and_tolerances_are_checked_for_every_op() {
    let params = Map::new();
    for op in names(Backend::Cpu) {
        let wrong = Request { dtype: "e4m3".to_owned(), ..request(op, &[1, 1, 1, 1], &params) };
        assert!(matches!(validate(&wrong, Backend::Cpu), Err(BuildError::Dtype { .. })), "{op}");
        let tolerance = Some(Tolerance::new(f64::NAN, 0.0));
        let wrong = Request { tolerance, ..request(op, &[1, 1, 1, 1], &params) };
        assert!(matches!(validate(&wrong, Backend::Cpu), Err(BuildError::Tolerance { .. })), "{op}");
    }
}

/// Changes every seventh element of every output, one at a time.
#[test]
fn one_changed_element_fails_the_check() {
    for (op, shape, params) in [
        ("infer", vec![1, 3, 64, 32], json!({"tile_size_l0": 4})),
        ("tile_pack", vec![1, 2, 8, 8], json!({"tile_size": 4, "indices": [1, 0]})),
        ("tile_unpack", vec![1, 2, 8, 8], json!({"tile_size": 4, "indices": [1, 0]})),
        ("fusion_gate", vec![1, 2, 8, 8], json!({})),
        ("tile_ssm", vec![1, 5, 9], json!({"direction": "bidirectional"})),
        ("fused_pack_op_unpack", vec![1, 2, 8, 8], json!({"tile_size": 4, "indices": [1, 0]})),
        (
            "ff_path",
            vec![1, 2, 8, 8],
            json!({"tile_size_l0": 4, "tile_size_l1": 2, "kmax_l0": 2, "kmax_l1": 8}),
        ),
        ("attention", vec![1, 2, 9, 8], json!({})),
        ("copy", vec![150], json!({})),
        ("fma", vec![150], json!({"rounds": 50})),
    ] {
        let params = object(params);
        let mut prepared = Prepared::new(&request(op, &shape, &params)).unwrap();
        prepared.call();
        assert!(prepared.check().passed, "{op}: {:?}", prepared.check());
        for output in 0..prepared.outputs().len() {
            for at in (0..prepared.outputs()[output].f32().len()).step_by(7) {
                let good = prepared.outputs()[output].f32()[at];
                for bad in [good + 0.01 * good.abs().max(1.0), f32::NAN, f32::INFINITY] {
                    prepared.outputs()[output].f32_mut()[at] = bad;
                    let check = prepared.check();
                    assert!(
                        !check.passed && check.mismatches == 1,
                        "{op}: output {output}[{at}] = {bad}: {check:?}"
                    );
                }
                prepared.outputs()[output].f32_mut()[at] = good;
            }
        }
    }
}
