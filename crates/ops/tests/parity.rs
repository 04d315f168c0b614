//! Oracles and fast versions against the original's own inputs and outputs. Which cases there are is read
//! from the file: another file of the same layout must pass, and anything in it that no check knows fails
//! the test.

// Helpers outside #[test] functions are test code all the same: a bad file should stop the test.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;

use holdpoint_ops::Tolerance;
use holdpoint_ops::attention::cpu::{self as attention, AttentionSpec, Scratch};
use holdpoint_ops::ff_path::cpu::{
    FastModule, FfConfig, FfInputs, FfOutputs, OracleModule, PathWeights, Router,
};
use holdpoint_ops::fused_pack_op_unpack::cpu::{self as fused, Affine};
use holdpoint_ops::fusion_gate::cpu::{self as fusion, Gate, Maps};
use holdpoint_ops::infer::cpu::{self as infer, InferConfig, Model};
use holdpoint_ops::order::{OrderMode, Orderer};
use holdpoint_ops::rng::RandomState;
use holdpoint_ops::shape::{Grid, Nchw, TileSpec};
use holdpoint_ops::tile_pack::cpu::{self as pack, Packed};
use holdpoint_ops::tile_ssm::cpu::module::RawScan;
use holdpoint_ops::tile_ssm::cpu::{self as ssm, Direction, Merge, ScanInputs, ScanParams, ScanSpec};
use holdpoint_ops::tile_unpack::cpu::{Overlap, Unpack, levels, priority};
use serde_json::{Value, json};
use support::Vectors;

const EXACT: Tolerance = Tolerance::EXACT;
const CLOSE: Tolerance = Tolerance::new(1e-6, 1e-6);
const NEAR: Tolerance = Tolerance::new(1e-5, 1e-5);

type Group = fn(&Vectors);

/// Every group of the layout and its check.
const GROUPS: [(&str, Group); 9] = [
    ("pack", check_pack),
    ("unpack", check_unpack),
    ("unpack_levels", check_unpack_levels),
    ("fusion", check_fusion),
    ("ssm", check_ssm),
    ("fused", check_fused),
    ("model", check_models),
    ("ff", check_ff),
    ("attention", check_attention),
];

fn run(vectors: &Vectors) -> Vec<String> {
    let present = vectors.children("");
    let known: BTreeSet<String> = GROUPS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut problems: Vec<String> =
        known.difference(&present).map(|p| format!("prefix {p:?} is missing from the file")).collect();
    problems.extend(present.difference(&known).map(|p| format!("prefix {p:?} is not known to this test")));
    if problems.is_empty() {
        GROUPS.iter().for_each(|(_, check)| check(vectors));
        problems = vectors.problems();
    }
    problems
}

#[test]
fn every_case_of_the_file_is_reproduced() {
    let vectors = Vectors::load();
    let problems = run(&vectors);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(vectors.checks() > 0);
}

#[test]
fn a_file_with_a_group_missing_unknown_or_untested_fails() {
    let missing = Vectors::load().edited(|name| !name.starts_with("fused."), &[]);
    assert!(run(&missing).iter().any(|p| p.contains("prefix \"fused\" is missing")));
    let unknown = Vectors::load().edited(|_| true, &["nms.boxes"]);
    assert!(run(&unknown).iter().any(|p| p.contains("prefix \"nms\" is not known")));
    let untested = Vectors::load().edited(|_| true, &["fusion.extra"]);
    assert!(run(&untested).iter().any(|p| p.contains("\"fusion.extra\" is not covered")));
}

#[test]
fn a_changed_answer_fails() {
    let vectors = Vectors::load().with_changed_answer("fusion.custom.alpha");
    assert!(run(&vectors).iter().any(|p| p.contains("fusion.custom.alpha")));
}

fn map_dims(shape: &[usize]) -> Nchw {
    let [batch, channels, height, width] = *shape else { panic!("not [B,C,H,W]: {shape:?}") };
    Nchw { batch, channels, height, width }
}

