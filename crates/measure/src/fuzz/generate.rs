//! Cases that kernels trip over: tiny and ragged sizes, primes, sizes beside powers of two, odd parameters and values.

use super::{Kernel, Target};
use holdpoint_model::suite::OpSpec;
use holdpoint_model::{FuzzCase, Values};
use holdpoint_stats::random::Random;
use serde_json::{Map, Value, json};

/// How large cases may be.
struct Most {
    /// Multiply-adds of one product of attention.
    cost: usize,
    /// Elements of the main input.
    elements: usize,
}

impl Most {
    fn of(target: Target) -> Self {
        match target {
            // An oracle takes a millisecond or so.
            Target::Builtin | Target::Cuda => Self { cost: 1_500_000, elements: 40_000 },
            // Six calls a case and more while it is made small, by a worker that may be written in plain Python.
            Target::External => Self { cost: 400_000, elements: 6_000 },
        }
    }
}

/// Draws until one is a request that the op takes.
const TRIES_MAX: usize = 2_000;

/// A size of a declared op, at most.
const DECLARED_MAX: usize = 300;

const PRIMES: &[usize] =
    &[11, 13, 17, 19, 23, 29, 31, 37, 41, 53, 61, 67, 71, 97, 101, 127, 131, 193, 251, 257];
const ORDERS: &[&str] = &["none", "hilbert", "multi_direction", "l2r", "r2l", "u2d", "d2u"];

/// A case of a kernel, or none where it cannot be generated.
pub(super) fn generate(kernel: &Kernel<'_>, random: &mut Random) -> Option<FuzzCase> {
    let (op, target, own) = (&kernel.spec.op, kernel.target, &kernel.spec.kernel);
    for _ in 0..TRIES_MAX {
        let (shape, params) = match kernel.declared {
            Some(declared) => (sizes(declared, random), kernel.spec.params.clone()),
            None => drawn(op, target, random)?,
        };
        let case = FuzzCase {
            op: op.clone(),
            shape,
            dtype: kernel.dtype.clone(),
            params,
            seed: random.bits() >> 12,
            values: match kernel.declared {
                Some(declared) => pick(random, &declared.values),
                None => values(op, random),
            },
            // A kernel that is handed pointers may count on what allocators give.
            offset: match target {
                Target::Builtin => 0,
                _ if own.is_some() || random.below(4) > 0 => 0,
                _ => 1 + random.below(3),
            },
            kernel: own.clone(),
            declared: kernel.declared.cloned(),
        };
        if target.takes(&case) && is_small(&case) {
            return Some(case);
        }
    }
    None
}

/// Sizes of a declared op.
fn sizes(op: &OpSpec, random: &mut Random) -> Vec<usize> {
    op.sizes.iter().map(|_| size(random, DECLARED_MAX)).collect()
}

/// Whether all tensors of a declared op are small enough for a worker in plain Python.
fn is_small(case: &FuzzCase) -> bool {
    let Some(op) = &case.declared else { return true };
    let elements = |dims: &[usize]| dims.iter().product::<usize>();
    let most = Most::of(Target::External).elements;
    op.tensors(&case.shape)
        .is_ok_and(|(inputs, outputs)| inputs.iter().chain(&outputs).all(|(_, dims)| elements(dims) <= most))
}

/// Ordinary values half of the time. Ops that choose tiles by their values get none that tie, and nothing that is not finite:
/// the choice is open then.
fn values(op: &str, random: &mut Random) -> Values {
    const CHOOSING: &[&str] = &["infer", "ff_path"];
    const UNTIED: &[Values] = &[Values::Uniform, Values::Tiny];
    match random.below(2) {
        0 => Values::Normal,
        _ if CHOOSING.contains(&op) => pick(random, UNTIED),
        _ => pick(random, Values::ALL),
    }
}

/// A size that is seldom round.
fn size(random: &mut Random, most: usize) -> usize {
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

fn pick<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len())]
}

fn drawn(op: &str, target: Target, random: &mut Random) -> Option<(Vec<usize>, Map<String, Value>)> {
    let most = &Most::of(target);
    let (shape, params) = match op {
        "attention" => attention(target, most, random),
        "tile_ssm" => scan(most, random),
        "fusion_gate" => gate(most, random),
        "tile_pack" | "tile_unpack" | "fused_pack_op_unpack" => tiles(op, target, most, random),
        "ff_path" => ff(target, random),
        "infer" => infer(random),
        "copy" | "fma" => (vec![size(random, most.elements)], json!({})),
        _ => return None,
    };
    let Value::Object(params) = params else { return None };
    Some((shape, params))
}

fn attention(target: Target, most: &Most, random: &mut Random) -> (Vec<usize>, Value) {
    let heads = match target {
        Target::Builtin | Target::Cuda => [1 + random.below(3), 1 + random.below(4)],
        Target::External => [1 + random.below(2), 1 + random.below(3)],
    };
    let width = match target {
        Target::Builtin => size(random, 128),
        Target::Cuda => pick(random, &[32, 64, 96, 128]),
        Target::External => pick(random, &[16, 32, 64, 128]),
    };
    let most = (most.cost / (heads[0] * heads[1] * width)).isqrt();
    let steps = size(random, most.clamp(1, 600));
    (vec![heads[0], heads[1], steps, width], json!({"causal": random.below(2) == 0}))
}

