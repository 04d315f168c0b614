//! Shapes and parameters of each op's cases.

use super::Target;
use super::generate::Most;
use holdpoint_model::suite::OpSpec;
use holdpoint_stats::random::Random;
use serde_json::{Map, Value, json};

/// A size of a declared op, at most, where it is not the large one.
const DECLARED_MAX: usize = 300;

const PRIMES: &[usize] =
    &[11, 13, 17, 19, 23, 29, 31, 37, 41, 53, 61, 67, 71, 97, 101, 127, 131, 193, 251, 257];
const ORDERS: &[&str] = &["none", "hilbert", "multi_direction", "l2r", "r2l", "u2d", "d2u"];

/// What a shape is drawn with.
pub(super) struct Draw<'a> {
    pub(super) target: Target,
    pub(super) most: Most,
    /// The axis that is large, and its size.
    pub(super) large: Option<(usize, usize)>,
    pub(super) random: &'a mut Random,
}

impl Draw<'_> {
    /// Makes the large axis large, and the others smaller until all of it costs little enough.
    fn stretch(&self, sizes: &mut [usize], costs_too_much: impl Fn(&[usize]) -> bool) {
        let large = self.large.map(|(axis, _)| axis);
        if let Some((axis, size)) = self.large {
            sizes[axis] = size;
        }
        while costs_too_much(sizes) {
            let others = (0..sizes.len()).filter(|at| Some(*at) != large && sizes[*at] > 1);
            match others.max_by_key(|at| sizes[*at]).or(large) {
                Some(at) if sizes[at] > 1 => sizes[at] -= sizes[at].div_ceil(4).min(sizes[at] - 1),
                _ => return,
            }
        }
    }
}

/// Sizes of a declared op, all of whose tensors must be small enough for a worker in plain Python.
pub(super) fn declared(op: &OpSpec, draw: &mut Draw<'_>) -> Vec<usize> {
    let mut sizes: Vec<usize> = op.sizes.iter().map(|_| size(draw.random, DECLARED_MAX)).collect();
    let most = draw.most;
    draw.stretch(&mut sizes, |sizes| {
        let fits = |dims: &[usize]| dims.iter().product::<usize>() <= most.elements;
        let has_large_tensors = op
            .tensors(sizes)
            .is_ok_and(|(inputs, outputs)| !inputs.iter().chain(&outputs).all(|(_, dims)| fits(dims)));
        has_large_tensors || sizes.iter().product::<usize>() > most.operations
    });
    sizes
}

/// A size that is seldom round.
pub(super) fn size(random: &mut Random, most: usize) -> usize {
    let most = most.max(1);
    let drawn = match random.below(10) {
        0..=3 => 1 + random.below(8),
        4 | 5 => (1_usize << (1 + random.below(9))) + random.below(3) - 1,
        // Whole tiles of kernels, and one more or less.
        6 => pick(random, &[16, 32, 64]) * (1 + random.below(4)) + pick(random, &[0, 0, 1]),
        7 | 8 => PRIMES[random.below(PRIMES.len())],
        _ => 1 + random.below(most),
    };
    if drawn <= most { drawn } else { 1 + random.below(most) }
}

pub(super) fn pick<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len())]
}

/// Shape and parameters of a case, or none where the op is not known.
pub(super) fn op(op: &str, draw: &mut Draw<'_>) -> Option<(Vec<usize>, Map<String, Value>)> {
    let (shape, params) = match op {
        "attention" => attention(draw),
        "tile_ssm" => scan(draw),
        "fusion_gate" => gate(draw),
        "tile_pack" | "tile_unpack" | "fused_pack_op_unpack" => tiles(op, draw),
        "ff_path" => ff(draw.target, draw.random),
        "infer" => infer(draw.random),
        "copy" | "fma" => (
            vec![draw.large.map_or_else(|| size(draw.random, draw.most.elements), |(_, size)| size)],
            json!({}),
        ),
        _ => return None,
    };
    let Value::Object(params) = params else { return None };
    Some((shape, params))
}

fn attention(draw: &mut Draw<'_>) -> (Vec<usize>, Value) {
    let (most, random) = (draw.most, &mut *draw.random);
    let [batch, heads] = [1 + random.below(4), 1 + random.below(4)];
    let width = match draw.target {
        Target::Cuda => pick(random, &[32, 64, 96, 128]),
        Target::Builtin => size(random, 128),
        // Mostly what kernels are written for.
        Target::External if random.below(4) > 0 => pick(random, &[16, 32, 64, 96, 128]),
        Target::External => size(random, 256),
    };
    let longest = (most.operations / (batch * heads * width)).isqrt();
    let steps = size(random, longest.clamp(1, 600));
    let causal = random.below(2) == 0;
    let mut shape = vec![batch, heads, steps, width];
    draw.stretch(&mut shape, |shape| {
        let elements: usize = shape.iter().product();
        elements * shape[2] > most.operations || draw.large.is_some() && elements > most.elements
    });
    if draw.target == Target::Cuda {
        // The widths that there are kernels for.
        shape[3] = [128, 96, 64].into_iter().find(|width| *width <= shape[3]).unwrap_or(32);
    }
    (shape, json!({"causal": causal}))
}