fn check_pack(v: &Vectors) {
    let (feature, indices) = (v.get("pack.feature"), v.get("pack.indices"));
    let dims = map_dims(&feature.shape);
    let tile = v.number("pack", "tile_size") as usize;
    for mode in v.children("pack.") {
        let order = match mode.as_str() {
            "feature" | "indices" => continue,
            "unordered" => None,
            name => Some(name.parse::<OrderMode>().unwrap_or_else(|e| panic!("pack.{name}: {e}"))),
        };
        let spec = TileSpec::new(dims, tile, indices.shape[1]).unwrap();
        let (feature, ids) = (feature.floats(), indices.ids());
        let (mut slow, mut quick) = (Packed::new(&spec), Packed::new(&spec));
        pack::oracle(&spec, &feature, &ids, order, slow.view());
        let mut orderer = order.map(|mode| Orderer::new(mode, &spec.grid, spec.tiles));
        pack::fast(&spec, &feature, &ids, orderer.as_mut(), quick.view());
        for (what, got) in [("oracle", slow), ("fast", quick)] {
            v.floats_match(what, &format!("pack.{mode}.packed"), &got.tiles, EXACT);
            for (name, numbers) in [("indices", &got.indices[..]), ("origins", got.origins.as_flattened())] {
                let name = format!("pack.{mode}.{name}");
                if v.has(&name) || order.is_some() {
                    v.ints_match(what, &name, numbers.iter().map(|&n| i64::from(n)));
                }
            }
        }
    }
}

fn unpack_spec(v: &Vectors, mode: &str) -> (TileSpec, Overlap) {
    let (dims, packed) = (map_dims(&v.get("unpack.base").shape), v.get("unpack.packed"));
    let tile = packed.shape[3];
    let grid = Grid { rows: dims.height / tile, cols: dims.width / tile, tile };
    let overlap = Overlap::parse(mode, v.number("unpack", "blend_alpha")).unwrap();
    (TileSpec { dims, grid, tiles: packed.shape[1] }, overlap)
}

fn overlap_tolerance(overlap: Overlap) -> Tolerance {
    if overlap == Overlap::Override { EXACT } else { CLOSE }
}