fn scan(most: &Most, random: &mut Random) -> (Vec<usize>, Value) {
    let batch = 1 + random.below(3);
    let channels = size(random, 260);
    let steps = size(random, (most.elements / (batch * channels)).clamp(1, 1200));
    let params = json!({
        "direction": pick(random, &["forward", "backward", "bidirectional"]),
        "merge_mode": pick(random, &["sum", "avg", "gated"]),
        "clamp_value": pick(random, &[1e4, 2.0]),
    });
    (vec![batch, steps, channels], params)
}

fn gate(most: &Most, random: &mut Random) -> (Vec<usize>, Value) {
    let [batch, height, width] = [1 + random.below(3), size(random, 67), size(random, 67)];
    let channels = size(random, (most.elements / (batch * height * width)).clamp(1, 130));
    let params = match random.below(2) {
        0 => json!({}),
        _ => {
            json!({"boundary_log_weight": 2.0 * random.uniform() - 1.0, "bias": 4.0 * random.uniform() - 2.0})
        }
    };
    (vec![batch, channels, height, width], params)
}

fn tiles(op: &str, target: Target, most: &Most, random: &mut Random) -> (Vec<usize>, Value) {
    let tile = pick(random, &[1, 2, 3, 4, 5, 7, 8, 8, 16, 16]);
    let [rows, columns] = [1 + random.below(8), 1 + random.below(8)];
    let batch = 1 + random.below(3);
    let plane = rows * columns * tile * tile;
    let channels = size(random, (most.elements / (batch * plane)).clamp(1, 130));
    let shape = vec![batch, channels, rows * tile, columns * tile];
    let mut ids: Vec<usize> = (0..rows * columns).collect();
    random.shuffle(&mut ids);
    ids.truncate(1 + random.below(rows * columns));
    let mut params = json!({"tile_size": tile, "indices": ids});
    let count = ids.len();
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
                // A worker of the user's writes floats, not the map of priorities.
                if target == Target::External || random.below(2) == 0 {
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
    (shape, params)
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
    use holdpoint_model::{Suite, WorkloadSpec};
    use std::collections::BTreeSet;

    fn workload(op: &str) -> WorkloadSpec {
        let text = format!("schema_version = 1\nname = \"a\"\n[[workload]]\nname = \"a\"\nop = {op:?}\n");
        Suite::parse(&text).unwrap().workloads.remove(0)
    }

    fn kernel(spec: &WorkloadSpec, target: Target) -> Kernel<'_> {
        Kernel { spec, dtype: "f32".to_owned(), target, declared: None }
    }

    #[test]
    fn every_op_has_cases_that_it_takes_and_they_differ() {
        let mut random = Random::new(1);
        for (target, ops) in [
            (Target::Builtin, holdpoint_workloads::OPS),
            (
                Target::Cuda,
                &[
                    "attention",
                    "tile_pack",
                    "tile_unpack",
                    "fused_pack_op_unpack",
                    "fusion_gate",
                    "tile_ssm",
                    "ff_path",
                    "copy",
                ],
            ),
            (Target::External, super::super::arena::OPS),
        ] {
            for op in ops {
                let shapes: BTreeSet<Vec<usize>> = (0..100)
                    .filter_map(|_| generate(&kernel(&workload(op), target), &mut random))
                    .map(|c| c.shape)
                    .collect();
                assert!(shapes.len() > 20, "{op}: {} shapes", shapes.len());
            }
        }
        assert_eq!(generate(&kernel(&workload("nothing"), Target::Builtin), &mut random), None);
    }

    #[test]
    fn a_kernel_of_the_users_gets_what_it_requires_and_nothing_off_alignment() {
        let mut random = Random::new(3);
        let mut spec = workload("attention");
        let own = json!({ "source": "a.cu", "entry": "a", "grid": [1], "block": [64],
            "requires": ["steps % 64 == 0", "head_dim == 64"] });
        spec.kernel = serde_json::from_value(own).unwrap();
        for _ in 0..50 {
            let case = generate(&kernel(&spec, Target::Cuda), &mut random).unwrap();
            assert_eq!((case.shape[2] % 64, case.shape[3], case.offset), (0, 64, 0));
            assert_eq!(case.kernel, spec.kernel);
        }
    }

    #[test]
    fn sizes_are_tiny_prime_and_beside_powers_of_two() {
        let mut random = Random::new(2);
        let sizes: BTreeSet<usize> = (0..2000).map(|_| size(&mut random, 300)).collect();
        assert!([1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 129, 131, 257].iter().all(|n| sizes.contains(n)));
        assert!(sizes.iter().all(|&n| (1..=300).contains(&n)));
    }
}