fn scan(draw: &mut Draw<'_>) -> (Vec<usize>, Value) {
    let (most, random) = (draw.most, &mut *draw.random);
    let batch = 1 + random.below(3);
    let channels = size(random, 260);
    let steps = size(random, (most.elements / (batch * channels)).clamp(1, 1200));
    let params = json!({
        "direction": pick(random, &["forward", "backward", "bidirectional"]),
        "merge_mode": pick(random, &["sum", "avg", "gated"]),
        "clamp_value": pick(random, &[1e4, 2.0]),
    });
    let mut shape = vec![batch, steps, channels];
    draw.stretch(&mut shape, |shape| shape.iter().product::<usize>() > most.elements);
    (shape, params)
}

fn gate(draw: &mut Draw<'_>) -> (Vec<usize>, Value) {
    let (most, random) = (draw.most, &mut *draw.random);
    let [batch, height, width] = [1 + random.below(3), size(random, 67), size(random, 67)];
    let channels = size(random, (most.elements / (batch * height * width)).clamp(1, 130));
    let params = match random.below(2) {
        0 => json!({}),
        _ => {
            json!({"boundary_log_weight": 2.0 * random.uniform() - 1.0, "bias": 4.0 * random.uniform() - 2.0})
        }
    };
    let mut shape = vec![batch, channels, height, width];
    draw.stretch(&mut shape, |shape| shape.iter().product::<usize>() > most.elements);
    (shape, params)
}

fn tiles(op: &str, draw: &mut Draw<'_>) -> (Vec<usize>, Value) {
    let (most, random) = (draw.most, &mut *draw.random);
    let tile = pick(random, &[1, 2, 3, 4, 5, 7, 8, 8, 16, 16]);
    let [rows, columns] = [1 + random.below(8), 1 + random.below(8)];
    let batch = 1 + random.below(3);
    let plane = rows * columns * tile * tile;
    let channels = size(random, (most.elements / (batch * plane)).clamp(1, 130));
    // In tiles, as the large axis is.
    let mut sizes = [batch, channels, rows, columns];
    let large = draw.large;
    draw.large = large.map(|(axis, size)| (axis, if axis < 2 { size } else { (size / tile).max(1) }));
    draw.stretch(&mut sizes, |sizes| sizes.iter().product::<usize>() * tile * tile > most.elements);
    let [batch, channels, rows, columns] = sizes;
    let random = &mut *draw.random;
    let mut ids: Vec<usize> = (0..rows * columns).collect();
    random.shuffle(&mut ids);
    ids.truncate(1 + random.below(rows * columns));
    let params = tile_params(op, draw.target, tile, ids, random);
    (vec![batch, channels, rows * tile, columns * tile], params)
}

fn tile_params(op: &str, target: Target, tile: usize, ids: Vec<usize>, random: &mut Random) -> Value {
    let count = ids.len();
    let mut params = json!({"tile_size": tile, "indices": ids});
    let is_cuda = target == Target::Cuda;
    match op {
        "tile_pack" if !is_cuda => params["order_mode"] = json!(pick(random, ORDERS)),
        "tile_unpack" => {
            params["overlap_mode"] = json!(pick(random, &["override", "blend"]));
            params["blend_alpha"] = json!(pick(random, &[0.5, 0.0, 1.0, 0.3]));
            if is_cuda {
                params["levels"] = json!(random.below(2) == 0);
                params["overlap_shift"] = json!(random.below(tile));
            } else {
                params["order_mode"] = json!(pick(random, ORDERS));
                if random.below(2) == 0 {
                    let levels: Vec<usize> = (0..count).map(|_| random.below(3)).collect();
                    params["levels"] = json!(levels);
                }
            }
        }
        "fused_pack_op_unpack" => {
            params["value_scale"] = json!(pick(random, &[1.0, -0.5, 2.0]));
            params["gate_bias"] = json!(pick(random, &[0.0, 0.25]));
        }
        _ => {}
    }
    params
}

fn ff(target: Target, random: &mut Random) -> (Vec<usize>, Value) {
    let tile = pick(random, &[2, 4, 8]);
    let [rows, columns] = [1 + random.below(4), 1 + random.below(4)];
    let channels = match target {
        Target::Cuda => 16 * (1 + random.below(4)),
        _ => size(random, 24),
    };
    let tiles = rows * columns;
    let kmax = 1 + random.below(tiles);
    let params = json!({
        "tile_size_l0": tile,
        "tile_size_l1": tile / 2,
        "kmax_l0": kmax,
        "kmax_l1": 1 + random.below(4 * tiles),
        "budget_b1": kmax as f64,
        "budget_b2": random.below(8) as f64,
        "budget_total": (kmax + 8) as f64,
        "nesting": random.below(4) > 0,
    });
    (vec![1 + random.below(2), channels, rows * tile, columns * tile], params)
}

fn infer(random: &mut Random) -> (Vec<usize>, Value) {
    let tile = pick(random, &[1, 2, 4]);
    let side = |random: &mut Random| 16 * tile * (1 + random.below(3));
    let shape = vec![1, 3, side(random), side(random)];
    let params = json!({
        "tile_size_l0": tile,
        "kmax_l0": 1 + random.below(9),
        "force_dense_routing": random.below(4) == 0,
        "disable_ssm": random.below(4) == 0,
    });
    (shape, params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn sizes_are_tiny_prime_and_beside_powers_of_two() {
        let mut random = Random::new(2);
        let sizes: BTreeSet<usize> = (0..2000).map(|_| size(&mut random, 300)).collect();
        assert!([1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 129, 131, 257].iter().all(|n| sizes.contains(n)));
        assert!(sizes.iter().all(|&n| (1..=300).contains(&n)));
    }
}