fn check_unpack(v: &Vectors) {
    let (base, packed) = (v.floats("unpack.base"), v.floats("unpack.packed"));
    let origins = v.get("unpack.origins").origins();
    let level = v.number("unpack", "level_priority") as i8;
    let inputs = ["base", "packed", "origins", "priority_map"];
    for mode in v.children("unpack.").into_iter().filter(|name| !inputs.contains(&&**name)) {
        let (spec, overlap) = unpack_spec(v, &mode);
        for (what, op) in
            [("oracle", priority::oracle as fn(&Unpack<'_>, _, &mut _, &mut _)), ("fast", priority::fast)]
        {
            let mut map: Vec<i8> = v.get("unpack.priority_map").ints().into_iter().map(|p| p as i8).collect();
            let mut merged = vec![f32::NAN; base.len()];
            let unpack = Unpack { spec, overlap, base: &base, packed: &packed, origins: &origins };
            op(&unpack, level, &mut map[..], &mut merged[..]);
            v.floats_match(what, &format!("unpack.{mode}.merged"), &merged, overlap_tolerance(overlap));
            v.ints_match(what, &format!("unpack.{mode}.priority_map"), map.into_iter().map(i64::from));
        }
    }
}

fn check_unpack_levels(v: &Vectors) {
    let (base, packed) = (v.floats("unpack.base"), v.floats("unpack.packed"));
    let origins = v.get("unpack.origins").origins();
    let given: Vec<i32> = v.get("unpack_levels.levels").ints().into_iter().map(|l| l as i32).collect();
    for mode in v.children("unpack_levels.").into_iter().filter(|name| name != "levels") {
        let (overlap, levels) = match mode.as_str() {
            "none" => ("override", None),
            other => (other, Some(&given[..])),
        };
        let (spec, overlap) = unpack_spec(v, overlap);
        let keys = levels::keys(spec.tiles, spec.dims.batch, levels).unwrap();
        let (mut slow, mut quick) = (vec![f32::NAN; base.len()], vec![f32::NAN; base.len()]);
        let unpack = Unpack { spec, overlap, base: &base, packed: &packed, origins: &origins };
        levels::oracle(&unpack, &keys, &mut slow);
        let mut order = vec![0; origins.len()];
        levels::fast(&unpack, &keys, &mut order, &mut quick);
        for (what, merged) in [("oracle", slow), ("fast", quick)] {
            let name = format!("unpack_levels.{mode}.merged");
            v.floats_match(what, &name, &merged, overlap_tolerance(overlap));
        }
    }
}

fn check_fusion(v: &Vectors) {
    let dims = map_dims(&v.get("fusion.base").shape);
    let [base, heavy, boundary, uncertainty] =
        ["base", "heavy", "boundary", "uncertainty"].map(|name| v.floats(&format!("fusion.{name}")));
    let maps = Maps { base: &base, heavy: &heavy, boundary: &boundary, uncertainty: &uncertainty };
    let custom = Gate {
        boundary_log_weight: v.number("fusion_custom", "boundary_log_weight"),
        uncertainty_log_weight: v.number("fusion_custom", "uncertainty_log_weight"),
        bias: v.number("fusion_custom", "bias"),
    };
    for (prefix, gate) in [("fusion", Gate::DEFAULT), ("fusion.custom", custom)] {
        for (what, op) in
            [("oracle", fusion::oracle as fn(&_, &_, &_, &mut _, &mut _)), ("fast", fusion::fast)]
        {
            let (mut fused, mut alpha) = (vec![f32::NAN; base.len()], vec![f32::NAN; boundary.len()]);
            op(&gate, &dims, &maps, &mut fused[..], &mut alpha[..]);
            v.floats_match(what, &format!("{prefix}.fused"), &fused, CLOSE);
            v.floats_match(what, &format!("{prefix}.alpha"), &alpha, CLOSE);
        }
    }
}

fn check_ssm(v: &Vectors) {
    let tokens = v.get("ssm.tokens");
    let [batch, steps, channels] = tokens.shape[..] else { panic!("ssm.tokens is not [B,K,C]") };
    let tokens = tokens.floats();
    let [decay, input_gain, output_gain, state_bias, gate, init, init_both] = [
        "decay",
        "input_gain",
        "output_gain",
        "state_bias",
        "merge_gate",
        "init_state",
        "init_state_bidirectional",
    ]
    .map(|name| v.floats(&format!("ssm.{name}")));
    let params = ScanParams { decay, input_gain, output_gain, state_bias };
    let clamp = v.number("ssm", "clamp_value") as f32;
    let mut cases: Vec<(String, Direction, Merge)> = Vec::new();
    for name in ["forward", "backward"] {
        cases.push((format!("ssm.{name}"), name.parse().unwrap(), Merge::Avg));
    }
    for merge in v.children("ssm.bidirectional.") {
        let mode = merge.parse().unwrap_or_else(|e| panic!("ssm.bidirectional.{merge}: {e}"));
        cases.push((format!("ssm.bidirectional.{merge}"), Direction::Bidirectional, mode));
    }
    for (name, direction, merge) in cases {
        let spec = ScanSpec { batch, steps, channels, clamp, direction, merge };
        let init = if direction == Direction::Bidirectional { &init_both } else { &init };
        let inputs = ScanInputs {
            tokens: &tokens,
            forward: params.view(),
            backward: params.view(),
            init_state: Some(init),
            merge_gate: Some(&gate),
        };
        for (what, op) in [("oracle", ssm::oracle as fn(&_, &_, &mut _, &mut _)), ("fast", ssm::fast)] {
            let (mut y, mut state) = (vec![f32::NAN; spec.tokens_len()], vec![f32::NAN; spec.state_len()]);
            op(&spec, &inputs, &mut y[..], &mut state[..]);
            v.floats_match(what, &format!("{name}.y"), &y, NEAR);
            v.floats_match(what, &format!("{name}.state"), &state, NEAR);
        }
    }
}

fn check_fused(v: &Vectors) {
    let feature = v.get("pack.feature");
    let indices = v.get("fused.indices");
    let number = |key: &str| v.number("fused", key) as f32;
    let op = Affine {
        value_scale: number("value_scale"),
        value_bias: number("value_bias"),
        gate_scale: number("gate_scale"),
        gate_bias: number("gate_bias"),
    };
    let tile = v.number("fused", "tile_size") as usize;
    let spec = TileSpec::new(map_dims(&feature.shape), tile, indices.shape[1]).unwrap();
    let (feature, ids) = (feature.floats(), indices.ids());
    fused::check_unique(&ids, spec.tiles, spec.grid.count()).unwrap();
    let (mut slow, mut quick) = (vec![f32::NAN; feature.len()], vec![f32::NAN; feature.len()]);
    let keys = levels::keys(spec.tiles, spec.dims.batch, None).unwrap();
    fused::oracle(&spec, &op, &feature, &ids, &mut Packed::new(&spec), &keys, &mut slow);
    fused::fast(&spec, &op, &feature, &ids, &mut quick);
    v.floats_match("oracle", "fused.merged", &slow, CLOSE);
    v.floats_match("fast", "fused.merged", &quick, CLOSE);
}

fn check_models(v: &Vectors) {
    let seeds = v.children("model.");
    let listed = v.case("model")["seeds"].as_array().unwrap().iter().map(Value::to_string).collect();
    v.same("model seeds of tensors and metadata", &seeds, &listed);
    for seed in seeds {
        // The image is as large as the tensors say: pv16 is pooled by 16, ff8 by 8.
        let [_, _, rows, cols] = v.get(&format!("model.{seed}.ff8")).shape[..] else { panic!("ff8") };
        let (height, width) = (rows * infer::FF_STRIDE, cols * infer::FF_STRIDE);
        let image = RandomState::new(seed.parse().unwrap()).uniforms(3 * height * width);
        for (what, op) in [("oracle", infer::oracle as fn(&mut Model, &[f32])), ("fast", infer::fast)] {
            let mut model = Model::new(height, width, InferConfig::default()).unwrap();
            op(&mut model, &image);
            let out = &model.outputs;
            v.floats_match(what, &format!("model.{seed}.pv16"), &out.pv16, CLOSE);
            v.floats_match(what, &format!("model.{seed}.ff8"), &out.ff8, CLOSE);
            v.floats_match(what, &format!("model.{seed}.merged"), &out.merged, CLOSE);
            v.floats_match(what, &format!("model.{seed}.ssm_state"), &out.ssm_state, CLOSE);
            v.floats_match(what, &format!("model.{seed}.score"), &[out.score], CLOSE);
        }
    }
}

/// The metadata names budgets only; the tile edge follows from how many utilities cover the map.
fn ff_config(v: &Vectors, dims: &Nchw) -> FfConfig {
    let tiles = v.get("ff.utilities").shape[1];
    let tile = (1..=dims.height).find(|t| {
        dims.height.is_multiple_of(*t) && dims.width.is_multiple_of(*t) && dims.plane() / (t * t) == tiles
    });
    let tile_size_l0 = tile.expect("a tile size that gives one utility per tile");
    FfConfig {
        tile_size_l0,
        tile_size_l1: tile_size_l0 / 2,
        kmax_l0: v.number("ff", "kmax_l0") as usize,
        kmax_l1: v.number("ff", "kmax_l1") as usize,
        budget_b1: v.number("ff", "budget_b1"),
        budget_b2: v.number("ff", "budget_b2"),
        ..FfConfig::default()
    }
}

fn path_weights(v: &Vectors, path: &str, channels: usize) -> PathWeights {
    let c = channels;
    let get = |name: &str, len: usize| {
        let values = v.floats(&format!("ff.weights.{path}.{name}"));
        assert_eq!(values.len(), len, "{name}");
        values
    };
    let scan = |prefix: &str| RawScan {
        decay_logit: get(&format!("{prefix}.decay_logit"), c),
        input_gain_raw: get(&format!("{prefix}.input_gain_raw"), c),
        output_gain_raw: get(&format!("{prefix}.output_gain_raw"), c),
        state_bias: get(&format!("{prefix}.state_bias"), c),
    };
    let layer = |prefix: &str, weight: usize, bias: usize| {
        [get(&format!("{prefix}.weight"), weight), get(&format!("{prefix}.bias"), bias)]
    };
    let number = |name: &str| f64::from(get(&format!("fusion_gate.{name}"), 1)[0]);
    // The original has it, but runs the bidirectional scan.
    scan("scan_forward");
    PathWeights {
        forward: scan("scan_bidirectional.forward_scan"),
        backward: scan("scan_bidirectional.backward_scan"),
        merge_gate_logit: get("scan_bidirectional.merge_gate_logit", c),
        token_norm: layer("film.token_norm", c, c),
        mlp0: layer("film.mlp.0", c * c, c),
        mlp2: layer("film.mlp.2", 2 * c * c, 2 * c),
        depthwise: layer("refine.depthwise", 9 * c, c),
        pointwise: layer("refine.pointwise", 2 * c * c, 2 * c),
        norm: layer("refine.norm", 2 * c, 2 * c),
        gate: Gate {
            boundary_log_weight: number("boundary_log_weight"),
            uncertainty_log_weight: number("uncertainty_log_weight"),
            bias: number("bias"),
        },
    }
}

fn check_ff(v: &Vectors) {
    let dims = map_dims(&v.get("ff.dense").shape);
    let config = ff_config(v, &dims);
    let weights = ["l0_path", "l1_path"].map(|path| path_weights(v, path, dims.channels));
    let [dense, utilities, split_utilities, boundary, uncertainty] =
        ["dense", "utilities", "split_utilities", "boundary", "uncertainty"]
            .map(|n| v.floats(&format!("ff.{n}")));
    let inputs = FfInputs {
        dense: &dense,
        utilities: &utilities,
        split_utilities: &split_utilities,
        boundary: &boundary,
        uncertainty: &uncertainty,
    };
    let mut oracle = OracleModule::new(dims, config, &weights).unwrap();
    oracle.run(&inputs).unwrap();
    ff_match(v, "oracle", &oracle.router, &oracle.outputs);
    let mut fast = FastModule::new(dims, config, &weights).unwrap();
    fast.run(&inputs).unwrap();
    ff_match(v, "fast", &fast.router, &fast.outputs);
}

fn ff_match(v: &Vectors, what: &str, router: &Router, out: &FfOutputs) {
    v.floats_match(what, "ff.heavy", &out.heavy, NEAR);
    v.floats_match(what, "ff.detail", &out.detail, NEAR);
    v.floats_match(what, "ff.alpha", &out.alpha, NEAR);
    let l0: Vec<&[u32]> = router.routes.iter().map(|r| &r.l0.selected[..]).collect();
    let l1: Vec<&[u32]> = router.routes.iter().map(|r| &r.l1.ordered[..]).collect();
    let case = v.case("ff");
    v.same("ff level 0 tiles", &json!(l0), &case["selected_l0"]);
    v.same("ff level 1 tiles", &json!(l1), &case["selected_l1"]);
    for (name, level) in [("spent_b1", 0), ("spent_b2", 1)] {
        let (got, want) = (out.diagnostics.budgets[level].used, v.number("ff", name));
        v.same(name, &((got - want).abs() < 1e-9), &true);
    }
}

fn check_attention(v: &Vectors) {
    for case in v.children("attention.") {
        let shape = &v.get(&format!("attention.{case}.q")).shape;
        let [batch, heads, steps, width] = shape[..] else { panic!("q is not [B,H,S,D]") };
        let causal = v.case(&format!("attention.{case}"))["causal"].as_bool().unwrap();
        let spec = AttentionSpec { heads: batch * heads, steps, width, causal };
        let [q, k, value] = ["q", "k", "v"].map(|name| v.floats(&format!("attention.{case}.{name}")));
        let (mut slow, mut quick) = (vec![f32::NAN; q.len()], vec![f32::NAN; q.len()]);
        attention::oracle(&spec, &q, &k, &value, &mut vec![0.0; steps], &mut slow);
        attention::fast(&spec, &q, &k, &value, &mut Scratch::new(&spec), &mut quick);
        // The answers are f64 rounded to f32 and the inputs exact, so the input's dtype costs nothing here.
        v.floats_match("oracle", &format!("attention.{case}.out"), &slow, CLOSE);
        v.floats_match("fast", &format!("attention.{case}.out"), &quick, NEAR);
    }
}
