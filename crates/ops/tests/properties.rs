//! Fast versions equal their oracles for random sizes, modes and values, wherever the contract has a rule.

// Helpers outside #[test] functions are test code all the same: a bad file should stop the test.
#![allow(clippy::unwrap_used)]

use holdpoint_ops::Tolerance;
use holdpoint_ops::attention::cpu::{self as attention, AttentionSpec, Scratch};
use holdpoint_ops::compare::Comparison;
use holdpoint_ops::ff_path::cpu::{FastModule, FfConfig, FfInputs, OracleModule, PathWeights};
use holdpoint_ops::fused_pack_op_unpack::cpu::{self as fused, Affine};
use holdpoint_ops::fusion_gate::cpu::{self as fusion, Gate, Maps};
use holdpoint_ops::infer::cpu::{self as infer, InferConfig, Model};
use holdpoint_ops::order::{OrderMode, Orderer, insertion_order, order};
use holdpoint_ops::rng::RandomState;
use holdpoint_ops::select::{SplitInput, greedy, two_stage};
use holdpoint_ops::shape::{Grid, Nchw, TileSpec};
use holdpoint_ops::tile_pack::cpu::{self as pack, Packed};
use holdpoint_ops::tile_ssm::cpu::{self as ssm, Direction, Merge, ScanInputs, ScanParams, ScanSpec};
use holdpoint_ops::tile_unpack::cpu::{Overlap, Unpack, levels, priority};
use proptest::prelude::*;

fn modes() -> impl Strategy<Value = OrderMode> {
    use OrderMode::{D2u, Hilbert, L2r, MultiDirection, R2l, U2d};
    prop::sample::select(vec![Hilbert, MultiDirection, L2r, R2l, U2d, D2u])
}

/// Equal bits, NaN included: where both only move values, a NaN has to arrive too.
fn same_bits(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.to_bits() == y.to_bits())
}

fn close(name: &str, got: &[f32], want: &[f32], atol: f64, rtol: f64) -> Result<(), TestCaseError> {
    let tolerance = Tolerance::new(atol, rtol);
    let check = Comparison::new(tolerance).floats(name, &[want.len()], got, want).finish();
    prop_assert!(check.passed, "{check:?}");
    Ok(())
}

/// Normals with NaN and infinities planted here and there.
fn dirty(rng: &mut RandomState, count: usize) -> Vec<f32> {
    let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30];
    let mut values = rng.normals(count).to_vec();
    for value in &mut values {
        if rng.uniform() < 0.05 {
            *value = odd[(rng.uniform() * 5.0) as usize];
        }
    }
    values
}

fn ids(rng: &mut RandomState, count: usize, below: usize) -> Vec<u32> {
    (0..count).map(|_| (rng.uniform() * below as f64) as u32).collect()
}

/// Batch, channels, grid rows and columns, tile edge.
fn maps() -> impl Strategy<Value = (Nchw, usize)> {
    let tiles = prop::sample::select(vec![1usize, 2, 3, 4, 5, 7, 8, 16, 32]);
    (1usize..3, 1usize..6, 1usize..5, 1usize..5, tiles)
        .prop_map(|(b, c, rows, cols, t)| (Nchw::new(b, c, rows * t, cols * t), t))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn every_order_is_a_stable_permutation(
        rows in 1usize..9, cols in 1usize..9, mode in modes(), seed in 0u64..1 << 40, count in 0usize..40,
    ) {
        let grid = Grid { rows, cols, tile: 1 };
        let given = ids(&mut RandomState::new(seed), count, grid.count());
        let want = order(&given, mode, &grid);
        let (mut sorted, mut sorted_given) = (want.clone(), given.clone());
        sorted.sort_unstable();
        sorted_given.sort_unstable();
        prop_assert_eq!(sorted, sorted_given);
        let mut quick = vec![0; count];
        Orderer::new(mode, &grid, count).order_into(&given, &mut quick);
        prop_assert_eq!(&quick, &want);
        let mut plain = given;
        insertion_order(&mut plain, mode, &grid);
        prop_assert_eq!(&plain, &want);
    }

    #[test]
    fn packing_is_bit_equal(
        (dims, tile) in maps(), mode in prop::option::of(modes()), tiles in 0usize..9, seed in 0u64..1 << 40,
    ) {
        let mut rng = RandomState::new(seed);
        let spec = TileSpec::new(dims, tile, tiles).unwrap();
        let feature = dirty(&mut rng, dims.len());
        let given = ids(&mut rng, dims.batch * tiles, spec.grid.count());
        let (mut slow, mut quick) = (Packed::new(&spec), Packed::new(&spec));
        pack::oracle(&spec, &feature, &given, mode, slow.view());
        let mut orderer = mode.map(|mode| Orderer::new(mode, &spec.grid, tiles));
        pack::fast(&spec, &feature, &given, orderer.as_mut(), quick.view());
        prop_assert!(same_bits(&quick.tiles, &slow.tiles));
        prop_assert_eq!((quick.indices, quick.origins), (slow.indices, slow.origins));
    }

    #[test]
    fn unpacking_is_bit_equal_for_overlapping_unaligned_tiles(
        (dims, tile) in maps(), tiles in 0usize..9, seed in 0u64..1 << 40, blend in any::<bool>(),
        alpha in 0.0f64..=1.0, level in -2i8..5, by_level in any::<bool>(),
    ) {
        let mut rng = RandomState::new(seed);
        let overlap = Overlap::parse(if blend { "blend" } else { "override" }, alpha).unwrap();
        let spec = TileSpec::new(dims, tile, tiles).unwrap();
        let count = dims.batch * tiles;
        let base = if blend { rng.normals(dims.len()).to_vec() } else { dirty(&mut rng, dims.len()) };
        let packed = rng.normals(count * spec.tile_len());
        let (ys, xs) = (ids(&mut rng, count, dims.height - tile + 1), ids(&mut rng, count, dims.width - tile + 1));
        let origins: Vec<[u32; 2]> = ys.into_iter().zip(xs).map(|(y, x)| [y, x]).collect();
        let unpack = Unpack { spec, overlap, base: &base, packed: &packed, origins: &origins };
        let (mut slow, mut quick) = (vec![f32::NAN; dims.len()], vec![f32::NAN; dims.len()]);
        if by_level {
            let given: Vec<i32> = ids(&mut rng, count, 4).into_iter().map(|l| l as i32 - 1).collect();
            let keys = levels::keys(tiles, dims.batch, Some(&given)).unwrap();
            levels::oracle(&unpack, &keys, &mut slow);
            levels::fast(&unpack, &keys, &mut vec![0; count], &mut quick);
            prop_assert_eq!(levels::application_order(&keys, tiles).len(), count);
        } else {
            let pixels = dims.batch * dims.plane();
            let map: Vec<i8> = ids(&mut rng, pixels, 4).into_iter().map(|p| p as i8).collect();
            let (mut slow_map, mut quick_map) = (map.clone(), map);
            priority::oracle(&unpack, level, &mut slow_map, &mut slow);
            priority::fast(&unpack, level, &mut quick_map, &mut quick);
            prop_assert_eq!(quick_map, slow_map);
        }
        prop_assert!(same_bits(&quick, &slow));
    }

    #[test]
    fn fusion_is_close_with_dirty_proxies(
        (dims, _) in maps(), seed in 0u64..1 << 40, wb in -3.0f64..3.0, wu in -3.0f64..3.0, bias in -3.0f64..3.0,
    ) {
        let mut rng = RandomState::new(seed);
        let (base, heavy) = (rng.normals(dims.len()), rng.normals(dims.len()));
        let pixels = dims.batch * dims.plane();
        let (boundary, uncertainty) = (dirty(&mut rng, pixels), rng.uniforms(pixels));
        let gate = Gate { boundary_log_weight: wb, uncertainty_log_weight: wu, bias };
        let maps = Maps { base: &base, heavy: &heavy, boundary: &boundary, uncertainty: &uncertainty };
        let buffers = || (vec![f32::NAN; dims.len()], vec![f32::NAN; pixels]);
        let ((mut slow, mut slow_alpha), (mut quick, mut quick_alpha)) = (buffers(), buffers());
        fusion::oracle(&gate, &dims, &maps, &mut slow, &mut slow_alpha);
        fusion::fast(&gate, &dims, &maps, &mut quick, &mut quick_alpha);
        close("alpha", &quick_alpha, &slow_alpha, 5e-7, 1e-6)?;
        close("fused", &quick, &slow, 1e-6, 1e-5)?;
    }

    #[test]
    fn scans_are_bit_equal_with_dirty_tokens(
        batch in 1usize..3, steps in 0usize..40, channels in 1usize..100, seed in 0u64..1 << 40,
        direction in prop::sample::select(vec![Direction::Forward, Direction::Backward, Direction::Bidirectional]),
        merge in prop::sample::select(vec![Merge::Sum, Merge::Avg, Merge::Gated]),
        init_slots in 0usize..3, wide_gate in any::<bool>(), clamp in prop::sample::select(vec![1e4f32, -3.0, 0.0]),
    ) {
        let mut rng = RandomState::new(seed);
        let spec = ScanSpec { batch, steps, channels, clamp, direction, merge };
        let tokens = dirty(&mut rng, spec.tokens_len());
        let mut set = || ScanParams {
            decay: rng.uniforms(channels).iter().map(|u| u * 1.4 - 0.2).collect(),
            input_gain: rng.normals(channels).to_vec(),
            output_gain: rng.normals(channels).to_vec(),
            state_bias: rng.normals(channels).to_vec(),
        };
        let (forward, backward) = (set(), set());
        let init = rng.normals(init_slots * batch * channels);
        let gate = rng.normals(if wide_gate { batch * channels } else { channels });
        let inputs = ScanInputs {
            tokens: &tokens,
            forward: forward.view(),
            backward: backward.view(),
            init_state: (init_slots > 0).then_some(&init[..]),
            merge_gate: Some(&gate),
        };
        let buffers = || (vec![f32::NAN; spec.tokens_len()], vec![f32::NAN; spec.state_len()]);
        let ((mut slow, mut slow_state), (mut quick, mut quick_state)) = (buffers(), buffers());
        ssm::oracle(&spec, &inputs, &mut slow, &mut slow_state);
        ssm::fast(&spec, &inputs, &mut quick, &mut quick_state);
        prop_assert!(slow.iter().chain(&slow_state).all(|v| v.is_finite()));
        prop_assert!(same_bits(&quick, &slow) && same_bits(&quick_state, &slow_state));
    }

    #[test]
    fn the_fused_op_equals_its_three_steps(
        (dims, tile) in maps(), seed in 0u64..1 << 40, scales in prop::array::uniform4(-2.0f32..2.0),
    ) {
        let mut rng = RandomState::new(seed);
        let grid = Grid::new(dims.height, dims.width, tile).unwrap();
        let tiles = (rng.uniform() * (grid.count() + 1) as f64) as usize;
        let spec = TileSpec::new(dims, tile, tiles).unwrap();
        // The first tiles of a shuffled grid: unique by construction.
        let mut given = Vec::new();
        for _ in 0..dims.batch {
            let mut all: Vec<(u64, u32)> = (0..grid.count() as u32).map(|id| (rng.uniform().to_bits(), id)).collect();
            all.sort_unstable();
            given.extend(all.iter().take(tiles).map(|&(_, id)| id));
        }
        fused::check_unique(&given, tiles, grid.count()).unwrap();
        let [value_scale, value_bias, gate_scale, gate_bias] = scales;
        let op = Affine { value_scale, value_bias, gate_scale, gate_bias };
        let feature = dirty(&mut rng, dims.len());
        let keys = levels::keys(tiles, dims.batch, None).unwrap();
        let (mut slow, mut quick) = (vec![f32::NAN; dims.len()], vec![f32::NAN; dims.len()]);
        fused::oracle(&spec, &op, &feature, &given, &mut Packed::new(&spec), &keys, &mut slow);
        fused::fast(&spec, &op, &feature, &given, &mut quick);
        // Which NaN an operation on infinities gives is not part of the contract; that it is one, is.
        prop_assert!(quick.iter().zip(&slow).all(|(a, b)| a == b || (a.is_nan() && b.is_nan())));
    }

    #[test]
    fn greedy_never_overspends_nor_selects_twice(
        seed in 0u64..1 << 40, count in 0usize..50, budget in 0.0f64..20.0, kmax in 0usize..30,
    ) {
        let mut rng = RandomState::new(seed);
        let utilities: Vec<f64> = rng.normals(count).iter().map(|&v| f64::from(v)).collect();
        let costs: Vec<f64> = (0..count).map(|_| rng.uniform() * 2.0).collect();
        let chosen = greedy(&utilities, &costs, budget, kmax).unwrap();
        prop_assert!(chosen.spent <= budget + 1e-9 && chosen.selected.len() <= kmax);
        prop_assert_eq!(chosen.kmax_buffer.len(), kmax);
        let unique: std::collections::BTreeSet<_> = chosen.selected.iter().collect();
        prop_assert_eq!(unique.len(), chosen.selected.len());
    }

    #[test]
    fn children_belong_to_chosen_parents(
        seed in 0u64..1 << 40, rows in 1usize..5, cols in 1usize..5, kmax in 0usize..40,
    ) {
        let mut rng = RandomState::new(seed);
        let grid = Grid { rows, cols, tile: 2 };
        let draw = |rng: &mut RandomState| (0..grid.count()).map(|_| rng.uniform()).collect::<Vec<f64>>();
        let (u, d, s, o) = (draw(&mut rng), draw(&mut rng), draw(&mut rng), draw(&mut rng));
        let split = SplitInput { utilities: &s, overheads: &o, budget: 2.0, kmax };
        let r = two_stage(&u, &d, (3.0, 10), &split, &grid, OrderMode::Hilbert).unwrap();
        prop_assert_eq!(r.l1.children.len(), 4 * r.l1.parents.len());
        prop_assert!(r.l1.children.len() <= kmax && r.l1.spent <= 2.0 + 1e-9);
        prop_assert!(r.l1.parents.iter().all(|p| r.l0.selected.contains(p)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn attention_is_close(
        heads in 1usize..4, steps in 1usize..120, width in 1usize..70, causal in any::<bool>(), seed in 0u64..1 << 40,
    ) {
        let spec = AttentionSpec { heads, steps, width, causal };
        let mut rng = RandomState::new(seed);
        let [q, k, v] = [(); 3].map(|()| rng.normals(spec.len()));
        let (mut slow, mut quick) = (vec![f32::NAN; spec.len()], vec![f32::NAN; spec.len()]);
        attention::oracle(&spec, &q, &k, &v, &mut vec![0.0; steps], &mut slow);
        attention::fast(&spec, &q, &k, &v, &mut Scratch::new(&spec), &mut quick);
        close("out", &quick, &slow, 5e-6, 1e-5)?;
    }

    #[test]
    fn inference_is_close_on_any_size(
        rows in 1usize..4, cols in 1usize..4, extra in 0usize..8, seed in 0u64..1 << 40, budget in 0.0f64..6.0,
        tile in prop::sample::select(vec![2usize, 3, 8, 16]), dense in any::<bool>(), still in any::<bool>(),
    ) {
        let (height, width) = (8 * tile * rows + extra, 8 * tile * cols + extra);
                let config = InferConfig {
            tile_size_l0: tile, budget_b1: budget, force_dense_routing: dense, disable_ssm: still, ..InferConfig::default()
        };
        let image = RandomState::new(seed).uniforms(3 * height * width);
        let mut slow = Model::new(height, width, config).unwrap();
        let mut quick = slow.clone();
        // Twice: the hysteresis mask carries over.
        for _ in 0..2 {
            infer::oracle(&mut slow, &image);
            infer::fast(&mut quick, &image);
        }
        let (a, b) = (&quick.outputs, &slow.outputs);
        prop_assert_eq!(quick.selected(), slow.selected());
        prop_assert_eq!(&a.hysteresis_mask, &b.hysteresis_mask);
        close("pv16", &a.pv16, &b.pv16, 1e-6, 1e-6)?;
        close("merged", &a.merged, &b.merged, 1e-6, 1e-6)?;
        close("state", &a.ssm_state, &b.ssm_state, 1e-6, 1e-6)?;
        prop_assert!((a.score - b.score).abs() < 1e-6);
    }

    #[test]
    fn the_ff_path_is_close(
        batch in 1usize..3, channels in 1usize..20, rows in 1usize..4, cols in 1usize..4, seed in 0u64..1 << 40,
        edge in prop::sample::select(vec![1usize, 3, 4, 8]), nesting in any::<bool>(), budget in 0.0f64..4.0,
    ) {
        let tile = 2 * edge;
        let dims = Nchw::new(batch, channels, rows * tile, cols * tile);
        let config = FfConfig {
            tile_size_l0: tile, tile_size_l1: edge, kmax_l0: 5, kmax_l1: 9, nesting,
            budget_b1: budget, budget_b2: 2.0,
            ..FfConfig::default()
        };
        let mut rng = RandomState::new(seed);
        let weights = [PathWeights::draw(&mut rng, channels), PathWeights::draw(&mut rng, channels)];
        let (tiles, pixels) = (batch * rows * cols, batch * dims.plane());
        let (dense, utilities, split) = (rng.normals(dims.len()), rng.normals(tiles), rng.uniforms(tiles));
        let (boundary, uncertainty) = (dirty(&mut rng, pixels), rng.uniforms(pixels));
        let inputs = FfInputs {
            dense: &dense, utilities: &utilities, split_utilities: &split,
            boundary: &boundary, uncertainty: &uncertainty,
        };
        let mut slow = OracleModule::new(dims, config, &weights).unwrap();
        let mut quick = FastModule::new(dims, config, &weights).unwrap();
        slow.run(&inputs).unwrap();
        quick.run(&inputs).unwrap();
        close("alpha", &quick.outputs.alpha, &slow.outputs.alpha, 1e-6, 1e-5)?;
        close("states", &quick.outputs.states, &slow.outputs.states, 1e-5, 1e-4)?;
        close("heavy", &quick.outputs.heavy, &slow.outputs.heavy, 5e-5, 1e-4)?;
        close("detail", &quick.outputs.detail, &slow.outputs.detail, 5e-5, 1e-4)?;
        prop_assert_eq!(quick.outputs.diagnostics, slow.outputs.diagnostics);
    }
}
